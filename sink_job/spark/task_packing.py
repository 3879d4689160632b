"""Which task reads what: pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Range

Member = tuple[TopicPartition, Range]

_SMALL = 10_000  # offsets; from there on a task's own cost is lost in that of reading
_OPENING = 500  # what beginning with another topic-partition costs, in records
_TASKS_PER_CORE = 4
_NOTHING = Range(0, 0)


@dataclass(frozen=True)
class TaskAssignment:
    """`single`: tasks of one topic-partition, the large ones first. `shared`: tasks of several."""

    single: list[list[Member]]
    shared: list[list[Member]]

    @property
    def members(self) -> list[TopicPartition]:
        """All topic-partitions of the round."""
        return [partition for task in (*self.single, *self.shared) for partition, _ in task]


def assign_tasks(
    ranges: Mapping[TopicPartition, Range], idle: Sequence[TopicPartition], *, cores: int
) -> TaskAssignment:
    """A task for each topic-partition with much to read; the others share some tasks per core, of like size.

    Idle topic-partitions get an empty range. As long as there are few, each has a task of its own.
    """
    tasks = _TASKS_PER_CORE * cores
    everything = {**dict.fromkeys(idle, _NOTHING), **ranges}
    by_size = sorted(everything.items(), key=lambda member: (member[1].start - member[1].end, member[0]))
    large = [member for member in by_size if member[1].end - member[1].start >= _SMALL]
    small = by_size[len(large) :]
    if len(small) <= tasks:
        return TaskAssignment([[member] for member in by_size], [])
    bins: list[list[Member]] = [[] for _ in range(tasks)]
    loads = [(0, number) for number in range(tasks)]
    for member in small:
        load, number = heapq.heappop(loads)
        bins[number].append(member)
        heapq.heappush(loads, (load + member[1].end - member[1].start + _OPENING, number))
    alone = [task for task in bins if len(task) == 1]
    return TaskAssignment([*([member] for member in large), *alone], [task for task in bins if len(task) > 1])
