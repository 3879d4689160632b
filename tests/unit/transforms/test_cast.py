"""Cast."""

from __future__ import annotations

import pytest

from tests.unit.transforms.transformed import reason, result


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("300", "Int8", "44"),
        ("1e300", "Int8", "-1"),
        ("1e300", "Int64", "9223372036854775807"),
        ("-1.9", "Int32", "-1"),
        ("true", "Int16", "1"),
        ('"+12"', "Int32", "12"),
        ("0.9", "Boolean", "false"),
        ('"TRUE"', "Boolean", "true"),
        ('"yes"', "Boolean", "false"),
        ("0.1", "Float32", "0.1"),
        ("1e39", "Float32", '"Infinity"'),
        ('" 0x1p3f "', "Float64", "8.0"),
        ("7", "Float64", "7.0"),
        ("1e7", "Text", '"1.0E7"'),
        ("false", "Text", '"false"'),
        ("-12", "Text", '"-12"'),
        ("null", "Text", "null"),
    ],
)
def test_fields_have_values_as_in_java(value: str, kind: str, expected: str) -> None:
    assert result(f'{{"a":{value}}}', type="Cast", casts={"a": kind}) == f'{{"a":{expected}}}'
    if value != "null":
        assert result(value, type="Cast", castTo=kind) == expected


def test_a_missing_field_becomes_null() -> None:
    assert result("{}", type="Cast", casts={"a": "Int8"}) == '{"a":null}'


def test_a_tombstone_stays_one() -> None:
    assert result(None, type="Cast", casts={"a": "Int8"}) is None
    assert result(None, type="Cast", castTo="Int8") is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('{"a":"1.5"}', "the field a is a text that is no value of the type"),
        ('{"a":"128"}', "the field a is a text that is no value of the type"),
        ('{"a":[1]}', "the field a is an array, which cannot be cast"),
        ('{"a":9223372036854775808}', "the field a has more than 64 bits"),
        ("1", "the value is a number, not an object"),
    ],
)
def test_what_cannot_be_cast_is_rejected(value: str, why: str) -> None:
    assert reason(value, type="Cast", casts={"a": "Int8"}) == why
