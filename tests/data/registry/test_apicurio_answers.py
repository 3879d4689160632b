"""What each answer of Apicurio's own API leads to. A server with canned answers gives those that Apicurio does not give
on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from devtools.certificates import self_signed
from devtools.schema_registry.server import SchemaRegistryServer, basic_authorization, schema_registry
from sink_job.api.errors import AccessDenied, ConfigurationError, InvalidCredentials, TransientError
from sink_job.driver.secret_registry import Redactor
from sink_job.engine.retry import RetryPolicy
from sink_job.engine.types import Cancelled
from sink_job.registry.clients.apicurio import ApicurioRegistry
from sink_job.registry.references import MAX_REFERENCES
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import FLIGHT, PERSISTENT, apicurio_client

pytestmark = pytest.mark.data
API = "/apis/registry/v3"
PASSWORD = "correct-horse"
VERSION = {"artifactId": "flights-value", "artifactType": "AVRO", "globalId": 7, "contentId": 1, "version": "1"}
GONE = {"name": "VersionNotFoundException", "status": 404, "title": "No version '1' found for artifact 'flight'."}
Reference = Mapping[str, object]


def url(server: SchemaRegistryServer) -> str:
    return server.url + API


def serve(server: SchemaRegistryServer, *references: Reference) -> None:
    """The content id 1 has a schema with these references."""
    server.answer(f"{API}/ids/contentIds/1/references", 200, references)
    server.answer(f"{API}/ids/contentIds/1", 200, FLIGHT)
    server.answer(f"{API}/search/versions?contentId=1&", 200, {"count": 1, "versions": [VERSION]})


def reference(artifact: str, version: int | str = 1) -> Reference:
    return {"name": f"example.{artifact}.{version}", "artifactId": artifact, "version": str(version)}


def secret(folder: Path, **values: str) -> Path:
    for key, value in values.items():
        (folder / key).write_text(value + "\n")
    return folder


def error_of(client: ApicurioRegistry) -> Exception:
    with pytest.raises((ConfigurationError, TransientError)) as raised:
        client.fetch("flights", "1")
    return raised.value


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_an_overloaded_registry_is_retried(server: SchemaRegistryServer, status: int) -> None:
    for path in ("/ids/contentIds/1/references", "/ids/contentIds/1", "/search/versions"):
        server.answer(API + path, status, {"name": "TooManyRequests", "title": "later"}, count=2)
    serve(server)
    with apicurio_client(url(server), retry=PERSISTENT) as client:
        assert client.fetch("flights", "1") is not None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_stays_overloaded_is_a_transient_error(server: SchemaRegistryServer, status: int) -> None:
    server.answer(API, status, {"name": "SqlException", "title": "no connection"})
    with apicurio_client(url(server)) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert f"{url(server)}: HTTP {status}: no connection" in str(error)


@pytest.mark.parametrize(("status", "raises"), [(401, InvalidCredentials), (403, AccessDenied)])
def test_rejected_credentials_are_a_configuration_error_without_the_secret(
    tmp_path: Path, server: SchemaRegistryServer, status: int, raises: type[Exception]
) -> None:
    server.answer(API, status, "")
    folder = secret(tmp_path, username="u", password=PASSWORD)
    redactor = Redactor()
    with apicurio_client(url(server), credentials_dir=folder, redactor=redactor) as client:
        error = error_of(client)
    assert type(error) is raises
    assert redactor(PASSWORD) != PASSWORD
    assert str(error).startswith(f"schema registry {url(server)}: schema id 1: ")
    assert PASSWORD not in f"{error!r} {client!r} {client.settings!r}"


def test_missing_credentials_are_a_configuration_error(server: SchemaRegistryServer) -> None:
    server.answer(API, 401, "")
    with apicurio_client(url(server)) as client:
        assert "the registry requires credentials: set spec.format.registry.credentials" in str(error_of(client))


@pytest.mark.parametrize("body", ["404 page not found", {"name": "NotFoundException", "title": "Could not find"}, []])
def test_another_404_is_a_configuration_error(server: SchemaRegistryServer, body: object) -> None:
    server.answer(API, 404, body)
    with apicurio_client(url(server)) as client:
        error = error_of(client)
    assert isinstance(error, ConfigurationError)
    assert "this URL has no schema registry: fix spec.format.registry.url" in str(error)


def test_a_redirect_is_a_configuration_error(server: SchemaRegistryServer) -> None:
    server.answer(API, 301, "moved")
    with apicurio_client(url(server)) as client:
        assert "the registry rejected the request (HTTP 301" in str(error_of(client))


@pytest.mark.parametrize("path", ["/ids/contentIds/1", "/search/versions"])
def test_a_page_of_a_proxy_is_a_transient_error(server: SchemaRegistryServer, path: str) -> None:
    server.answer(API + path, 200, "<html>Please log in</html>")
    serve(server)
    with apicurio_client(url(server)) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert "the answer is not the answer of a schema registry" in str(error)


@pytest.mark.parametrize("answer", [[], {}, {"versions": [{}]}, {"versions": 7}])
def test_an_answer_of_another_form_is_a_transient_error(server: SchemaRegistryServer, answer: object) -> None:
    server.answer(f"{API}/search/versions", 200, answer)
    serve(server)
    with apicurio_client(url(server)) as client:
        assert isinstance(error_of(client), TransientError)


@pytest.mark.parametrize(
    "changes", [{"globalId": "new"}, {"globalId": None}, {"artifactType": 5}, {"artifactId": 5}, {"groupId": 5}]
)
def test_a_version_with_values_of_other_types_is_a_transient_error(
    server: SchemaRegistryServer, changes: Mapping[str, object]
) -> None:
    server.answer(f"{API}/search/versions", 200, {"count": 1, "versions": [{**VERSION, **changes}]})
    serve(server)
    with apicurio_client(url(server)) as client:
        assert isinstance(error_of(client), TransientError)


def test_a_schema_in_no_version_is_unknown(server: SchemaRegistryServer) -> None:
    server.answer(f"{API}/search/versions", 200, {"count": 0, "versions": []})
    serve(server)
    with apicurio_client(url(server)) as client:
        assert client.fetch("flights", "1") is None


def test_a_missing_reference_is_a_configuration_error(server: SchemaRegistryServer) -> None:
    serve(server, reference("flight"))
    server.answer(f"{API}/groups/default/artifacts/flight/versions/1", 404, GONE)
    with apicurio_client(url(server)) as client:
        error = error_of(client)
    assert isinstance(error, ConfigurationError)
    assert str(error) == (
        f"schema registry {url(server)}: version 1 of artifact flight, to which schema id 1 refers: HTTP 404: No "
        "version '1' found for artifact 'flight'.: register it again, or restore the registry"
    )


def serve_references(server: SchemaRegistryServer, graph: Mapping[str, Sequence[str]]) -> None:
    """Each artifact has a version 1 with references to others; their global ids are 1, 2, …"""
    for number, (artifact, others) in enumerate(graph.items(), 1):
        server.answer(f"{API}/groups/default/artifacts/{artifact}/versions/1", 200, {"globalId": number})
        server.answer(f"{API}/ids/globalIds/{number}/references", 200, [reference(each) for each in others])
        server.answer(f"{API}/ids/globalIds/{number}", 200, FLIGHT)


def test_a_cycle_of_references_is_a_configuration_error(server: SchemaRegistryServer) -> None:
    serve(server, reference("flight"))
    serve_references(server, {"flight": ["trip"], "trip": ["flight"]})
    with apicurio_client(url(server)) as client:
        text = str(error_of(client))
    assert "schema id 1 cannot be used: its references form a cycle: flight version 1 -> trip version 2" in text


def test_more_references_than_the_maximum_are_a_configuration_error(server: SchemaRegistryServer) -> None:
    serve(server, *(reference("flight", n) for n in range(MAX_REFERENCES + 1)))
    with apicurio_client(url(server)) as client:
        assert "schema id 1 cannot be used: it has more than 1,000 references" in str(error_of(client))


def test_several_urls_are_tried_in_turn(server: SchemaRegistryServer) -> None:
    serve(server)
    with apicurio_client("http://127.0.0.1:1", url(server)) as client:
        assert client.fetch("flights", "1") is not None


def test_retries_end_when_the_driver_stops() -> None:
    settings = RegistrySettings(urls=("http://127.0.0.1:1",), retry=RetryPolicy(max_elapsed_s=3600))
    with pytest.raises(Cancelled):
        ApicurioRegistry(settings, lambda seconds: True, lambda secrets: None).fetch("flights", "1")


@pytest.mark.parametrize(
    ("keys", "authorization"),
    [
        ({"username": "u", "password": PASSWORD}, basic_authorization("u", PASSWORD)),
        ({"token": "abc"}, "Bearer abc"),
    ],
)
def test_credentials_are_sent(tmp_path: Path, keys: dict[str, str], authorization: str) -> None:
    with schema_registry(authorization=authorization) as server:
        serve(server)
        with apicurio_client(url(server), credentials_dir=secret(tmp_path, **keys)) as client:
            assert client.fetch("flights", "1") is not None


def test_other_credentials_are_rejected(tmp_path: Path) -> None:
    with schema_registry(authorization="Bearer other") as server:
        serve(server)
        with apicurio_client(url(server), credentials_dir=secret(tmp_path, token="abc")) as client:
            assert isinstance(error_of(client), AccessDenied)


def test_the_token_of_an_oauth_client_is_sent(tmp_path: Path, server: SchemaRegistryServer) -> None:
    server.answer("/token", 200, {"access_token": "abc", "token_type": "Bearer", "expires_in": 3600}, count=1)
    folder = secret(tmp_path, clientId="s3sink", clientSecret=PASSWORD, tokenUrl=f"{server.url}/token")
    with schema_registry(authorization="Bearer abc") as registry:
        serve(registry)
        with apicurio_client(url(registry), credentials_dir=folder) as client:
            assert client.fetch("flights", "1") is not None
            assert client.fetch("flights", "1") is not None


def test_a_rejected_oauth_client_is_a_configuration_error(tmp_path: Path, server: SchemaRegistryServer) -> None:
    server.answer("/token", 401, {"error": "invalid_client"})
    folder = secret(tmp_path, clientId="s3sink", clientSecret=PASSWORD, tokenUrl=f"{server.url}/token")
    with apicurio_client(url(server), credentials_dir=folder) as client:
        error = error_of(client)
    assert isinstance(error, InvalidCredentials)
    assert f"the token endpoint {server.url}/token rejected the client (invalid_client)" in str(error)


def test_rotated_credentials_are_used_without_a_restart(tmp_path: Path) -> None:
    folder = secret(tmp_path, token="old-token")
    with schema_registry(authorization="Bearer new") as server:
        serve(server)
        with apicurio_client(url(server), credentials_dir=folder) as client:
            assert isinstance(error_of(client), AccessDenied)
            secret(folder, token="new")
            assert client.fetch("flights", "1") is not None


def test_an_untrusted_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    with schema_registry(certificate=self_signed(tmp_path)) as server, apicurio_client(url(server)) as client:
        error = error_of(client)
    assert str(error) == (
        f"schema registry {url(server)}: schema id 1: the registry's certificate is not trusted: set its certificate "
        "authority in spec.format.registry.caSecret (self-signed certificate)"
    )


def test_a_client_certificate_is_sent(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with (
        schema_registry(certificate=certificate, client_ca=certificate.certificate) as server,
        apicurio_client(url(server), ca_file=certificate.certificate, client_dir=tmp_path) as client,
    ):
        error = error_of(client)
    assert "this URL has no schema registry" in str(error)  # it has answered: it has no canned answer here


def test_a_missing_client_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with (
        schema_registry(certificate=certificate, client_ca=certificate.certificate) as server,
        apicurio_client(url(server), ca_file=certificate.certificate) as client,
    ):
        assert "the registry does not accept the client certificate" in str(error_of(client))


def test_an_unreadable_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not PEM")
    with apicurio_client("https://127.0.0.1:1", ca_file=tmp_path / "ca.crt") as client:
        assert "the certificates cannot be read" in str(error_of(client))
