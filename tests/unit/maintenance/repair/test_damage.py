"""Which objects `repair` examines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.maintenance.repair.damage import suspects
from sink_job.verify.audit_input import BucketState, GenerationAudit
from tests.support.repair_sink import KEYS, RepairFixture

FIRST, SECOND, THIRD = KEYS


def keys_of(found: object) -> list[str]:
    return [s.o.key for s in getattr(found, "objects", ())]


def test_missing_and_changed_objects_are_examined_in_the_order_of_their_offsets(repaired: RepairFixture) -> None:
    bucket = BucketState(missing=frozenset({SECOND}), mismatched={FIRST: "other bytes"})
    found = suspects(replace(repaired.evidence(), bucket=bucket), "archive")
    assert keys_of(found) == [FIRST, SECOND]
    assert (found.removed, found.pending) == (0, 0)


def test_named_objects_are_examined_alone(repaired: RepairFixture) -> None:
    evidence = replace(repaired.evidence(), bucket=BucketState(missing=frozenset({SECOND})))
    assert keys_of(suspects(evidence, "archive", [FIRST])) == [FIRST]


def test_removed_objects_are_counted_alone(repaired: RepairFixture) -> None:
    bucket = BucketState(missing=frozenset({FIRST, SECOND}), removed=frozenset({FIRST}))
    evidence = replace(repaired.evidence(), bucket=bucket)
    found = suspects(evidence, "archive")
    assert (keys_of(found), found.removed) == ([SECOND], 1)
    found = suspects(evidence, "archive", [FIRST])
    assert (keys_of(found), found.removed) == ([], 1)


def test_closed_objects_that_are_not_acknowledged_are_left_to_the_driver(repaired: RepairFixture) -> None:
    evidence = repaired.evidence()
    published = evidence.current.published
    pending = {o.key: o for o in published if o.key == THIRD}
    state = evidence.current.state
    state = type(state)(number=state.number, partitions=state.partitions, pending=pending, settings=state.settings)
    current = GenerationAudit(state, [o for o in published if o.key != THIRD], evidence.current.rotations)
    bucket = BucketState(mismatched={THIRD: "other bytes"}, missing=frozenset({FIRST}))
    found = suspects(replace(evidence, current=current, bucket=bucket), "archive")
    assert (keys_of(found), found.pending) == ([FIRST], 1)


def test_an_object_whose_key_a_later_generation_uses_is_marked(repaired: RepairFixture) -> None:
    evidence = repaired.evidence()
    ended = replace(evidence.current, ended=True)
    later = replace(evidence.current, state=type(evidence.current.state)(generation=2))
    both = replace(
        evidence,
        current=later,
        bucket=BucketState(),
        ended=[(ended, BucketState(missing=frozenset({FIRST})))],
    )
    assert [(s.o.key, s.replaced_by_later) for s in suspects(both, "archive").objects] == [(FIRST, True)]


def test_a_key_of_no_object_is_rejected(repaired: RepairFixture) -> None:
    with pytest.raises(ConfigurationError, match="s3://archive/nothing"):
        suspects(repaired.evidence(), "archive", [FIRST, "nothing"])
