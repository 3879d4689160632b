"""Tokens of an OAuth client (grant client_credentials) for requests to a schema registry.

An error names the token endpoint without the credentials and the query of its URL. It never contains the endpoint's
answer, which may be a token.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import certifi
import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client

from sink_job.api.errors import ConfigurationError, InvalidCredentials
from sink_job.api.field_types import is_loopback
from sink_job.registry.clients.answer_limits import limit_answers
from sink_job.registry.clients.http_proxy import bypass_proxy, http_proxy
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.failures import RETRIED_STATUS, Reaction, RegistryFailure
from sink_job.registry.settings import RegistrySettings

_EXPIRES_SOON_S: Final = 60
_SECRET: Final = "the Secret of spec.format.registry.credentials"
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]+")


class TokenError(Exception):
    """There is no token. `failure` is the reaction to that."""

    def __init__(self, failure: RegistryFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class OAuthToken:
    """The token of an OAuth client, fetched again before it expires. Thread-safe."""

    def __init__(self, credentials: RegistryCredentials, settings: RegistrySettings) -> None:
        """Raises ConfigurationError for a token URL that is none, or has no TLS."""
        check_token_url(credentials.token_url, insecure=settings.insecure)
        self._url = credentials.token_url
        self._lock = threading.Lock()
        self._client: Any = OAuth2Client(
            client_id=credentials.client_id,
            client_secret=credentials.client_secret,
            scope=credentials.scope or None,
            verify=_trusted(settings),
            proxy=http_proxy(settings, credentials.token_url),
            timeout=settings.timeout_s,
        )
        bypass_proxy(self._client, settings, credentials.token_url)
        limit_answers(self._client, settings.timeout_s)

    def __call__(self) -> str:
        """The current token. Raises TokenError."""
        with self._lock:
            try:
                if not self._client.token or self._client.token.is_expired(leeway=_EXPIRES_SOON_S):
                    self._client.fetch_token(url=self._url, grant_type="client_credentials")
                token = self._client.token["access_token"]
            except Exception as error:
                self._client.token = None
                raise TokenError(_failure(error, shown_url(self._url))) from None
            if not isinstance(token, str) or not _HEADER_VALUE.fullmatch(token):
                self._client.token = None
                _transient(f"{_endpoint(shown_url(self._url))} returned a token that an HTTP header cannot contain")
            return token


def check_token_url(text: str, *, insecure: bool) -> None:
    """Raises ConfigurationError, without the URL, which may contain a password."""
    try:
        url = urlsplit(text)
        has_host = bool(url.hostname) and url.port != 0
    except ValueError:
        has_host = False
    if not has_host or url.scheme not in ("http", "https"):
        raise ConfigurationError(f"the tokenUrl in {_SECRET} is not a URL: use https://host/path")
    if url.username is not None or url.password is not None:
        raise ConfigurationError(f"the tokenUrl in {_SECRET} contains credentials: use clientId and clientSecret")
    if url.scheme == "http" and not insecure and not is_loopback(text):
        raise ConfigurationError(
            f"the tokenUrl in {_SECRET} is not encrypted: use https://, or set spec.format.registry.insecure: true"
        )


def shown_url(text: str) -> str:
    """A URL for messages: without a query, and without a user and password."""
    url = urlsplit(text)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _endpoint(url: str) -> str:
    return f"the token endpoint {url}"


def _transient(text: str) -> NoReturn:
    raise TokenError(RegistryFailure(Reaction.TRANSIENT, text))


def _failure(error: Exception, url: str) -> RegistryFailure:
    """The failure that an exception of the client means."""
    endpoint = _endpoint(url)
    if isinstance(error, OAuthError):
        code = error.error if isinstance(error.error, str) and _HEADER_VALUE.fullmatch(error.error) else "no reason"
        text = f"{endpoint} rejected the client ({code[:50]}): fix clientId, clientSecret and scope in {_SECRET}"
        return RegistryFailure(Reaction.CONFIGURATION, text, raises=InvalidCredentials)
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            text = f"the certificate of {endpoint} is not trusted ({cause.verify_message}): add its certificate "
            return RegistryFailure(Reaction.CONFIGURATION, f"{text}authority to spec.format.registry.caSecret")
    if isinstance(error, httpx2.HTTPStatusError):
        return _answered(error.response.status_code, endpoint)
    if isinstance(error, httpx2.HTTPError):
        return RegistryFailure(Reaction.TRANSIENT, f"{endpoint}: no answer ({type(error).__name__})")
    return RegistryFailure(Reaction.TRANSIENT, f"the answer of {endpoint} contains no token ({type(error).__name__})")


def _answered(status: int, endpoint: str) -> RegistryFailure:
    if status >= 500 or status in RETRIED_STATUS:
        return RegistryFailure(Reaction.TRANSIENT, f"{endpoint}: HTTP {status}")
    text = f"{endpoint} answered HTTP {status}: fix tokenUrl, clientId and clientSecret in {_SECRET}"
    return RegistryFailure(Reaction.CONFIGURATION, text, raises=InvalidCredentials)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _trusted(settings: RegistrySettings) -> ssl.SSLContext:
    """The default authorities and those of the manifest: the token endpoint may have a certificate of either."""
    context = ssl.create_default_context(cafile=certifi.where())
    if settings.ca_file is not None:
        context.load_verify_locations(cafile=str(settings.ca_file))
    return context
