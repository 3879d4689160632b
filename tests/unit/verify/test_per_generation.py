"""The objects, ranges and deviations of each generation."""

from __future__ import annotations

from sink_job.api.sections.job_sections import KeySettings
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import (
    LedgerState,
    PartitionState,
    Record,
    RotationRange,
)
from sink_job.ledger.transitions import diff
from sink_job.rotation.types import RotationState
from sink_job.verify.audit_input import BucketState, GenerationAudit, UntrackedObject
from sink_job.verify.per_generation import buckets, per_generation
from tests.unit.ledger.test_generations import TP, closed, reset_claim


def two_generations(*, start: int) -> list[GenerationAudit]:
    """Offsets 0 to 19 in two objects of the first generation. The second starts at `start` and has one object there."""
    before = PartitionState(RotationState.start(20), rotation_start=20)
    first = Record(
        number=1, epoch=1, attempt="a", kind="claim", clock=0, settings="{}",
        partitions={"log-0": diff(None, PartitionState(RotationState.start(0), rotation_start=0))},
    )  # fmt: skip
    claims = [first, reset_claim(5, start=start, before=before)]
    objects = [closed("topics/log/a", 0, 9, 2), closed("topics/log/b", 10, 19, 3), closed("new", start, start + 9, 6)]
    rotations = [
        RotationRange("log", 0, 0, 20, checksum_range(0, 0), record=3),
        RotationRange("log", 0, start, start + 10, checksum_range(0, 0), record=6),
    ]
    end = start + 10
    state = LedgerState(
        number=6,
        generation=2,
        topics_dir="topics/generation=2",
        partitions={"log-0": PartitionState(RotationState.start(end), rotation_start=end)},
    )
    return per_generation(state, objects, rotations, claims)


def test_objects_and_rotation_ranges_belong_to_the_generation_of_their_record() -> None:
    first, second = two_generations(start=0)
    assert ([o.key for o in first.published], [o.key for o in second.published]) == (
        ["topics/log/a", "topics/log/b"],
        ["new"],
    )
    assert [(r.start, r.end) for r in first.rotations] == [(0, 20)]
    assert (first.starts, second.starts) == ({TP: 0}, {TP: 0})
    assert (first.ended, second.ended) == (True, False)


def test_an_object_that_a_later_generation_copies_again_may_be_missing() -> None:
    both = BucketState(missing=frozenset({"topics/log/a", "topics/log/b"}))
    first, _ = buckets(two_generations(start=10), both, [KeySettings()])
    assert first.missing == frozenset({"topics/log/a"})
    assert first.replaced == frozenset({"topics/log/b"})


def test_an_untracked_object_belongs_to_the_generation_with_the_same_records() -> None:
    old, new = UntrackedObject("topics/log/x", 5, 1), UntrackedObject("topics/generation=2/log/x", 5, 1)
    later = UntrackedObject("topics/log/y", 50, 1)
    first, second = buckets(two_generations(start=0), BucketState(untracked={TP: [old, new, later]}), [KeySettings()])
    assert (first.untracked, second.untracked) == ({TP: [old]}, {TP: [new]})
