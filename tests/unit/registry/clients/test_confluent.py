"""Schemas of Confluent's API, from the answers of its client library."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.schema_registry import RegisteredSchema as Registered
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.common.schema_registry_client import SchemaVersion
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.enums import SubjectNameStrategy
from sink_job.api.errors import ConfigurationError, RegistryNotFound, TransientError
from sink_job.connect import schema as connect
from sink_job.connect.errors import UnknownSchema
from sink_job.registry.clients import confluent
from sink_job.registry.clients.confluent import ConfluentRegistry
from sink_job.registry.failures import SCHEMA_NOT_FOUND, SUBJECT_NOT_FOUND
from sink_job.registry.references import MAX_REFERENCES
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import QUICK

GUID = "89791762-2336-4186-9674-299b90a802e2"
TEXT = '{"type": "record", "name": "example.Flight", "fields": []}'


def missing(code: int = SCHEMA_NOT_FOUND, status: int = 404) -> SchemaRegistryError:
    return SchemaRegistryError(status, code, "not found")


class Client:
    """A registry with schemas by id or GUID, and versions of subjects. Counts requests."""

    def __init__(self) -> None:
        self.schemas: dict[object, Any] = {7: Schema(TEXT)}
        self.subjects: dict[tuple[str, int], Schema] = {}
        self.versions: list[SchemaVersion] = [SchemaVersion("flights-value", 2)]
        self.looked_up: Any = missing(SUBJECT_NOT_FOUND)
        self.guid_error: SchemaRegistryError = missing()
        self.requests = 0

    def get_schema(self, schema_id: int) -> Any:
        self.requests += 1
        if schema_id not in self.schemas:
            raise missing()
        return self.schemas[schema_id]

    def get_schema_by_guid(self, guid: str) -> Any:
        if guid not in self.schemas:
            raise self.guid_error
        return self.schemas[guid]

    def get_version(self, subject: str, version: int, deleted: bool) -> Registered:
        assert deleted, "a version that was deleted is still a reference"
        if (subject, version) not in self.subjects:
            raise missing()
        return Registered(subject, version, None, None, self.subjects[subject, version])

    def get_schema_versions(self, schema_id: int, deleted: bool) -> list[SchemaVersion]:
        return self.versions

    def lookup_schema(self, subject: str, schema: Schema, deleted: bool) -> Registered:
        if isinstance(self.looked_up, Exception):
            raise self.looked_up
        return Registered(subject, self.looked_up, 7, GUID, schema)

    def close(self) -> None:
        pass


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(confluent, "confluent_clients", lambda *_: lambda url: found)
    return found


def fetched(schema_id: str = "7", **settings: Any) -> connect.RegisteredSchema | None:
    options = RegistrySettings(urls=("https://a",), retry=QUICK, **settings)
    return ConfluentRegistry(options, lambda _: False, lambda _: None).fetch("flights", schema_id)


def test_a_schema_has_its_text_and_its_version_within_the_subject(client: Client) -> None:
    assert fetched() == connect.RegisteredSchema("7", "AVRO", TEXT, subject="flights-value", version=2)


def test_of_several_versions_the_newest_one_counts_of_the_subject_in_any_context(client: Client) -> None:
    versions = [("flights-value", 1), (":.staging:flights-value", 4), ("other-value", 9), ("flights-value", 3)]
    client.versions = [SchemaVersion(subject, version) for subject, version in versions]
    found = fetched()
    assert found is not None
    assert found.version == 4


@pytest.mark.parametrize("versions", [[], [SchemaVersion("other-value", 9)]])
def test_a_schema_in_no_version_of_the_subject_has_none(client: Client, versions: list[SchemaVersion]) -> None:
    client.versions = versions
    found = fetched()
    assert found is not None
    assert (found.subject, found.version) == ("flights-value", None)


def test_a_schema_without_a_name_has_no_subject_of_records_and_needs_no_versions(client: Client) -> None:
    client.schemas[7], client.versions = Schema('"int"'), [SchemaVersion(None, None)]
    found = fetched(subjects=SubjectNameStrategy.RECORD_NAME)
    assert found is not None
    assert (found.subject, found.version) == (None, None)


@pytest.mark.parametrize("schema_id", ["-1", f"{2**31}", "99999999999999999999"])
def test_a_number_outside_of_the_range_is_unknown_without_a_request(client: Client, schema_id: str) -> None:
    assert fetched(schema_id) is None
    assert client.requests == 0


def test_an_id_that_the_registry_does_not_know_is_unknown(client: Client) -> None:
    assert [fetched("0"), fetched("8"), fetched(GUID)] == [None, None, None]


def test_the_version_of_a_guid_is_looked_up_in_the_subject(client: Client) -> None:
    client.schemas[GUID] = Schema('syntax = "proto3";', "PROTOBUF")
    found = fetched(GUID)
    assert found is not None
    assert (found.language, found.version) == ("PROTOBUF", None)
    client.looked_up = 5
    again = fetched(GUID)
    assert again is not None
    assert again.version == 5


def test_a_guid_is_unknown_to_a_registry_without_guids(client: Client) -> None:
    client.guid_error = missing(404)
    with pytest.raises(UnknownSchema, match=rf"{GUID} is a GUID, and .* no GUIDs \(HTTP 404: not found\): set .*idIn"):
        fetched(GUID)
    assert client.requests == 1


def test_a_guid_at_a_url_without_a_registry_is_an_error_of_the_url(client: Client) -> None:
    def not_found(schema_id: int) -> Any:
        raise missing(404)

    client.guid_error = missing(404)
    client.get_schema = not_found  # type: ignore[method-assign]
    with pytest.raises(RegistryNotFound, match="this URL has no schema registry"):
        fetched(GUID)


def test_references_are_fetched_each_after_its_own_and_once(client: Client) -> None:
    inner = SchemaReference("C", "c", 1)
    client.schemas[7] = Schema(TEXT, "AVRO", [SchemaReference("B", "b", 2), inner])
    client.subjects = {("b", 2): Schema("text of b", "AVRO", [inner]), ("c", 1): Schema("text of c")}
    found = fetched()
    assert found is not None
    assert found.references == (
        connect.SchemaReference("C", "c", 1, "text of c"),
        connect.SchemaReference("B", "b", 2, "text of b"),
    )


def test_a_missing_reference_needs_user_action(client: Client) -> None:
    client.schemas[7] = Schema(TEXT, "AVRO", [SchemaReference("B", "b", 2)])
    with pytest.raises(ConfigurationError, match="version 2 of subject b, to which schema id 7 refers: HTTP 404"):
        fetched()


def test_a_cycle_of_references_cannot_be_used(client: Client) -> None:
    client.schemas[7] = Schema(TEXT, "AVRO", [SchemaReference("B", "b", 2)])
    client.subjects = {("b", 2): Schema("text", "AVRO", [SchemaReference("B2", "b", 2)])}
    with pytest.raises(
        ConfigurationError, match="schema id 7 cannot be used: its references form a cycle: b version 2"
    ):
        fetched()


def test_more_references_than_the_maximum_cannot_be_used(client: Client) -> None:
    references = [SchemaReference(f"N{n}", "b", n) for n in range(MAX_REFERENCES + 1)]
    client.schemas[7] = Schema(TEXT, "AVRO", references)
    client.subjects = {("b", n): Schema("text") for n in range(MAX_REFERENCES + 1)}
    with pytest.raises(ConfigurationError, match=r"it has more than 1,000 references\. Register a schema without such"):
        fetched()


@pytest.mark.parametrize(
    "schema",
    [
        Schema(None),
        Schema("\ud800"),
        Schema(7),  # type: ignore[arg-type]
        Schema(TEXT, 7),  # type: ignore[arg-type]
        Schema(TEXT, "AVRO", [SchemaReference(None, "b", 1)]),
        Schema(TEXT, "AVRO", [SchemaReference("B", 7, 1)]),  # type: ignore[arg-type]
        Schema(TEXT, "AVRO", [SchemaReference("B", "b", "1")]),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_an_answer_of_another_form_is_not_kept_but_retried(client: Client, schema: Schema) -> None:
    client.schemas[7] = schema
    with pytest.raises(
        TransientError, match=r"the answer is not the answer of a schema registry \(ValueError: no schema"
    ):
        fetched()


@pytest.mark.parametrize("version", [None, 0, -1, 2**31, "2", True, 1.5])
def test_a_version_that_is_none_is_not_kept_but_retried(client: Client, version: Any) -> None:
    client.versions = [SchemaVersion("flights-value", version)]
    with pytest.raises(TransientError, match=r"\(ValueError: no version\)"):
        fetched()
