"""Decoded Avro data as Connect's values: written by fastavro under the schema, read with the reading schema."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.avro.connect_values import normaliser
from sink_job.avro.schema import parse_avro
from sink_job.avro.to_connect import connect_schema
from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_encoder import json_text
from tests.unit.avro.reading_schema import reading_schema

AVRO = "io.confluent.connect.avro"


def datum(schema: Any, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema: Any, encoded: bytes) -> object:
    """Connect's value of a datum."""
    avro_type = parse_avro(json.dumps(schema))
    stream = io.BytesIO(encoded)
    decoded = fastavro.schemaless_reader(stream, fastavro.parse_schema(reading_schema(avro_type)), None)  # type: ignore[arg-type]
    assert stream.read() == b""
    return normaliser(avro_type)(decoded)


def through(schema: Any, value: object) -> object:
    return read(schema, datum(schema, value))


def as_json(schema: Any, value: object) -> object:
    """The JSON value that is written for an Avro value."""
    return json.loads(json_text(connect_schema(parse_avro(json.dumps(schema))), through(schema, value)))


def record(*fields: tuple[str, Any], name: str = "R", **more: object) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": of} for key, of in fields], **more}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("boolean", True),
        ("int", -5),
        ("long", 2**62),
        ("double", 0.1),
        ("bytes", b"\x00\xff"),
        ("string", "ä"),
        (["null", "int"], None),
        (["null", "int"], 3),
        ({"type": "array", "items": "int"}, [1, 2]),
        ({"type": "map", "values": "string"}, {"a": "b"}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab"),
        (record(("a", "int"), ("b", ["null", "string"]), namespace="n"), {"a": 1, "b": None}),
    ],
)
def test_a_value_without_a_logical_type_is_itself(schema: object, value: object) -> None:
    assert through(schema, value) == value


@pytest.mark.parametrize(
    ("avro_type", "logical_type", "value", "number"),
    [
        ("int", "date", date(1970, 1, 11), 10),
        ("long", "timestamp-millis", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        ("long", "timestamp-micros", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000_000),
    ],
)
def test_a_date_or_time_is_a_number(avro_type: str, logical_type: str, value: object, number: int) -> None:
    assert through({"type": avro_type, "logicalType": logical_type}, value) == number


@pytest.mark.parametrize("avro_type", [{"type": "bytes"}, {"type": "fixed", "name": "F", "size": 8}])
def test_a_decimal_is_exact(avro_type: dict[str, Any]) -> None:
    schema = avro_type | {"logicalType": "decimal", "precision": 12, "scale": 2}
    assert through(schema, Decimal("-123.40")) == Decimal("-123.40")


def test_a_decimal_without_bytes_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="no bytes"):
        read({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x00")


@pytest.mark.parametrize(
    ("annotated", "value", "found"), [("int8", 200, -56), ("int16", 40_000, -25_536), ("int8", 5, 5)]
)
def test_a_small_int_wraps_as_in_java(annotated: str, value: int, found: int) -> None:
    assert through({"type": "int", "connect.type": annotated}, value) == found


UNION = ["null", "string", {"type": "enum", "name": "n.E", "symbols": ["A"]}, "bytes", record(("a", "int"), name="n.M")]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        ("x", {"string": "x"}),
        (("n.E", "A"), {"E": "A"}),
        (b"b", {"bytes": b"b"}),
        ({"a": 1}, {"M": {"a": 1}}),
    ],
)
def test_a_value_of_a_union_names_its_member(value: object, found: object) -> None:
    assert through(record(("u", UNION)), {"u": value}) == {"u": found}


def test_a_union_is_written_with_all_members() -> None:
    assert as_json(record(("u", ["int", "string"])), {"u": "x"}) == {"u": {"int": None, "string": "x"}}


def test_values_in_a_union_are_converted() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    assert through(["string", decimal], Decimal("1.5")) == {"bytes": Decimal("1.5")}


