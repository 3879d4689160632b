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

from sink_job.ledger.state import Lost, NamedObject, OpenObject, PartitionState


class Rebuilt(NamedTuple):
    """Named objects under new uploads, and what could not be rebuilt of them."""

    named: Sequence[NamedObject]
    lost: Sequence[Lost] = ()


def with_open(p: PartitionState, rebuilt: Iterable[OpenObject]) -> PartitionState:
    """The partition with these open objects in the place of its own, which may have lost records or be missing.

    What is lost counts for no rotation setting any more. Where nothing is left open, it is as after a close.
    """
    objects = tuple(sorted(rebuilt, key=lambda o: o.first))
    if sum(o.count for o in objects) == sum(o.count for o in p.open):
        return replace(p, open=objects)
    return replace(
        p,
        n=sum(o.count for o in objects),
        base=p.base if objects else None,
        committable=min((o.first for o in objects), default=p.next),
        open=objects,
    )


def skipped(p: PartitionState, held: int) -> PartitionState:
    """The partition with nothing to be read in front of `held`, the first offset that Kafka holds. What is passed over
    was in no object yet: it is in the holes of the rotation."""
    return replace(p, next=held, committable=p.committable if p.open else held)


def count(lost: Iterable[Lost]) -> int:
    """How many offsets were given up."""
    return sum(each.offsets.count for each in lost)
