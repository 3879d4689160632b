"""The schemas in a ledger."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sink_job.api.errors import RegistryChanged, TransientError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.ledger.schemas.schema_store import SchemaStore, is_same_schema, schema_key, unknown_key
from sink_job.ledger.schemas.schema_table import KnownSchemas, LedgerSchemas
from sink_job.s3 import Conflict, PreconditionFailed
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/flights/"
URL = "https://registry.example.com"
KEY = f"{ROOT}schemas/flights/7.json"
REFERENCE = SchemaReference("example.Seat", "seat", 1, '{"type": "string"}')
FLIGHT = RegisteredSchema("7", "AVRO", '{"type": "long"}', (REFERENCE,), subject="flights-value", version=2)
KNOWN = KnownSchemas({"flights": frozenset({"7"})}, {"flights": {"8": "the registry does not know 8"}})


def changed(schema: RegisteredSchema, **attributes: Any) -> RegisteredSchema:
    return msgspec.structs.replace(schema, **attributes)


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


@pytest.fixture
def store(s3: Any) -> SchemaStore:
    return SchemaStore(s3, ROOT)


def table(s3: Any, known: KnownSchemas | None = KNOWN) -> LedgerSchemas:
    return LedgerSchemas(s3, ROOT, known)


def test_a_schema_is_read_as_it_was_put(s3: MemoryS3, store: SchemaStore) -> None:
    assert store.put("flights", FLIGHT, URL) == FLIGHT
    assert table(s3).find("flights", "7") == FLIGHT
    assert [*s3.objects] == [KEY]


def test_a_schema_is_put_once(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    before = s3.objects[KEY]
    store.put("flights", FLIGHT, URL)
    assert s3.objects[KEY] is before


def test_the_first_version_of_a_schema_counts(store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    assert store.put("flights", changed(FLIGHT, version=3), URL).version == 2


@pytest.mark.parametrize("needs_version", [False, True])
def test_the_same_version_of_a_schema_is_not_reported(
    store: SchemaStore, caplog: pytest.LogCaptureFixture, needs_version: bool
) -> None:
    store.put("flights", FLIGHT, URL)
    assert store.put("flights", FLIGHT, URL, needs_version=needs_version) == FLIGHT
    assert caplog.messages == []


@pytest.mark.parametrize("other", [changed(FLIGHT, version=3), changed(FLIGHT, subject="departures-value")])
def test_another_position_of_a_schema_is_a_warning_if_versions_are_not_compared(
    store: SchemaStore, caplog: pytest.LogCaptureFixture, other: RegisteredSchema
) -> None:
    store.put("flights", FLIGHT, URL)
    store.put("flights", other, URL)
    assert len(caplog.messages) == 1
    assert "The ledger's version stays in force" in caplog.text


@pytest.mark.parametrize("other", [changed(FLIGHT, version=3), changed(FLIGHT, subject="departures-value")])
def test_another_position_of_a_schema_is_a_changed_registry_if_versions_are_compared(
    store: SchemaStore, other: RegisteredSchema
) -> None:
    store.put("flights", FLIGHT, URL)
    with pytest.raises(RegistryChanged, match="compares versions within a subject"):
        store.put("flights", other, URL, needs_version=True)


def test_a_copy_without_a_version_gets_its_first_one_when_versions_are_compared(store: SchemaStore) -> None:
    store.put("flights", changed(FLIGHT, version=None), URL)
    assert store.put("flights", FLIGHT, URL).version is None
    assert store.put("flights", FLIGHT, URL, needs_version=True).version == 2
    assert store.put("flights", changed(FLIGHT, version=3), URL).version == 2


@pytest.fixture
def conflicting(s3: MemoryS3, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(key: str, body: bytes, *, only_if_absent: bool = False) -> object:
        raise Conflict(f"put-if-absent {key}: another write is under way")

    monkeypatch.setattr(s3, "put", put)


@pytest.mark.usefixtures("conflicting")
def test_a_409_that_persists_is_transient_for_a_schema_that_is_not_stored(store: SchemaStore) -> None:
    with pytest.raises(TransientError, match=f"put-if-absent {KEY}: another write is under way") as raised:
        store.put("flights", FLIGHT, URL)
    assert not isinstance(raised.value, Conflict)


@pytest.mark.usefixtures("conflicting")
def test_a_409_that_persists_is_transient_for_an_unknown_id_that_is_not_stored(store: SchemaStore) -> None:
    with pytest.raises(TransientError, match="another write is under way") as raised:
        store.put_unknown("flights", "8", "the registry does not know 8")
    assert not isinstance(raised.value, Conflict)


def test_another_text_is_a_changed_registry(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    with pytest.raises(RegistryChanged) as raised:
        store.put("flights", changed(FLIGHT, text='{"type": "string"}', version=None), URL)
    assert raised.value.exit_code == 7
    assert str(raised.value) == (
        "the schema registry https://registry.example.com returns another schema for id 7 of topic flights than the "
        "ledger has: the text differs from s3://archive/topics/_s3sink/flights/schemas/flights/7.json (AVRO, version 2 "
        "of subject flights-value; the registry: AVRO, in no known subject). Nothing was written. The registry was "
        "restored or re-created, or spec.format.registry.url is or was another registry. If the registry is the wrong "
        "one, correct it. If the ledger's copy is, publish the open objects with `s3sink run SINK.yaml --publish-open` "
        "and delete the copy with `s3sink forget-schema SINK.yaml --topic flights --id 7`. An offset reset starts "
        "without copies, too: `s3sink reset-offsets`."
    )


@pytest.mark.parametrize(
    "other",
    [
        changed(FLIGHT, references=()),
        changed(FLIGHT, references=(msgspec.structs.replace(REFERENCE, text='{"type": "int"}'),)),
        changed(FLIGHT, references=(msgspec.structs.replace(REFERENCE, name="example.Other"),)),
        changed(FLIGHT, language="JSON"),
    ],
    ids=["a reference less", "another text of a reference", "another name of a reference", "another language"],
)
def test_other_references_or_another_language_are_a_changed_registry(
    store: SchemaStore, other: RegisteredSchema
) -> None:
    store.put("flights", FLIGHT, URL)
    with pytest.raises(RegistryChanged):
        store.put("flights", other, URL)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("AVRO", '{"type":"long","doc":"d"}', '{\n  "doc": "d",\n  "type": "long"\n}'),
        ("JSON", '{"default": NaN}', '{"default":NaN}'),
        ("PROTOBUF", "message A {\n  int64 n = 1;\n}", "message A { int64 n = 1; }"),
    ],
)
def test_the_layout_of_a_text_does_not_count(language: str, one: str, other: str) -> None:
    assert is_same_schema(RegisteredSchema("7", language, one), RegisteredSchema("7", language, other))


def test_a_schema_of_another_process_is_compared(s3: MemoryS3, store: SchemaStore) -> None:
    """The other process puts its schema between this one's read and its put."""

    def put_before(call: str, key: str) -> None:
        if call == "put":
            s3.fault = lambda *_: None
            store.put("flights", changed(FLIGHT, text='{"type": "int"}'), URL)

    s3.fault = put_before
    with pytest.raises(RegistryChanged):
        store.put("flights", FLIGHT, URL)


