"""Which topic-partitions a round reads, and how far."""

import pytest

from sink_job.api.sections.job_sections import RotationSpec, RoundsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.planner import INITIAL_RECORDS, PartitionView, is_close_due, plan
from sink_job.ledger.state import OffsetChecksum, OpenObject, PartitionState
from sink_job.rotation.types import OpenObjectState, RotationState

TP = TopicPartition("t", 0)
NOW = 1_000_000
ROUNDS = RoundsSpec(min_bytes=8 << 20, max_delay=10_000, max_bytes=1 << 20)


def planned(sight: PartitionView, rounds: RoundsSpec = ROUNDS, *, eager: bool = False) -> tuple[int, int] | str | None:
    made = plan({TP: sight}, rounds, NOW, eager=eager)
    return made.ranges.get(TP) or ("idle" if TP in made.idle else None)


def test_a_partition_never_looked_at_is_read_at_once() -> None:
    assert planned(PartitionView(next=0, end=5)) == (0, 5)


def test_a_partition_with_little_to_read_waits() -> None:
    assert planned(PartitionView(next=0, end=5, last_read_ms=NOW - 9_999)) is None


def test_a_partition_waits_no_longer_than_the_delay() -> None:
    assert planned(PartitionView(next=0, end=5, last_read_ms=NOW - 10_000)) == (0, 5)


def test_a_partition_with_enough_to_read_does_not_wait() -> None:
    assert planned(PartitionView(next=0, end=80, record_bytes=1 << 20, last_read_ms=NOW)) == (0, 1)


def test_an_eager_round_reads_whatever_there_is() -> None:
    assert planned(PartitionView(next=0, end=5, last_read_ms=NOW), eager=True) == (0, 5)


def test_nothing_to_read_is_not_read_however_long_ago_it_was() -> None:
    assert planned(PartitionView(next=5, end=5, last_read_ms=0)) is None


def test_what_is_due_takes_part_without_reading_when_there_is_nothing_to_read() -> None:
    assert planned(PartitionView(next=5, end=5, last_read_ms=NOW, is_close_due=True)) == "idle"


def test_what_is_due_is_read_when_there_is_something_to_read() -> None:
    assert planned(PartitionView(next=5, end=6, last_read_ms=NOW, is_close_due=True)) == (5, 6)


@pytest.mark.parametrize(
    ("record_bytes", "end"),
    [(None, INITIAL_RECORDS), (1024.0, 1024), (float(5 << 20), 1)],
    ids=["unknown", "1Ki", "5Mi"],
)
def test_a_round_covers_as_many_offsets_as_fit_its_bytes(record_bytes: float | None, end: int) -> None:
    assert planned(PartitionView(next=0, end=1_000_000, record_bytes=record_bytes)) == (0, end)


def test_max_records_caps_a_round() -> None:
    assert planned(PartitionView(next=90, end=1_000), RoundsSpec(max_records=30)) == (90, 120)


OPEN = PartitionState(
    RotationState(next=3, committable=0, open_records=3, next_schedule=500),
    rotation_start=0,
    open=(
        OpenObject(
            OpenObjectState(path="p", first=0, last=2, count=3, size=9, opened_at=100),
            settings=1,
            offsets=OffsetChecksum(3),
        ),
    ),
)


@pytest.mark.parametrize(
    ("rotation", "now", "expected"),
    [
        (RotationSpec(flush_size=9), 10_000, False),
        (RotationSpec(schedule_interval=60_000), 499, False),
        (RotationSpec(schedule_interval=60_000), 500, True),
        (RotationSpec(flush_size=9, max_open_time=50), 149, False),
        (RotationSpec(flush_size=9, max_open_time=50), 150, True),
    ],
)
def test_what_is_open_is_due_by_the_schedule_or_by_its_age(rotation: RotationSpec, now: int, expected: bool) -> None:
    assert is_close_due(OPEN, rotation, now) is expected


def test_with_nothing_open_nothing_is_due() -> None:
    empty = PartitionState(RotationState(next=3, committable=3, next_schedule=500), rotation_start=3)
    assert not is_close_due(empty, RotationSpec(schedule_interval=60_000), 10_000)
