"""The number of active topic-partitions and their expected staged remainder."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.activity import WINDOW_MS, PartitionActivity
from sink_job.ledger.state import Extent, OffsetChecksum, OpenObject, PartitionState
from sink_job.rotation.types import OpenObjectState

NOW = 1_700_000_000_000


def state(*staged: int) -> PartitionState:
    """A topic-partition with one open object for each number of staged bytes."""
    opened = tuple(
        OpenObject(
            OpenObjectState(path=str(at), first=at, last=at, count=1, size=size, opened_at=NOW, interval_start=None),
            settings=1,
            offsets=OffsetChecksum(1, 1),
            blocks=(Extent("staging/1", 0, size - size // 3, 0),),
            partial_block=(Extent("staging/1", size, size // 3, 0),),
        )
        for at, size in enumerate(staged)
    )
    return msgspec.structs.replace(PartitionState.start(0), open=opened)


def round_of(count: int, *staged: int) -> dict[TopicPartition, PartitionState]:
    """A round with records of `count` topic-partitions."""
    return {TopicPartition("flights", number): state(*staged) for number in range(count)}


def test_before_the_first_round_nothing_is_active() -> None:
    assert PartitionActivity().observed(NOW) == (0, 0)


def test_topic_partitions_of_several_short_rounds_are_all_active() -> None:
    activity = PartitionActivity()
    for number in range(48):
        activity.add({TopicPartition("flights", number): state(100)}, NOW + number)
    assert activity.observed(NOW + 48) == (48, 100)


def test_a_topic_partition_stays_active_for_a_window_after_its_last_record_and_at_most_for_two() -> None:
    activity = PartitionActivity()
    activity.add(round_of(3, 10), NOW)
    assert activity.observed(NOW + WINDOW_MS) == (3, 10)
    assert activity.observed(NOW + 2 * WINDOW_MS) == (0, 0)


def test_the_expected_remainder_is_the_mean_of_the_largest_of_each_topic_partition() -> None:
    activity = PartitionActivity()
    activity.add({TopicPartition("flights", 0): state(60, 40), TopicPartition("flights", 1): state(11)}, NOW)
    activity.add({TopicPartition("flights", 0): state(), TopicPartition("flights", 1): state(9)}, NOW + 1)
    assert activity.observed(NOW + 2) == (2, 56)


def test_a_clock_that_is_set_back_ends_no_activity() -> None:
    activity = PartitionActivity()
    activity.add(round_of(5, 7), NOW)
    assert activity.observed(NOW - 10 * WINDOW_MS) == (5, 7)


@given(st.lists(st.tuples(st.integers(0, 3 * WINDOW_MS), st.integers(1, 48), st.integers(0, 1 << 30)), max_size=20))
def test_all_topic_partitions_of_the_last_window_count_and_none_older_than_two(
    rounds: list[tuple[int, int, int]],
) -> None:
    activity, now = PartitionActivity(), NOW
    last: dict[TopicPartition, int] = {}
    for pause, count, size in rounds:
        now += pause
        activity.add(round_of(count, size), now)
        last |= dict.fromkeys(round_of(count), now)
    active, _ = activity.observed(now)
    assert sum(now - at <= WINDOW_MS for at in last.values()) <= active
    assert active <= sum(now - at < 2 * WINDOW_MS for at in last.values())
