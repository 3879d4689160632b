"""Avro data written column-wise under another schema than their own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.avro.column_projection import ColumnProjector
from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect.json_encoder import JsonOptions
from sink_job.connect.projection import can_project
from sink_job.connect.schema import Schema
from tests.unit.avro.avro_data import datum, encode, record, registered

NULLABLE = ["null", "long"]
INNER = record(("x", "int"), ("y", "string"), name="S")
FEWER = record(("x", "int"), name="S")


def connect(schema: Any) -> Schema:
    return connect_schema(parse_registered(registered(schema)), 1)


def projector(source: Any, target: Any) -> ColumnProjector:
    assert can_project(connect(source), connect(target)) is None
    return ColumnProjector(parse_registered(registered(source)), connect(source), connect(target), JsonOptions())


def projected(source: Any, target: Any, *values: Any) -> list[str]:
    """The JSON texts of values of `source` under `target`."""
    payload = pa.array(encode(source, list(values)), pa.binary())
    return [text.decode() for text in projector(source, target).project(payload).to_pylist()]


def test_fields_are_dropped_added_reordered_and_widened_by_column() -> None:
    schema = record(("a", "int"), ("b", "string"), ("c", NULLABLE))
    fields = [
        {"name": "e", "type": "string", "default": "ä"},
        {"name": "c", "type": "long", "default": -1},
        {"name": "d", "type": NULLABLE, "default": None},
        {"name": "a", "type": NULLABLE},
    ]
    target = connect({"type": "record", "name": "R", "fields": fields})
    payload = pa.array([datum(schema, {"a": n, "b": "x", "c": n if n % 2 else None}) for n in range(2)])
    found = ColumnProjector(parse_registered(registered(schema)), connect(schema), target, JsonOptions())
    assert found.project(payload).to_pylist() == [
        '{"e":"ä","c":-1,"d":null,"a":0}'.encode(),
        '{"e":"ä","c":1,"d":null,"a":1}'.encode(),
    ]


@pytest.mark.parametrize(
    ("kind", "wider", "value", "text"),
    [
        ("int", "long", 5, "5"),
        ("int", ["null", "long"], 5, "5"),
        ("string", ["null", "string"], "ä", '"ä"'),
        (["null", "int"], ["null", "long"], None, "null"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2], "[1,2]"),
        ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "long"]}, {"k": 1}, '{"k":1}'),
        (INNER, record(("x", "long"), ("y", "string"), name="S"), {"x": 1, "y": "a"}, '{"x":1,"y":"a"}'),
    ],
    ids=str,
)
def test_a_field_of_the_same_form_is_written_column_wise(kind: Any, wider: Any, value: Any, text: str) -> None:
    assert projected(record(("a", kind)), record(("a", wider)), {"a": value}) == [f'{{"a":{text}}}']


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("float", "double"),
        ("int", "double"),
        (INNER, record(("y", "string"), ("x", "int"), name="S")),
        (INNER, FEWER),
        ({"type": "array", "items": INNER}, {"type": "array", "items": FEWER}),
    ],
    ids=["float", "integer to number", "other order", "fewer fields", "within an array"],
)
def test_a_field_of_another_form_is_left_to_the_projection_row_by_row(kind: Any, target: Any) -> None:
    with pytest.raises(NotColumnar, match="the field a is not projected column-wise"):
        projector(record(("a", kind)), record(("a", target)))


ONLY_B = {"type": "record", "name": "R", "fields": [{"name": "b", "type": NULLABLE, "default": None}]}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("int", "long"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
        (record(("a", "int")), ONLY_B),
    ],
    ids=["number", "array", "no common field"],
)
def test_a_value_without_a_field_of_the_target_is_not_columnar(source: Any, target: Any) -> None:
    with pytest.raises(NotColumnar, match="not a record with a field of the target"):
        projector(source, target)


def test_a_null_value_is_decided_row_wise() -> None:
    schema = ["null", record(("a", "int"))]
    found = projector(schema, ["null", record(("a", "long"))])
    assert found.project(pa.array(encode(schema, [{"a": 1}]), pa.binary())).to_pylist() == [b'{"a":1}']
    with pytest.raises(UnusualValues, match="a value is null"):
        found.project(pa.array(encode(schema, [{"a": 1}, None]), pa.binary()))


def test_damaged_data_are_decided_row_wise() -> None:
    schema = record(("a", "int"))
    found = projector(schema, record(("a", "long")))
    with pytest.raises(UnusualValues):
        found.project(pa.array([datum(schema, {"a": 1}), b"\x02\x02"], pa.binary()))


def test_each_row_of_a_slice_is_its_own() -> None:
    items = {"type": "array", "items": "string"}
    schema = record(("a", "int"), ("b", items))
    payload = pa.array(encode(schema, [{"a": n, "b": ["x"] * n} for n in range(9)]), pa.binary())
    found = projector(schema, record(("b", items), ("a", "long")))
    assert found.project(payload.slice(4, 3)).to_pylist() == found.project(payload).to_pylist()[4:7]
