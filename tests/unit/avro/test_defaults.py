"""Defaults in Avro schemas as values of Connect."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from sink_job.avro.defaults import avro_default
from sink_job.avro.schema import parse_avro
from sink_job.connect.errors import InvalidValue
from tests.unit.avro.avro_data import record

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
ENTRY = record(("key", "int"), ("value", "string"), name="io.confluent.connect.avro.MapEntry")
TWO_FIELDS = {
    "type": "record",
    "name": "T",
    "fields": [{"name": "a", "type": "int", "default": 7}, {"name": "b", "type": ["null", "int"]}],
}


def default(schema: Any, raw: object) -> object:
    return avro_default(parse_avro(json.dumps(schema)), raw)


@pytest.mark.parametrize(
    ("schema", "raw", "value"),
    [
        ("int", 2**31 - 1, 2**31 - 1),
        ("long", -(2**63), -(2**63)),
        ("double", 1, 1.0),
        ("boolean", False, False),
        ("string", "ä", "ä"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        ({"type": "fixed", "name": "F", "size": 1}, "a", b"a"),
        (DECIMAL, "\u0000\u0096", Decimal("1.50")),
        ({"type": "bytes", "logicalType": "Decimal"}, "\u0005", Decimal(5)),
        ({"type": "array", "items": "bytes"}, ["a"], [b"a"]),
        ({"type": "map", "values": "double"}, {"k": 1}, {"k": 1.0}),
        ({"type": "array", "items": ENTRY}, [{"key": 1, "value": "a"}], [(1, "a")]),
        (["int", "null"], 5, 5),
        (["null", "int"], 5, 5),
        (["int"], 5, 5),
        (["int", "string"], 5, {"int": 5}),
        (TWO_FIELDS, {}, {"a": 7, "b": None}),
        (TWO_FIELDS, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("int", None, None),
    ],
)
def test_a_default_is_a_value_of_its_type(schema: Any, raw: object, value: object) -> None:
    found = default(schema, raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("schema", "raw", "kind"),
    [
        ("int", 2**31, "int"),
        ("int", -(2**31) - 1, "int"),
        ("long", 2**63, "long"),
        ({"type": "int", "connect.type": "int8"}, 128, "int"),
        ({"type": "int", "connect.type": "int16"}, 2**15, "int"),
        ("int", True, "int"),
        ("int", 1.0, "int"),
        ("boolean", 0, "boolean"),
        ("double", "1", "double"),
        ("string", 1, "string"),
        ("bytes", "\u0100", "bytes"),
        ("null", 0, "null"),
        ({"type": "array", "items": "int"}, ["a"], "int"),
        (["int", "string"], "a", "int"),
        (["null", "int", "string"], 5, "union"),
        ([], 5, "union"),
        (record(("a", "int")), {}, "R"),
    ],
)
def test_another_default_is_rejected_with_the_name_of_the_type(schema: Any, raw: object, kind: str) -> None:
    with pytest.raises(InvalidValue, match=rf"^a default is not a value of the type {kind}$"):
        default(schema, raw)


@pytest.mark.parametrize(("kind", "lowest"), [("int8", -(2**7)), ("int16", -(2**15))])
def test_a_small_integer_has_the_range_of_its_type_in_connect(kind: str, lowest: int) -> None:
    schema = {"type": "int", "connect.type": kind}
    assert (default(schema, lowest), default(schema, -lowest - 1)) == (lowest, -lowest - 1)
