"""The grid of `rotation.scheduleInterval`: docs/semantics.md, section 6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.time_zones import DAY, HOUR, zone
from sink_job.rotation.schedule import Schedule
from tests.unit.rotation.clocks import ZONES, at

MINUTE = 60_000


@pytest.mark.parametrize(
    ("name", "period", "now", "expected"),
    [
        pytest.param("UTC", HOUR, "2024-05-01T00:00", "2024-05-01T01:00", id="a point itself is past"),
        pytest.param("UTC", HOUR, "2024-05-01T00:59:59.999", "2024-05-01T01:00", id="the next full hour"),
        pytest.param("UTC", 50 * MINUTE, "2024-05-01T00:00", "2024-05-01T00:50", id="50 min: the first slot"),
        pytest.param("UTC", 50 * MINUTE, "2024-05-01T02:00", "2024-05-01T02:30", id="50 min: in between"),
        pytest.param("UTC", 50 * MINUTE, "2024-05-01T23:20", "2024-05-02T00:00", id="50 min: the last slot is short"),
        pytest.param("UTC", DAY, "2024-05-01T13:00", "2024-05-02T00:00", id="a day"),
        pytest.param("Europe/Berlin", DAY, "2024-05-01T13:00", "2024-05-01T22:00", id="midnight is the zone's"),
        pytest.param("+05:30", HOUR, "2024-05-01T00:00", "2024-05-01T00:30", id="hours of a zone half an hour off"),
        pytest.param("Europe/Berlin", DAY, "2024-03-31T00:00", "2024-03-31T22:00", id="a day of 23 hours"),
        pytest.param(
            "Europe/Berlin", 6 * HOUR, "2024-03-31T01:30", "2024-03-31T05:00", id="23 h: hours since midnight"
        ),
        pytest.param("Europe/Berlin", 6 * HOUR, "2024-03-31T17:30", "2024-03-31T22:00", id="23 h: the last is short"),
        pytest.param("Europe/Berlin", 6 * HOUR, "2024-10-27T21:30", "2024-10-27T22:00", id="25 h: four full slots"),
        pytest.param("Europe/Berlin", 6 * HOUR, "2024-10-27T22:30", "2024-10-27T23:00", id="25 h: and one hour"),
        pytest.param(
            "America/Sao_Paulo", DAY, "2018-11-03T12:00", "2018-11-04T03:00", id="no midnight: up to the change"
        ),
        pytest.param(
            "America/Sao_Paulo", 5 * HOUR, "2018-11-04T03:00", "2018-11-04T08:00", id="no midnight: from there"
        ),
        pytest.param(
            "America/Havana", 25 * HOUR, "2024-11-03T04:30", "2024-11-04T05:00", id="two midnights: the first"
        ),
    ],
)
def test_the_next_point_of_the_grid(name: str, period: int, now: str, expected: str) -> None:
    assert Schedule(zone(name), period).after(at(now)) == at(expected)


@given(st.sampled_from(ZONES), st.integers(1, 24 * HOUR), st.integers(-(10**12), 4 * 10**12))
def test_the_next_point_is_after_now_and_at_most_a_period_away(name: str, period: int, now: int) -> None:
    schedule = Schedule(zone(name), period)
    point = schedule.after(now)
    assert now < point <= now + period
    assert schedule.after(point - 1) == point


@given(st.sampled_from(ZONES), st.integers(60_000, 24 * HOUR), st.integers(-(10**12), 4 * 10**12), st.integers(0, DAY))
def test_points_do_not_go_back(name: str, period: int, now: int, later: int) -> None:
    schedule = Schedule(zone(name), period)
    assert schedule.after(now) <= schedule.after(now + later)
