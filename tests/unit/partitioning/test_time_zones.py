"""Time zones: offsets of columns, conversion of local time to UTC, and properties of the zone data."""

from __future__ import annotations

import struct
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.time_zones import DAY, HOUR, ranked, zone
from tests.unit.rotation.clocks import ZONES, at

names = st.sampled_from(ZONES)
instants = st.integers(-(10**12), 4 * 10**12)


@given(names, st.lists(instants, min_size=1, max_size=40))
def test_the_offsets_of_a_column_equal_those_of_its_instants(name: str, times: list[int]) -> None:
    offsets = np.broadcast_to(zone(name).offsets(np.array(times, np.int64)), len(times))
    assert offsets.tolist() == [zone(name).offset(time) for time in times]


@pytest.mark.parametrize(
    ("name", "change"), [("Europe/Berlin", "2024-03-31T01:00"), ("Australia/Lord_Howe", "2024-04-06T15:00")]
)
def test_a_clock_change_is_exact_to_the_millisecond(name: str, change: str) -> None:
    moment = at(change)
    times = np.array([moment - 1, moment, moment + 1], np.int64)
    assert zone(name).offsets(times).tolist() == [zone(name).offset(int(time)) for time in times]  # type: ignore[union-attr]
    assert zone(name).offset(moment) != zone(name).offset(moment - 1)


def test_no_zone_has_two_clock_changes_on_a_utc_day() -> None:
    """The computation of the offsets of a column assumes at most one clock change on a UTC day."""
    data = resources.files("tzdata")
    for name in data.joinpath("zones").read_text().split():
        changes = _changes(data.joinpath("zoneinfo", *name.split("/")).read_bytes())
        assert all(later - earlier > 86_400 for earlier, later in pairwise(changes)), name


def _changes(tzif: bytes) -> list[int]:
    """The instants (s since the epoch) of the offset changes in a time-zone file."""
    first = struct.unpack(">6l", tzif[20:44])
    start = 44 + first[3] * 5 + first[4] * 6 + first[5] + first[2] * 8 + first[1] + first[0]
    *_, times, types, _ = struct.unpack(">6l", tzif[start + 20 : start + 44])
    at_times = start + 44
    instants = struct.unpack(f">{times}q", tzif[at_times : at_times + 8 * times])
    kinds = tzif[at_times + 8 * times : at_times + 9 * times]
    at_types = at_times + 9 * times
    offsets = [struct.unpack(">l", tzif[at_types + 6 * k : at_types + 6 * k + 4])[0] for k in range(types)]
    seen = [offsets[0], *(offsets[k] for k in kinds)]
    return [moment for moment, before, after in zip(instants, seen, seen[1:], strict=False) if before != after]


@pytest.mark.parametrize(
    ("name", "local", "instant"),
    [
        pytest.param(
            "Europe/Berlin", "2024-10-27T02:30", "2024-10-27T01:30", id="east: the second instant of a repeated time"
        ),
        pytest.param(
            "America/New_York", "2024-11-03T01:30", "2024-11-03T05:30", id="west: the first instant of a repeated time"
        ),
        pytest.param("Europe/Berlin", "2024-03-31T02:30", "2024-03-31T01:30", id="east: a skipped time"),
        pytest.param("America/New_York", "2024-03-10T02:30", "2024-03-10T07:30", id="west: a skipped time"),
        pytest.param("America/New_York", "2024-03-10T01:59", "2024-03-10T06:59", id="west: before a skipped time"),
        pytest.param("+05:30", "2024-03-10T01:59", "2024-03-09T20:29", id="a fixed offset"),
    ],
)
def test_local_time_is_converted_to_utc_as_by_joda_time(name: str, local: str, instant: str) -> None:
    assert zone(name).to_utc(at(local)) == at(instant)


@given(names, instants)
def test_a_local_time_that_occurs_once_is_converted_to_its_instant(name: str, instant: int) -> None:
    where = zone(name)
    local = instant + where.offset(instant)
    shown = where.instants(local)
    assert instant in shown
    assert where.to_utc(local) in shown


def test_a_skipped_midnight_is_the_instant_of_the_clock_change() -> None:
    assert zone("America/Sao_Paulo").instants(at("2018-11-04T00:00")) == [at("2018-11-04T03:00")]
    assert zone("Pacific/Apia").instants(at("2011-12-30T12:00")) == [at("2011-12-30T10:00")]


def test_a_repeated_midnight_has_two_instants() -> None:
    assert zone("America/Havana").instants(at("2024-11-03T00:00")) == [at("2024-11-03T04:00"), at("2024-11-03T05:00")]


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "Europe", "+25", "+01:60", "UTC+1", "CEST"])
def test_an_unknown_zone_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        zone(name)


def test_distant_years_have_the_rules_of_years_in_range() -> None:
    summer = at("2024-07-01T00:00")
    cycle = 146_097 * DAY
    assert zone("Europe/Berlin").offset(summer + 100 * cycle) == 2 * HOUR
    assert zone("Europe/Berlin").offset(-(10**17)) == zone("Europe/Berlin").offset(at("1800-01-01T00:00"))


@given(st.lists(st.integers(-(10**6), 10**6) | st.integers(-(2**62), 2**62), min_size=1))
def test_ranks_equal_those_of_sorted_distinct_values(values: list[int]) -> None:
    slots, distinct = ranked(np.array(values, np.int64))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[slots].tolist() == values
