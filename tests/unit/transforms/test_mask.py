"""Mask."""

from __future__ import annotations

import pytest

from tests.unit.transforms.transformed import reason, result


@pytest.mark.parametrize(
    ("value", "masked"),
    [("1", "0"), ("1.5", "0.0"), ('"x"', '""'), ("true", "false"), ("[1]", "[]"), ('{"b":1}', "{}"), ("null", "null")],
)
def test_a_value_becomes_the_empty_one_of_its_type(value: str, masked: str) -> None:
    assert result(f'{{"a":{value}}}', type="Mask", fields=["a"]) == f'{{"a":{masked}}}'


def test_a_missing_field_becomes_null() -> None:
    assert result('{"b":1}', type="Mask", fields=["a"]) == '{"b":1,"a":null}'


@pytest.mark.parametrize(("value", "masked"), [("5", "1"), ("5.5", "1.5"), ('"x"', '"1.5"'), ("null", "null")])
def test_a_replacement_is_of_the_values_type(value: str, masked: str) -> None:
    assert result(f'{{"a":{value}}}', type="Mask", fields=["a"], replacement="1.5") == f'{{"a":{masked}}}'


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('{"a":1}', "the field a is a number, and the replacement is not"),
        ('{"a":true}', "the field a is a boolean, which no replacement is for"),
        ('{"a":9223372036854775808}', "the field a has more than 64 bits"),
        (None, "the value is null, not an object"),
    ],
)
def test_what_cannot_be_masked_is_rejected(value: str | None, why: str) -> None:
    assert reason(value, type="Mask", fields=["a"], replacement="***") == why
