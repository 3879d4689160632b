"""Timestamp."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.transforms.transformed import reason, result

TEXT: dict[str, Any] = {"type": "Timestamp", "timestampType": "Text", "timestampFormat": "yyyy-MM-dd HH:mm:ss"}
UNIX: dict[str, Any] = {**TEXT, "timestampType": "UnixTime"}


def test_a_number_becomes_a_text_and_a_text_a_number() -> None:
    assert result('{"a":1700000000123}', **TEXT, field="a") == '{"a":"2023-11-14 22:13:20"}'
    assert result('{"a":"2023-11-14 22:13:20"}', **UNIX, field="a") == '{"a":1700000000000}'
    assert result("1700000000123", **TEXT) == '"2023-11-14 22:13:20"'


@pytest.mark.parametrize(
    ("unit", "number", "rounded"),
    [
        ("Seconds", 1700000000, 1700000000),
        ("Microseconds", 1700000000123456, 1700000000123000),
        ("Nanoseconds", -1700000000123456789, -1700000000123000000),
    ],
)
def test_units_of_numbers(unit: str, number: int, rounded: int) -> None:
    assert result(str(number), type="Timestamp", timestampType="UnixTime", unit=unit) == str(rounded)


def test_null_stays_null_and_a_missing_field_becomes_it() -> None:
    assert [result(value, **TEXT, field="a") for value in (None, "{}", '{"a":null}')] == [
        None,
        '{"a":null}',
        '{"a":null}',
    ]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1.5", "the value is a number, which is no time"),
        ("true", "the value is a boolean, which is no time"),
        ('"x"', "the value does not match the pattern: the text has no number at its place"),
        ("9223372036854775807", "the value: the time is out of range"),
    ],
)
def test_what_is_no_time_is_rejected(value: str, why: str) -> None:
    assert reason(value, **TEXT) == why


def test_a_text_without_a_pattern_is_rejected() -> None:
    assert reason('"2020"', type="Timestamp", timestampType="UnixTime") == "the value is a text, which is no time"
