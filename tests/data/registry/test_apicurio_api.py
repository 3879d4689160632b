"""Schemas of a real Apicurio Registry through its own API, in both versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest

from devtools.schema_registry.apicurio import ApicurioIds, ApicurioServer
from sink_job.api.errors import ConfigurationError, RegistryChanged, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.schemas.schema_resolver import SchemaResolver
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.registry.clients.apicurio import ApicurioRegistry
from tests.support.memory_s3 import MemoryS3
from tests.support.registry import PERSISTENT, apicurio_client, record

pytestmark = pytest.mark.data
_numbers: Final = count()


@pytest.fixture
def server(apicurio_server: ApicurioServer) -> ApicurioServer:
    return apicurio_server


@pytest.fixture(params=["v3", "v2"])
def url(server: ApicurioServer, request: pytest.FixtureRequest) -> str:
    return server.own_url.removesuffix("v3") + str(request.param)


@pytest.fixture
def client(url: str) -> Iterator[ApicurioRegistry]:
    with apicurio_client(url, retry=PERSISTENT, timeout_s=30) as connected:
        yield connected


@pytest.fixture
def topic() -> str:
    """A topic, and the name of a schema, that no other test has."""
    return f"flights{next(_numbers)}"


def flight(topic: str, *fields: str) -> dict[str, object]:
    return record(f"example.{topic}", "number", *fields)


def fetched(client: ApicurioRegistry, schema_id: int | str, topic: str) -> RegisteredSchema:
    found = client.fetch(topic, str(schema_id))
    assert found is not None
    return found


def test_a_content_id_has_a_schema_and_its_newest_global_id_in_the_artifact(
    server: ApicurioServer, client: ApicurioRegistry, topic: str
) -> None:
    server.register(f"{topic}-value", flight(topic))
    ids = server.register(f"{topic}-value", flight(topic, "seats"))
    assert fetched(client, ids.content_id, topic) == RegisteredSchema(
        str(ids.content_id),
        "AVRO",
        json.dumps(flight(topic, "seats")),
        subject=f"{topic}-value",
        version=ids.global_id,
    )


def test_a_global_id_is_a_version_of_an_artifact(server: ApicurioServer, client: ApicurioRegistry, topic: str) -> None:
    ids = server.register(topic, flight(topic), group="travel", version="1.0.0-rc")
    assert fetched(client, f"global-{ids.global_id}", topic) == RegisteredSchema(
        f"global-{ids.global_id}", "AVRO", json.dumps(flight(topic)), subject=f"travel/{topic}", version=ids.global_id
    )


def test_versions_of_an_artifact_are_ordered_by_their_global_ids(
    server: ApicurioServer, client: ApicurioRegistry, topic: str
) -> None:
    schemas = {"2.0": flight(topic), "10.0": flight(topic, "seats")}
    ids = [server.register(topic, schema, version=version) for version, schema in schemas.items()]
    first, second = (fetched(client, each.content_id, topic).version for each in ids)
    assert first is not None
    assert second is not None
    assert first < second


def test_the_version_of_a_content_id_counts_within_the_artifact_of_the_topic(
    server: ApicurioServer, client: ApicurioRegistry, topic: str
) -> None:
    ids = {name: server.register(f"{name}-value", flight(topic)) for name in (f"{topic}a", f"{topic}b")}
    assert len({each.content_id for each in ids.values()}) == 1
    for name, each in ids.items():
        found = fetched(client, each.content_id, name)
        assert (found.subject, found.version) == (f"{name}-value", each.global_id)


@pytest.mark.parametrize(
    ("language", "text"),
    [("PROTOBUF", 'syntax = "proto3"; message Flight { int64 number = 1; }'), ("JSON", '{"type": "object"}')],
)
def test_the_type_of_an_artifact_is_the_language(
    server: ApicurioServer, client: ApicurioRegistry, topic: str, language: str, text: str
) -> None:
    found = fetched(client, server.register(topic, text, language=language).content_id, topic)
    assert (found.language, found.text) == (language, text)


def test_references_are_fetched_each_after_those_that_it_refers_to(
    server: ApicurioServer, client: ApicurioRegistry, topic: str
) -> None:
    seat, trip = f"example.seat{topic}", f"example.trip{topic}"
    flight_field = {"name": "flight", "type": f"example.{topic}"}
    flight_ids = server.register("flight", flight(topic), group=topic, version="1.0.0")
    to_flight = {"name": f"example.{topic}", "groupId": topic, "artifactId": "flight", "version": "1.0.0"}
    seats = {"type": "record", "name": seat, "fields": [flight_field]}
    server.register("seat", seats, group=topic, references=[to_flight])
    to_seat = {"name": seat, "groupId": topic, "artifactId": "seat", "version": "1"}
    trips = {"type": "record", "name": trip, "fields": [flight_field, {"name": "seat", "type": seat}]}
    ids = server.register(f"{topic}-value", trips, references=[to_seat, to_flight])
    for schema_id in (str(ids.content_id), f"global-{ids.global_id}"):
        found = fetched(client, schema_id, topic).references
        assert [(each.name, each.subject) for each in found] == [
            (f"example.{topic}", f"{topic}/flight"),
            (seat, f"{topic}/seat"),
        ]
        assert (found[0].version, json.loads(found[0].text)) == (flight_ids.global_id, flight(topic))


@pytest.mark.parametrize("schema_id", ["2000000000", "global-2000000000"])
def test_an_id_that_the_registry_does_not_know_is_unknown(client: ApicurioRegistry, schema_id: str) -> None:
    assert client.fetch("flights", schema_id) is None


@pytest.mark.parametrize("schema_id", ["-1", "0", "global--7"])
def test_an_id_that_is_not_positive_is_unknown_without_a_request(schema_id: str) -> None:
    with apicurio_client("http://127.0.0.1:1") as client:
        assert client.fetch("flights", schema_id) is None


def test_a_url_without_the_path_of_the_api_is_a_configuration_error(server: ApicurioServer) -> None:
    with (
        apicurio_client(server.root_url, retry=PERSISTENT) as client,
        pytest.raises(ConfigurationError, match="this URL has no schema registry: fix spec"),
    ):
        client.fetch("flights", "1")


def test_a_registry_that_does_not_answer_is_a_transient_error(server: ApicurioServer) -> None:
    assert server.process is not None
    server.process.pause()
    try:
        with apicurio_client(server.own_url, timeout_s=0.2) as client, pytest.raises(TransientError) as raised:
            client.fetch("flights", "1")
    finally:
        server.process.resume()
    assert "no answer (ReadTimeout: " in str(raised.value)


def resolver(client: ApicurioRegistry, s3: MemoryS3) -> SchemaResolver:
    """The resolver of a new driver."""
    store = SchemaStore(s3, "topics/_s3sink/flights/")  # type: ignore[arg-type]
    return SchemaResolver(client, store, needs_version=False, wait=lambda seconds: False, clock=lambda: 0.0)


def test_a_registry_that_was_created_again_with_other_ids_is_noticed(server: ApicurioServer) -> None:
    s3 = MemoryS3()
    before = [server.register("again-value", flight("again", f"f{n}")) for n in range(8)]
    with apicurio_client(server.own_url, retry=PERSISTENT, timeout_s=30) as client:
        resolver(client, s3).resolve({TopicPartition("again", 0): ids_of(before)})
    server.kill()
    with apicurio_client(server.own_url) as client, pytest.raises(TransientError, match="no answer"):
        client.fetch("again", ids_of(before)[0])
    server.start()
    after = [server.register("again-value", flight("again", "other"))]
    while after[-1].global_id < before[-1].global_id or after[-1].content_id < before[-1].content_id:
        after.append(server.register("again-value", flight("again", f"other{len(after)}")))
    reused = sorted({*ids_of(before)} & {*ids_of(after)})
    assert {each.startswith("global-") for each in reused} == {False, True}
    with apicurio_client(server.own_url, retry=PERSISTENT, timeout_s=30) as client:
        for schema_id in (reused[0], reused[-1]):
            with pytest.raises(RegistryChanged, match=f"returns another schema for id {schema_id} of topic again"):
                resolver(client, s3).resolve({TopicPartition("again", 0): [schema_id]})


def ids_of(versions: list[ApicurioIds]) -> list[str]:
    """All ids of the versions."""
    return [text for each in versions for text in (str(each.content_id), f"global-{each.global_id}")]
