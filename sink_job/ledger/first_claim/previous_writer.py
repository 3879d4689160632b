"""What a sink without a ledger continues: the objects that another writer, such as a connector of Kafka Connect, has
written from the consumer group's offsets on.

The first claim contains it. Until the first round, every driver checks after its claim that nothing has changed since
(`sink_job.ledger.first_claim.checks`).
"""

from __future__ import annotations

import msgspec

from sink_job.api.topic_partition import TopicPartition


class AcceptedObject(msgspec.Struct, frozen=True, gc=False):
    """An object of the previous writer whose records are not copied again.

    `first` and `last` are the offsets of its first and last record (inclusive), `records` is their number, `bytes` its
    stored size. The records are equal to Kafka's.
    """

    key: str
    topic: str
    partition: int
    first: int
    last: int
    records: int
    bytes: int
    etag: str

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class PreviousWriter(msgspec.Struct, frozen=True, omit_defaults=True):
    """The position of the previous writer at the first claim.

    `group` is its consumer group, and `offsets` are the committed offsets by topic-partition; partitions without one
    are absent. `comparison` names how the records of `objects` were compared with Kafka's. `starts` are the start
    offsets of the topic-partitions where they differ from the committed ones.
    """

    group: str
    offsets: dict[str, int] = {}
    starts: dict[str, int] = {}
    comparison: str = ""
    objects: tuple[AcceptedObject, ...] = ()

    def checked_from(self, tp: TopicPartition, start: int) -> int:
        """The lowest offset from which on the objects of a topic-partition are those of the claim. `start` is its start
        offset in the ledger."""
        firsts = [each.first for each in self.objects if each.topic_partition == tp]
        return min([self.offsets.get(str(tp), start), start, *firsts])
