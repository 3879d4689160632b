"""The first start after a connector whose values have schemas: its objects are compared with Kafka row by row, before
the ledger has a schema (P5)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.context import StopCondition
from sink_job.maintenance.position.cases import Case
from tests.support.previous_objects import key_of, position
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import deep, findings

pytestmark = pytest.mark.data

ALL = StopCondition(until_caught_up=True, publish_open=True)
FIELDS: list[dict[str, Any]] = [
    {"name": "offset", "type": "long"},
    {"name": "name", "type": ["null", "string"], "default": None},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
FIRST = {"type": "record", "name": "Flight", "fields": FIELDS}
SECOND = {"type": "record", "name": "Flight", "fields": [*FIELDS, {"name": "more", "type": "int", "default": 7}]}
REGISTRY = {"url": ["http://127.0.0.1:9"]}


def row(offset: int) -> dict[str, Any]:
    return {
        "offset": offset,
        "name": None if offset % 3 else f"flight {offset}",
        "at": 1_700_000_000_000 + offset,
        "tags": ["a"] * (offset % 4),
    }


@dataclass(frozen=True)
class AvroLog(SyntheticLog):
    """Values with Confluent's wire format; from `second_from` on they have the second schema."""

    second_from: int = 1 << 62

    def schema_id(self, offset: int) -> int:
        return 2 if offset >= self.second_from else 1

    def row(self, offset: int) -> dict[str, Any]:
        return row(offset) | ({"more": offset} if offset >= self.second_from else {})

    def value(self, partition: int, offset: int) -> bytes:
        number = self.schema_id(offset)
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(dict(SCHEMAS[number])), self.row(offset))
        return b"\0" + number.to_bytes(4, "big") + body.getvalue()


SCHEMAS: Mapping[int, Mapping[str, Any]] = {1: FIRST, 2: SECOND}


class Registry:
    """A registry with both schemas; `error` is raised instead."""

    url = "http://registry"

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.error = error

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        if self.error is not None:
            raise self.error
        self.asked.append(schema_id)
        number = int(schema_id)
        if number not in SCHEMAS:
            return None
        return RegisteredSchema(schema_id, "AVRO", json.dumps(SCHEMAS[number]), subject="log-value", version=number)

    def close(self) -> None: ...


def avro_object(log: AvroLog, offsets: Iterable[int], schema: Mapping[str, Any] = FIRST) -> bytes:
    """As Connect's AvroFormat writes it: the names of Connect in the schema, and a codec of its own."""
    content = io.BytesIO()
    described = {**schema, "namespace": "", "connect.name": schema["name"]}
    rows = [{"more": 7, **log.row(each)} for each in offsets]
    fastavro.writer(content, fastavro.parse_schema(described), rows, codec="deflate")
    return content.getvalue()


def parquet_object(log: AvroLog, offsets: Iterable[int], schema: Mapping[str, Any] = FIRST) -> bytes:
    """As Connect's ParquetFormat writes it: times in milliseconds, and another order of the columns."""
    types = {
        "tags": pa.list_(pa.field("array", pa.string(), nullable=False)),
        "at": pa.timestamp("ms", tz="UTC"),
        "name": pa.string(),
        "offset": pa.int64(),
        **({"more": pa.int32()} if schema is SECOND else {}),
    }
    rows = [{"more": 7, **log.row(each)} for each in offsets]
    columns = {name: pa.array([each[name] for each in rows], kind) for name, kind in types.items()}
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, compression="gzip")
    return content.getvalue()


def json_object(log: AvroLog, offsets: Iterable[int], schema: Mapping[str, Any] = FIRST) -> bytes:
    """As Connect's JsonFormat writes it: the fields in another order, no spaces."""
    rows = [dict(reversed(log.row(each).items())) for each in offsets]
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in rows)


Written = Callable[..., bytes]
OUTPUTS: list[Any] = [
    pytest.param("Avro", ".avro", avro_object, id="Avro"),
    pytest.param("Parquet", ".snappy.parquet", parquet_object, id="Parquet"),
    pytest.param("Json", ".json", json_object, id="Json"),
]


