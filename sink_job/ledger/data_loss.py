"""The effect of `onDataLoss: Continue` on the ledger's states (docs/failure-modes.md). Pure functions.

A rebuilt object keeps the records that Kafka still holds, under the key of the first of them. No object contains the
other records. One ledger record both reports them (`LostObject`) and lists the rebuilt object, so the step is atomic.
`accepted` of the topic-partition does not change: objects and lost records together are all accepted records.

A loss that a user accepts (`s3sink repair --accept-loss`) is a `LostObject`, too: with the key and all offsets of a
published object, which stays listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sink_job.ledger.state import ClosedObject, LostObject, OpenObject, PartitionState
from sink_job.records.batch import DEAD_LETTERS


class RebuildOutcome(NamedTuple):
    """Closed objects under new uploads, and their lost records."""

    closed: Sequence[ClosedObject]
    lost: Sequence[LostObject] = ()


def with_open(p: PartitionState, rebuilt: Iterable[OpenObject]) -> PartitionState:
    """The partition with `rebuilt` in place of its open objects. Rebuilt objects may be missing or have lost records.

    Lost records no longer count for the rotation settings. Without open objects the state is that after a close.
    """
    objects = tuple(sorted(rebuilt, key=lambda o: o.first))
    if sum(o.count for o in objects) == sum(o.count for o in p.open):
        return replace(p, open=objects)
    rotation = replace(
        p.rotation,
        open_records=sum(o.count for o in objects if o.path != DEAD_LETTERS),
        interval_start=p.rotation.interval_start if objects else None,
        committable=min((o.first for o in objects), default=p.next),
    )
    return replace(p, rotation=rotation, open=objects)


def skip_deleted(p: PartitionState, held: int) -> PartitionState:
    """The partition with `held`, the first offset that Kafka holds, as the next offset to read. The skipped offsets
    were in no object; they are offset gaps of the rotation range."""
    return replace(p, rotation=replace(p.rotation, next=held, committable=p.committable if p.open else held))


def accepted_losses(
    published: Iterable[ClosedObject], lost: Sequence[LostObject]
) -> Iterator[tuple[LostObject, ClosedObject]]:
    """The losses that a user has accepted, each with its published object: the newest one with its key and all of its
    offsets that was listed before. The other losses are of objects that were not visible yet."""
    keys = {each.key for each in lost}
    objects: dict[str, list[ClosedObject]] = {}
    for o in published:
        if o.key in keys:
            objects.setdefault(o.key, []).append(o)
    for each in lost:
        listed = (o for o in objects.get(each.key, ()) if o.record < each.record and o.offsets == each.offsets)
        if (newest := max(listed, key=lambda o: o.record, default=None)) is not None:
            yield each, newest


def lost_records(lost: Iterable[LostObject]) -> int:
    """Number of lost records."""
    return sum(each.offsets.count for each in lost)
