"""Which topic-partitions a round reads, and how far."""

import pytest

from sink_job.api.spec import Rotation, Rounds
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.planner import FIRST_LOOK, Sight, due, plan
from sink_job.ledger.state import OpenObject, PartitionState, Tally

TP = TopicPartition("t", 0)
NOW = 1_000_000
ROUNDS = Rounds(min_bytes=8 << 20, max_delay=10_000, max_bytes=1 << 20)


def planned(sight: Sight, rounds: Rounds = ROUNDS, *, eager: bool = False) -> tuple[int, int] | str | None:
    made = plan({TP: sight}, rounds, NOW, eager=eager)
    return made.ranges.get(TP) or ("idle" if TP in made.idle else None)


def test_a_partition_never_looked_at_is_read_at_once() -> None:
    assert planned(Sight(next=0, end=5)) == (0, 5)


def test_a_partition_with_little_to_read_waits() -> None:
    assert planned(Sight(next=0, end=5, looked_at=NOW - 9_999)) is None


def test_a_partition_waits_no_longer_than_the_delay() -> None:
    assert planned(Sight(next=0, end=5, looked_at=NOW - 10_000)) == (0, 5)


def test_a_partition_with_enough_to_read_does_not_wait() -> None:
    assert planned(Sight(next=0, end=80, record_bytes=1 << 20, looked_at=NOW)) == (0, 1)


def test_an_eager_round_reads_whatever_there_is() -> None:
    assert planned(Sight(next=0, end=5, looked_at=NOW), eager=True) == (0, 5)


def test_nothing_to_read_is_not_read_however_long_ago_it_was() -> None:
    assert planned(Sight(next=5, end=5, looked_at=0)) is None


def test_what_is_due_takes_part_without_reading_when_there_is_nothing_to_read() -> None:
    assert planned(Sight(next=5, end=5, looked_at=NOW, due=True)) == "idle"


def test_what_is_due_is_read_when_there_is_something_to_read() -> None:
    assert planned(Sight(next=5, end=6, looked_at=NOW, due=True)) == (5, 6)


@pytest.mark.parametrize(
    ("record_bytes", "end"), [(None, FIRST_LOOK), (1024.0, 1024), (float(5 << 20), 1)], ids=["unknown", "1Ki", "5Mi"]
)
def test_a_round_covers_as_many_offsets_as_fit_its_bytes(record_bytes: float | None, end: int) -> None:
    assert planned(Sight(next=0, end=1_000_000, record_bytes=record_bytes)) == (0, end)


def test_max_records_caps_a_round() -> None:
    assert planned(Sight(next=90, end=1_000), Rounds(max_records=30)) == (90, 120)


OPEN = PartitionState(
    next=3,
    committable=0,
    rotation_start=0,
    n=3,
    next_schedule=500,
    open=(OpenObject(path="p", first=0, last=2, size=9, opened_at=100, settings=1, offsets=Tally(3)),),
)


@pytest.mark.parametrize(
    ("rotation", "now", "expected"),
    [
        (Rotation(flush_size=9), 10_000, False),
        (Rotation(schedule_interval=60_000), 499, False),
        (Rotation(schedule_interval=60_000), 500, True),
        (Rotation(flush_size=9, max_open_time=50), 149, False),
        (Rotation(flush_size=9, max_open_time=50), 150, True),
    ],
)
def test_what_is_open_is_due_by_the_schedule_or_by_its_age(rotation: Rotation, now: int, expected: bool) -> None:
    assert due(OPEN, rotation, now) is expected


def test_with_nothing_open_nothing_is_due() -> None:
    empty = PartitionState(next=3, committable=3, rotation_start=3, next_schedule=500)
    assert not due(empty, Rotation(schedule_interval=60_000), 10_000)
