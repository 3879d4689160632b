"""Apicurio Registry, through its API that is compatible with Confluent's."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from devtools.schema_registry.apicurio import ApicurioServer
from sink_job.api.errors import ConfigurationError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.ledger.schemas.schema_store import is_same_schema
from sink_job.registry.clients.confluent import ConfluentRegistry
from tests.support.registry import PERSISTENT, registry_client

pytestmark = pytest.mark.data
LONG = {"name": "number", "type": "long"}
# Apicurio returns names and namespaces separately.
FLIGHT = {"type": "record", "name": "Flight", "namespace": "example", "fields": [LONG]}
FLIGHT_2 = {**FLIGHT, "fields": [LONG, {"name": "seats", "type": "long"}]}
TRIP = {"type": "record", "name": "example.Trip", "fields": [{"name": "flight", "type": "example.Flight"}]}


@pytest.fixture
def server(apicurio_server: ApicurioServer) -> ApicurioServer:
    return apicurio_server


@pytest.fixture
def client(server: ApicurioServer) -> Iterator[ConfluentRegistry]:
    with registry_client(urls=(server.url,), retry=PERSISTENT) as connected:
        yield connected


def register(server: ApicurioServer, subject: str, schema: object, *references: dict[str, object]) -> str:
    body = {"schema": json.dumps(schema), "references": references}
    request = urllib.request.Request(
        f"{server.url}/subjects/{subject}/versions",
        json.dumps(body).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["id"])


def test_a_schema_has_its_version_within_the_subject(server: ApicurioServer, client: ConfluentRegistry) -> None:
    register(server, "flights-value", FLIGHT)
    found = client.fetch("flights", register(server, "flights-value", FLIGHT_2))
    assert found is not None
    assert (json.loads(found.text), found.subject, found.version) == (FLIGHT_2, "flights-value", 2)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "record", "name": "example.Flight", "fields": [{"name": "number", "type": {"type": "long"}}]}',
        '{"fields": [{"type": {"type": "record", "name": "a.In", "fields": [{"name": "x", "type": "a.Out"}]},'
        ' "name": "n"}, {"type": {"name": "E", "namespace": "a", "type": "enum", "symbols": ["A"], "default": "A"},'
        ' "name": "m"},'
        ' {"name": "k", "type": ["null", "a.In"], "default": null, "doc": "d"}],'
        ' "name": "Out", "namespace": "a", "type": "record", "aliases": ["a.Old"], "connect.name": "Out"}',
        '{"type": "record", "name": "F", "fields": [{"name": "e", "type": "float", "default": 1.50, "order": "ignore"},'
        ' {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 9},'
        ' "default": "\\u00ff"}]}',
        '{"type": "long"}',
    ],
    ids=["a full name", "relative names", "defaults and properties", "a primitive type"],
)
def test_a_text_that_apicurio_writes_in_its_own_way_is_the_same_schema(
    server: ApicurioServer, client: ConfluentRegistry, text: str
) -> None:
    found = client.fetch("moved", register(server, "moved-value", json.loads(text)))
    assert found is not None
    assert is_same_schema(found, RegisteredSchema(found.id, "AVRO", text))


def test_references_are_fetched(server: ApicurioServer, client: ConfluentRegistry) -> None:
    register(server, "flight", FLIGHT)
    reference: dict[str, object] = {"name": "example.Flight", "subject": "flight", "version": 1}
    found = client.fetch("trips", register(server, "trips-value", TRIP, reference))
    assert found is not None
    assert [(each.name, json.loads(each.text)) for each in found.references] == [("example.Flight", FLIGHT)]


def test_an_unknown_id_is_unknown(client: ConfluentRegistry) -> None:
    assert client.fetch("flights", "2000000000") is None


def test_a_guid_is_unknown(client: ConfluentRegistry) -> None:
    with pytest.raises(UnknownSchema, match="the schema registry has no GUIDs"):
        client.fetch("flights", "89791762-2336-4186-9674-299b90a802e2")


def test_a_url_without_the_path_of_the_compatible_api_is_a_configuration_error(server: ApicurioServer) -> None:
    with (
        registry_client(urls=(server.root_url,)) as client,
        pytest.raises(ConfigurationError, match="this URL has no schema registry: fix spec"),
    ):
        client.fetch("flights", "1")
