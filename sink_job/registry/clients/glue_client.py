"""The client of AWS Glue, made from `RegistrySettings`: endpoint, credentials and the role that it assumes."""

from __future__ import annotations

import threading
from typing import Any, Final

from botocore.exceptions import BotoCoreError

from sink_job.api.errors import ConfigurationError
from sink_job.registry.clients.glue_errors import failure_of
from sink_job.registry.clients.requests import Endpoint
from sink_job.registry.credentials import stamp
from sink_job.registry.settings import RegistrySettings, authorities
from sink_job.s3.access.aws_clients import AwsAccess, aws_client

_SETTING: Final = "spec.format.registry.credentials"


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
    return aws_client(
        "glue",
        AwsAccess(
            region=settings.region,
            endpoint=settings.urls[0] if settings.urls else None,
            credentials_dir=settings.credentials_dir,
            setting=_SETTING,
            role=settings.role,
            ca_file=authorities(settings),
            proxy=settings.proxy,
            timeout_s=settings.timeout_s,
        ),
    )
