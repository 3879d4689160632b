"""Clients of Confluent's REST API.

The client library tries its URLs and retries on its own; here it gets one URL and no retries, because an error must
name the URL, and the retry time is the same for all requests of a sink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka.schema_registry import SchemaRegistryClient

from sink_job.registry.clients.answer_limits import limit_answers
from sink_job.registry.clients.connection import bearer_token, client_certificate
from sink_job.registry.clients.http_proxy import bypass_proxy, http_proxy
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.settings import RegistrySettings, authorities

_TOKEN: Final = "bearer.auth.token"


def confluent_clients(
    settings: RegistrySettings, credentials: RegistryCredentials | None
) -> Callable[[str], SchemaRegistryClient]:
    """Reads the certificates. What it returns creates the client of a URL.

    Raises SecretNotFound and ConfigurationError, and ssl.SSLError and OSError for files that are not certificates.
    """
    properties = _properties(settings, credentials)

    def create(url: str) -> SchemaRegistryClient:
        client = SchemaRegistryClient({"url": url, "proxy": http_proxy(settings, url), **properties})
        bypass_proxy(client._rest_client.session, settings, url)
        limit_answers(client._rest_client.session, settings.timeout_s)  # the library has no setting for it
        return client

    return create


def _properties(settings: RegistrySettings, credentials: RegistryCredentials | None) -> dict[str, Any]:
    """The properties of the client library."""
    found: dict[str, Any] = {"timeout": settings.timeout_s, "max.retries": 0}
    ca_file, certificate = authorities(settings), client_certificate(settings)
    if ca_file is not None:
        found["ssl.ca.location"] = str(ca_file)
    if certificate is not None:
        found |= {"ssl.certificate.location": str(certificate.certificate), "ssl.key.location": str(certificate.key)}
    if credentials is not None:
        found |= _authentication(credentials, settings)
    return found


def _authentication(credentials: RegistryCredentials, settings: RegistrySettings) -> dict[str, Any]:
    if credentials.username:
        return {"basic.auth.user.info": f"{credentials.username}:{credentials.password}"}
    return _bearer(credentials, bearer_token(credentials, settings))


def _bearer(credentials: RegistryCredentials, token: Callable[[], str]) -> dict[str, Any]:
    def fields(_: dict[str, Any]) -> dict[str, str]:
        found = {_TOKEN: token(), "bearer.auth.logical.cluster": credentials.logical_cluster}
        if credentials.identity_pool:
            found["bearer.auth.identity.pool.id"] = credentials.identity_pool
        return found

    return {
        "bearer.auth.credentials.source": "CUSTOM",
        "bearer.auth.custom.provider.function": fields,
        "bearer.auth.custom.provider.config": {"": ""},
    }
