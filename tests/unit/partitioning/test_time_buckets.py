"""The time bucket of a record (docs/semantics.md)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.time_buckets import TimeBuckets
from sink_job.partitioning.time_zones import DAY, HOUR, zone
from tests.unit.rotation.clocks import ZONES, at


@given(
    st.sampled_from(ZONES),
    st.sampled_from([1, 1000, 50 * 60_000, HOUR, 7 * HOUR, DAY, 7 * DAY]),
    st.lists(st.integers(-(10**12), 4 * 10**12) | st.integers(-(10**17), 10**17), min_size=1, max_size=30),
)
def test_the_buckets_of_a_column_equal_those_of_the_connector(name: str, duration: int, times: list[int]) -> None:
    where = zone(name)
    slots, starts = TimeBuckets(where, duration).of(np.array(times, np.int64))
    for time, slot in zip(times, slots, strict=True):
        local = time + where.offset(time)
        truncated = abs(local) // duration * duration * (1 if local >= 0 else -1)
        assert starts[slot] == where.to_utc(truncated)
    assert sorted(set(slots.tolist())) == list(range(len(starts)))


def test_the_repeated_hour_of_a_clock_change_is_one_bucket() -> None:
    times = np.array([at("2024-10-27T00:30"), at("2024-10-27T01:30")], np.int64)
    slots, starts = TimeBuckets(zone("Europe/Berlin"), HOUR).of(times)
    assert len(starts) == 1
    assert slots.tolist() == [0, 0]


def test_times_before_1970_are_truncated_toward_zero() -> None:
    slots, starts = TimeBuckets(zone("UTC"), HOUR).of(np.array([-1, 1, -HOUR, -HOUR - 1], np.int64))
    assert [starts[slot] for slot in slots] == [0, 0, -HOUR, -HOUR]
