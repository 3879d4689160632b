"""The client of AWS Glue, made from `RegistrySettings`: endpoint, credentials and the role that it assumes."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from sink_job.api.errors import ConfigurationError
from sink_job.api.version import package_version
from sink_job.registry.clients.glue_errors import failure_of
from sink_job.registry.clients.requests import Endpoint
from sink_job.registry.credentials import stamp
from sink_job.registry.settings import RegistrySettings, authorities
from sink_job.s3.access.assumed_role import RoleProvider
from sink_job.s3.access.credentials import DirectoryProvider
from sink_job.s3.proxy import proxies
from sink_job.s3.session import aws_endpoint, use_provider

_SETTING: Final = "spec.format.registry.credentials"
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


def _client(settings: RegistrySettings) -> Any:
    ca_file, session = authorities(settings), botocore.session.Session()
    through: dict[str, Any] = {}
    through_sts: dict[str, Any] = {}
    if settings.proxy is not None:
        url = settings.urls[0] if settings.urls else aws_endpoint(session, "glue", settings.region)
        through = proxies(settings.proxy, url, ca_file)
        through_sts = proxies(settings.proxy, aws_endpoint(session, "sts", settings.region), ca_file)
    if through_sts:
        session.set_default_client_config(Config(**through_sts))
    if ca_file is not None:
        ssl.create_default_context(cafile=str(ca_file))  # botocore reads it with the first request
    if settings.credentials_dir is not None:
        use_provider(session, DirectoryProvider(settings.credentials_dir, _SETTING))
    if settings.role is not None:
        session, source = botocore.session.Session(), session
        create_client = partial(
            source.create_client, region_name=settings.region, config=_config(settings, through_sts)
        )
        use_provider(session, RoleProvider(settings.role, source, create_client))
    return session.create_client(
        "glue",
        region_name=settings.region,
        endpoint_url=settings.urls[0] if settings.urls else None,
        verify=None if ca_file is None else str(ca_file),
        config=_config(settings, through),
    )


def _config(settings: RegistrySettings, through: Mapping[str, Any]) -> Config:
    """One attempt: `Requests` retries. `through`: options of `proxies`."""
    return Config(
        connect_timeout=settings.timeout_s,
        read_timeout=settings.timeout_s,
        **through,
        max_pool_connections=_MAX_CONNECTIONS,
        user_agent_extra=f"s3sink/{package_version()}",
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
