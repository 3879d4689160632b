"""`s3sink discard-open`: discards the open objects, and leaves a ledger that a later sink can resume from.

Closed objects are published first, and visible objects are not touched. Afterwards the records of open objects are in
no object. A later sink copies them from Kafka if Kafka still holds them. The command can be interrupted after each step
and repeated: after the record only uploads and staged data are left to remove, which the intent leads to.
"""

from __future__ import annotations

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import without_open_bytes
from sink_job.ledger.session import LedgerAccess, LedgerSession, changed
from sink_job.ledger.state import PartitionState, committable_offsets
from sink_job.ledger.transitions import diff


class DiscardedPartition(msgspec.Struct, frozen=True, rename="camel"):
    """A topic-partition with discarded objects: their number, the number of their records, and the first offset that is
    in no visible object (`committed`)."""

    topic: str
    partition: int
    objects: int
    records: int
    committed: int


class DiscardReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of `discard_open`. `record` is the number of the ledger's last record (None: there is no ledger),
    `published` the number of objects that were published first; `objects` and `records` count discarded ones."""

    record: int | None
    published: int
    objects: int
    records: int
    partitions: tuple[DiscardedPartition, ...] = ()


def discard_open(access: LedgerAccess) -> DiscardReport:
    """Discards the open objects. Without a ledger it does nothing. Raises the errors of `LedgerSession`."""
    if not access.ledger.exists():
        return DiscardReport(None, 0, 0, 0)
    session = LedgerSession(access)
    with session.ownership_checked():
        return _discard(session)


def _discard(session: LedgerSession) -> DiscardReport:
    published = session.publish()
    before = session.state.partitions
    after = changed(session.state, {name: without_open_bytes(p) for name, p in before.items()})
    if after:
        session.discard_open(partitions={name: diff(before[name], p) for name, p in after.items()})
    else:
        session.clean_up()
    offsets = committable_offsets(session.state)
    partitions = tuple(_discarded(tp, before[str(tp)], offsets[tp]) for tp in sorted(map(TopicPartition.parse, after)))
    objects, records = sum(each.objects for each in partitions), sum(each.records for each in partitions)
    return DiscardReport(session.state.number, published, objects, records, partitions)


def _discarded(tp: TopicPartition, p: PartitionState, committed: int) -> DiscardedPartition:
    return DiscardedPartition(tp.topic, tp.partition, len(p.open), sum(o.count for o in p.open), committed)
