"""Records and states of the ledger: deltas contain only changes, patches restore the states, and the offset to commit
is the first one that is not in a visible object."""

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
    committable_offsets,
    without_audit,
)
from sink_job.ledger.transitions import apply, diff, patch, superseded_staging
from sink_job.rotation.types import ObjectId, OpenObjectState, RotationState

TP = TopicPartition("flights", 3)
PATHS = "abcdef"
IDS = [ObjectId(path, schema) for path in PATHS[:3] for schema in (None, "s1", "s2")]

offsets = st.integers(0, 2**40)
checksums = st.builds(OffsetChecksum, st.integers(0, 1000), st.integers(0, 2**64 - 1))
parts = st.builds(
    Part, st.integers(1, 10_000), st.sampled_from(["e1", "e2"]), st.integers(0, 2**64 - 1), st.integers(0, 1 << 30)
)
extents = st.lists(st.builds(Extent, st.text("xyz/-", min_size=1), offsets, offsets, offsets), max_size=2).map(tuple)
source_ranges = st.lists(st.builds(SourceRange, offsets, offsets, offsets), max_size=2).map(tuple)


@st.composite
def opened(draw: st.DrawFn, id_: ObjectId, first: int) -> OpenObject:
    upload = draw(st.sampled_from([None, "u1", "u2"]))
    return OpenObject(
        OpenObjectState(
            path=id_.path,
            schema=id_.schema,
            first=first,
            last=first + draw(st.integers(0, 100)),
            count=draw(offsets),
            size=draw(offsets),
            opened_at=draw(offsets),
            interval_start=draw(st.none() | offsets),
        ),
        settings=draw(st.integers(1, 3)),
        offsets=draw(checksums),
        upload=upload,
        parts=tuple(draw(st.lists(parts, max_size=3))) if upload else (),
        sources=draw(source_ranges),
        blocks=draw(extents),
        partial_block=draw(extents),
        index=draw(extents),
    )


@st.composite
def partition_states(draw: st.DrawFn, objects: tuple[OpenObject, ...] | None = None) -> PartitionState:
    if objects is None:
        chosen = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=4))
        objects = tuple(draw(opened(id_, 10 * index)) for index, id_ in enumerate(chosen))
    return PartitionState(
        RotationState(
            next=draw(offsets),
            committable=draw(offsets),
            last_time=draw(st.none() | st.integers(-(2**40), 2**40)),
            interval_start=draw(st.none() | offsets),
            open_records=draw(st.integers(0, 1000)),
            current_path=draw(st.none() | st.sampled_from(PATHS)),
            next_schedule=draw(st.none() | offsets),
        ),
        rotation_start=draw(offsets),
        accepted=draw(checksums),
        accepted_end=draw(offsets),
        open=objects,
    )


@st.composite
def continued(draw: st.DrawFn, o: OpenObject) -> OpenObject:
    """The object after a round that kept it open: unchanged, longer, or rebuilt under another upload."""
    match draw(st.sampled_from(["unchanged", "longer", "rebuilt", "same upload, other parts"])):
        case "unchanged":
            return o
        case "longer":
            more = tuple(draw(st.lists(parts, max_size=2)))
            upload = o.upload or ("u3" if more else None)
            return msgspec.structs.replace(
                o,
                state=msgspec.structs.replace(o.state, last=o.last + 1),
                offsets=draw(checksums),
                upload=upload,
                parts=o.parts + more,
                blocks=draw(extents),
            )
        case "rebuilt":
            return msgspec.structs.replace(o, upload="u9", parts=tuple(draw(st.lists(parts, max_size=3))))
        case _:
            return msgspec.structs.replace(o, parts=tuple(draw(st.lists(parts, max_size=3))))


