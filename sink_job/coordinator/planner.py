"""Plans the offset ranges that a round reads. Pure.

A round is one Spark job. A topic-partition with few new bytes waits until there are more, or until `maxDelay` has
passed. A topic-partition with many is limited, so tasks have similar sizes and a stop never waits long. A
topic-partition with an object that is due to close takes part without reading Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from sink_job.api.sections.job_sections import RotationSpec, RoundsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import PartitionState

ASSUMED_RECORD_BYTES = 1024
"""Record size until a round has measured it, for the comparison with `minBytes`."""

INITIAL_RECORDS = 1000
"""Maximum number of records of a topic-partition's first round while their size is unknown."""


class PartitionView(NamedTuple):
    """A topic-partition for the planner: next offset, log end (exclusive), average record size in bytes as last
    measured, time of the last read (ms), and whether an object is due to close."""

    next: int
    end: int
    record_bytes: float | None = None
    last_read_ms: int | None = None
    is_close_due: bool = False


class RoundPlan(NamedTuple):
    """Ranges `[start, end)` to read, and topic-partitions that take part without reading."""

    ranges: dict[TopicPartition, tuple[int, int]]
    idle: list[TopicPartition]

    @property
    def empty(self) -> bool:
        return not self.ranges and not self.idle


def plan(
    views: Mapping[TopicPartition, PartitionView], rounds: RoundsSpec, now: int, *, eager: bool = False
) -> RoundPlan:
    """The round to run at `now`, the host's clock in ms. `eager`: read all that there is."""
    ranges = {}
    for tp, view in views.items():
        if view.end > view.next and (eager or view.is_close_due or _worth_reading(view, rounds, now)):
            ranges[tp] = (view.next, min(view.end, view.next + max_records(view, rounds)))
    idle = [tp for tp, view in views.items() if view.is_close_due and tp not in ranges]
    return RoundPlan(ranges, idle)


def _worth_reading(view: PartitionView, rounds: RoundsSpec, now: int) -> bool:
    if view.last_read_ms is None or abs(now - view.last_read_ms) >= rounds.max_delay:  # a clock may be set back
        return True
    return (view.end - view.next) * (view.record_bytes or ASSUMED_RECORD_BYTES) >= rounds.min_bytes


def max_records(view: PartitionView, rounds: RoundsSpec) -> int:
    """Maximum number of offsets of a round: `maxBytes` by the measured record size, and `maxRecords`."""
    by_bytes = max(1, int(rounds.max_bytes / view.record_bytes)) if view.record_bytes else INITIAL_RECORDS
    return min(by_bytes, rounds.max_records or by_bytes)


def is_close_due(state: PartitionState, rotation: RotationSpec, now: int) -> bool:
    """Whether an object has to close at `now` even without new records (docs/semantics.md, section 3)."""
    if not state.open:
        return False
    due = state.rotation.next_schedule
    if rotation.schedule_interval and due is not None and now >= due:
        return True
    limit = rotation.max_open_time
    return limit is not None and any(now - o.state.opened_at >= limit for o in state.open)


def superseded(
    partitions: Mapping[TopicPartition, PartitionState], current: int, topics: Set[str]
) -> dict[int, list[TopicPartition]]:
    """The topic-partitions with open objects of other settings than those of claim `current`, or of topics that are not
    in `topics`, by the number of these settings."""
    found: dict[int, list[TopicPartition]] = {}
    for tp, p in partitions.items():
        for number in {o.settings for o in p.open if o.settings != current or tp.topic not in topics}:
            found.setdefault(number, []).append(tp)
    return found
