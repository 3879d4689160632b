"""Every shape of an Avro schema as the whole value, in every output, with and without envelope: the object has the
values as independent readers read them, or the value is rejected with a reason."""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest

from tests.unit.avro.avro_data import Table, datum, in_wire_format, record, registered
from tests.unit.envelope.enveloped import WIRE_FORMAT, Consumed, pipeline, prepare, rows
from tests.unit.envelope.test_envelope import object_of

A = record(("id", "long"), ("name", ["null", "string"]), name="example.A")
B = record(("flag", "boolean"), ("tags", {"type": "array", "items": "string"}), name="example.B")
ENUM = {"type": "enum", "name": "example.E", "symbols": ["X", "Y"]}
FIXED = {"type": "fixed", "name": "example.F", "size": 2}
A_VALUES = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
B_VALUES = [{"flag": True, "tags": ["x"]}, {"flag": False, "tags": []}]
RECURSIVE = record(("next", ["null", "example.R"]), name="example.R")


class Shape(NamedTuple):
    """A schema, and values of it as fastavro writes and reads them. `in_parquet`: whether Parquet can express it as a
    whole value without envelope, and with one."""

    id: str
    schema: Any
    values: list[Any]
    in_parquet: tuple[bool, bool] = (True, True)


ONLY_IN_ENVELOPE = (False, True)
NEVER = (False, False)
SHAPES = [
    Shape("a boolean", "boolean", [True, False], ONLY_IN_ENVELOPE),
    Shape("an int", "int", [1, -1], ONLY_IN_ENVELOPE),
    Shape("a long", "long", [1, -(2**62)], ONLY_IN_ENVELOPE),
    Shape("a float", "float", [0.5, -1.0], ONLY_IN_ENVELOPE),
    Shape("a double", "double", [0.5, -1.0], ONLY_IN_ENVELOPE),
    Shape("a string", "string", ["a", "é"], ONLY_IN_ENVELOPE),
    Shape("bytes", "bytes", [b"\0", b"\xff"], ONLY_IN_ENVELOPE),
    Shape("an enum", ENUM, ["X", "Y"], ONLY_IN_ENVELOPE),
    Shape("a fixed", FIXED, [b"ab", b"cd"], ONLY_IN_ENVELOPE),
    Shape("an array", {"type": "array", "items": "long"}, [[1], []], ONLY_IN_ENVELOPE),
    Shape("a map", {"type": "map", "values": "long"}, [{"a": 1}, {}], ONLY_IN_ENVELOPE),
    Shape("a record", A, A_VALUES),
    Shape("a record of a union", record(("u", ["long", "string"]), name="example.U"), [{"u": 1}, {"u": "x"}]),
    Shape("an empty record", record(name="example.Empty"), [{}, {}], NEVER),
    Shape("a recursive record", RECURSIVE, [{"next": None}, {"next": {"next": None}}], NEVER),
    Shape("two records", [A, B], [A_VALUES[0], B_VALUES[0], A_VALUES[1], B_VALUES[1]]),
    Shape("two records and null", ["null", A, B], [A_VALUES[0], B_VALUES[0]]),
    Shape("a record and texts", [A, "string"], [A_VALUES[0], "text"]),
    Shape("a number or a text", ["long", "string"], [1, "x"]),
    Shape("a nullable record", ["null", A], A_VALUES),
    Shape("a nullable text", ["null", "string"], ["a", "b"], ONLY_IN_ENVELOPE),
    Shape("a union of an enum and arrays", [ENUM, {"type": "array", "items": A}], ["X", [A_VALUES[0]]]),
]
"""`null` alone is no value (docs/semantics.md, section 8)."""


def consumed(shape: Shape, times: int = 12) -> list[Consumed]:
    """Enough records to be read column-wise."""
    return [Consumed(in_wire_format(1, datum(shape.schema, value))) for value in shape.values * times]


def found(shape: Shape, output: str, *, envelope: bool) -> Any:
    table = Table({"1": registered(shape.schema, version=1)})
    return pipeline(table, converter="Avro", output=output, wire_format=WIRE_FORMAT, envelope=envelope)


def plain(value: Any, shape: Shape) -> Any:
    """A value of Parquet as fastavro reads it: of a union, the only member that is not null."""
    if isinstance(shape.schema, list) and len([each for each in shape.schema if each != "null"]) > 1:
        (member,) = [each for each in value.values() if each is not None]
        return member
    if shape.id == "a record of a union":
        return {"u": next(each for each in value["u"].values() if each is not None)}
    return dict(value) if isinstance(shape.schema, dict) and shape.schema["type"] == "map" else value


@pytest.mark.parametrize("envelope", [False, True], ids=["alone", "in an envelope"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
def test_an_avro_object_has_the_values(shape: Shape, envelope: bool) -> None:
    body = object_of(found(shape, "Avro", envelope=envelope), consumed(shape))
    read: list[Any] = list(fastavro.reader(io.BytesIO(body)))
    assert [each["value"] if envelope else each for each in read] == shape.values * 12


@pytest.mark.parametrize("envelope", [False, True], ids=["alone", "in an envelope"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
@pytest.mark.parametrize("times", [1, 12], ids=["few rows", "many rows"])
def test_a_parquet_object_has_the_values_or_they_are_rejected_with_the_reason(
    shape: Shape, envelope: bool, times: int
) -> None:
    one, records = found(shape, "Parquet", envelope=envelope), consumed(shape, times)
    if not shape.in_parquet[envelope]:
        errors = prepare(one, records).errors
        assert len(errors) == len(records)
        assert all("Parquet" in error.message for error in errors)
        return
    body = object_of(one, records)
    read = pq.read_table(io.BytesIO(body)).to_pylist()
    assert [plain(each["value"] if envelope else each, shape) for each in read] == shape.values * times


def test_duckdb_reads_a_union_of_two_records_as_a_group_for_each() -> None:
    shape = next(each for each in SHAPES if each.id == "two records")
    body = object_of(found(shape, "Parquet", envelope=False), consumed(shape))
    read = pq.read_table(io.BytesIO(body))
    assert [field.type.num_fields for field in read.schema] == [2, 2]
    columns = read.column_names
    query = f'select count("{columns[0]}"), count("{columns[1]}"), count(*) from read'
    counts = duckdb.execute(query).fetchall()
    assert counts == [(24, 24, 48)]


@pytest.mark.parametrize("envelope", [False, True], ids=["alone", "in an envelope"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
def test_a_json_object_has_one_text_for_each_value(shape: Shape, envelope: bool) -> None:
    lines = rows(found(shape, "Json", envelope=envelope), consumed(shape))
    assert len([json.loads(line) for line in lines]) == len(shape.values) * 12
    assert all(line.count(b"\n") == 1 for line in lines)
