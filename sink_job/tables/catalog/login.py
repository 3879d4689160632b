"""The login of a REST catalog, from a directory in the layout of a mounted Secret: one file per key.

The files are checked before each request and read again after a change, so a rotated Secret takes effect without a
restart. No error contains a secret, or an answer of the token endpoint, which may be a token.
"""

from __future__ import annotations

import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import requests
from pyiceberg.catalog.rest.auth import AuthManager

from sink_job.api.errors import ConfigurationError, InvalidCredentials, SecretNotFound, TransientError
from sink_job.api.field_types import is_loopback
from sink_job.engine.secret_files import Stamp, current_version, file_stamp, read_key
from sink_job.tables.catalog.access import SECTION

KEYS: Final = ("token", "clientId", "clientSecret", "tokenUrl", "scope", "username", "password")
_SECRETS: Final = ("token", "clientSecret", "password")
_KINDS: Final = (("token",), ("clientId", "clientSecret"), ("username", "password"))
_SECRET: Final = f"the Secret of {SECTION}.credentials"
_ADVICE: Final = (
    f"{_SECRET} needs the key token, or clientId and clientSecret, or username and password; with clientId optionally "
    "tokenUrl and scope"
)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]+")
_EXPIRES_SOON_S: Final = 60.0
_DEFAULT_LIFETIME_S: Final = 300.0
"""Time in s after which a token without `expires_in` is fetched again."""
_RETRIED: Final = (408, 425, 429)
_WHAT: Final = "catalog credentials"


class CatalogLogin(AuthManager):
    """The header Authorization of each request. Thread-safe.

    `token_url` is the endpoint of OAuth of the catalog itself, for a Secret without tokenUrl. `session_of` makes the
    session for requests to a token endpoint. `hide` gets the secrets to redact in all output, each time when they were
    read. `insecure`: a token endpoint of another machine may have no TLS.
    """

    def __init__(
        self,
        directory: Path,
        token_url: str,
        session_of: Callable[[], requests.Session],
        hide: Callable[[Iterable[str]], None],
        *,
        insecure: bool = False,
    ) -> None:
        """Raises SecretNotFound and InvalidCredentials."""
        self._directory = directory
        self._insecure = insecure
        self._token_url = token_url
        self._session_of = session_of
        self._hide = hide
        self._lock = threading.Lock()
        self._stamp: tuple[Stamp, ...] | None = None
        self._values: Mapping[str, str] = {}
        self._token = _Token()
        self._current()

    def __repr__(self) -> str:
        return f"CatalogLogin({str(self._directory)!r})"

    def auth_header(self) -> str:
        """Raises SecretNotFound, InvalidCredentials, and TransientError if the token endpoint does not answer."""
        with self._lock:
            values = self._current()
            if values["token"]:
                return f"Bearer {values['token']}"
            if values["username"]:
                return f"Basic {_encoded(values)}"
            if time.monotonic() >= self._token.ends:
                self._token = self._fetched(values)
                self._hide([self._token.text])
            return f"Bearer {self._token.text}"

    def forget(self) -> None:
        """The catalog has rejected the token: the next request needs another one."""
        with self._lock:
            self._token = _Token()

    def _current(self) -> Mapping[str, str]:
        stamp = tuple(file_stamp(self._directory / key) for key in KEYS)
        if stamp != self._stamp:
            self._values, self._stamp, self._token = read_login(self._directory), stamp, _Token()
            self._hide(each for each in (*(self._values[key] for key in _SECRETS), _encoded(self._values)) if each)
        return self._values

    def _fetched(self, values: Mapping[str, str]) -> _Token:
        url = values["tokenUrl"] or self._token_url
        _check_token_url(url, insecure=self._insecure)
        form = {
            "grant_type": "client_credentials",
            "client_id": values["clientId"],
            "client_secret": values["clientSecret"],
        }
        scope = values["scope"] or ("" if values["tokenUrl"] else "catalog")
        endpoint = f"the token endpoint {_shown(url)}"
        try:
            with self._session_of() as session:
                answer = session.post(url, data=form | ({"scope": scope} if scope else {}), allow_redirects=False)
        except requests.exceptions.SSLError:
            raise ConfigurationError(
                f"the certificate of {endpoint} is not trusted: set its certificate authority in {SECTION}.caSecret"
            ) from None
        except requests.RequestException as error:
            raise TransientError(f"{endpoint}: no answer ({type(error).__name__})") from None
        return _token_in(answer, endpoint)