def spec_of(output: str, **more: Any) -> dict[str, Any]:
    return {"format": {"converter": "Avro", "output": output, "registry": REGISTRY}, **more}


def put(sink_fixture: SinkFixture, first: int, extension: str, content: bytes) -> None:
    sink_fixture.put(key_of(first).replace(".json", extension), content)


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS)
def test_objects_with_the_rows_of_kafka_are_accepted(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written
) -> None:
    log, registry = AvroLog(records=45), Registry()
    for first, end in ((0, 10), (10, 20), (20, 27)):
        put(sink_fixture, first, extension, written(log, range(first, end)))
    sink_fixture.set_group({"log-0": 10})
    found = position(sink_fixture, log, spec=spec_of(output), registry=registry)
    assert [(p.case, p.start, p.message) for p in found.partitions] == [(Case.ACCEPTED, 27, "")]
    assert registry.asked == ["1"]


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS)
def test_one_different_row_rejects_the_start_and_is_named(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written
) -> None:
    log = AvroLog(records=45, starts_at=10)
    offsets = [*range(10, 15), 99, *range(16, 20)]
    put(sink_fixture, 10, extension, written(log, offsets))
    sink_fixture.set_group({"log-0": 10})
    (found,) = position(sink_fixture, log, spec=spec_of(output), registry=Registry()).partitions
    assert (found.case, found.message) == (
        Case.DIFFERENT,
        f"{key_of(10).replace('.json', extension)}: the record at offset 15 differs from the one in Kafka",
    )


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS)
@pytest.mark.parametrize("change", ["missing", "more"])
def test_missing_and_additional_rows_reject_the_start(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written, change: str
) -> None:
    log = AvroLog(records=45, starts_at=10)
    first = [10, 11, 13, 14] if change == "missing" else [*range(10, 16)]
    put(sink_fixture, 10, extension, written(log, first))
    put(sink_fixture, 15, extension, written(log, range(15, 20)))
    sink_fixture.set_group({"log-0": 10})
    (found,) = position(sink_fixture, log, spec=spec_of(output), registry=Registry()).partitions
    assert found.case is Case.DIFFERENT


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS)
def test_an_object_for_each_schema_is_compared_under_its_own(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written
) -> None:
    log, registry = AvroLog(records=45, starts_at=10, second_from=14), Registry()
    put(sink_fixture, 10, extension, written(log, range(10, 14)))
    put(sink_fixture, 14, extension, written(log, range(14, 20), SECOND))
    sink_fixture.set_group({"log-0": 10})
    found = position(sink_fixture, log, spec=spec_of(output), registry=registry)
    assert [(p.case, p.start) for p in found.partitions] == [(Case.ACCEPTED, 20)]
    assert registry.asked == ["1", "2"]


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS[:2])
def test_records_that_the_connector_has_projected_to_the_schema_of_their_object_are_equal(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written
) -> None:
    """With Backward an older record gets the defaults of the newer schema."""

    @dataclass(frozen=True)
    class Alternating(AvroLog):
        def schema_id(self, offset: int) -> int:
            return 2 if offset % 2 == 0 else 1

        def row(self, offset: int) -> dict[str, Any]:
            return row(offset) | ({"more": offset} if offset % 2 == 0 else {})

    log = Alternating(records=45, starts_at=10)
    put(sink_fixture, 10, extension, written(log, range(10, 20), SECOND))
    sink_fixture.set_group({"log-0": 10})
    projecting = spec_of(output, schemaCompatibility="Backward")
    found = position(sink_fixture, log, spec=projecting, registry=Registry())
    assert [(p.case, p.start, p.message) for p in found.partitions] == [(Case.ACCEPTED, 20, "")]
    (without,) = position(sink_fixture, log, spec=spec_of(output), registry=Registry()).partitions
    assert without.case is Case.DIFFERENT


