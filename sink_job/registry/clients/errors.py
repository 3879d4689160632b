"""Maps the answers of a schema registry and the exceptions of its client to the errors of this project.

- A registry that does not know an id answers 404 with the error code 40403. The caller handles it.
- *Transient* failures (no answer, 429, 5xx) are retried. They become a TransientError when the retry time is over.
- *Suspect* failures (a web page, no TLS at the port) are retried a few times. Then they need user action.
- All other failures need user action: another 404, 401, 403, an untrusted certificate.

Messages name the URL of the registry, never a credential.
Source of the codes: the API reference of Confluent Schema Registry.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from typing import Final

import httpx2
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import AccessDenied, ConfigurationError, InvalidCredentials, RegistryNotFound
from sink_job.registry.clients.token import TokenError
from sink_job.registry.failures import (
    RETRIED_STATUS,
    SCHEMA_NOT_FOUND,
    SUBJECT_NOT_FOUND,
    VERSION_NOT_FOUND,
    Reaction,
    RegistryFailure,
)
from sink_job.s3.proxy import REJECTED, proxy_failure

_ABSENT: Final = (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND)

_MAX_MESSAGE: Final = 200
_CREDENTIALS: Final = "fix the Secret referenced by spec.format.registry.credentials"
_NO_CREDENTIALS: Final = "the registry requires credentials: set spec.format.registry.credentials"
_DENIED: Final = "access denied: the credentials need read access to schemas and subjects"
_UNTRUSTED: Final = (
    "the registry's certificate is not trusted: set its certificate authority in spec.format.registry.caSecret"
)
_CLIENT: Final = (
    "the registry does not accept the client certificate: set spec.format.registry.clientSecret, or fix that Secret"
)
_PATH: Final = (
    "this URL has no schema registry: fix spec.format.registry.url (type Confluent: the URL of its REST API; type "
    "Apicurio: a URL that ends in /apis/registry/v3)"
)
_PLAIN_PORT: Final = "the port has no TLS: fix spec.format.registry.url (https:// or http://, and the port)"
_PLAIN: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""What OpenSSL reports for an answer that is no TLS."""
_CERTIFICATE_ALERTS: Final = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")


def failure_of(error: Exception, *, has_credentials: bool) -> RegistryFailure | None:
    """The failure that `error` means. None if it is neither an answer nor a network error, but a bug."""
    if isinstance(error, SchemaRegistryError):
        return _answered(error, has_credentials=has_credentials)
    for cause in _chain(error):
        if isinstance(cause, httpx2.ProxyError) and (rejection := proxy_failure(str(cause))):
            advice, is_login = rejection
            return _configuration(advice, InvalidCredentials if is_login else AccessDenied)
        if isinstance(cause, TokenError):
            return cause.failure
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _configuration(f"{_UNTRUSTED} ({cause.verify_message})")
        if isinstance(cause, ssl.SSLError) and _is_certificate_alert(cause):
            return _configuration(f"{_CLIENT} ({cause.reason})")
        if isinstance(cause, ssl.SSLError) and cause.reason in _PLAIN:
            return _suspect(f"{_PLAIN_PORT} ({cause.reason})")
        if isinstance(cause, json.JSONDecodeError) and cause.doc.lstrip().startswith("<"):
            return _suspect(f"{_PATH} (it answers with a web page)")
    if isinstance(error, httpx2.InvalidURL):
        return _configuration(f"{_PATH} ({_named(error)})")
    if any(isinstance(cause, httpx2.HTTPError) for cause in _chain(error)):
        return RegistryFailure(Reaction.TRANSIENT, _network(error))
    if isinstance(
        error, ValueError | TypeError | LookupError | AttributeError
    ):  # a proxy's page, or a truncated answer
        return RegistryFailure(
            Reaction.TRANSIENT, f"the answer is not the answer of a schema registry ({_named(error)})"
        )
    return None


def is_missing_endpoint(error: SchemaRegistryError) -> bool:
    """Whether the server does not have the path of the request."""
    return int(error.http_status_code) in (404, 405) and _number(error.error_code) not in _ABSENT


def text_of(error: SchemaRegistryError) -> str:
    """The answer for messages."""
    return f"HTTP {int(error.http_status_code)}: {_shortened(str(error.error_message))}"


def _answered(error: SchemaRegistryError, *, has_credentials: bool) -> RegistryFailure:
    status, code, text = int(error.http_status_code), _number(error.error_code), text_of(error)
    if code in _ABSENT:
        return RegistryFailure(Reaction.ABSENT, text, code)
    if status in RETRIED_STATUS or status >= 500:
        return RegistryFailure(Reaction.TRANSIENT, text, code)
    match status:
        case 401:
            return _configuration(
                f"{_CREDENTIALS if has_credentials else _NO_CREDENTIALS} ({text})", InvalidCredentials
            )
        case 403:
            return _configuration(f"{_DENIED} ({text})", AccessDenied)
        case 407:
            return _configuration(REJECTED, InvalidCredentials)
        case 404:
            return _configuration(f"{_PATH} ({text})", RegistryNotFound)
    return _configuration(f"the registry rejected the request ({text}): check spec.format.registry.url")


def _configuration(text: str, raises: type[ConfigurationError] = ConfigurationError) -> RegistryFailure:
    return RegistryFailure(Reaction.CONFIGURATION, text, raises=raises)


def _suspect(text: str) -> RegistryFailure:
    return RegistryFailure(Reaction.SUSPECT, text, raises=RegistryNotFound)


def _number(code: object) -> int:
    try:
        return int(str(code))
    except ValueError:
        return 0


def _is_certificate_alert(error: ssl.SSLError) -> bool:
    reason = error.reason or ""
    return "ALERT" in reason and any(word in reason for word in _CERTIFICATE_ALERTS)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _network(error: Exception) -> str:
    return f"no answer ({_named(error)})"


def _named(error: Exception) -> str:
    text = _shortened(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE else line[: _MAX_MESSAGE - 1] + "…"