@st.composite
def steps(draw: st.DrawFn, old: PartitionState) -> PartitionState:
    """A state that can follow `old`: some objects closed, others longer, and new ones after them, also with
    the path and schema of closed ones."""
    kept = [draw(continued(o)) for o in old.open if draw(st.booleans())]
    free = [id_ for id_ in IDS if id_ not in {o.id for o in kept}]
    first = 1 + max((o.first for o in old.open), default=0)
    new = draw(st.lists(st.sampled_from(free), unique=True, max_size=3)) if free else []
    fresh = [draw(opened(id_, first + index)) for index, id_ in enumerate(new)]
    return draw(partition_states(tuple(kept + fresh)))


@st.composite
def histories(draw: st.DrawFn) -> list[PartitionState]:
    states = [draw(partition_states())]
    for _ in range(draw(st.integers(1, 4))):
        states.append(draw(steps(states[-1])))
    return states


def round_trip(delta: PartitionDelta) -> PartitionDelta:
    return msgspec.json.decode(msgspec.json.encode(delta), type=PartitionDelta)


def claim(number: int = 1, **fields: object) -> Record:
    return _record(number, "claim", settings="{}", **fields)


def round_(number: int, **fields: object) -> Record:
    return _record(number, "round", **fields)


def _record(number: int, kind: str, **fields: object) -> Record:
    defaults = {"number": number, "epoch": 1, "attempt": "me", "kind": kind, "clock": 100}
    return msgspec.convert({**defaults, **fields}, Record)


def closed_object(first: int, last: int, *, path: str = "a", record: int = 0, settings: int = 1) -> ClosedObject:
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
    state = PartitionState(RotationState(next=next_offset, committable=committable), rotation_start=0, open=objects)
    return diff(None, state)


def open_at(path: str, first: int, settings: int = 1) -> OpenObject:
    return OpenObject(
        OpenObjectState(path=path, first=first, last=first, count=1, size=1, opened_at=0),
        settings=settings,
        offsets=OffsetChecksum(1, 0),
        upload=f"u{path}",
    )


# -- deltas -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(histories())
def test_patching_with_a_delta_gives_the_new_state(history: list[PartitionState]) -> None:
    state = patch(None, round_trip(diff(None, history[0])))
    assert state == history[0]
    for new in history[1:]:
        state = patch(state, round_trip(diff(state, new)))
        assert state == new
        assert [o.id for o in state.open] == [o.id for o in new.open]


@given(partition_states())
def test_the_delta_of_equal_states_contains_no_object(state: PartitionState) -> None:
    delta = diff(state, state)
    assert delta.state.open == ()
    assert delta.removed == ()


@given(st.data())
def test_a_delta_contains_no_recorded_part(data: st.DataObject) -> None:
    old = data.draw(partition_states())
    more = Part(99, "new", 1, 1)
    longer = tuple(msgspec.structs.replace(o, parts=(*o.parts, more)) for o in old.open)
    delta = diff(old, msgspec.structs.replace(old, open=longer))
    assert all(o.parts == (more,) for o in delta.state.open)


def test_a_delta_removes_one_of_two_objects_of_a_path() -> None:
    objects = [
        msgspec.structs.replace(o, state=msgspec.structs.replace(o.state, schema=schema))
        for o, schema in ((open_at("a", 0), "s1"), (open_at("a", 1), "s2"))
    ]
    old = PartitionState(RotationState(next=9, committable=0), rotation_start=0, open=tuple(objects))
    new = msgspec.structs.replace(old, open=(objects[1],))
    delta = round_trip(diff(old, new))
    assert (delta.removed, delta.state.open) == ((ObjectId("a", "s1"),), ())
    assert patch(old, delta) == new


def test_a_path_that_was_closed_and_opened_again_moves_to_the_end() -> None:
    old = PartitionState(
        RotationState(next=9, committable=0), rotation_start=0, open=(open_at("a", 0), open_at("b", 1))
    )
    new = msgspec.structs.replace(old, open=(open_at("b", 1), open_at("a", 5)))
    assert patch(old, diff(old, new)) == new


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_record_without_the_next_number_is_rejected() -> None:
    with pytest.raises(ValueError, match="3 does not follow 1"):
        apply(apply(LedgerState(), claim()), round_(3))


