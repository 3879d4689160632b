"""What giving records up makes of a topic-partition's state and of the ledger's."""

from __future__ import annotations

from msgspec.structs import replace

from sink_job.ledger.data_loss import skipped, with_open
from sink_job.ledger.offset_checksum import tally_range
from sink_job.ledger.state import (
    Lost,
    NamedObject,
    OpenObject,
    PartitionState,
    Record,
    State,
    apply,
    audited,
    committed,
    difference,
    merge,
)
from sink_job.writer.object_rebuilder import RebuildInput, nothing_held


def opened(first: int, last: int, path: str = "a") -> OpenObject:
    return OpenObject(path, first, last, 10, 0, 1, tally_range(first, last + 1))


def named(first: int, last: int) -> NamedObject:
    offsets = tally_range(first, last + 1)
    return NamedObject(f"log+0+{first}", "log", 0, "a", first, last, 1, 1, "u", (), (), offsets, 1)


def lost(o: NamedObject, start: int, end: int) -> Lost:
    return Lost("log", 0, o.key, o.path, o.first, o.last, tally_range(start, end))


PARTITION = PartitionState(
    next=30,
    committable=0,
    rotation_start=0,
    written=tally_range(0, 30),
    written_to=30,
    n=30,
    base=5,
    last_time=9,
    open=(opened(0, 19, "a"), opened(20, 29, "b")),
)


def test_what_is_left_open_counts_for_the_rotation_and_nothing_else() -> None:
    p = with_open(PARTITION, [opened(12, 19, "a"), opened(20, 29, "b")])
    assert (p.n, p.committable, p.base, p.last_time, p.next) == (18, 12, 5, 9, 30)
    assert p.written == PARTITION.written


def test_with_nothing_left_open_the_partition_is_as_after_a_close() -> None:
    p = with_open(PARTITION, [])
    assert (p.n, p.committable, p.base, p.open) == (0, 30, None, ())


def test_objects_that_have_lost_nothing_leave_the_partition_as_it_was() -> None:
    with_gap = replace(PARTITION, committable=0, open=(opened(3, 19, "a"), opened(20, 29, "b")))
    assert with_open(with_gap, with_gap.open) == with_gap


def test_an_object_that_lost_its_first_records_comes_through_a_record_of_the_ledger() -> None:
    after = with_open(PARTITION, [opened(25, 29, "b"), opened(22, 22, "a")])
    assert [o.path for o in after.open] == ["a", "b"]
    assert merge(PARTITION, difference(PARTITION, after)) == after


def test_offsets_that_are_skipped_hold_back_no_offset_unless_an_object_is_open() -> None:
    assert skipped(PARTITION, 40).committable == 0
    assert skipped(replace(PARTITION, open=()), 40).committable == 40


def test_an_object_that_lost_records_is_pending_under_the_key_of_what_is_left() -> None:
    whole, left = named(0, 9), named(4, 9)
    state = State(partitions={"log-0": replace(PARTITION, committable=30, open=())}, pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, named=(left,), lost=(lost(whole, 0, 4),)))
    assert after.pending == {left.key: left}
    assert after.published == ()
    assert list(committed(after).values()) == [4]


def test_an_object_without_any_record_left_is_neither_pending_nor_published() -> None:
    whole = named(0, 9)
    state = State(partitions={"log-0": replace(PARTITION, committable=30, open=())}, pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, lost=(lost(whole, 0, 10),)))
    assert (after.pending, after.published) == ({}, ())
    assert list(committed(after).values()) == [30]


def test_an_object_that_lost_records_behind_its_first_keeps_its_place() -> None:
    whole = named(0, 9)
    left = replace(whole, offsets=tally_range(0, 5), upload="u2")
    state = State(pending={whole.key: whole})
    after = apply(state, Record(1, 1, "me", "round", 0, named=(left,), lost=(lost(whole, 5, 10),)))
    assert after.pending == {whole.key: left}


def test_what_was_given_up_leaves_the_state_with_its_snapshot() -> None:
    given_up = lost(named(0, 9), 0, 10)
    after = apply(State(), Record(1, 1, "me", "round", 0, lost=(given_up,)))
    assert after.lost == (given_up,)
    assert audited(after).lost == ()


def test_of_objects_of_which_kafka_holds_nothing_everything_is_missing() -> None:
    result = nothing_held(RebuildInput(named=(named(0, 9),), open=(opened(10, 19),)))
    assert [(m.first, m.found.count, m.wanted.count, m.is_loss) for m in result.missing] == [
        (0, 0, 10, True),
        (10, 0, 10, True),
    ]
