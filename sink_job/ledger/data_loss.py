"""What is given up with `onDataLoss: Continue`, and what that makes of a ledger: pure (docs/failure-modes.md).

An object that has to be rebuilt keeps the records that Kafka still holds, and the key of the first of them. The rest is
in no object: a record of the ledger says so once (`Lost`), in the same step that names what is left, so a driver that
is killed either has given it up or has not. `written` of its topic-partition stays as it was counted, so that objects
and losses together are what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sink_job.ledger.state import ClosedObject, LostObject, OpenObject, PartitionState


class RebuildOutcome(NamedTuple):
    """Named objects under new uploads, and what could not be rebuilt of them."""

    closed: Sequence[ClosedObject]
    lost: Sequence[LostObject] = ()


def with_open(p: PartitionState, rebuilt: Iterable[OpenObject]) -> PartitionState:
    """The partition with these open objects in the place of its own, which may have lost records or be missing.

    What is lost counts for no rotation setting any more. Where nothing is left open, it is as after a close.
    """
    objects = tuple(sorted(rebuilt, key=lambda o: o.first))
    if sum(o.count for o in objects) == sum(o.count for o in p.open):
        return replace(p, open=objects)
    return replace(
        p,
        open_records=sum(o.count for o in objects),
        interval_start=p.interval_start if objects else None,
        committable=min((o.first for o in objects), default=p.next),
        open=objects,
    )


def skip_deleted(p: PartitionState, held: int) -> PartitionState:
    """The partition with nothing to be read in front of `held`, the first offset that Kafka holds. What is passed over
    was in no object yet: it is in the holes of the rotation."""
    return replace(p, next=held, committable=p.committable if p.open else held)


def lost_records(lost: Iterable[LostObject]) -> int:
    """How many offsets were given up."""
    return sum(each.offsets.count for each in lost)