def entries(key: object) -> dict[str, Any]:
    return {"type": "array", "items": record(("key", key), ("value", "int"), name=f"{AVRO}.MapEntry")}


def test_a_map_of_entries_is_a_list_of_pairs() -> None:
    assert through(entries("int"), [{"key": 1, "value": 2}, {"key": 1, "value": 3}]) == [(1, 3)]
    assert as_json(entries("int"), [{"key": 1, "value": 2}]) == [[1, 2]]


def test_a_map_of_entries_with_text_keys_is_an_object() -> None:
    schema = entries(["null", "string"])
    assert as_json(schema, [{"key": "a", "value": 1}, {"key": None, "value": 2}]) == {"a": 1, "null": 2}


def test_keys_of_compound_types_are_compared_by_value() -> None:
    schema = entries({"type": "array", "items": "bytes"})
    assert through(schema, [{"key": [b"a"], "value": 1}, {"key": [b"a"], "value": 2}]) == [([b"a"], 2)]


def test_a_recursive_value_is_converted_at_every_depth() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    schema = record(("d", decimal), ("next", ["null", "List"]), name="List")
    value = {"d": Decimal("1.0"), "next": {"d": Decimal("2.0"), "next": {"d": Decimal("3.0"), "next": None}}}
    assert through(schema, value) == value


def test_a_nested_name_in_another_namespace_is_read() -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "", "fields": [{"name": "a", "type": "int"}]}
    schema = record(("x", inner), ("y", ["int", "Inner", "string"]), name="n.R")
    encoded = b"\x02" + b"\x02\x04"
    assert read(schema, encoded) == {"x": {"a": 1}, "y": {"Inner": {"a": 2}}}


_SIMPLE = st.sampled_from(["boolean", "int", "long", "double", "bytes", "string"])
_VALUES = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(),
    "string": st.text(),
}


@st.composite
def _types(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    """An Avro type and its values as (Avro value for fastavro, Connect's value)."""
    kind = draw(st.sampled_from(["simple", "optional", "union", "array", "map", "record"] if depth else ["simple"]))
    if kind == "simple":
        simple = draw(_SIMPLE)
        return simple, _VALUES[simple].map(lambda value: (value, value))
    if kind == "union":
        members = draw(st.lists(_SIMPLE, min_size=2, max_size=4, unique=True))
        return members, st.sampled_from(members).flatmap(_of_member)
    of, values = draw(_types(depth - 1))
    if kind == "optional":
        return (of, values) if isinstance(of, list) else (["null", of], st.none().map(lambda _: (None, None)) | values)
    if kind == "array":
        return {"type": "array", "items": of}, st.lists(values, max_size=3).map(
            lambda each: tuple(map(list, _split(each)))
        )
    if kind == "map":
        return {"type": "map", "values": of}, st.dictionaries(st.text(), values, max_size=3).map(_split_dict)
    return record(("f", of), ("g", "int"), name=f"R{depth}"), values.map(
        lambda pair: ({"f": pair[0], "g": 7}, {"f": pair[1], "g": 7})
    )


def _of_member(member: str) -> st.SearchStrategy[Any]:
    return _VALUES[member].map(lambda value: ((member, value), {member: value}))


def _split(pairs: list[tuple[object, object]]) -> tuple[list[object], list[object]]:
    return [left for left, _ in pairs], [right for _, right in pairs]


def _split_dict(pairs: dict[str, tuple[object, object]]) -> tuple[dict[str, object], dict[str, object]]:
    return {key: left for key, (left, _) in pairs.items()}, {key: right for key, (_, right) in pairs.items()}


@given(st.data())
def test_any_value_is_read_as_it_was_written(data: st.DataObject) -> None:
    schema, values = data.draw(_types())
    written, expected = data.draw(values)
    assert through(record(("f", schema)), {"f": written}) == {"f": expected}
