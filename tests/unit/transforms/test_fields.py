"""Insert, Keep, Drop and Rename. tests/data/test_connect_transforms.py compares them with Kafka's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.transforms.transformed import ORIGIN, reason, result


@pytest.mark.parametrize(
    ("source", "content"),
    [("Topic", '"flights"'), ("Partition", "3"), ("Offset", "7"), ("Timestamp", "1700000000123")],
)
def test_insert_adds_the_origin_of_a_record(source: str, content: str) -> None:
    assert result('{"a": 1}', type="Insert", field="b", source=source) == f'{{"a":1,"b":{content}}}'


def test_insert_replaces_a_field_at_its_place() -> None:
    assert result('{"a":1,"b":2}', type="Insert", field="a", source="Text", text="x") == '{"a":"x","b":2}'


def test_a_record_without_a_timestamp_gets_no_field() -> None:
    assert result('{"a":1}', ORIGIN._replace(timestamp=None), type="Insert", field="t", source="Timestamp") == '{"a":1}'


def test_keep_drop_and_rename() -> None:
    value = '{"a":1,"b":[2.50],"c":{"a":3}}'
    assert result(value, type="Keep", fields=["b", "z"]) == '{"b":[2.50]}'
    assert result(value, type="Drop", fields=["b", "z"]) == '{"a":1,"c":{"a":3}}'
    assert result(value, type="Rename", renames={"a": "x", "z": "y"}) == '{"x":1,"b":[2.50],"c":{"a":3}}'


def test_of_two_fields_with_one_name_the_last_stays() -> None:
    assert result('{"a":1,"b":2}', type="Rename", renames={"a": "b"}) == '{"b":2}'


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "Insert", "field": "a", "source": "Topic"},
        {"type": "Keep", "fields": ["a"]},
        {"type": "Rename", "renames": {"a": "b"}},
    ],
)
def test_a_tombstone_stays_one_and_another_value_than_an_object_is_rejected(spec: dict[str, Any]) -> None:
    assert result(None, **spec) is None
    assert result("null", **spec) == "null"
    assert reason("[1]", **spec) == "the value is an array, not an object"
    assert reason("{", **spec).startswith("the value is not JSON: ")
