"""States of the ledger: the offset to commit is the first one that is not in a visible object."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.state import (
    Extent,
    LedgerState,
    OffsetChecksum,
    RotationRange,
    committable_offsets,
    without_audit,
)
from sink_job.ledger.transitions import apply
from tests.unit.ledger.states import (
    TP,
    at,
    claim,
    closed_object,
    open_at,
    round_,
)


def test_a_snapshot_keeps_everything_but_the_audit_log() -> None:
    o, rotation = closed_object(0, 9), RotationRange(TP.topic, TP.partition, 0, 10, OffsetChecksum())
    state = apply(apply(LedgerState(), claim(closed=(o,))), round_(2, acknowledged=(o.key,), rotations=(rotation,)))
    kept = without_audit(state)
    assert (kept.published, kept.rotations, kept.audited_to) == ((), (), 2)
    published = (msgspec.structs.replace(o, acknowledged=2),)
    assert msgspec.structs.replace(kept, published=published, rotations=(rotation,), audited_to=0) == state


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
