"""Parsing and formatting of durations and sizes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.sections.job_sections import RotationSpec
from sink_job.api.units.quantities import DAY, format_duration, format_size, parse_duration, parse_size


@given(st.integers(0, 36_500 * DAY))
def test_a_formatted_duration_parses_to_the_same_value(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


@given(st.integers(0, 1 << 60))
def test_a_formatted_size_parses_to_the_same_value(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250ms", 250), ("10s", 10_000), ("10m", 600_000), ("1h30m", 5_400_000), ("1d", DAY), ("1d1ms", DAY + 1)],
)
def test_a_duration_is_the_sum_of_its_units(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "m", "10", "1m1h", "1.5h", "-5m", "5 m", "5M", "1w", "10m\n", "٣m"])
def test_another_text_is_not_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("5242880", 5 << 20),
        ("5Mi", 5 << 20),
        ("1.5Gi", 3 << 29),
        ("25M", 25_000_000),
        ("2k", 2000),
        ("1Ti", 1 << 40),
    ],
)
def test_a_size_is_a_kubernetes_quantity(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "Mi", "5 Mi", "5mi", "5K", "25MB", "25MiB", "-1", "1e6", "100m", "5Mi\n", "٣Mi"])
def test_another_text_is_not_a_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("25MB", "25Mi (1024) or 25M (1000)"), ("25MiB", "25Mi"), ("5K", "5Ki (1024) or 5k (1000)")],
)
def test_a_size_in_another_notation_gets_a_suggestion(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"is not a size: use {hint}") + "$"):
        parse_size(text)


@pytest.mark.parametrize("text", [".5Gi", "5.Mi", "0.0000000001Ti"])
def test_a_size_is_not_suggested_to_be_written_as_it_is(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size: use bytes, or a number with a unit"):
        parse_size(text)


def test_a_duration_of_more_than_100_years_is_rejected() -> None:
    with pytest.raises(ValueError, match="longer than 100 years"):
        parse_duration("999999999999999d")


def test_code_uses_milliseconds_and_bytes() -> None:
    rotation = RotationSpec(interval=600_000, max_bytes=1 << 30)
    assert rotation.model_dump(exclude_defaults=True) == {"interval": "10m", "maxBytes": "1Gi"}