@pytest.mark.parametrize(("output", "extension", "written"), [OUTPUTS[0], OUTPUTS[2]])
def test_the_objects_of_a_connector_with_transforms_are_accepted_with_the_same_ones(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written
) -> None:
    @dataclass(frozen=True)
    class Transformed(AvroLog):
        def row(self, offset: int) -> dict[str, Any]:
            found = row(offset)
            return {"offset": offset, "called": found["name"], "at": found["at"], "of": "log"}

    log, registry = AvroLog(records=45, starts_at=10), Registry()
    fields = [FIELDS[0], {**FIELDS[1], "name": "called"}, FIELDS[2], {"name": "of", "type": ["null", "string"]}]
    transforms = [
        {"type": "Drop", "fields": ["tags"]},
        {"type": "Rename", "renames": {"name": "called"}},
        {"type": "Insert", "field": "of", "source": "Topic"},
    ]
    put(sink_fixture, 10, extension, written(Transformed(), range(10, 20), {**FIRST, "fields": fields}))
    sink_fixture.set_group({"log-0": 10})
    same = spec_of(output, transforms=transforms)
    found = position(sink_fixture, log, spec=same, registry=registry)
    assert [(p.case, p.start, p.message) for p in found.partitions] == [(Case.ACCEPTED, 20, "")]
    (others,) = position(
        sink_fixture, log, spec=spec_of(output, transforms=transforms[:2]), registry=registry
    ).partitions
    assert others.case is Case.DIFFERENT


def test_an_id_that_the_registry_does_not_know_accepts_no_object(sink_fixture: SinkFixture) -> None:
    @dataclass(frozen=True)
    class Unknown(AvroLog):
        def value(self, partition: int, offset: int) -> bytes:
            return b"\0\0\0\0\x09" + super().value(partition, offset)[5:]

    log = Unknown(records=45)
    put(sink_fixture, 10, ".avro", avro_object(log, range(10, 20)))
    sink_fixture.set_group({"log-0": 10})
    (found,) = position(sink_fixture, log, spec=spec_of("Avro"), registry=Registry()).partitions
    assert found.case is Case.DIFFERENT


@pytest.mark.parametrize("error", [TransientError("no answer"), ConfigurationError("rejected credentials")], ids=repr)
def test_an_error_of_the_registry_ends_the_comparison(sink_fixture: SinkFixture, error: Exception) -> None:
    log = AvroLog(records=45, starts_at=10)
    put(sink_fixture, 10, ".avro", avro_object(log, range(10, 20)))
    sink_fixture.set_group({"log-0": 10})
    with pytest.raises(type(error), match=str(error)):
        position(sink_fixture, log, spec=spec_of("Avro"), registry=Registry(error))


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS[:2])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"Obj\x01", b"x" * 4096], ids=["empty", "Parquet", "Avro", "other"])
def test_a_damaged_object_rejects_the_start_with_its_key(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written, content: bytes
) -> None:
    log = AvroLog(records=45, starts_at=10)
    put(sink_fixture, 10, extension, content)
    sink_fixture.set_group({"log-0": 10})
    (found,) = position(sink_fixture, log, spec=spec_of(output), registry=Registry()).partitions
    assert found.case is Case.DIFFERENT
    assert found.message.startswith(key_of(10).replace(".json", extension))


@pytest.mark.parametrize(("output", "extension", "written"), OUTPUTS)
def test_a_sink_continues_behind_accepted_objects_and_verify_agrees(
    sink_fixture: SinkFixture, output: str, extension: str, written: Written
) -> None:
    log = AvroLog(records=45, starts_at=10, second_from=32)
    put(sink_fixture, 10, extension, written(log, range(10, 20)))
    sink_fixture.set_group({"log-0": 10})
    spec = spec_of(output)
    previous = position(sink_fixture, log, spec=spec, registry=Registry()).previous_writer()
    assert previous.comparison == ("values of JSON" if output == "Json" else f"rows of {output}")
    context = {"previous": previous, "registry": Registry()}
    sink_fixture.driver(log, ALL, flush_size=10, spec=spec, context=context).run()
    (result,) = deep(sink_fixture, log)
    assert findings([result]) == []
    assert (result.start, result.committed) == (20, 45)