@dataclass(frozen=True)
class _Token:
    """`ends`: the time in s, monotonic, from which on another token is needed."""

    text: str = field(default="", repr=False)
    ends: float = float("-inf")


def _token_in(answer: requests.Response, endpoint: str) -> _Token:
    status = answer.status_code
    if status >= 500 or status in _RETRIED:
        raise TransientError(f"{endpoint}: HTTP {status}")
    if status != requests.codes.ok:
        raise InvalidCredentials(
            f"{endpoint} answered HTTP {status}: fix clientId, clientSecret, tokenUrl and scope in {_SECRET}"
        )
    try:
        document = answer.json()
        text, lifetime = document["access_token"], float(document.get("expires_in", _DEFAULT_LIFETIME_S))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TransientError(f"the answer of {endpoint} contains no token ({type(error).__name__})") from None
    if not isinstance(text, str) or not _HEADER_VALUE.fullmatch(text):
        raise TransientError(f"{endpoint} returned a token that an HTTP header cannot contain")
    return _Token(text, time.monotonic() + max(lifetime - _EXPIRES_SOON_S, lifetime / 2))


def _encoded(values: Mapping[str, str]) -> str:
    """User and password as in the header; empty without a user."""
    pair = f"{values['username']}:{values['password']}"
    return b64encode(pair.encode()).decode() if values["username"] else ""


def read_login(directory: Path) -> Mapping[str, str]:
    """The values of the keys, empty without one.

    Raises SecretNotFound if they are not of exactly one kind, and InvalidCredentials for a value that HTTP cannot send:
    libraries quote it in their messages.
    """
    current = current_version(directory)
    values = {key: read_key(current / key, _WHAT) for key in KEYS}
    kinds = [kind for kind in _KINDS if any(values[key] for key in kind)]
    if len(kinds) != 1:
        found = f"keys of {len(kinds)} kinds" if kinds else "none of the keys"
        raise SecretNotFound(f"{_WHAT}: {directory} has {found}; {_ADVICE}")
    missing = [key for key in kinds[0] if not values[key]]
    if missing:
        raise SecretNotFound(f"{_WHAT}: {directory} has no {missing[0]}; {_ADVICE}")
    for key, value in values.items():
        if not (_HEADER_VALUE if key == "token" else _PRINTABLE).fullmatch(value) and value:
            raise InvalidCredentials(
                f"{_WHAT}: {directory / key} contains a character that an HTTP header cannot contain"
            )
    return values


def _check_token_url(text: str, *, insecure: bool) -> None:
    """Raises InvalidCredentials, without the URL, which may contain a password."""
    try:
        url = urlsplit(text)
        is_valid = bool(url.hostname) and url.port != 0 and url.scheme in ("http", "https")
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidCredentials(f"the tokenUrl in {_SECRET} is not a URL: use https://host/path")
    if url.username is not None or url.password is not None:
        raise InvalidCredentials(f"the tokenUrl in {_SECRET} contains credentials: use clientId and clientSecret")
    if url.scheme == "http" and not insecure and not is_loopback(text):
        raise InvalidCredentials(f"the tokenUrl in {_SECRET} is not encrypted: use https://, or {SECTION}.insecure")


def _shown(text: str) -> str:
    """A URL for messages, without a query."""
    url = urlsplit(text)
    return f"{url.scheme}://{url.netloc}{url.path}"
