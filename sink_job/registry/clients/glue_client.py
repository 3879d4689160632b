"""The client of AWS Glue, made from `RegistrySettings`: endpoint, credentials and the role that it assumes."""

from __future__ import annotations

import ssl
import threading
from functools import partial
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    Credentials,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, NoCredentialsError

from sink_job.api.errors import ConfigurationError
from sink_job.api.version import package_version
from sink_job.registry.clients.glue_errors import failure_of
from sink_job.registry.clients.requests import Endpoint
from sink_job.registry.credentials import stamp
from sink_job.registry.settings import RegistrySettings, authorities
from sink_job.s3.credentials import DirectoryProvider

_SETTING: Final = "spec.format.registry.credentials"
_SESSION_NAME: Final = "s3sink"
_MAX_CONNECTIONS: Final = 10


class GlueEndpoints:
    """The client for the endpoint. It is created again after a change of the certificate authorities; changed keys are
    used without that. Thread-safe."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._stamp: object = None
        self._current: list[Endpoint[Any]] = []

    def __call__(self) -> list[Endpoint[Any]]:
        """The current client. Raises SecretNotFound and ConfigurationError."""
        now = stamp(self._settings.ca_file)
        with self._lock:
            if not self._current or now != self._stamp:
                client = self._created()
                self._current, self._stamp = [Endpoint(client.meta.endpoint_url, client)], now
            return self._current

    def _created(self) -> Any:
        try:
            return _client(self._settings)
        except BotoCoreError as error:
            failure = failure_of(error)
            assert failure is not None
            raise failure.raises(f"schema registry {self._settings.url}: {failure.text}") from error
        except OSError as error:
            raise ConfigurationError(
                f"schema registry {self._settings.url}: the certificates cannot be read ({type(error).__name__}): "
                "check spec.format.registry.caSecret; they must be PEM"
            ) from None

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            for endpoint in self._current:
                endpoint.client.close()
            self._current = []


class _RoleProvider(CredentialProvider):
    """The credentials of a role. They are fetched with the first request, and again before they expire."""

    METHOD = "assume-role"

    def __init__(self, settings: RegistrySettings, session: botocore.session.Session) -> None:
        """`session` has the credentials to assume the role with."""
        super().__init__()
        self._settings = settings
        self._session = session

    def load(self) -> Credentials:
        """Raises NoCredentialsError if there are none to assume the role with."""
        settings, source = self._settings, self._session.get_credentials()
        assert settings.role_arn is not None
        if source is None:
            raise NoCredentialsError
        external = {} if settings.external_id is None else {"ExternalId": settings.external_id}
        fetcher = AssumeRoleCredentialFetcher(
            client_creator=partial(
                self._session.create_client, region_name=settings.region, config=_config(settings.timeout_s)
            ),
            source_credentials=source,
            role_arn=settings.role_arn,
            extra_args={"RoleSessionName": _SESSION_NAME, **external},
        )
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)


def _client(settings: RegistrySettings) -> Any:
    ca_file, session = authorities(settings), botocore.session.Session()
    if ca_file is not None:
        ssl.create_default_context(cafile=str(ca_file))  # botocore reads it with the first request
    if settings.credentials_dir is not None:
        _use(session, DirectoryProvider(settings.credentials_dir, _SETTING))
    if settings.role_arn is not None:
        session, source = botocore.session.Session(), session
        _use(session, _RoleProvider(settings, source))
    return session.create_client(
        "glue",
        region_name=settings.region,
        endpoint_url=settings.urls[0] if settings.urls else None,
        verify=None if ca_file is None else str(ca_file),
        config=_config(settings.timeout_s),
    )


def _use(session: botocore.session.Session, provider: CredentialProvider) -> None:
    session.register_component("credential_provider", CredentialResolver(providers=[provider]))


def _config(timeout_s: float) -> Config:
    """One attempt: `Requests` retries."""
    return Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        max_pool_connections=_MAX_CONNECTIONS,
        user_agent_extra=f"s3sink/{package_version()}",
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