def test_a_closed_object_is_pending_until_its_acknowledgement() -> None:
    o = closed_object(0, 9)
    state = apply(apply(LedgerState(), claim(partitions={str(TP): at(10)})), round_(2, closed=(o,)))
    assert list(state.pending) == [o.key]
    assert not state.published
    state = apply(state, round_(3, acknowledged=(o.key,)))
    assert not state.pending
    assert state.published == (o,)


def test_acknowledging_twice_publishes_once() -> None:
    o = closed_object(0, 9)
    state = apply(apply(LedgerState(), claim()), round_(2, closed=(o,)))
    state = apply(apply(state, round_(3, acknowledged=(o.key,))), round_(4, acknowledged=(o.key,)))
    assert state.published == (o,)


def test_a_rebuilt_object_replaces_the_lost_one() -> None:
    first, second = closed_object(0, 9), closed_object(10, 19)
    state = apply(apply(LedgerState(), claim()), round_(2, closed=(first, second)))
    again = msgspec.structs.replace(first, upload="other")
    state = apply(state, round_(3, closed=(again,)))
    assert list(state.pending.values()) == [again, second]


def test_the_clock_of_a_state_never_goes_back() -> None:
    state = apply(apply(LedgerState(), claim(clock=500)), round_(2, clock=400))
    assert state.clock == 500


def test_a_claim_is_kept_and_starts_an_epoch() -> None:
    state = apply(apply(apply(LedgerState(), claim()), round_(2)), claim(3, epoch=3))
    assert state.claims == (1, 3)
    assert state.epoch == 3


def test_a_claim_with_the_same_settings_keeps_their_number() -> None:
    state = apply(apply(LedgerState(), claim()), claim(2))
    assert state.settings == {1: "{}"}
    assert state.current_settings() == 1


def test_settings_without_objects_are_removed() -> None:
    state = apply(apply(LedgerState(), claim()), _record(2, "claim", settings="new"))
    assert state.settings == {2: "new"}


@pytest.mark.parametrize("how", ["open", "pending"])
def test_settings_are_kept_while_an_object_uses_them(how: str) -> None:
    first = (
        claim(partitions={str(TP): at(1, 0, open_at("a", 0))})
        if how == "open"
        else claim(closed=(closed_object(0, 1),))
    )
    state = apply(apply(LedgerState(), first), _record(2, "claim", settings="new"))
    assert state.settings == {1: "{}", 2: "new"}
    assert state.current_settings() == 2
    closed = diff(state.partition(TP), PartitionState(RotationState.start(1), rotation_start=1))
    done = {"partitions": {str(TP): closed}} if how == "open" else {"acknowledged": (closed_object(0, 1).key,)}
    assert apply(state, round_(3, **done)).settings == {2: "new"}


def test_restored_settings_get_a_new_number() -> None:
    state = apply(LedgerState(), claim(closed=(closed_object(0, 1),)))
    state = apply(apply(state, _record(2, "claim", settings="new")), claim(3))
    assert state.settings == {1: "{}", 3: "{}"}


def test_a_snapshot_keeps_everything_but_the_audit_log() -> None:
    o, rotation = closed_object(0, 9), RotationRange(TP.topic, TP.partition, 0, 10, OffsetChecksum())
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
        delta = diff(before, new)
        record = _record(
            number, kind, settings=text, partitions={str(TP): delta}, kafka=KafkaIdentity("c", {"flights": "i"})
        )
        read = msgspec.json.decode(msgspec.json.encode(record), type=Record)
        assert read == record
        plain = apply(plain, read)
        snapshotted = apply(msgspec.json.decode(msgspec.json.encode(snapshotted), type=LedgerState), record)
        before = new
    assert plain == snapshotted
    assert plain.partition(TP) == history[min(len(history), 4) - 1]


# -- the offset to commit ---------------------------------------------------------------------------------------------


def test_without_pending_objects_the_first_offset_in_no_closed_object_is_committed() -> None:
    state = apply(LedgerState(), claim(partitions={str(TP): at(20, 7, open_at("a", 7))}))
    assert committable_offsets(state) == {TP: 7}


