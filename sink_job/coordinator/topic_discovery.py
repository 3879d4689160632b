"""Where the records come from: topics, partitions and offsets, as the manifest asks for them (P5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import IsolationLevel, Sink, StartingOffsets
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin, TopicInfo, describe_topics
from sink_job.ledger.state import KafkaIdentity, LedgerState, PartitionState


class TopicDiscovery:
    """One sink's view of Kafka. `present` are the topics that were there at the last look that counted."""

    def __init__(self, sink: Sink, admin: KafkaAdmin) -> None:
        self.admin = admin
        self.current: frozenset[str] = frozenset()
        self._sink = sink

    def refresh(self) -> Mapping[str, TopicInfo]:
        """`find`, and from now on these are `present`."""
        topics = self.discover()
        self.current = frozenset(topics)
        return topics

    def discover(self) -> Mapping[str, TopicInfo]:
        """The topics that the manifest names or matches. Raises TopicNotFound for one that it names."""
        kafka = self._sink.spec.kafka
        found = self.admin.topics(kafka.topics, pattern=kafka.topics_pattern)
        return {name: info for name, info in found.items() if self._sink.spec.reads(name)}

    def topic_ids(self, topics: Mapping[str, TopicInfo]) -> KafkaIdentity:
        """Who these topics are, and their cluster."""
        return KafkaIdentity(self.admin.cluster_id(), {name: info.id for name, info in topics.items()})

    def deleted(self, partitions: Iterable[TopicPartition], known: KafkaIdentity | None) -> dict[TopicPartition, str]:
        """Those that are in Kafka no longer, as the ledger knows them, and why. Topics of the manifest are left out
        where that is an error of its own: one that it names and that is missing, one that was created again."""
        wanted = [tp for tp in partitions if tp.topic not in (self._sink.spec.kafka.topics or ())]
        found = describe_topics(self.admin.topics, {tp.topic for tp in wanted})
        reasons = ((tp, self._deletion_reason(tp, found[tp.topic], known)) for tp in wanted)
        return {tp: why for tp, why in reasons if why}

    def _deletion_reason(self, tp: TopicPartition, info: TopicInfo | None, known: KafkaIdentity | None) -> str | None:
        if info is None:
            return f"topic {tp.topic} was deleted in Kafka"
        if known is not None and known.topics.get(tp.topic, info.id) != info.id:
            return None if self._sink.spec.reads(tp.topic) else f"topic {tp.topic} was deleted and created again"
        return None

    def new_partitions(
        self, state: LedgerState, topics: Mapping[str, TopicInfo]
    ) -> dict[TopicPartition, PartitionState]:
        """Partitions that the state does not know yet, from their beginning."""
        every = [TopicPartition(name, n) for name, info in topics.items() for n in range(info.partitions)]
        new = [tp for tp in every if state.partition(tp) is None]
        return {tp: initial_state(offset) for tp, offset in self.admin.beginning_offsets(new).items()} if new else {}

    def initial_offsets(self, found: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
        """Where a sink without a ledger starts: at the group's offsets, else as `startingOffsets` says."""
        latest = self._sink.spec.kafka.starting_offsets is StartingOffsets.LATEST
        begin = self.end_offsets(list(found)) if latest else {tp: p.next for tp, p in found.items()}
        offsets = {**begin, **self.admin.group_offsets(self._sink.group_id, list(found))}
        return {tp: initial_state(offset) for tp, offset in offsets.items()}

    def group_metadata(self, topics: Mapping[str, TopicInfo]) -> Mapping[TopicPartition, str]:
        """The metadata of the group's offsets of these topics."""
        every = [TopicPartition(name, n) for name, info in topics.items() for n in range(info.partitions)]
        return self.admin.group_metadata(self._sink.group_id, every)

    def check_no_members(self) -> None:
        """Before a sink's first claim: raises ConfigurationError when the consumer group has active members. They would
        continue after the offsets at which the sink starts, and records would be copied twice."""
        group = self._sink.group_id
        members = self.admin.group_members(group)
        if members:
            raise ConfigurationError(
                f"consumer group {group} has {members} active members, such as a connector that is still running. "
                "No ledger was begun. Stop them and start the sink again, or choose another spec.kafka.groupId."
            )

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The log ends, as the reader will see them: at read_committed the last stable offsets."""
        committed = self._sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED
        return self.admin.end_offsets(partitions, committed=committed)

    def record_bytes(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, float]:
        """How large records are, from the sizes of Kafka's logs, where it tells them."""
        sizes = self.admin.log_sizes(sorted({tp.topic for tp in partitions})) if partitions else None
        if not sizes:
            return {}
        starts, ends = self.admin.beginning_offsets(partitions), self.end_offsets(partitions)
        return {
            tp: max(1.0, sizes[tp] / (ends[tp] - starts[tp]))
            for tp in partitions
            if sizes.get(tp) and ends[tp] > starts[tp]
        }


def initial_state(offset: int) -> PartitionState:
    """A partition of which nothing has been read: `offset` is the first to read."""
    return PartitionState(next=offset, committable=offset, rotation_start=offset, accepted_end=offset)
