"""Discovery of the manifest's topics, their partitions and start offsets (P5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sink_job.api.enums import IsolationLevel, StartingOffsets
from sink_job.api.errors import ConfigurationError, TopicNotFound
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin, TopicInfo, describe_topics
from sink_job.ledger import ownership
from sink_job.ledger.state import KafkaIdentity, LedgerState, PartitionState


class TopicDiscovery:
    """One sink's view of Kafka. `current` are the topics of the last `refresh`."""

    def __init__(self, sink: Sink, admin: KafkaAdmin) -> None:
        self.admin = admin
        self.current: frozenset[str] = frozenset()
        self._sink = sink

    def refresh(self) -> Mapping[str, TopicInfo]:
        """Discovers the topics and makes them `current`."""
        topics = self.discover()
        self.current = frozenset(topics)
        return topics

    def discover(self) -> Mapping[str, TopicInfo]:
        """The topics that the manifest lists or matches. Raises TopicNotFound for a listed topic that does not
        exist."""
        kafka = self._sink.spec.kafka
        found = self.admin.topics(kafka.topics, pattern=kafka.topics_pattern)
        return {name: info for name, info in found.items() if self._sink.spec.reads(name)}

    def topic_ids(self, topics: Mapping[str, TopicInfo]) -> KafkaIdentity:
        """The ids of these topics and of the cluster."""
        return KafkaIdentity(self.admin.cluster_id(), {name: info.id for name, info in topics.items()})

    def check_same_topics(self, known: KafkaIdentity | None) -> None:
        """Raises ConfigurationError if a topic was re-created: between two checks it has other records at the same
        offsets. A topic that no longer exists was the right one."""
        try:
            current = self.topic_ids(self.discover())
        except TopicNotFound:
            return
        ownership.check_topic_ids(known, current)

    def deleted(self, partitions: Iterable[TopicPartition], known: KafkaIdentity | None) -> dict[TopicPartition, str]:
        """The topic-partitions whose topic, with the id in the ledger, no longer exists in Kafka, and the reason. Not
        included are topics of the manifest for which that is an error of its own: a listed topic that is missing, and
        a topic that was re-created."""
        checked = [tp for tp in partitions if tp.topic not in (self._sink.spec.kafka.topics or ())]
        found = describe_topics(self.admin.topics, {tp.topic for tp in checked})
        reasons = ((tp, self._deletion_reason(tp, found[tp.topic], known)) for tp in checked)
        return {tp: why for tp, why in reasons if why}

    def _deletion_reason(self, tp: TopicPartition, info: TopicInfo | None, known: KafkaIdentity | None) -> str | None:
        if info is None:
            return f"topic {tp.topic} was deleted in Kafka"
        if known is not None and known.topics.get(tp.topic, info.id) != info.id:
            return None if self._sink.spec.reads(tp.topic) else f"topic {tp.topic} was deleted and re-created"
        return None

    def new_partitions(
        self, state: LedgerState, topics: Mapping[str, TopicInfo]
    ) -> dict[TopicPartition, PartitionState]:
        """Partitions that are not in the state, from their first offset."""
        every = [TopicPartition(name, n) for name, info in topics.items() for n in range(info.partitions)]
        new = [tp for tp in every if state.partition(tp) is None]
        return (
            {tp: PartitionState.start(offset) for tp, offset in self.admin.beginning_offsets(new).items()}
            if new
            else {}
        )

    def initial_offsets(
        self, found: Mapping[TopicPartition, PartitionState], continues_at: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, PartitionState]:
        """The start offsets of a sink without a ledger: the group's offsets, else those of `startingOffsets`.
        `continues_at`: where a previous owner ends, whose late commit may have set the group back."""
        latest = self._sink.spec.kafka.starting_offsets is StartingOffsets.LATEST
        begin = self.end_offsets(list(found)) if latest else {tp: p.next for tp, p in found.items()}
        group = self.admin.group_offsets(self._sink.group_id, list(found))
        ends = {tp: max(offset, group.get(tp, offset)) for tp, offset in continues_at.items() if tp in found}
        offsets = {**begin, **group, **ends}
        return {tp: PartitionState.start(offset) for tp, offset in offsets.items()}

    def group_metadata(self, topics: Mapping[str, TopicInfo]) -> Mapping[TopicPartition, str]:
        """The metadata of the group's offsets of these topics."""
        every = [TopicPartition(name, n) for name, info in topics.items() for n in range(info.partitions)]
        return self.admin.group_metadata(self._sink.group_id, every)

    def check_no_members(self, state: str = "No ledger was created") -> None:
        """Raises ConfigurationError when the consumer group has active members before the sink's first round: they
        would continue after the offsets at which the sink starts, so records would be copied twice. `state`: what was
        done so far, as a sentence."""
        group = self._sink.group_id
        members = self.admin.group_members(group)
        if members:
            raise ConfigurationError(
                f"consumer group {group} has {members} active members, such as a connector that is still running. "
                f"{state}. Stop them and start the sink again, or choose another spec.kafka.groupId."
            )

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The log ends for the isolation level: the last stable offsets at read_committed."""
        committed = self._sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED
        return self.admin.end_offsets(partitions, committed=committed)

    def record_bytes(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, float]:
        """Average record sizes in bytes, from the log sizes that Kafka reports; empty without them."""
        sizes = self.admin.log_sizes(sorted({tp.topic for tp in partitions})) if partitions else None
        if not sizes:
            return {}
        starts, ends = self.admin.beginning_offsets(partitions), self.end_offsets(partitions)
        return {
            tp: max(1.0, sizes[tp] / (ends[tp] - starts[tp]))
            for tp in partitions
            if sizes.get(tp) and ends[tp] > starts[tp]
        }
