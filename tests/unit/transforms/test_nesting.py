"""Flatten, Extract and Hoist."""

from __future__ import annotations

from tests.unit.transforms.transformed import reason, result


def test_flatten_moves_nested_fields_to_the_top() -> None:
    value = '{"a":{"b":{"c":1.50},"d":null},"e":[{"f":1}],"g":{}}'
    assert result(value, type="Flatten") == '{"a.b.c":1.50,"a.d":null,"e":[{"f":1}]}'
    assert result('{"a":{"b":1}}', type="Flatten", delimiter="_") == '{"a_b":1}'


def test_the_depth_of_what_is_flattened_has_a_limit() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert result(nested(256), type="Flatten") == f'{{"{".".join("a" * 256)}":1}}'
    assert reason(nested(257), type="Flatten") == "the value is nested deeper than 256 levels"


def test_extract_leaves_one_field() -> None:
    assert result('{"a": {"b":1.50}}', type="Extract", field="a") == '{"b":1.50}'


def test_extract_of_null_or_of_a_missing_field_is_a_tombstone() -> None:
    assert [result(value, type="Extract", field="a") for value in ('{"a":null}', "{}", None)] == [None] * 3


def test_hoist_makes_an_object_also_of_a_tombstone() -> None:
    assert [result(value, type="Hoist", field="a") for value in ("[1]", '{"b":1}', "null", None)] == [
        '{"a":[1]}',
        '{"a":{"b":1}}',
        '{"a":null}',
        '{"a":null}',
    ]


def test_a_value_that_is_not_json_is_rejected() -> None:
    assert reason("", type="Hoist", field="a") == "the value is empty"
    assert reason("1", type="Flatten") == "the value is a number, not an object"
