"""Access to a registry: credentials, tokens and certificates, on a real registry and a real network."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.certificates import self_signed
from devtools.schema_registry.server import SchemaRegistryServer, basic_authorization, schema_registry
from sink_job.api.errors import (
    AccessDenied,
    ConfigurationError,
    InvalidCredentials,
    SecretNotFound,
    TransientError,
)
from sink_job.driver.secret_registry import Redactor
from tests.support.registry import FLIGHT, FLIGHT_2, error_of, registry_client, secret

pytestmark = pytest.mark.data
PASSWORD = "correct-horse"


def test_missing_credentials_are_a_configuration_error() -> None:
    with schema_registry(authorization="Bearer abc") as server, registry_client(server) as client:
        error = error_of(client)
    assert isinstance(error, InvalidCredentials)
    assert str(error).startswith(
        f"schema registry {server.url}: schema id 1: the registry requires credentials: set "
        "spec.format.registry.credentials"
    )


def test_rejected_credentials_are_a_configuration_error_without_the_secret(tmp_path: Path) -> None:
    folder = secret(tmp_path, username="u", password=PASSWORD)
    with schema_registry() as server, registry_client(server, credentials_dir=folder) as client:
        server.answer("/schemas", 401, {"error_code": 401, "message": "Unauthorized"})
        error = error_of(client)
    assert isinstance(error, InvalidCredentials)
    assert "fix the Secret referenced by spec.format.registry.credentials" in str(error)
    assert PASSWORD not in f"{error!r} {client!r} {client.settings!r}"


def test_a_missing_permission_is_a_configuration_error(tmp_path: Path) -> None:
    folder = secret(tmp_path, username="u", password=PASSWORD)
    with (
        schema_registry(authorization="Bearer abc") as server,
        registry_client(server, credentials_dir=folder) as client,
    ):
        error = error_of(client)
    assert isinstance(error, AccessDenied)
    assert "access denied: the credentials need read access to schemas and subjects" in str(error)


@pytest.mark.parametrize(
    ("keys", "authorization"),
    [
        ({"username": "u", "password": PASSWORD}, basic_authorization("u", PASSWORD)),
        ({"token": "abc"}, "Bearer abc"),
    ],
)
def test_credentials_are_sent(tmp_path: Path, keys: dict[str, str], authorization: str) -> None:
    with schema_registry(authorization=authorization) as server:
        server.register("flights-value", FLIGHT)
        with registry_client(server, credentials_dir=secret(tmp_path, **keys)) as client:
            assert client.fetch("flights", "1") is not None


def oauth_client(folder: Path, token_url: str, **more: str) -> Path:
    return secret(folder, clientId="s3sink", clientSecret=PASSWORD, tokenUrl=token_url, **more)


def test_the_token_of_an_oauth_client_is_sent(tmp_path: Path, server: SchemaRegistryServer) -> None:
    server.answer("/token", 200, {"access_token": "abc", "token_type": "Bearer", "expires_in": 3600}, count=1)
    with schema_registry(authorization="Bearer abc") as registry:
        registry.register("flights-value", FLIGHT)
        registry.register("flights-value", FLIGHT_2)
        folder = oauth_client(tmp_path, f"{server.url}/token")
        with registry_client(registry, credentials_dir=folder) as client:
            assert client.fetch("flights", "1") is not None
            assert client.fetch("flights", "2") is not None


def test_a_token_is_fetched_again_before_it_expires(tmp_path: Path, server: SchemaRegistryServer) -> None:
    server.answer("/token", 200, {"access_token": "old", "token_type": "Bearer", "expires_in": 10}, count=1)
    server.answer("/token", 200, {"access_token": "new", "token_type": "Bearer", "expires_in": 3600})
    folder = oauth_client(tmp_path, f"{server.url}/token", scope="read")
    with (
        schema_registry(authorization="Bearer new") as registry,
        registry_client(registry, credentials_dir=folder) as client,
    ):
        assert isinstance(error_of(client), AccessDenied)
        assert client.fetch("flights", "1") is None


def test_a_rejected_oauth_client_is_a_configuration_error(tmp_path: Path, server: SchemaRegistryServer) -> None:
    server.answer("/token", 401, {"error": "invalid_client"})
    folder = oauth_client(tmp_path, f"{server.url}/token")
    with registry_client(server, credentials_dir=folder) as client:
        error = error_of(client)
    assert isinstance(error, InvalidCredentials)
    assert f"the token endpoint {server.url}/token rejected the client (invalid_client): fix clientId" in str(error)


def test_a_token_endpoint_that_does_not_work_is_a_transient_error(tmp_path: Path, server: SchemaRegistryServer) -> None:
    server.answer("/token", 503, "overloaded")
    folder = oauth_client(tmp_path, f"{server.url}/token")
    with registry_client(server, credentials_dir=folder) as client:
        assert isinstance(error_of(client), TransientError)


@pytest.mark.parametrize("token", [f"{PASSWORD}\n", f"{PASSWORD} é", "", 5, None])
def test_a_token_that_http_cannot_send_is_a_transient_error_without_the_token(
    tmp_path: Path, server: SchemaRegistryServer, token: object
) -> None:
    server.answer("/token", 200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})
    folder = oauth_client(tmp_path, f"{server.url}/token")
    with registry_client(server, credentials_dir=folder) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert f"the token endpoint {server.url}/token returned a token that an HTTP header cannot contain" in str(error)
    assert PASSWORD not in str(error)


@pytest.mark.parametrize("body", ["<html>Please log in</html>", {"token_type": "Bearer"}, [1]])
def test_an_answer_without_a_token_is_a_transient_error_that_names_the_token_endpoint(
    tmp_path: Path, server: SchemaRegistryServer, body: object
) -> None:
    server.answer("/token", 200, body)
    folder = oauth_client(tmp_path, f"{server.url}/token")
    with registry_client(server, credentials_dir=folder) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert f"the answer of the token endpoint {server.url}/token contains no token" in str(error)


@pytest.mark.parametrize("status", [301, 401, 404])
def test_a_wrong_token_url_is_a_configuration_error(tmp_path: Path, server: SchemaRegistryServer, status: int) -> None:
    server.answer("/token", status, "<html>No</html>")
    folder = oauth_client(tmp_path, f"{server.url}/token?key={PASSWORD}")
    with registry_client(server, credentials_dir=folder) as client:
        error = error_of(client)
    assert isinstance(error, InvalidCredentials)
    assert f"the token endpoint {server.url}/token answered HTTP {status}: fix tokenUrl" in str(error)
    assert PASSWORD not in str(error)


def test_an_untrusted_token_endpoint_is_named(tmp_path: Path, server: SchemaRegistryServer) -> None:
    (tmp_path / "certificate").mkdir()
    (tmp_path / "login").mkdir()
    with schema_registry(certificate=self_signed(tmp_path / "certificate")) as login:
        folder = oauth_client(tmp_path / "login", f"{login.url}/token")
        with registry_client(server, credentials_dir=folder) as client:
            error = error_of(client)
    assert isinstance(error, ConfigurationError)
    assert f"the certificate of the token endpoint {login.url}/token is not trusted" in str(error)


def test_a_dead_token_endpoint_is_named(tmp_path: Path, server: SchemaRegistryServer) -> None:
    folder = oauth_client(tmp_path, "https://127.0.0.1:1/token")
    with registry_client(server, credentials_dir=folder) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert "the token endpoint https://127.0.0.1:1/token: no answer (ConnectError)" in str(error)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"https://u:{PASSWORD}@login.example.com/token", "contains credentials: use clientId and clientSecret"),
        (f"https://u:x@login.example.com:{PASSWORD}/token", "is not a URL: use https://host/path"),
        (f"ftp://login.example.com/{PASSWORD}", "is not a URL: use https://host/path"),
        ("login.example.com/token", "is not a URL: use https://host/path"),
    ],
)
def test_another_text_than_a_token_url_is_a_configuration_error_without_it(
    tmp_path: Path, server: SchemaRegistryServer, url: str, message: str
) -> None:
    with registry_client(server, credentials_dir=oauth_client(tmp_path, url)) as client:
        error = error_of(client)
    assert f"the tokenUrl in the Secret of spec.format.registry.credentials {message}" in str(error)
    assert PASSWORD not in str(error)


def test_the_authorization_header_is_redacted(tmp_path: Path) -> None:
    redactor, header = Redactor(), basic_authorization("u", PASSWORD)
    with schema_registry(authorization=header) as server:
        folder = secret(tmp_path, username="u", password=PASSWORD)
        with registry_client(server, credentials_dir=folder, redactor=redactor) as client:
            client.fetch("flights", "1")
    assert redactor(f"HTTP 401: {header}") == "HTTP 401: Basic [hidden]"


def test_a_token_url_without_tls_needs_insecure(tmp_path: Path, server: SchemaRegistryServer) -> None:
    folder = oauth_client(tmp_path, "http://login.example.com/token")
    with registry_client(server, credentials_dir=folder) as client:
        assert "is not encrypted: use https://, or set spec.format.registry.insecure: true" in str(error_of(client))


def test_rotated_credentials_are_used_without_a_restart(tmp_path: Path) -> None:
    folder = secret(tmp_path, token="old-token")
    with schema_registry(authorization="Bearer new") as server:
        server.register("flights-value", FLIGHT)
        with registry_client(server, credentials_dir=folder) as client:
            assert isinstance(error_of(client), AccessDenied)
            secret(folder, token="new")
            assert client.fetch("flights", "1") is not None


def test_rotated_credentials_are_redacted(tmp_path: Path) -> None:
    folder, redactor = secret(tmp_path, token="first-token"), Redactor()
    with schema_registry() as server, registry_client(server, credentials_dir=folder, redactor=redactor) as client:
        client.fetch("flights", "1")
        secret(folder, token="second-one")
        client.fetch("flights", "1")
    assert redactor("first-token, second-one, third") == "[hidden], [hidden], third"


def test_an_untrusted_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    with schema_registry(certificate=self_signed(tmp_path)) as server, registry_client(server) as client:
        error = error_of(client)
    assert isinstance(error, ConfigurationError)
    assert str(error) == (
        f"schema registry {server.url}: schema id 1: the registry's certificate is not trusted: set its certificate "
        "authority in spec.format.registry.caSecret (self-signed certificate)"
    )


def test_the_certificate_authority_of_the_manifest_is_trusted(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with schema_registry(certificate=certificate) as server:
        server.register("flights-value", FLIGHT)
        with registry_client(server, ca_file=certificate.certificate) as client:
            assert client.fetch("flights", "1") is not None


def test_a_missing_client_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with (
        schema_registry(certificate=certificate, client_ca=certificate.certificate) as server,
        registry_client(server, ca_file=certificate.certificate) as client,
    ):
        error = error_of(client)
    assert isinstance(error, ConfigurationError)
    assert "the registry does not accept the client certificate: set spec.format.registry.clientSecret" in str(error)


def test_a_client_certificate_is_sent(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with (
        schema_registry(certificate=certificate, client_ca=certificate.certificate) as server,
        registry_client(server, ca_file=certificate.certificate, client_dir=tmp_path) as client,
    ):
        assert client.fetch("flights", "1") is None


def test_a_missing_file_of_authorities_is_a_configuration_error(server: SchemaRegistryServer, tmp_path: Path) -> None:
    with registry_client(server, ca_file=tmp_path / "ca.crt") as client:
        assert isinstance(error_of(client), SecretNotFound)


def test_an_unreadable_certificate_is_a_configuration_error(server: SchemaRegistryServer, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not PEM")
    with registry_client(server, ca_file=tmp_path / "ca.crt") as client:
        assert "the certificates cannot be read" in str(error_of(client))
