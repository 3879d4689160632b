"""Decimals as bytes, and ISO 8601 texts of dates and times."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.logical_types import (
    DECIMAL,
    MAX_SCALE,
    checked_length,
    decimal_from_bytes,
    decimal_to_bytes,
    integer_to_bytes,
    is_decimal,
    iso_date,
    iso_time,
    iso_timestamp,
    scale_of,
    unscaled,
)
from sink_job.connect.schema import Schema, SchemaType

EPOCH = date(1970, 1, 1)


def decimal_schema(scale: str | None) -> Schema:
    return Schema(SchemaType.BYTES, DECIMAL, parameters=() if scale is None else (("scale", scale),))


def test_a_decimal_is_bytes_with_its_name() -> None:
    assert is_decimal(decimal_schema("2"))
    assert not is_decimal(Schema(SchemaType.BYTES))
    assert not is_decimal(Schema(SchemaType.STRING, DECIMAL))


@pytest.mark.parametrize(("text", "scale"), [("0", 0), ("-3", -3), (str(MAX_SCALE), MAX_SCALE), (" 2", 2)])
def test_a_scale_is_an_integer(text: str, scale: int) -> None:
    assert scale_of(decimal_schema(text)) == scale


@pytest.mark.parametrize("text", [None, "", "x", "1.0", str(MAX_SCALE + 1), str(-MAX_SCALE - 1), "9" * 5000])
def test_another_scale_is_an_invalid_schema(text: str | None) -> None:
    with pytest.raises(InvalidSchema, match="the scale of a decimal must be an integer within ±10,000"):
        scale_of(decimal_schema(text))


@given(st.integers(-(2**200), 2**200), st.integers(-20, 20))
def test_a_decimal_is_read_from_its_bytes_again(number: int, scale: int) -> None:
    value = decimal_from_bytes(integer_to_bytes(number), scale)
    assert unscaled(value, scale) == number
    assert value.as_tuple().exponent == -scale
    assert decimal_to_bytes(value, scale) == integer_to_bytes(number)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f"), (255, "00ff"), (-256, "ff00")],
)
def test_the_bytes_are_the_shortest_as_those_of_java(number: int, encoded: str) -> None:
    assert integer_to_bytes(number).hex() == encoded


@pytest.mark.parametrize(
    ("text", "scale", "number"), [("1.5", 1, 15), ("1.5", 3, 1500), ("-2", 0, -2), ("1E3", 0, 1000), ("1E3", -2, 10)]
)
def test_zeros_are_added_up_to_the_scale(text: str, scale: int, number: int) -> None:
    assert unscaled(Decimal(text), scale) == number


@pytest.mark.parametrize(
    ("text", "scale"), [("1.50", 1), ("0.1", 0), ("10", -2), ("NaN", 0), ("Infinity", 0), ("-Infinity", 2)]
)
def test_a_decimal_with_more_places_than_the_scale_is_rejected(text: str, scale: int) -> None:
    with pytest.raises(InvalidValue, match=f"a decimal does not have the scale {scale}"):
        decimal_to_bytes(Decimal(text), scale)


def test_an_integer_without_bytes_is_no_decimal() -> None:
    with pytest.raises(InvalidValue, match="a decimal has no bytes"):
        decimal_from_bytes(b"", 0)


def test_a_decimal_has_at_most_12000_bits() -> None:
    assert decimal_from_bytes(integer_to_bytes(2**12_000 - 1), 0) == 2**12_000 - 1
    with pytest.raises(InvalidValue, match="a decimal has 1501 bytes, which is too long"):
        decimal_from_bytes(integer_to_bytes(2**12_000), 0)


@pytest.mark.parametrize(
    ("text", "scale", "fits"),
    [
        ("9" * 4000, 0, True),
        ("9" * 4001, 0, False),
        ("9" * 3999, 1, True),
        ("9" * 4000, 1, False),
        ("0E10000", -9000, True),
        ("0E10001", -9000, False),
        ("1E-10000", 0, True),
        ("1E-10001", 0, False),
        ("NaN", 0, True),
    ],
)
def test_the_length_of_a_decimal_is_limited_before_it_is_computed(text: str, scale: int, fits: bool) -> None:
    value = Decimal(text)
    if fits:
        assert checked_length(value, scale) is value
    else:
        with pytest.raises(InvalidValue, match="more than 4,000 digits, or an exponent beyond"):
            checked_length(value, scale)


@given(st.dates())
def test_a_date_has_the_text_of_python(day: date) -> None:
    assert iso_date((day - EPOCH).days) == day.isoformat()


@pytest.mark.parametrize(
    ("day", "text"),
    [
        ((date(9999, 12, 31) - EPOCH).days + 1, "+10000-01-01"),
        ((date(1, 1, 1) - EPOCH).days - 1, "0000-12-31"),
        ((date(1, 1, 1) - EPOCH).days - 366, "0000-01-01"),
        ((date(1, 1, 1) - EPOCH).days - 367, "-0001-12-31"),
        (2**31 - 1, "+5881580-07-11"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_a_year_outside_of_four_digits_has_a_sign(day: int, text: str) -> None:
    assert iso_date(day) == text


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "00:00:00.000"), (86_399_999, "23:59:59.999"), (3_661_001, "01:01:01.001")]
)
def test_a_time_of_the_day_has_three_decimal_places(ms: int, text: str) -> None:
    assert iso_time(ms) == text


@pytest.mark.parametrize("ms", [-1, 86_400_000])
def test_a_time_outside_of_a_day_is_rejected(ms: int) -> None:
    with pytest.raises(InvalidValue, match=re.escape(f"{ms} is not a time of the day in ms")):
        iso_time(ms)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_timestamp_has_the_text_of_python_in_utc(ms: int) -> None:
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    assert iso_timestamp(ms) == instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
