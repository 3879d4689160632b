"""The effect of lost records on the state of a topic-partition and of the ledger."""

from __future__ import annotations

from msgspec.structs import replace

from sink_job.ledger.data_loss import accepted_losses, skip_deleted, with_open
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import (
    ClosedObject,
    LedgerState,
    LostObject,
    OpenObject,
    PartitionState,
    Record,
    committable_offsets,
    without_audit,
)
from sink_job.ledger.transitions import apply, diff, patch
from sink_job.rotation.types import OpenObjectState, RotationState
from sink_job.tasks.rebuild import RebuildInput, all_missing


def opened(first: int, last: int, path: str = "a") -> OpenObject:
    return OpenObject(
        OpenObjectState(path=path, first=first, last=last, count=last + 1 - first, size=10, opened_at=0),
        settings=1,
        offsets=checksum_range(first, last + 1),
    )


def closed(first: int, last: int) -> ClosedObject:
    offsets = checksum_range(first, last + 1)
    return ClosedObject(f"log+0+{first}", "log", 0, "a", first, last, 1, 1, "u", (), (), offsets, 1)


def lost(o: ClosedObject, start: int, end: int) -> LostObject:
    return LostObject("log", 0, o.key, o.path, o.first, o.last, checksum_range(start, end))


PARTITION = PartitionState(
    RotationState(next=30, committable=0, last_time=9, interval_start=5, open_records=30),
    rotation_start=0,
    accepted=checksum_range(0, 30),
    accepted_end=30,
    open=(opened(0, 19, "a"), opened(20, 29, "b")),
)
CLOSED = replace(PARTITION, rotation=replace(PARTITION.rotation, committable=30), open=())


def test_only_the_remaining_open_records_count_for_the_rotation() -> None:
    p = with_open(PARTITION, [opened(12, 19, "a"), opened(20, 29, "b")])
    assert (p.rotation.open_records, p.committable, p.rotation.interval_start, p.rotation.last_time, p.next) == (
        18,
        12,
        5,
        9,
        30,
    )
    assert p.accepted == PARTITION.accepted


def test_without_open_objects_the_partition_is_as_after_a_close() -> None:
    p = with_open(PARTITION, [])
    assert (p.rotation.open_records, p.committable, p.rotation.interval_start, p.open) == (0, 30, None, ())


def test_objects_without_lost_records_leave_the_partition_unchanged() -> None:
    with_gap = replace(
        PARTITION,
        rotation=replace(PARTITION.rotation, committable=0),
        open=(opened(3, 19, "a"), opened(20, 29, "b")),
    )
    assert with_open(with_gap, with_gap.open) == with_gap


def test_a_delta_preserves_an_object_that_lost_its_first_records() -> None:
    after = with_open(PARTITION, [opened(25, 29, "b"), opened(22, 22, "a")])
    assert [o.path for o in after.open] == ["a", "b"]
    assert patch(PARTITION, diff(PARTITION, after)) == after


def test_skipped_offsets_are_committable_unless_an_object_is_open() -> None:
    assert skip_deleted(PARTITION, 40).committable == 0
    assert skip_deleted(replace(PARTITION, open=()), 40).committable == 40


def test_an_object_that_lost_its_first_records_is_pending_under_its_new_key() -> None:
    whole, left = closed(0, 9), closed(4, 9)
    state = LedgerState(partitions={"log-0": CLOSED}, pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, closed=(left,), lost=(lost(whole, 0, 4),)))
    assert after.pending == {left.key: left}
    assert after.published == ()
    assert list(committable_offsets(after).values()) == [4]


def test_an_object_without_remaining_records_is_neither_pending_nor_published() -> None:
    whole = closed(0, 9)
    state = LedgerState(partitions={"log-0": CLOSED}, pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, lost=(lost(whole, 0, 10),)))
    assert (after.pending, after.published) == ({}, ())
    assert list(committable_offsets(after).values()) == [30]


def test_an_object_that_lost_later_records_keeps_its_key() -> None:
    whole = closed(0, 9)
    left = replace(whole, offsets=checksum_range(0, 5), upload="u2")
    state = LedgerState(pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, closed=(left,), lost=(lost(whole, 5, 10),)))
    assert after.pending == {whole.key: left}


def test_a_snapshot_does_not_contain_lost_records() -> None:
    lost_object = lost(closed(0, 9), 0, 10)
    after = apply(LedgerState(), Record(1, 1, "me", "round", 0, lost=(lost_object,)))
    assert after.lost == (lost_object,)
    assert without_audit(after).lost == ()


def test_all_records_are_missing_when_kafka_holds_none_of_them() -> None:
    result = all_missing(RebuildInput(closed=(closed(0, 9),), open=(opened(10, 19),)))
    assert [(m.first, m.found.count, m.expected.count, m.is_loss) for m in result.missing] == [
        (0, 0, 10, True),
        (10, 0, 10, True),
    ]


def test_a_loss_of_all_offsets_of_a_published_object_is_an_accepted_one() -> None:
    o, other = replace(closed(0, 9), record=3), replace(closed(10, 19), record=3)
    accepted, unpublished = replace(lost(o, 0, 10), record=7), replace(lost(other, 10, 15), record=7)
    assert list(accepted_losses([o, other], [unpublished, accepted])) == [(accepted, o)]


def test_an_accepted_loss_is_that_of_the_newest_object_listed_before_it() -> None:
    first, second, third = (replace(closed(0, 9), record=record) for record in (2, 5, 9))
    accepted = replace(lost(first, 0, 10), record=7)
    assert list(accepted_losses([first, second, third], [accepted])) == [(accepted, second)]


def test_a_rebuilt_object_without_its_lost_records_is_not_lost_itself() -> None:
    o = closed(0, 9)
    rebuilt = replace(o, last=4, offsets=checksum_range(0, 5), record=3)
    assert list(accepted_losses([rebuilt], [replace(lost(o, 5, 10), record=6)])) == []
