"""Requests to Apicurio's API, and what their answers become."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import ConfigurationError
from sink_job.registry.clients.apicurio_client import (
    ApicurioClient,
    Artifact,
    ArtifactReference,
    ArtifactVersion,
    SchemaKey,
    apicurio_clients,
)
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.failures import SCHEMA_NOT_FOUND
from sink_job.registry.settings import RegistrySettings

V2, V3 = "https://registry/apis/registry/v2", "https://registry/apis/registry/v3"
CONTENT, GLOBAL = SchemaKey("contentIds", 7), SchemaKey("globalIds", 7)


class Server:
    """Answers by path and query, and records what was requested."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requested: list[str] = []
        self.status = 200
        self.headers: dict[str, str] = {}

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        target = request.url.raw_path.decode().partition("/apis/registry/")[2][2:]
        self.requested.append(target)
        body = self.answers[target]
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.Response(self.status, content=content, headers=self.headers)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def client_of(server: Server) -> Iterator[Callable[[str], ApicurioClient]]:
    http = httpx2.Client(transport=httpx2.MockTransport(server))
    yield lambda url: ApicurioClient(url, http)
    http.close()


@pytest.fixture
def client(client_of: Callable[[str], ApicurioClient]) -> ApicurioClient:
    return client_of(V3)


def test_the_text_of_a_schema_is_requested_by_the_kind_of_its_id(server: Server, client: ApicurioClient) -> None:
    server.answers = {"/ids/contentIds/7": "é".encode(), "/ids/globalIds/7": b'"int"'}
    assert (client.text(CONTENT), client.text(GLOBAL)) == ("é", '"int"')


def test_a_text_that_is_not_utf8_is_an_error(server: Server, client: ApicurioClient) -> None:
    server.answers = {"/ids/contentIds/7": b"\xff"}
    with pytest.raises(ValueError, match="utf-8"):
        client.text(CONTENT)


def test_references_name_a_version_of_an_artifact(server: Server, client: ApicurioClient) -> None:
    server.answers = {
        "/ids/contentIds/7/references": [
            {"name": "a.B", "groupId": "g", "artifactId": "b", "version": "1.0"},
            {"name": "a.C", "groupId": None, "artifactId": "c", "version": "2"},
        ]
    }
    assert client.references(CONTENT) == [
        ArtifactReference("a.B", Artifact("g", "b"), "1.0"),
        ArtifactReference("a.C", Artifact("default", "c"), "2"),
    ]


def test_api_3_finds_the_versions_of_an_id_with_one_request(server: Server, client: ApicurioClient) -> None:
    version = {"groupId": "g", "artifactId": "a", "globalId": 9, "artifactType": "AVRO"}
    server.answers = {
        "/search/versions?contentId=7&limit=500": {"versions": [version]},
        "/search/versions?globalId=7&limit=500": {"versions": []},
    }
    assert client.versions(CONTENT) == [ArtifactVersion(Artifact("g", "a"), 9, "AVRO")]
    assert client.versions(GLOBAL) == []


def test_api_2_finds_the_artifacts_of_an_id_and_then_their_versions(
    server: Server, client_of: Callable[[str], ApicurioClient]
) -> None:
    versions = [
        {"contentId": 7, "globalId": 9, "type": "AVRO"},
        {"contentId": 8, "globalId": 10, "type": "AVRO"},
    ]
    server.answers = {
        "/search/artifacts?contentId=7&limit=500": {"artifacts": [{"id": "a/b", "groupId": "g 1"}, {"id": "c"}]},
        "/groups/g%201/artifacts/a%2Fb/versions?limit=500": {"versions": versions},
        "/groups/default/artifacts/c/versions?limit=500": {"versions": versions[1:]},
    }
    assert client_of(V2).versions(CONTENT) == [ArtifactVersion(Artifact("g 1", "a/b"), 9, "AVRO")]


@pytest.mark.parametrize(("url", "suffix"), [(V2, "/meta"), (V3, "")])
def test_a_version_of_an_artifact_has_a_global_id(
    server: Server, client_of: Callable[[str], ApicurioClient], url: str, suffix: str
) -> None:
    server.answers = {f"/groups/g/artifacts/a/versions/1%2F0{suffix}": {"globalId": 9}}
    assert client_of(url).global_id(Artifact("g", "a"), "1/0") == 9


