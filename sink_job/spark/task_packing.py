"""Assigns the topic-partitions of a round to tasks (bin packing). Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Range

Member = tuple[TopicPartition, Range]

_LARGE = 10_000  # offsets; for such a range the overhead of a task is negligible
_PARTITION_OVERHEAD = 500  # cost of a topic-partition in a task, in records
_TASKS_PER_CORE = 4
_EMPTY = Range(0, 0)


@dataclass(frozen=True)
class TaskAssignment:
    """The tasks of a round. `single`: tasks of one topic-partition, large ones first. `shared`: tasks of several."""

    single: list[list[Member]]
    shared: list[list[Member]]

    @property
    def members(self) -> list[TopicPartition]:
        """All topic-partitions of the round, in the order of the tasks."""
        return [partition for task in (*self.single, *self.shared) for partition, _ in task]


def assign_tasks(
    ranges: Mapping[TopicPartition, Range], idle: Sequence[TopicPartition], *, cores: int
) -> TaskAssignment:
    """Assigns `ranges` and `idle` topic-partitions, which have an empty range, to tasks.

    A topic-partition with a large range has its own task. The others share a few tasks per core of similar size; if
    there are only a few of them, each has its own task.
    """
    tasks = _TASKS_PER_CORE * cores
    everything = {**dict.fromkeys(idle, _EMPTY), **ranges}
    by_size = sorted(everything.items(), key=lambda member: (member[1].start - member[1].end, member[0]))
    large = [member for member in by_size if member[1].end - member[1].start >= _LARGE]
    small = by_size[len(large) :]
    if len(small) <= tasks:
        return TaskAssignment([[member] for member in by_size], [])
    bins: list[list[Member]] = [[] for _ in range(tasks)]
    loads = [(0, number) for number in range(tasks)]
    for member in small:
        load, number = heapq.heappop(loads)
        bins[number].append(member)
        heapq.heappush(loads, (load + member[1].end - member[1].start + _PARTITION_OVERHEAD, number))
    alone = [task for task in bins if len(task) == 1]
    return TaskAssignment([*([member] for member in large), *alone], [task for task in bins if len(task) > 1])
