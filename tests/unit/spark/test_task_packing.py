"""The assignment of topic-partitions to tasks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Range
from sink_job.spark.task_packing import assign_tasks


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]


def test_few_topic_partitions_have_one_task_each() -> None:
    layout = assign_tasks({tp: Range(0, 2) for tp in partitions(6)}, [TopicPartition("idle", 0)], cores=2)
    assert (len(layout.single), layout.shared) == (7, [])


def test_many_small_ranges_share_a_few_tasks_per_core() -> None:
    layout = assign_tasks({tp: Range(5, 7) for tp in partitions(512)}, [], cores=2)
    assert layout.single == []
    assert [len(task) for task in layout.shared] == [64] * 8


def test_a_large_range_has_its_own_task_beside_many_small_ones() -> None:
    large = TopicPartition("large", 0)
    layout = assign_tasks({**{tp: Range(0, 2) for tp in partitions(100)}, large: Range(0, 1_000_000)}, [], cores=2)
    assert layout.single == [[(large, Range(0, 1_000_000))]]
    assert len(layout.shared) == 8


def test_the_largest_range_is_the_first_task() -> None:
    sizes = {tp: Range(0, 10 * (tp.partition + 1)) for tp in partitions(4)}
    layout = assign_tasks(sizes, [], cores=1)
    assert [task[0][0].partition for task in layout.single] == [3, 2, 1, 0]


def test_shared_tasks_have_similar_sizes() -> None:
    sizes = {tp: Range(0, 9_000 if tp.partition < 8 else 10) for tp in partitions(200)}
    layout = assign_tasks(sizes, [], cores=2)
    loads = [sum(r.end - r.start for _, r in task) for task in [*layout.shared, *layout.single]]
    assert max(loads) - min(loads) < 9_000


def test_a_round_without_topic_partitions_has_no_task() -> None:
    assert assign_tasks({}, [], cores=2).members == []


@given(st.dictionaries(st.integers(0, 200), st.integers(0, 50_000), max_size=60), st.sets(st.integers(201, 300)))
def test_each_topic_partition_is_in_exactly_one_task(sizes: dict[int, int], idle: set[int]) -> None:
    ranges = {TopicPartition("t", number): Range(7, 7 + size) for number, size in sizes.items()}
    layout = assign_tasks(ranges, [TopicPartition("t", number) for number in idle], cores=2)
    read = [member for task in [*layout.single, *layout.shared] for member in task]
    assert Counter(tp for tp, _ in read) == Counter(TopicPartition("t", number) for number in {*sizes, *idle})
    assert {tp: r for tp, r in read if tp in ranges} == ranges
    assert all(r.start == r.end for tp, r in read if tp not in ranges)
    assert all(len(task) == 1 for task in layout.single)
