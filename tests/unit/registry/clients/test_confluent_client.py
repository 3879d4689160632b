"""The client library of Confluent's API, made from settings and credentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import ConfigurationError, SecretNotFound
from sink_job.registry.clients.confluent_client import confluent_clients
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.settings import RegistrySettings

URL = "https://registry.example.com"


class Server:
    """Answers each request with `status`, and keeps its headers."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[httpx2.Headers] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.headers.append(request.headers)
        return httpx2.Response(self.status, json={"schema": '"int"'})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """All clients send their requests to this server."""
    found = Server()
    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", lambda _, request: found(request))
    return found


def sent(server: Server, credentials: RegistryCredentials | None) -> dict[str, Any]:
    """The headers of a request with these credentials."""
    client = confluent_clients(RegistrySettings(urls=(URL,)), credentials)(URL)
    client.get_schema(1)
    return dict(server.headers[-1])


def test_a_registry_without_credentials_gets_none(server: Server) -> None:
    assert "authorization" not in sent(server, None)


def test_a_user_is_sent_with_the_password(server: Server) -> None:
    assert sent(server, RegistryCredentials(username="u", password="p:w"))["authorization"] == "Basic dTpwOnc="


def test_a_token_is_sent_with_the_logical_cluster_and_the_identity_pool(server: Server) -> None:
    headers = sent(server, RegistryCredentials(token="abc", logical_cluster="lsrc-1", identity_pool="pool-1"))
    assert headers["authorization"] == "Bearer abc"
    assert (headers["target-sr-cluster"], headers["confluent-identity-pool-id"]) == ("lsrc-1", "pool-1")


def test_a_token_needs_no_identity_pool(server: Server) -> None:
    headers = sent(server, RegistryCredentials(token="abc"))
    assert (headers["authorization"], headers.get("confluent-identity-pool-id")) == ("Bearer abc", None)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failed_request_is_not_sent_again_by_the_library(server: Server, status: int) -> None:
    server.status = status
    client = confluent_clients(RegistrySettings(urls=(URL,)), None)(URL)
    with pytest.raises(SchemaRegistryError):
        client.get_schema(1)
    assert len(server.headers) == 1


def test_only_compressed_answers_that_can_be_limited_are_requested(server: Server) -> None:
    assert sent(server, None)["accept-encoding"] == "gzip"


def test_a_missing_certificate_is_an_error_before_the_first_request(tmp_path: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"check spec\.format\.registry\.caSecret"):
        confluent_clients(RegistrySettings(urls=(URL,), ca_file=tmp_path / "ca.crt"), None)
    with pytest.raises(SecretNotFound, match=r"tls\.crt does not exist"):
        confluent_clients(RegistrySettings(urls=(URL,), client_dir=tmp_path), None)


def test_a_token_url_without_tls_is_an_error_before_the_first_request() -> None:
    oauth = RegistryCredentials(client_id="id", client_secret="hidden", token_url="http://login.example.com")
    with pytest.raises(ConfigurationError, match="is not encrypted"):
        confluent_clients(RegistrySettings(urls=(URL,)), oauth)
