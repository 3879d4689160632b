"""`s3sink discard-open`: gives up what is open, and leaves the ledger as a later sink can go on from it.

Nothing visible is touched, and what was named becomes visible first: it is promised. The records in open objects are
in no object afterwards; a later sink copies them from Kafka, as long as that holds them. Each step may be the last, and
the command may be run again: after the record only bytes are left to remove, which the intent leads to.
"""

from __future__ import annotations

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import given_up
from sink_job.ledger.session import Hands, Taken, changed
from sink_job.ledger.state import PartitionState, committed, difference


class Given(msgspec.Struct, frozen=True, rename="camel"):
    """One topic-partition of which objects were given up: `records` in them, and the first offset that is in no
    visible object."""

    topic: str
    partition: int
    objects: int
    records: int
    committed: int


class Discarded(msgspec.Struct, frozen=True, rename="camel"):
    """What came of it. `record` is the ledger's last one (None: there is no ledger); `published` counts the named
    objects that were made visible first."""

    record: int | None
    published: int
    objects: int
    records: int
    partitions: tuple[Given, ...] = ()


def discard_open(hands: Hands) -> Discarded:
    """Gives up what is open. Raises what `Taken` raises; where there is no ledger, there is nothing to do."""
    if not hands.ledger.exists():
        return Discarded(None, 0, 0, 0)
    taken = Taken(hands)
    with taken.kept():
        return _discard(taken)


def _discard(taken: Taken) -> Discarded:
    published = taken.publish()
    before = taken.state.partitions
    after = changed(taken.state, {name: given_up(p) for name, p in before.items()})
    if after:
        taken.give_up(partitions={name: difference(before[name], p) for name, p in after.items()})
    else:
        taken.clean_up()
    offsets = committed(taken.state)
    found = tuple(_given(tp, before[str(tp)], offsets[tp]) for tp in sorted(map(TopicPartition.parse, after)))
    objects = sum(one.objects for one in found)
    return Discarded(taken.state.number, published, objects, sum(one.records for one in found), found)


def _given(tp: TopicPartition, p: PartitionState, committed_to: int) -> Given:
    return Given(tp.topic, tp.partition, len(p.open), sum(o.count for o in p.open), committed_to)
