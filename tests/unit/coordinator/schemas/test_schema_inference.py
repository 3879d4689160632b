"""A sink that infers the schema of its topic: kills at each effect on the store, restarts, and another driver."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from sink_job.api.errors import ConfigurationError, DataError
from sink_job.api.parser import load_sink
from sink_job.coordinator.schemas.schema_inference import inferred_schema
from sink_job.json.typed.field_list import field_list_lines, parse_fields
from sink_job.json.typed.inference import SampledValues
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_store import SchemaStore, schema_key
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.writer import schema_sample
from sink_job.writer.schema_sample import SchemaSample
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import SyntheticLog

CHANGES = {"put", "create_upload", "upload_part", "complete", "delete", "abort"}


class Killed(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class ValueLog(SyntheticLog):
    """A log of the given values."""

    values: tuple[bytes, ...] = field(default=())

    def value(self, partition: int, offset: int) -> bytes:
        return self.values[offset]


def log_of(*values: Any) -> ValueLog:
    texts = tuple(each if isinstance(each, bytes) else json.dumps(each).encode() for each in values)
    return ValueLog(records=len(texts), values=texts)


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> MemorySinkFixture:
    """Another sink and bucket, with two records in a round."""
    folder.mkdir(exist_ok=True)
    fixture = MemorySinkFixture(folder, monkeypatch)
    chosen = {"output": "Avro", "inference": "Once", **given}
    spec = {"format": chosen, "errors": {"tolerance": chosen.pop("tolerance", "None")}}
    fixture.sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=3, max_records=2, spec=spec))
    return fixture


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return fresh(tmp_path, monkeypatch)


def run(fixture: MemorySinkFixture, log: SyntheticLog) -> None:
    """As a new process, which remembers no schemas."""
    ObjectSchemas._caches.clear()
    LedgerSchemas._caches.clear()
    fixture.run(log)


def contents(fixture: MemorySinkFixture) -> dict[str, bytes]:
    return {key: stored.body for key, stored in fixture.s3.objects.items() if "/_s3sink/" not in key}


def records(fixture: MemorySinkFixture) -> list[Any]:
    return [row for _, body in sorted(contents(fixture).items()) for row in fastavro.reader(io.BytesIO(body))]


def store(fixture: MemorySinkFixture) -> SchemaStore:
    s3: Any = fixture.s3
    return SchemaStore(s3, fixture.root)


def ledgers(fixture: MemorySinkFixture) -> list[str]:
    """The fields of the inferred schema in the ledger."""
    found = store(fixture).get("log", "inferred")
    assert found is not None
    return [*field_list_lines(parse_fields(found.text))]


FITTING = log_of({"a": 1}, {"a": 2, "b": "x"}, {"b": "y"}, {}, {"a": None}, {"a": 6, "b": "z"})


def test_the_schema_of_the_first_round_applies_to_all_records(sink_fixture: MemorySinkFixture) -> None:
    run(sink_fixture, FITTING)
    assert records(sink_fixture) == [
        {"a": 1, "b": None},
        {"a": 2, "b": "x"},
        {"a": None, "b": "y"},
        {"a": None, "b": None},
        {"a": None, "b": None},
        {"a": 6, "b": "z"},
    ]
    assert ledgers(sink_fixture) == [
        '- {"name":"a","type":"int64","optional":true}',
        '- {"name":"b","type":"string","optional":true}',
    ]


def kill_at(number: int) -> Callable[[str, str], None]:
    """A fault: the process ends before its call `number` that changes the bucket."""
    left = [number]

    def fault(call: str, key: str) -> None:
        if call in CHANGES:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

    return fault


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_a_kill_at_each_effect_leaves_the_same_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    undisturbed = fresh(tmp_path / "undisturbed", monkeypatch, output=output)
    run(undisturbed, FITTING)
    expected, number, killed = contents(undisturbed), 0, True
    while killed:
        number += 1
        fixture, killed = fresh(tmp_path / str(number), monkeypatch, output=output), False
        with fixture.faults(kill_at(number)):
            try:
                run(fixture, FITTING)
            except Killed:
                killed = True
        run(fixture, FITTING)
        assert contents(fixture) == expected, number
        assert fixture.orphans() == [], number
        assert ledgers(fixture) == ledgers(undisturbed)
    assert number > 10


def test_a_record_that_does_not_fit_stops_the_sink_with_its_field(sink_fixture: MemorySinkFixture) -> None:
    with pytest.raises(DataError) as raised:
        run(sink_fixture, log_of({"a": 1}, {"a": 2}, {"a": "x"}))
    assert raised.value.offset == 2
    assert "the field a: a JSON value must be an integer" in str(raised.value)


def test_a_property_that_occurs_later_stops_the_sink_with_its_name(sink_fixture: MemorySinkFixture) -> None:
    with pytest.raises(DataError) as raised:
        run(sink_fixture, log_of({"a": 1}, {"a": 2}, {"b": 1}))
    assert "the field b: its schema does not have this property" in str(raised.value)


def test_a_property_that_occurs_later_is_counted_or_in_the_column_of_unknown_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of({"a": 1, "_unknown": 0}, {"a": 2}, {"b": 1})
    dropping = fresh(tmp_path / "drop", monkeypatch, unknownFields="Drop")
    driver = dropping.driver(log)
    driver.run()
    assert driver.progress.report().totals.dropped_properties == 1
    keeping = fresh(tmp_path / "json", monkeypatch, unknownFields="Json")
    run(keeping, log)
    assert records(keeping) == [
        {"a": 1, "_unknown": '{"_unknown":0}'},
        {"a": 2, "_unknown": None},
        {"a": None, "_unknown": '{"b":1}'},
    ]


def test_a_restart_keeps_the_schema(sink_fixture: MemorySinkFixture) -> None:
    run(sink_fixture, log_of({"a": 1}, {"a": 2}))
    before = ledgers(sink_fixture)
    with pytest.raises(DataError):
        run(sink_fixture, log_of({"a": 1}, {"a": 2}, {"b": 1}))
    assert ledgers(sink_fixture) == before


def test_a_text_among_numbers_is_warned_of_when_the_schema_is_inferred(
    sink_fixture: MemorySinkFixture, caplog: pytest.LogCaptureFixture
) -> None:
    run(sink_fixture, log_of({"a": 1, "A": 2}, {"a": "x"}))
    assert (
        "topic log: the inferred schema counts for ever, and a has values of several types (int64, string)"
        in caplog.text
    )
    assert "a and A differ by case only, which Athena, Hive and Spark do not distinguish" in caplog.text


def test_the_first_schema_in_the_ledger_counts(sink_fixture: MemorySinkFixture) -> None:
    """Another driver, which lost the ledger later, has put its schema after this one looked for it."""
    other = SampledValues()
    other.add({"a": 1.5})

    def fault(call: str, key: str) -> None:
        if call == "put" and key == schema_key(sink_fixture.root, "log", "inferred"):
            sink_fixture.s3.fault = lambda call, key: None
            store(sink_fixture).put_first("log", inferred_schema(other))

    with sink_fixture.faults(fault):
        run(sink_fixture, log_of({"a": 1}))
    assert records(sink_fixture) == [{"a": 1.0}]
    assert ledgers(sink_fixture) == ['- {"name":"a","type":"float64","optional":true}']


def test_records_before_the_first_object_are_rejected_without_a_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = fresh(tmp_path, monkeypatch, tolerance="All")
    run(fixture, log_of(1, b"{", b"[]"))
    assert store(fixture).get("log", "inferred") is None
    assert records(fixture) == []
    run(fixture, log_of(1, b"{", b"[]", {"a": 1}, "x", {"a": 2}))
    assert records(fixture) == [{"a": 1}, {"a": 2}]


def test_the_topic_partitions_of_a_round_are_observed_together(sink_fixture: MemorySinkFixture) -> None:
    class ByPartition(ValueLog):
        def value(self, partition: int, offset: int) -> bytes:
            return json.dumps({"a": 1} if partition else {"b": "x"}).encode()

    run(sink_fixture, ByPartition(records=2, partitions=2))
    assert sorted(ledgers(sink_fixture)) == [
        '- {"name":"a","type":"int64","optional":true}',
        '- {"name":"b","type":"string","optional":true}',
    ]


def test_a_topic_of_empty_objects_has_a_schema_without_fields(sink_fixture: MemorySinkFixture) -> None:
    run(sink_fixture, log_of({}, {}))
    assert records(sink_fixture) == [{}, {}]
    assert ledgers(sink_fixture) == []


@pytest.mark.parametrize("tolerance", ["None", "All"])
@pytest.mark.parametrize(
    ("value", "output", "reason"),
    [
        ({"a-b": 1, "a_b": 2}, "Avro", "the fields a-b and a_b have the same name in Avro, a_b"),
        ({"a-b": 1, "a_b": 2}, "Parquet", "the fields a-b and a_b have the same name in Avro, a_b"),
        ({}, "Parquet", "Parquet cannot express the whole value: the struct without a name has no fields"),
    ],
)
def test_a_schema_that_the_output_cannot_have_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any, output: str, reason: str, tolerance: str
) -> None:
    fixture = fresh(tmp_path, monkeypatch, tolerance=tolerance, output=output)
    with pytest.raises(ConfigurationError, match=r"topic log: .* set spec\.format\.schema") as raised:
        run(fixture, log_of(value, value))
    assert reason in str(raised.value)
    assert store(fixture).get("log", "inferred") is None


def test_a_schema_in_the_ledger_that_another_output_cannot_have_stops_the_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = fresh(tmp_path, monkeypatch, output="Parquet", tolerance="All")
    store(fixture).put_first("log", inferred_schema(SampledValues()))
    with pytest.raises(ConfigurationError, match="the schema in the ledger cannot be used with the output Parquet"):
        run(fixture, log_of({}))


def test_texts_that_are_not_utf_8_are_rejected_before_and_after_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = fresh(tmp_path, monkeypatch, tolerance="All")
    run(fixture, log_of(b'{"a": "\xff"}', {"a": "x"}, b'{"a": "\xff"}', {"a": "y"}))
    assert records(fixture) == [{"a": "x"}, {"a": "y"}]


def test_a_sample_ends_with_its_records_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    values = pa.array([b'{"a": 1}', None, b'{"b": 1}', b'{"c": 1}'], pa.binary())
    for name, limit in (("MAX_RECORDS", 2), ("MAX_BYTES", 9)):
        with monkeypatch.context() as patched:
            patched.setattr(schema_sample, name, limit)
            sample = SchemaSample()
            sample.add(values, {"inferred"})
            assert sample.observed is not None
            assert [*sample.observed.properties] == ["a", "b"]


def test_nothing_is_observed_for_the_ids_of_a_registry() -> None:
    sample = SchemaSample()
    sample.add(pa.array([b'{"a": 1}'], pa.binary()), {"key-7"})
    assert sample.observed is None
