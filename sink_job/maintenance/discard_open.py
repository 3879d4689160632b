"""`s3sink discard-open`: gives up what is open, and leaves the ledger as a later sink can go on from it.

Nothing visible is touched, and what was named becomes visible first: it is promised. The records in open objects are
in no object afterwards; a later sink copies them from Kafka, as long as that holds them. Each step may be the last, and
the command may be run again: after the record only bytes are left to remove, which the intent leads to.
"""

from __future__ import annotations

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import without_open_bytes
from sink_job.ledger.session import LedgerAccess, LedgerSession, changed
from sink_job.ledger.state import PartitionState, committable_offsets, diff


class DiscardedPartition(msgspec.Struct, frozen=True, rename="camel"):
    """One topic-partition of which objects were given up: `records` in them, and the first offset that is in no
    visible object."""

    topic: str
    partition: int
    objects: int
    records: int
    committed: int


class DiscardReport(msgspec.Struct, frozen=True, rename="camel"):
    """What came of it. `record` is the ledger's last one (None: there is no ledger); `published` counts the named
    objects that were made visible first."""

    record: int | None
    published: int
    objects: int
    records: int
    partitions: tuple[DiscardedPartition, ...] = ()


def discard_open(hands: LedgerAccess) -> DiscardReport:
    """Gives up what is open. Raises what `Taken` raises; where there is no ledger, there is nothing to do."""
    if not hands.ledger.exists():
        return DiscardReport(None, 0, 0, 0)
    taken = LedgerSession(hands)
    with taken.kept():
        return _discard(taken)


def _discard(taken: LedgerSession) -> DiscardReport:
    published = taken.publish()
    before = taken.state.partitions
    after = changed(taken.state, {name: without_open_bytes(p) for name, p in before.items()})
    if after:
        taken.discard_open(partitions={name: diff(before[name], p) for name, p in after.items()})
    else:
        taken.clean_up()
    offsets = committable_offsets(taken.state)
    found = tuple(_given(tp, before[str(tp)], offsets[tp]) for tp in sorted(map(TopicPartition.parse, after)))
    objects = sum(one.objects for one in found)
    return DiscardReport(taken.state.number, published, objects, sum(one.records for one in found), found)


def _given(tp: TopicPartition, p: PartitionState, committed_to: int) -> DiscardedPartition:
    return DiscardedPartition(tp.topic, tp.partition, len(p.open), sum(o.count for o in p.open), committed_to)
