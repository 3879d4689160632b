"""Maps whose keys are not texts, as arrays of entries."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from sink_job.avro.map_entries import entry_types, is_map_entry, map_of_entries
from sink_job.avro.schema import AvroType, parse_avro
from sink_job.connect.errors import InvalidSchema
from tests.unit.avro.avro_data import record

MAP_ENTRY = "io.confluent.connect.avro.MapEntry"


def entry(key: Any = "int", value: Any = "string", *, name: str = MAP_ENTRY, **more: Any) -> AvroType:
    return parse_avro(json.dumps({**record(("key", key), ("value", value), name=name), **more}))


def pairs(*items: tuple[Any, Any]) -> list[Any]:
    return [{"key": key, "value": value} for key, value in items]


def test_an_entry_has_the_name_or_the_mark_of_the_connector() -> None:
    assert is_map_entry(entry())
    assert is_map_entry(entry(name="a.Other", **{"connect.internal.type": "MapEntry"}))
    assert not is_map_entry(entry(name="a.Other"))
    assert not is_map_entry(entry(name="MapEntry"))
    assert not is_map_entry(parse_avro('"int"'))


@pytest.mark.parametrize("names", [("key",), ("key", "value", "more"), ("k", "v")])
def test_an_entry_has_a_key_and_a_value(names: tuple[str, ...]) -> None:
    avro = parse_avro(json.dumps(record(*((name, "int") for name in names), name=MAP_ENTRY)))
    with pytest.raises(InvalidSchema, match=f"the fields of {MAP_ENTRY} must be key and value"):
        is_map_entry(avro)


def test_the_types_are_found_in_either_order_of_the_fields() -> None:
    avro = parse_avro(json.dumps(record(("value", "string"), ("key", "int"), name=MAP_ENTRY)))
    assert is_map_entry(avro)
    assert [each.kind for each in entry_types(avro)] == ["int", "string"]


@pytest.mark.parametrize(
    "key", ["string", ["null", "string"], ["string"], {"type": "enum", "name": "E", "symbols": ["a"]}]
)
def test_a_map_with_text_keys_is_a_dict(key: Any) -> None:
    assert map_of_entries(entry(key), pairs(("a", 1), ("b", 2), ("a", 3))) == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("keys", "distinct"),
    [
        ([1, 2, 1], [1, 2]),
        ([1, True], [1, True]),
        ([0.0, -0.0], [0.0, -0.0]),
        ([[1], [1]], [[1]]),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{"b": 2, "a": 1}]),
        ([b"1", b"1"], [b"1"]),
    ],
)
def test_other_keys_are_compared_as_by_java(keys: list[Any], distinct: list[Any]) -> None:
    found = map_of_entries(entry(), pairs(*((key, row) for row, key in enumerate(keys))))
    assert isinstance(found, list)
    assert [repr(key) for key, _ in found] == [repr(key) for key in distinct]


def test_the_last_value_of_equal_keys_counts_also_of_nan() -> None:
    found = map_of_entries(entry("double"), pairs((math.nan, "a"), (1.0, "b"), (float("nan"), "c")))
    assert isinstance(found, list)
    assert [value for _, value in found] == ["c", "b"]
