"""When records of a sample arrive, and which partitions are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.plan.sample import SampleLimits, arrivals, chosen
from tests.unit.plan.samples import START, partition


def test_a_record_never_arrives_before_the_one_before_it() -> None:
    assert arrivals(np.array([10, 5, 20]), 0, 100).tolist() == [10, 10, 20]


def test_a_timestamp_after_the_end_of_the_sample_or_none_does_not_move_the_clock() -> None:
    assert arrivals(np.array([10, 10**15, -1, 20]), 0, 100).tolist() == [10, 10, 10, 20]


@given(st.lists(st.integers(-1, 200), max_size=30))
def test_arrivals_ascend_within_the_sample(stamps: list[int]) -> None:
    found = arrivals(np.array(stamps, np.int64), 50, 100).tolist()
    assert found == sorted(found)
    assert all(50 <= each <= 100 for each in found)


@pytest.mark.parametrize(("partitions", "most"), [(3, 64), (64, 64), (65, 64), (10_000, 64)])
def test_partitions_are_chosen_evenly(partitions: int, most: int) -> None:
    found = chosen(partitions, most)
    assert len(found) == min(partitions, most)
    assert found[0] == 0
    assert found[-1] < partitions
    assert max(b - a for a, b in zip(found, [*found[1:], partitions], strict=True)) <= -(-partitions // len(found))


@pytest.mark.parametrize(("topics", "each"), [(0, 64), (1, 64), (16, 64), (100, 10), (2_000, 1)])
def test_many_topics_have_fewer_partitions_each(topics: int, each: int) -> None:
    assert SampleLimits(until=0).partitions_of(topics) == each


def test_a_sample_ends_now_without_a_time() -> None:
    limits = SampleLimits(until=1_000_000, span=600_000)
    assert (limits.start, limits.end) == (400_000, 1_000_000)


def test_a_sample_from_a_time_has_its_span_and_never_ends_after_now() -> None:
    assert SampleLimits(until=1_000_000, span=600_000, since=100).end == 600_100
    assert SampleLimits(until=1_000_000, span=600_000, since=900_000).end == 1_000_000


def test_the_log_end_follows_the_clock() -> None:
    found = partition([0, 1000, 2000], first=7)
    assert [found.end_at(START + now) for now in (-1, 0, 1500, 9000)] == [7, 8, 9, 10]


def test_the_arrival_of_a_missing_offset_is_that_of_the_next_record() -> None:
    found = partition([0, 1000, 2000], first=7)
    assert found.arrival(8) == START + 1000
    assert found.arrival(99) == START + 2000


def test_late_records_are_those_older_than_one_before_them() -> None:
    assert partition([5, 3, 6, 6, 1]).late == 2


def test_a_slice_has_the_records_of_an_offset_range() -> None:
    assert partition([0, 1, 2], first=7).slice(8, 10).column("offset").to_pylist() == [8, 9]
