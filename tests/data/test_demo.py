"""`make demo` from start to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.flights import Flights
from tests.support.demo import demo_output


@pytest.mark.data
def test_the_flights_are_ordered_by_time_and_add_up_by_month() -> None:
    flights = Flights()
    times = [record.timestamp or 0 for record in flights.records()]
    assert len(times) == len(flights) == sum(month.flights for month in flights.months()) == 336_776
    assert times == sorted(times)


@pytest.mark.data
@pytest.mark.spark
def test_the_demo_succeeds_and_leaves_nothing_behind(tmp_path: Path) -> None:
    output = demo_output(tmp_path)
    assert "kill -9 of all its processes at part 2 of lake/flights/year=2013/" in output
    assert "336,776 flights in 60 objects; the source has 336,776: equal" in output
