"""Tables, durations and ages."""

from __future__ import annotations

import pytest

from s3sink_operator.kubectl.formatting import format_age, format_duration, format_table
from s3sink_operator.types import to_timestamp
from tests.operator.fake_cluster import MINUTE, START


def test_columns_are_as_wide_as_they_need() -> None:
    assert format_table(["A", "LONG"], [["xyz", "1"], ["x", "2"]]) == "A     LONG\nxyz   1\nx     2"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3661, "1h1m"), (7200, "2h"), (90_000, "1d1h"), (-5, "0s")],
)
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


def test_an_age_that_is_not_known_is_a_dash() -> None:
    assert format_age(None, START) == format_age("soon", START) == "-"
    assert format_age(to_timestamp(START - 2 * MINUTE), START) == "2m"
