"""Clients of the URLs of a registry, made from `RegistrySettings`: certificates and credentials."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from sink_job.api.errors import ConfigurationError, SecretNotFound
from sink_job.registry.clients.requests import Endpoint
from sink_job.registry.clients.token import OAuthToken
from sink_job.registry.credentials import RegistryCredentials, read_credentials, stamp
from sink_job.registry.settings import RegistrySettings


class Closable(Protocol):
    """A client with connections."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class ClientCertificate(NamedTuple):
    """The paths of a client certificate and its key."""

    certificate: Path
    key: Path


class Endpoints(Generic[C]):
    """One client for each URL. They are created again after a change of a mounted Secret. Thread-safe."""

    def __init__(
        self,
        settings: RegistrySettings,
        factory_of: Callable[[RegistrySettings, RegistryCredentials | None], Callable[[str], C]],
        hide: Callable[[Iterable[str]], None],
    ) -> None:
        """`factory_of` reads the certificates; what it returns creates the client of a URL. `hide` gets the secrets to
        redact in all output, each time when they were read."""
        self._settings = settings
        self._factory_of = factory_of
        self._hide = hide
        self._lock = threading.Lock()
        self._stamp: object = None
        self._current: list[Endpoint[C]] = []

    def __call__(self) -> list[Endpoint[C]]:
        """The current clients. Raises SecretNotFound and ConfigurationError."""
        settings = self._settings
        now = stamp(settings.credentials_dir, settings.client_dir, settings.ca_file)
        with self._lock:
            if not self._current or now != self._stamp:
                self._current = self._created()
                self._stamp = now
            return self._current

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            for endpoint in self._current:
                endpoint.client.close()
            self._current = []

    def _created(self) -> list[Endpoint[C]]:
        settings = self._settings
        try:
            create = self._factory_of(settings, self._credentials())
            return [Endpoint(url, create(url)) for url in settings.urls]
        except (ssl.SSLError, OSError) as error:
            raise ConfigurationError(
                f"schema registry {settings.url}: the certificates cannot be read ({type(error).__name__}): check "
                "spec.format.registry.caSecret and clientSecret; they must be PEM, the key without a password"
            ) from None

    def _credentials(self) -> RegistryCredentials | None:
        if self._settings.credentials_dir is None:
            return None
        found = read_credentials(self._settings.credentials_dir)
        self._hide(found.secrets)
        return found


def client_certificate(settings: RegistrySettings) -> ClientCertificate | None:
    """The client certificate; None if the settings have none. Raises SecretNotFound if a file does not exist."""
    if settings.client_dir is None:
        return None
    found = ClientCertificate(settings.client_dir / "tls.crt", settings.client_dir / "tls.key")
    for path in found:
        if not path.is_file():
            raise SecretNotFound(
                f"schema registry {settings.url}: {path} does not exist: add the keys tls.crt and tls.key to the "
                "Secret of spec.format.registry.clientSecret"
            )
    return found


def bearer_token(credentials: RegistryCredentials, settings: RegistrySettings) -> Callable[[], str]:
    """Returns the current token of credentials without a user. The function raises TokenError.

    Raises ConfigurationError for a token URL that is none, or has no TLS.
    """
    if credentials.token:
        return lambda: credentials.token
    return OAuthToken(credentials, settings)
