"""Transitions of the ledger: deltas contain only changes, patches restore the states, and records add up to a state."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.ledger.state import (
    Extent,
    KafkaIdentity,
    LedgerState,
    OffsetChecksum,
    OpenObject,
    Part,
    PartitionDelta,
    PartitionState,
    Record,
)
from sink_job.ledger.transitions import apply, diff, patch, superseded_staging
from sink_job.rotation.types import ObjectId, OpenObjectState, RotationState
from tests.unit.ledger.states import (
    OTHER,
    TP,
    at,
    claim,
    closed_object,
    histories,
    new_record,
    open_at,
    partition_states,
    round_,
    round_trip,
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


@given(st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99)))
def test_a_delta_contains_the_new_skipped_offsets_only(before: set[int], added: set[int]) -> None:
    old = PartitionState(RotationState.start(9), rotation_start=0, skipped=tuple(sorted(before)))
    new = msgspec.structs.replace(old, skipped=tuple(sorted(before | added)))
    delta = diff(old, new)
    assert set(delta.state.skipped) == added - before
    assert patch(old, round_trip(delta)) == new
    assert patch(None, round_trip(diff(None, new))) == new


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
    assert state.published == (msgspec.structs.replace(o, acknowledged=3),)


def test_acknowledging_twice_publishes_once() -> None:
    o = closed_object(0, 9)
    state = apply(apply(LedgerState(), claim()), round_(2, closed=(o,)))
    state = apply(apply(state, round_(3, acknowledged=(o.key,))), round_(4, acknowledged=(o.key,)))
    assert state.published == (msgspec.structs.replace(o, acknowledged=3),)


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
    state = apply(apply(LedgerState(), claim()), new_record(2, "claim", settings="new"))
    assert state.settings == {2: "new"}


@pytest.mark.parametrize("how", ["open", "pending"])
def test_settings_are_kept_while_an_object_uses_them(how: str) -> None:
    first = (
        claim(partitions={str(TP): at(1, 0, open_at("a", 0))})
        if how == "open"
        else claim(closed=(closed_object(0, 1),))
    )
    state = apply(apply(LedgerState(), first), new_record(2, "claim", settings="new"))
    assert state.settings == {1: "{}", 2: "new"}
    assert state.current_settings() == 2
    closed = diff(state.partition(TP), PartitionState(RotationState.start(1), rotation_start=1))
    done = {"partitions": {str(TP): closed}} if how == "open" else {"acknowledged": (closed_object(0, 1).key,)}
    assert apply(state, round_(3, **done)).settings == {2: "new"}


def test_restored_settings_get_a_new_number() -> None:
    state = apply(LedgerState(), claim(closed=(closed_object(0, 1),)))
    state = apply(apply(state, new_record(2, "claim", settings="new")), claim(3))
    assert state.settings == {1: "{}", 3: "{}"}


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
        record = new_record(
            number, kind, settings=text, partitions={str(TP): delta}, kafka=KafkaIdentity("c", {"flights": "i"})
        )
        read = msgspec.json.decode(msgspec.json.encode(record), type=Record)
        assert read == record
        plain = apply(plain, read)
        snapshotted = apply(msgspec.json.decode(msgspec.json.encode(snapshotted), type=LedgerState), record)
        before = new
    assert plain == snapshotted
    assert plain.partition(TP) == history[min(len(history), 4) - 1]


# -- staging objects ---------------------------------------------------------------------------------------------------


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
