"""The interface to Kafka's admin client, implemented in `sink_job.kafka` with the JVM's client, and by tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from sink_job.api.errors import TopicNotFound
from sink_job.api.topic_partition import TopicPartition


class TopicInfo(NamedTuple):
    """A topic of the cluster. `id` is Kafka's topic id: the same name with another id is another topic."""

    id: str
    partitions: int


class GroupMember(NamedTuple):
    """An active member of a consumer group that is assigned partitions of a topic."""

    group: str
    client_id: str
    topic: str


class KafkaAdmin(Protocol):
    """The admin requests of drivers and commands. `sink_job.kafka.admin` documents each method."""

    def end_offsets(
        self, partitions: Sequence[TopicPartition], *, committed: bool = True
    ) -> Mapping[TopicPartition, int]: ...
    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]: ...
    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> Mapping[TopicPartition, int]: ...
    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> Mapping[str, TopicInfo]: ...
    def cluster_id(self) -> str: ...
    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
    ) -> Mapping[TopicPartition, int]: ...
    def group_members(self, group: str) -> int: ...
    def active_groups(self, topics: Sequence[str]) -> Sequence[GroupMember]: ...
    def group_metadata(self, group: str, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]: ...
    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None: ...
    def log_sizes(self, topics: Sequence[str]) -> Mapping[TopicPartition, int] | None: ...


def describe_topics(
    topics: Callable[[Sequence[str]], Mapping[str, TopicInfo]], names: Collection[str]
) -> dict[str, TopicInfo | None]:
    """The answer of `KafkaAdmin.topics` for each name; None for a topic that does not exist."""
    found = _existing(topics, sorted(names))
    if found is None:
        return {name: (_existing(topics, [name]) or {}).get(name) for name in names}
    return {name: found.get(name) for name in names}


def _existing(
    topics: Callable[[Sequence[str]], Mapping[str, TopicInfo]], names: Sequence[str]
) -> Mapping[str, TopicInfo] | None:
    try:
        return topics(names) if names else {}
    except TopicNotFound:
        return None