def test_a_put_whose_reply_was_lost_succeeds(s3: MemoryS3, store: SchemaStore) -> None:
    original = s3.put

    def lose_reply(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        raise PreconditionFailed(KEY, KEY)

    s3.put = lose_reply  # type: ignore[method-assign, assignment]
    assert store.put("flights", FLIGHT, URL) == FLIGHT


def test_the_first_reason_of_an_unknown_id_stays(s3: MemoryS3, store: SchemaStore) -> None:
    store.put_unknown("flights", "8", "first")
    store.put_unknown("flights", "8", "second")
    with pytest.raises(UnknownSchema, match="first"):
        table(s3, known=None).find("flights", "8")


def test_a_marker_has_a_key_of_its_own() -> None:
    assert unknown_key(ROOT, "flights", "8") == f"{ROOT}schemas/flights/8.unknown.json"


@pytest.mark.parametrize("schema_id", ["", "../7", "7/8", "7.unknown", "x" * 65])
def test_a_text_that_is_no_id_is_rejected(schema_id: str) -> None:
    with pytest.raises(ValueError, match="not a schema id"):
        schema_key(ROOT, "flights", schema_id)


def test_a_store_that_fails_is_reported(s3: MemoryS3, store: SchemaStore) -> None:
    def fail(call: str, key: str) -> None:
        if call == "put":
            raise PreconditionFailed(key, key)

    s3.fault = fail
    with pytest.raises(PreconditionFailed):
        store.put("flights", FLIGHT, URL)


def test_a_missing_schema_is_no_error_for_the_driver(store: SchemaStore) -> None:
    assert store.get("flights", "7") is None