def test_an_invisible_object_holds_the_offset_back() -> None:
    state = apply(
        LedgerState(), claim(partitions={str(TP): at(20)}, closed=(closed_object(0, 9), closed_object(10, 19)))
    )
    assert committable_offsets(state) == {TP: 0}
    assert committable_offsets(state, {"a+0"}) == {TP: 10}
    assert committable_offsets(state, {"a+10"}) == {TP: 0}
    assert committable_offsets(state, {"a+0", "a+10"}) == {TP: 20}


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), unique_by=lambda pair: pair[0]), st.integers(0, 99))
def test_the_committed_offset_is_the_lowest_that_is_not_visible(
    objects: list[tuple[int, bool]], committable: int
) -> None:
    state = apply(
        LedgerState(),
        claim(partitions={str(TP): at(100, committable)}, closed=tuple(closed_object(f, f) for f, _ in objects)),
    )
    visible = {f"a+{first}" for first, is_visible in objects if is_visible}
    hidden = [first for first, is_visible in objects if not is_visible]
    assert committable_offsets(state, visible) == {TP: min([committable, *hidden])}


# -- what a clean-up must keep ----------------------------------------------------------------------------------------


def test_uploads_of_open_and_pending_objects_are_referenced() -> None:
    state = apply(
        LedgerState(), claim(partitions={str(TP): at(20, 10, open_at("x", 10))}, closed=(closed_object(0, 9),))
    )
    assert state.uploads() == {"u", "ux"}


def test_staging_objects_of_open_objects_are_referenced() -> None:
    o = msgspec.structs.replace(
        open_at("x", 1),
        blocks=(Extent("s1", 0, 1, 0),),
        partial_block=(Extent("s2", 0, 1, 0),),
        index=(Extent("s3", 0, 1, 0),),
    )
    assert apply(LedgerState(), claim(partitions={str(TP): at(20, 1, o)})).staged() == {"s1", "s2", "s3"}


OTHER = TopicPartition("flights", 4)


def staged_at(*names: str) -> PartitionDelta:
    o = msgspec.structs.replace(open_at("x", 1), partial_block=tuple(Extent(name, 0, 1, 0) for name in names))
    return at(20, 1, o)


def test_a_staging_object_without_references_is_superseded() -> None:
    before = apply(LedgerState(), claim(partitions={str(TP): staged_at("s1", "s2")}))
    record = round_(2, partitions={str(TP): staged_at("s2", "s3")})
    assert superseded_staging(before, apply(before, record), record.partitions) == ["s1"]


@pytest.mark.parametrize("also_changed", [False, True])
def test_a_staging_object_of_another_partition_is_not_superseded(also_changed: bool) -> None:
    before = apply(LedgerState(), claim(partitions={str(TP): staged_at("s1", "s2"), str(OTHER): staged_at("s2")}))
    changes = {str(TP): staged_at("s4"), **({str(OTHER): staged_at("s2", "s3")} if also_changed else {})}
    record = round_(2, partitions=changes)
    assert superseded_staging(before, apply(before, record), record.partitions) == ["s1"]


def test_a_new_partition_supersedes_no_staging_object() -> None:
    before = apply(LedgerState(), claim())
    record = round_(2, partitions={str(TP): staged_at("s1")})
    assert superseded_staging(before, apply(before, record), record.partitions) == []


def test_a_delta_that_keeps_parts_of_a_missing_object_does_not_apply() -> None:
    p = PartitionState(RotationState(next=1, committable=0), rotation_start=0)
    opened = OpenObject(
        OpenObjectState(path="a", first=0, last=0, count=1, size=1, opened_at=0),
        settings=1,
        offsets=OffsetChecksum(1, 1),
        upload="u",
        parts=(Part(1, "e", 0, 1),),
    )
    before = msgspec.structs.replace(p, open=(opened,))
    continued = msgspec.structs.replace(opened, parts=(*opened.parts, Part(2, "f", 0, 1)))
    delta = diff(before, msgspec.structs.replace(p, open=(continued,)))
    with pytest.raises(KeyError):
        patch(p, delta)
