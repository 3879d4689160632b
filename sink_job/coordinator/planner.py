"""Which topic-partitions a round reads, and how far: pure.

A round is one Spark job, so a topic-partition with little to read waits until there is more, or until it has waited
long enough; one with much to read is capped, so that tasks are of like size and a stop never waits long. What is due to
close without new records takes part without reading Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sink_job.api.spec import RotationSpec, RoundsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import PartitionState

ASSUMED_RECORD_BYTES = 1024
"""A record's size until a round has measured it, for the question whether there is enough to read."""

INITIAL_RECORDS = 1000
"""Records a topic-partition's first round reads when nothing is known of their size."""


class PartitionView(NamedTuple):
    """What the driver sees of a topic-partition: `end` of the log (exclusive), the size of its records in bytes as last
    measured, when it was last read (ms), and whether something is due to close."""

    next: int
    end: int
    record_bytes: float | None = None
    last_read_ms: int | None = None
    is_close_due: bool = False


class RoundPlan(NamedTuple):
    """Ranges `[start, end)` to read, and topic-partitions to cut without reading."""

    ranges: dict[TopicPartition, tuple[int, int]]
    idle: list[TopicPartition]

    @property
    def empty(self) -> bool:
        return not self.ranges and not self.idle


def plan(
    sights: Mapping[TopicPartition, PartitionView], rounds: RoundsSpec, now: int, *, eager: bool = False
) -> RoundPlan:
    """The round to run at `now`, the host's clock. `eager`: whatever there is to read is read."""
    ranges = {}
    for tp, sight in sights.items():
        if sight.end > sight.next and (eager or sight.is_close_due or _worth_reading(sight, rounds, now)):
            ranges[tp] = (sight.next, min(sight.end, sight.next + max_records(sight, rounds)))
    idle = [tp for tp, sight in sights.items() if sight.is_close_due and tp not in ranges]
    return RoundPlan(ranges, idle)


def _worth_reading(sight: PartitionView, rounds: RoundsSpec, now: int) -> bool:
    if sight.last_read_ms is None or abs(now - sight.last_read_ms) >= rounds.max_delay:  # a clock may be set back
        return True
    return (sight.end - sight.next) * (sight.record_bytes or ASSUMED_RECORD_BYTES) >= rounds.min_bytes


def max_records(sight: PartitionView, rounds: RoundsSpec) -> int:
    """How many offsets a round may cover: `maxBytes` by the records' measured size, and `maxRecords`."""
    by_bytes = max(1, int(rounds.max_bytes / sight.record_bytes)) if sight.record_bytes else INITIAL_RECORDS
    return min(by_bytes, rounds.max_records or by_bytes)


def is_close_due(state: PartitionState, rotation: RotationSpec, now: int) -> bool:
    """Whether something of the partition has to be closed at `now` even if no record comes (SEMANTICS, section 3)."""
    if not state.open:
        return False
    if rotation.schedule_interval and state.next_schedule is not None and now >= state.next_schedule:
        return True
    limit = rotation.max_open_time
    return limit is not None and any(now - o.opened_at >= limit for o in state.open)
