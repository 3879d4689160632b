"""Records and states of the ledger: a change holds what changed, folding changes gives the states back, and the offset
to commit is the first one that is not in a visible object."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import (
    ClosedObject,
    Extent,
    KafkaIdentity,
    LedgerState,
    OffsetChecksum,
    OpenObject,
    Part,
    PartitionDelta,
    PartitionState,
    Record,
    RotationRange,
    SourceRange,
    apply,
    committable_offsets,
    diff,
    patch,
    superseded_staging,
    without_audit,
)

TP = TopicPartition("flights", 3)
PATHS = "abcdef"

offsets = st.integers(0, 2**40)
tallies = st.builds(OffsetChecksum, st.integers(0, 1000), st.integers(0, 2**64 - 1))
parts = st.builds(
    Part, st.integers(1, 10_000), st.sampled_from(["e1", "e2"]), st.integers(0, 2**64 - 1), st.integers(0, 1 << 30)
)
extents = st.lists(st.builds(Extent, st.text("xyz/-", min_size=1), offsets, offsets, offsets), max_size=2).map(tuple)
stretches = st.lists(st.builds(SourceRange, offsets, offsets, offsets), max_size=2).map(tuple)


@st.composite
def opened(draw: st.DrawFn, path: str, first: int) -> OpenObject:
    upload = draw(st.sampled_from([None, "u1", "u2"]))
    return OpenObject(
        path=path,
        first=first,
        last=first + draw(st.integers(0, 100)),
        size=draw(offsets),
        opened_at=draw(offsets),
        settings=draw(st.integers(1, 3)),
        offsets=draw(tallies),
        interval_start=draw(st.none() | offsets),
        upload=upload,
        parts=tuple(draw(st.lists(parts, max_size=3))) if upload else (),
        sources=draw(stretches),
        blocks=draw(extents),
        partial_block=draw(extents),
    )


@st.composite
def partition_states(draw: st.DrawFn, objects: tuple[OpenObject, ...] | None = None) -> PartitionState:
    if objects is None:
        chosen = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=4))
        objects = tuple(draw(opened(path, 10 * index)) for index, path in enumerate(chosen))
    return PartitionState(
        next=draw(offsets),
        committable=draw(offsets),
        rotation_start=draw(offsets),
        accepted=draw(tallies),
        accepted_end=draw(offsets),
        open_records=draw(st.integers(0, 1000)),
        last_time=draw(st.none() | st.integers(-(2**40), 2**40)),
        interval_start=draw(st.none() | offsets),
        current_path=draw(st.none() | st.sampled_from(PATHS)),
        next_schedule=draw(st.none() | offsets),
        open=objects,
    )


@st.composite
def grown(draw: st.DrawFn, o: OpenObject) -> OpenObject:
    """The object after a round that left it open: untouched, longer, or rebuilt under another upload."""
    match draw(st.sampled_from(["untouched", "longer", "rebuilt", "same upload, other parts"])):
        case "untouched":
            return o
        case "longer":
            more = tuple(draw(st.lists(parts, max_size=2)))
            upload = o.upload or ("u3" if more else None)
            return msgspec.structs.replace(
                o, last=o.last + 1, offsets=draw(tallies), upload=upload, parts=o.parts + more, blocks=draw(extents)
            )
        case "rebuilt":
            return msgspec.structs.replace(o, upload="u9", parts=tuple(draw(st.lists(parts, max_size=3))))
        case _:
            return msgspec.structs.replace(o, parts=tuple(draw(st.lists(parts, max_size=3))))


@st.composite
def steps(draw: st.DrawFn, old: PartitionState) -> PartitionState:
    """A state that can follow `old`: some objects closed, others grown, new ones (also at closed paths) behind them."""
    kept = [draw(grown(o)) for o in old.open if draw(st.booleans())]
    free = [path for path in PATHS if path not in {o.path for o in kept}]
    first = 1 + max((o.first for o in old.open), default=0)
    new = draw(st.lists(st.sampled_from(free), unique=True, max_size=3)) if free else []
    fresh = [draw(opened(path, first + index)) for index, path in enumerate(new)]
    return draw(partition_states(tuple(kept + fresh)))


@st.composite
def histories(draw: st.DrawFn) -> list[PartitionState]:
    states = [draw(partition_states())]
    for _ in range(draw(st.integers(1, 4))):
        states.append(draw(steps(states[-1])))
    return states


def written_and_read(change: PartitionDelta) -> PartitionDelta:
    return msgspec.json.decode(msgspec.json.encode(change), type=PartitionDelta)


def claim(number: int = 1, **fields: object) -> Record:
    return _record(number, "claim", settings="{}", **fields)


def round_(number: int, **fields: object) -> Record:
    return _record(number, "round", **fields)


def _record(number: int, kind: str, **fields: object) -> Record:
    known = {"number": number, "epoch": 1, "attempt": "me", "kind": kind, "clock": 100}
    return msgspec.convert({**known, **fields}, Record)


def named(first: int, last: int, *, path: str = "a", record: int = 0, settings: int = 1) -> ClosedObject:
    return ClosedObject(
        key=f"{path}+{first}",
        topic=TP.topic,
        partition=TP.partition,
        path=path,
        first=first,
        last=last,
        bytes=10,
        crc=1,
        upload="u",
        parts=(Part(1, "e", 1, 10),),
        sources=(SourceRange(first, last + 1, 0),),
        offsets=OffsetChecksum(last - first + 1, 0),
        settings=settings,
        record=record,
    )


def at(next_offset: int, committable: int | None = None, *objects: OpenObject) -> PartitionDelta:
    committable = next_offset if committable is None else committable
    state = PartitionState(next=next_offset, committable=committable, rotation_start=0, open=objects)
    return diff(None, state)


def open_at(path: str, first: int, settings: int = 1) -> OpenObject:
    return OpenObject(
        path=path,
        first=first,
        last=first,
        size=1,
        opened_at=0,
        settings=settings,
        offsets=OffsetChecksum(1, 0),
        upload=f"u{path}",
    )


# -- changes ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(histories())
def test_merging_a_change_gives_the_state_that_it_was_made_from(history: list[PartitionState]) -> None:
    state = patch(None, written_and_read(diff(None, history[0])))
    assert state == history[0]
    for new in history[1:]:
        state = patch(state, written_and_read(diff(state, new)))
        assert state == new
        assert [o.path for o in state.open] == [o.path for o in new.open]


@given(partition_states())
def test_a_change_without_difference_holds_no_object(state: PartitionState) -> None:
    change = diff(state, state)
    assert change.state.open == ()
    assert change.removed == ()


@given(st.data())
def test_a_change_holds_no_part_that_the_ledger_has_already(data: st.DataObject) -> None:
    old = data.draw(partition_states())
    more = Part(99, "new", 1, 1)
    longer = tuple(msgspec.structs.replace(o, parts=(*o.parts, more)) for o in old.open)
    change = diff(old, msgspec.structs.replace(old, open=longer))
    assert all(o.parts == (more,) for o in change.state.open)


def test_a_path_that_was_closed_and_opened_again_goes_to_the_end() -> None:
    old = PartitionState(next=9, committable=0, rotation_start=0, open=(open_at("a", 0), open_at("b", 1)))
    new = msgspec.structs.replace(old, open=(open_at("b", 1), open_at("a", 5)))
    assert patch(old, diff(old, new)) == new


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_record_that_is_not_the_next_is_refused() -> None:
    with pytest.raises(ValueError, match="3 does not follow 1"):
        apply(apply(LedgerState(), claim()), round_(3))


def test_an_object_is_pending_from_its_naming_to_its_acknowledgement() -> None:
    o = named(0, 9)
    state = apply(apply(LedgerState(), claim(partitions={str(TP): at(10)})), round_(2, closed=(o,)))
    assert list(state.pending) == [o.key]
    assert not state.published
    state = apply(state, round_(3, acknowledged=(o.key,)))
    assert not state.pending
    assert state.published == (o,)


def test_acknowledging_twice_publishes_once() -> None:
    o = named(0, 9)
    state = apply(apply(LedgerState(), claim()), round_(2, closed=(o,)))
    state = apply(apply(state, round_(3, acknowledged=(o.key,))), round_(4, acknowledged=(o.key,)))
    assert state.published == (o,)


def test_a_rebuilt_object_replaces_the_lost_one_in_its_place() -> None:
    first, second = named(0, 9), named(10, 19)
    state = apply(apply(LedgerState(), claim()), round_(2, closed=(first, second)))
    again = msgspec.structs.replace(first, upload="other")
    state = apply(state, round_(3, closed=(again,)))
    assert list(state.pending.values()) == [again, second]


def test_the_clock_of_a_state_never_goes_back() -> None:
    state = apply(apply(LedgerState(), claim(clock=500)), round_(2, clock=400))
    assert state.clock == 500


def test_a_claim_is_remembered_and_begins_an_epoch() -> None:
    state = apply(apply(apply(LedgerState(), claim()), round_(2)), claim(3, epoch=3))
    assert state.claims == (1, 3)
    assert state.epoch == 3


def test_a_claim_with_the_same_settings_keeps_their_number() -> None:
    state = apply(apply(LedgerState(), claim()), claim(2))
    assert state.settings == {1: "{}"}
    assert state.current_settings() == 1


def test_settings_that_nothing_was_begun_under_are_forgotten() -> None:
    state = apply(apply(LedgerState(), claim()), _record(2, "claim", settings="new"))
    assert state.settings == {2: "new"}


@pytest.mark.parametrize("how", ["open", "pending"])
def test_settings_are_kept_while_an_object_begun_under_them_is(how: str) -> None:
    first = claim(partitions={str(TP): at(1, 0, open_at("a", 0))}) if how == "open" else claim(closed=(named(0, 1),))
    state = apply(apply(LedgerState(), first), _record(2, "claim", settings="new"))
    assert state.settings == {1: "{}", 2: "new"}
    assert state.current_settings() == 2
    closed = diff(state.partition(TP), PartitionState(next=1, committable=1, rotation_start=1))
    done = {"partitions": {str(TP): closed}} if how == "open" else {"acknowledged": (named(0, 1).key,)}
    assert apply(state, round_(3, **done)).settings == {2: "new"}


def test_settings_that_come_back_get_a_number_of_their_own() -> None:
    state = apply(LedgerState(), claim(closed=(named(0, 1),)))
    state = apply(apply(state, _record(2, "claim", settings="new")), claim(3))
    assert state.settings == {1: "{}", 3: "{}"}


def test_a_snapshot_keeps_all_but_the_audit() -> None:
    o, rotation = named(0, 9), RotationRange(TP.topic, TP.partition, 0, 10, OffsetChecksum())
    state = apply(apply(LedgerState(), claim(closed=(o,))), round_(2, acknowledged=(o.key,), rotations=(rotation,)))
    kept = without_audit(state)
    assert (kept.published, kept.rotations, kept.audited_to) == ((), (), 2)
    assert msgspec.structs.replace(kept, published=(o,), rotations=(rotation,), audited_to=0) == state


@settings(max_examples=40)
@given(histories(), st.lists(st.sampled_from(["claim", "round"]), min_size=4, max_size=4))
def test_a_state_is_the_same_from_snapshots_or_from_all_records(
    history: list[PartitionState], kinds: list[str]
) -> None:
    plain = snapshotted = LedgerState()
    before = None
    for number, (new, kind) in enumerate(zip(history, kinds, strict=False), start=1):
        text = "{}" if kind == "claim" or number == 1 else None
        change = diff(before, new)
        record = _record(
            number, kind, settings=text, partitions={str(TP): change}, kafka=KafkaIdentity("c", {"flights": "i"})
        )
        read = msgspec.json.decode(msgspec.json.encode(record), type=Record)
        assert read == record
        plain = apply(plain, read)
        snapshotted = apply(msgspec.json.decode(msgspec.json.encode(snapshotted), type=LedgerState), record)
        before = new
    assert plain == snapshotted
    assert plain.partition(TP) == history[min(len(history), 4) - 1]


# -- the offset to commit ---------------------------------------------------------------------------------------------


def test_with_nothing_pending_the_first_offset_that_is_not_closed_is_committed() -> None:
    state = apply(LedgerState(), claim(partitions={str(TP): at(20, 7, open_at("a", 7))}))
    assert committable_offsets(state) == {TP: 7}


def test_an_object_that_is_not_visible_holds_the_offset_back() -> None:
    state = apply(LedgerState(), claim(partitions={str(TP): at(20)}, closed=(named(0, 9), named(10, 19))))
    assert committable_offsets(state) == {TP: 0}
    assert committable_offsets(state, {"a+0"}) == {TP: 10}
    assert committable_offsets(state, {"a+10"}) == {TP: 0}
    assert committable_offsets(state, {"a+0", "a+10"}) == {TP: 20}


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), unique_by=lambda pair: pair[0]), st.integers(0, 99))
def test_the_committed_offset_is_the_least_of_what_is_not_visible(
    objects: list[tuple[int, bool]], committable: int
) -> None:
    state = apply(
        LedgerState(), claim(partitions={str(TP): at(100, committable)}, closed=tuple(named(f, f) for f, _ in objects))
    )
    visible = {f"a+{first}" for first, is_visible in objects if is_visible}
    hidden = [first for first, is_visible in objects if not is_visible]
    assert committable_offsets(state, visible) == {TP: min([committable, *hidden])}


# -- what clean-up has to leave alone ---------------------------------------------------------------------------------


def test_uploads_of_open_and_of_pending_objects_are_named() -> None:
    state = apply(LedgerState(), claim(partitions={str(TP): at(20, 10, open_at("x", 10))}, closed=(named(0, 9),)))
    assert state.uploads() == {"u", "ux"}


def test_staging_objects_of_open_objects_are_named() -> None:
    o = msgspec.structs.replace(
        open_at("x", 1), blocks=(Extent("s1", 0, 1, 0),), partial_block=(Extent("s2", 0, 1, 0),)
    )
    assert apply(LedgerState(), claim(partitions={str(TP): at(20, 1, o)})).staged() == {"s1", "s2"}


OTHER = TopicPartition("flights", 4)


def staged_at(*names: str) -> PartitionDelta:
    o = msgspec.structs.replace(open_at("x", 1), partial_block=tuple(Extent(name, 0, 1, 0) for name in names))
    return at(20, 1, o)


def test_what_the_last_open_object_no_longer_refers_to_is_superseded() -> None:
    before = apply(LedgerState(), claim(partitions={str(TP): staged_at("s1", "s2")}))
    record = round_(2, partitions={str(TP): staged_at("s2", "s3")})
    assert superseded_staging(before, apply(before, record), record.partitions) == ["s1"]


@pytest.mark.parametrize("also_changed", [False, True])
def test_what_another_partition_refers_to_is_not_superseded(also_changed: bool) -> None:
    before = apply(LedgerState(), claim(partitions={str(TP): staged_at("s1", "s2"), str(OTHER): staged_at("s2")}))
    changes = {str(TP): staged_at("s4"), **({str(OTHER): staged_at("s2", "s3")} if also_changed else {})}
    record = round_(2, partitions=changes)
    assert superseded_staging(before, apply(before, record), record.partitions) == ["s1"]


def test_a_partition_that_is_new_supersedes_nothing() -> None:
    before = apply(LedgerState(), claim())
    record = round_(2, partitions={str(TP): staged_at("s1")})
    assert superseded_staging(before, apply(before, record), record.partitions) == []


def test_a_change_that_keeps_parts_of_an_object_that_is_not_there_is_no_change_of_this_state() -> None:
    p = PartitionState(next=1, committable=0, rotation_start=0)
    opened = OpenObject("a", 0, 0, 1, 0, 1, OffsetChecksum(1, 1), upload="u", parts=(Part(1, "e", 0, 1),))
    before = msgspec.structs.replace(p, open=(opened,))
    grown = msgspec.structs.replace(opened, parts=(*opened.parts, Part(2, "f", 0, 1)))
    change = diff(before, msgspec.structs.replace(p, open=(grown,)))
    with pytest.raises(KeyError):
        patch(p, change)
