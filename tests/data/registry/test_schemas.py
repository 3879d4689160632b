"""Schemas of a real registry with the API of Confluent Schema Registry (franz-go's srfake)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sink_job.s3
from devtools.schema_registry.server import SchemaRegistryServer
from sink_job.api.enums import SubjectNameStrategy
from sink_job.api.errors import ConfigurationError
from sink_job.cli import main as cli
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.registry.clients.confluent import ConfluentRegistry
from sink_job.registry.references import MAX_REFERENCES
from tests.support.memory_s3 import MemoryS3
from tests.support.registry import FLIGHT, FLIGHT_2, record, registry_client
from tests.support.sink_fixture import manifest

pytestmark = pytest.mark.data
REFERRING = {
    "type": "record",
    "name": "example.Trip",
    "fields": [{"name": "flight", "type": "example.Flight"}, {"name": "seat", "type": "example.Seat"}],
}


def fetched(client: ConfluentRegistry, schema_id: int | str, topic: str = "flights") -> RegisteredSchema:
    found = client.fetch(topic, str(schema_id))
    assert found is not None
    return found


def test_a_schema_has_its_text_and_its_version_within_the_subject(
    server: SchemaRegistryServer, client: ConfluentRegistry
) -> None:
    server.register("flights-value", FLIGHT)
    second = server.register("flights-value", FLIGHT_2)
    assert fetched(client, second) == RegisteredSchema(
        str(second), "AVRO", json.dumps(FLIGHT_2), subject="flights-value", version=2
    )


def test_the_version_counts_within_the_subject_of_the_topic(
    server: SchemaRegistryServer, client: ConfluentRegistry
) -> None:
    server.register("other-value", FLIGHT)
    shared = server.register("other-value", FLIGHT_2)
    assert server.register("flights-value", FLIGHT_2) == shared
    assert [fetched(client, shared, topic).version for topic in ("other", "flights")] == [2, 1]


def test_a_schema_of_another_subject_has_no_version(server: SchemaRegistryServer, client: ConfluentRegistry) -> None:
    found = fetched(client, server.register("other-value", FLIGHT))
    assert (found.subject, found.version) == ("flights-value", None)


def test_the_newest_schema_of_a_topic_is_that_of_its_subject(
    server: SchemaRegistryServer, client: ConfluentRegistry
) -> None:
    assert client.latest("flights") is None
    server.register("flights-value", FLIGHT)
    second = server.register("flights-value", FLIGHT_2)
    assert client.latest("flights") == RegisteredSchema(
        str(second), "AVRO", json.dumps(FLIGHT_2), subject="flights-value", version=2
    )
    with registry_client(server, subjects=SubjectNameStrategy.RECORD_NAME) as other:
        assert other.latest("flights") is None


def test_the_columns_of_a_table_are_in_the_registry_before_the_first_object(
    server: SchemaRegistryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket: Any = MemoryS3()
    monkeypatch.setattr(sink_job.s3, "connect", lambda settings: bucket)
    path = tmp_path / "sink.yaml"
    settings = {"converter": "Avro", "registry": {"url": [server.url]}}
    path.write_text(manifest("archive", "http://127.0.0.1:9", flush_size=5, spec={"format": settings}))
    assert cli.main(["ddl", str(path), "--dialect", "trino"]) == 7
    assert "neither the ledger nor a registry has one" in capsys.readouterr().err
    server.register("log-value", FLIGHT_2)
    assert cli.main(["ddl", str(path), "--dialect", "trino"]) == 0
    printed = capsys.readouterr().out
    assert '"number" bigint' in printed
    assert '"seats" bigint' in printed


def test_a_deleted_version_still_counts(server: SchemaRegistryServer, client: ConfluentRegistry) -> None:
    first = server.register("flights-value", FLIGHT)
    server.delete("flights-value")
    assert fetched(client, first).version == 1


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (SubjectNameStrategy.RECORD_NAME, "example.Flight"),
        (SubjectNameStrategy.TOPIC_RECORD_NAME, "flights-example.Flight"),
    ],
)
def test_subjects_are_named_by_the_strategy(
    server: SchemaRegistryServer, strategy: SubjectNameStrategy, subject: str
) -> None:
    server.register(subject, FLIGHT)
    second = server.register(subject, FLIGHT_2)
    with registry_client(server, subjects=strategy) as client:
        found = fetched(client, second)
    assert (found.subject, found.version) == (subject, 2)


@pytest.mark.parametrize(
    ("language", "text"),
    [("PROTOBUF", 'syntax = "proto3"; message Flight { int64 number = 1; }'), ("JSON", '{"type": "object"}')],
)
def test_the_language_of_a_schema_is_kept(
    server: SchemaRegistryServer, client: ConfluentRegistry, language: str, text: str
) -> None:
    found = fetched(client, server.register("flights-value", text, language=language))
    assert (found.language, found.text, found.version) == (language, text, 1)


def test_a_guid_of_a_header_is_resolved(server: SchemaRegistryServer, client: ConfluentRegistry) -> None:
    server.register("flights-value", FLIGHT)
    server.register("flights-value", FLIGHT_2)
    guid = server.guid("flights-value", 2)
    assert fetched(client, guid) == RegisteredSchema(
        guid, "AVRO", json.dumps(FLIGHT_2), subject="flights-value", version=2
    )


def test_references_are_fetched_each_after_those_that_it_refers_to(
    server: SchemaRegistryServer, client: ConfluentRegistry
) -> None:
    seat = {"type": "record", "name": "example.Seat", "fields": [{"name": "flight", "type": "example.Flight"}]}
    server.register("flight", FLIGHT)
    server.register("seat", seat, references=[("example.Flight", "flight", 1)])
    references = [("example.Seat", "seat", 1), ("example.Flight", "flight", 1)]
    trip = server.register("flights-value", REFERRING, references=references)
    assert fetched(client, trip).references == (
        SchemaReference("example.Flight", "flight", 1, json.dumps(FLIGHT)),
        SchemaReference("example.Seat", "seat", 1, json.dumps(seat)),
    )


def test_a_reference_to_a_deleted_version_is_fetched(server: SchemaRegistryServer, client: ConfluentRegistry) -> None:
    server.register("flight", FLIGHT)
    trip = server.register("flights-value", record("example.Trip"), references=[("example.Flight", "flight", 1)])
    server.answer("/subjects/flight/versions/1?deleted=false", 404, {"error_code": 40402, "message": "deleted"})
    assert len(fetched(client, trip).references) == 1


def test_a_missing_reference_is_a_configuration_error(server: SchemaRegistryServer, client: ConfluentRegistry) -> None:
    server.register("flight", FLIGHT)
    trip = server.register("flights-value", record("example.Trip"), references=[("example.Flight", "flight", 1)])
    server.answer("/subjects/flight/", 404, {"error_code": 40401, "message": "Subject 'flight' not found."})
    with pytest.raises(ConfigurationError) as raised:
        client.fetch("flights", str(trip))
    assert str(raised.value) == (
        f"schema registry {server.url}: version 1 of subject flight, to which schema id {trip} refers: HTTP 404: "
        "Subject 'flight' not found.: register it again, or restore the registry"
    )


def test_a_cycle_of_references_is_a_configuration_error(
    server: SchemaRegistryServer, client: ConfluentRegistry
) -> None:
    back = {"name": "example.Trip", "subject": "trip", "version": 1}
    server.register("flight", FLIGHT)
    trip = server.register("flights-value", record("example.Trip"), references=[("example.Flight", "flight", 1)])
    # No registry registers a cycle, but one whose storage was edited returns it.
    server.answer("/subjects/", 200, {"schema": json.dumps(FLIGHT), "references": [back]})
    with pytest.raises(ConfigurationError, match="form a cycle: flight version 1 -> trip version 1 -> trip version 1"):
        client.fetch("flights", str(trip))


def test_more_references_than_the_maximum_are_a_configuration_error(
    server: SchemaRegistryServer, client: ConfluentRegistry
) -> None:
    names = [{"name": f"R{n}", "subject": "flight", "version": n} for n in range(1, MAX_REFERENCES + 2)]
    server.answer("/schemas/ids/7", 200, {"schema": json.dumps(FLIGHT), "references": names})
    server.answer("/subjects/flight/", 200, {"schema": json.dumps(FLIGHT)})
    with pytest.raises(ConfigurationError, match="schema id 7 cannot be used: it has more than 1,000 references"):
        client.fetch("flights", "7")