@pytest.mark.parametrize("name", ["VersionNotFoundException", "ContentNotFoundException", "ArtifactNotFoundException"])
def test_an_unknown_id_has_the_code_of_an_unknown_schema(server: Server, client: ApicurioClient, name: str) -> None:
    server.status, server.answers = 404, {"/ids/contentIds/7": {"name": name, "title": "No content"}}
    with pytest.raises(SchemaRegistryError) as raised:
        client.text(CONTENT)
    assert (raised.value.http_status_code, raised.value.error_code) == (404, SCHEMA_NOT_FOUND)
    assert raised.value.error_message == "No content"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, {"name": "NotFoundException", "message": "RESTEASY003210"}, "RESTEASY003210"),
        (404, b"<html>404</html>", "Not Found"),
        (403, {"name": "VersionNotFoundException", "title": "no"}, "no"),
        (500, [], "Internal Server Error"),
        (502, b"null", "Bad Gateway"),
        (503, {}, "Service Unavailable"),
    ],
)
def test_another_answer_that_is_no_success_has_no_code(
    server: Server, client: ApicurioClient, status: int, body: object, message: str
) -> None:
    server.status, server.answers = status, {"/ids/contentIds/7": body}
    with pytest.raises(SchemaRegistryError) as raised:
        client.text(CONTENT)
    error = raised.value
    assert (error.http_status_code, error.error_code, error.error_message) == (status, 0, message)


def test_a_web_page_is_no_schema(server: Server, client: ApicurioClient) -> None:
    server.headers, server.answers = {"Content-Type": "text/html; charset=utf-8"}, {"/ids/contentIds/7": b"<html>"}
    with pytest.raises(ValueError, match="an HTML page"):
        client.text(CONTENT)


@pytest.mark.parametrize(
    "reference",
    [
        {"name": 7, "artifactId": "b", "version": "1"},
        {"name": "a", "artifactId": ["b"], "version": "1"},
        {"name": "a", "artifactId": "b", "version": 1},
        {"name": "a", "artifactId": "b", "version": "\ud800"},
        {"artifactId": "b", "version": "1"},
        {"name": "a", "version": "1"},
    ],
)
def test_a_reference_of_another_form_is_an_error(
    server: Server, client: ApicurioClient, reference: dict[str, object]
) -> None:
    server.answers = {"/ids/contentIds/7/references": [reference]}
    with pytest.raises((TypeError, KeyError)):
        client.references(CONTENT)


@pytest.mark.parametrize(("artifact", "subject"), [(Artifact("default", "a"), "a"), (Artifact("g", "a"), "g/a")])
def test_the_default_group_is_not_part_of_a_subject(artifact: Artifact, subject: str) -> None:
    assert artifact.subject == subject


# -- clients from settings ---------------------------------------------------------------------------------------------


def authorization(credentials: RegistryCredentials | None, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The header that a client with these credentials sends."""
    sent: list[str | None] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers.get("Authorization"))
        return httpx2.Response(200, content=b'"int"')

    http = httpx2.Client
    monkeypatch.setattr(httpx2, "Client", lambda **settings: http(transport=httpx2.MockTransport(handle), **settings))
    client = apicurio_clients(RegistrySettings(urls=(V3,)), credentials)(V3)
    client.text(CONTENT)
    client.close()
    return sent[0]


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        (None, None),
        (RegistryCredentials(username="u", password="p"), "Basic dTpw"),
        (RegistryCredentials(token="abc"), "Bearer abc"),
    ],
)
def test_credentials_are_in_the_header_of_each_request(
    monkeypatch: pytest.MonkeyPatch, credentials: RegistryCredentials | None, header: str | None
) -> None:
    assert authorization(credentials, monkeypatch) == header


def test_a_token_url_that_is_none_is_an_error_before_the_first_request() -> None:
    oauth = RegistryCredentials(client_id="id", client_secret="hidden", token_url="login")
    with pytest.raises(ConfigurationError, match=r"the tokenUrl in .* is not a URL"):
        apicurio_clients(RegistrySettings(urls=(V3,)), oauth)
