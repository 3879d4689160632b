"""What giving records up makes of a topic-partition's state and of the ledger's."""

from __future__ import annotations

from msgspec.structs import replace

from sink_job.ledger.data_loss import skip_deleted, with_open
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import (
    ClosedObject,
    LedgerState,
    LostObject,
    OpenObject,
    PartitionState,
    Record,
    apply,
    committable_offsets,
    diff,
    patch,
    without_audit,
)
from sink_job.writer.object_rebuilder import RebuildInput, all_missing


def opened(first: int, last: int, path: str = "a") -> OpenObject:
    return OpenObject(path, first, last, 10, 0, 1, checksum_range(first, last + 1))


def named(first: int, last: int) -> ClosedObject:
    offsets = checksum_range(first, last + 1)
    return ClosedObject(f"log+0+{first}", "log", 0, "a", first, last, 1, 1, "u", (), (), offsets, 1)


def lost(o: ClosedObject, start: int, end: int) -> LostObject:
    return LostObject("log", 0, o.key, o.path, o.first, o.last, checksum_range(start, end))


PARTITION = PartitionState(
    next=30,
    committable=0,
    rotation_start=0,
    accepted=checksum_range(0, 30),
    accepted_end=30,
    open_records=30,
    interval_start=5,
    last_time=9,
    open=(opened(0, 19, "a"), opened(20, 29, "b")),
)


def test_what_is_left_open_counts_for_the_rotation_and_nothing_else() -> None:
    p = with_open(PARTITION, [opened(12, 19, "a"), opened(20, 29, "b")])
    assert (p.open_records, p.committable, p.interval_start, p.last_time, p.next) == (18, 12, 5, 9, 30)
    assert p.accepted == PARTITION.accepted


def test_with_nothing_left_open_the_partition_is_as_after_a_close() -> None:
    p = with_open(PARTITION, [])
    assert (p.open_records, p.committable, p.interval_start, p.open) == (0, 30, None, ())


def test_objects_that_have_lost_nothing_leave_the_partition_as_it_was() -> None:
    with_gap = replace(PARTITION, committable=0, open=(opened(3, 19, "a"), opened(20, 29, "b")))
    assert with_open(with_gap, with_gap.open) == with_gap


def test_an_object_that_lost_its_first_records_comes_through_a_record_of_the_ledger() -> None:
    after = with_open(PARTITION, [opened(25, 29, "b"), opened(22, 22, "a")])
    assert [o.path for o in after.open] == ["a", "b"]
    assert patch(PARTITION, diff(PARTITION, after)) == after


def test_offsets_that_are_skipped_hold_back_no_offset_unless_an_object_is_open() -> None:
    assert skip_deleted(PARTITION, 40).committable == 0
    assert skip_deleted(replace(PARTITION, open=()), 40).committable == 40


def test_an_object_that_lost_records_is_pending_under_the_key_of_what_is_left() -> None:
    whole, left = named(0, 9), named(4, 9)
    state = LedgerState(partitions={"log-0": replace(PARTITION, committable=30, open=())}, pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, closed=(left,), lost=(lost(whole, 0, 4),)))
    assert after.pending == {left.key: left}
    assert after.published == ()
    assert list(committable_offsets(after).values()) == [4]


def test_an_object_without_any_record_left_is_neither_pending_nor_published() -> None:
    whole = named(0, 9)
    state = LedgerState(partitions={"log-0": replace(PARTITION, committable=30, open=())}, pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, lost=(lost(whole, 0, 10),)))
    assert (after.pending, after.published) == ({}, ())
    assert list(committable_offsets(after).values()) == [30]


def test_an_object_that_lost_records_behind_its_first_keeps_its_place() -> None:
    whole = named(0, 9)
    left = replace(whole, offsets=checksum_range(0, 5), upload="u2")
    state = LedgerState(pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, closed=(left,), lost=(lost(whole, 5, 10),)))
    assert after.pending == {whole.key: left}


def test_what_was_given_up_leaves_the_state_with_its_snapshot() -> None:
    given_up = lost(named(0, 9), 0, 10)
    after = apply(LedgerState(), Record(1, 1, "me", "round", 0, lost=(given_up,)))
    assert after.lost == (given_up,)
    assert without_audit(after).lost == ()


def test_of_objects_of_which_kafka_holds_nothing_everything_is_missing() -> None:
    result = all_missing(RebuildInput(closed=(named(0, 9),), open=(opened(10, 19),)))
    assert [(m.first, m.found.count, m.expected.count, m.is_loss) for m in result.missing] == [
        (0, 0, 10, True),
        (10, 0, 10, True),
    ]
