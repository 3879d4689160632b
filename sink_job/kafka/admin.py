"""What the driver asks Kafka, in bulk, through the JVM's own client: one call a question, however many partitions."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from py4j.java_gateway import JavaGateway

from sink_job.api.types import TopicPartition
from sink_job.kafka.properties import KafkaProperties
from sink_job.kafka.types import TopicInfo


class Admin:
    """Every method raises TryAgainLater (no answer in time), ConfigurationError (not allowed, wrong credentials), TopicMissing."""

    def __init__(self, gateway: JavaGateway, properties: KafkaProperties, *, timeout_ms: int = 30_000) -> None:
        raise NotImplementedError

    def ends(self, partitions: Iterable[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        """The offset behind the last record of each; `committed`: behind the last one that a read_committed reader can see now."""
        raise NotImplementedError

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that Kafka still holds of each."""
        raise NotImplementedError

    def offsets_at(self, partitions: Iterable[TopicPartition], time: int) -> dict[TopicPartition, int]:
        """The first offset whose record time (ms) is `time` or later; the end offset where there is none."""
        raise NotImplementedError

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        """The topics of these names (TopicMissing when one does not exist), or those whose whole name matches the Java pattern."""
        raise NotImplementedError

    def cluster_id(self) -> str:
        """Kafka's cluster id."""
        raise NotImplementedError

    def group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """The group's committed offsets, of these partitions or of all; partitions without one are absent."""
        raise NotImplementedError

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the group's offsets. ConfigurationError when the group has members (somebody else consumes with it)."""
        raise NotImplementedError

    def sizes(self, topics: Sequence[str]) -> dict[TopicPartition, int] | None:
        """Bytes on disk of each partition's leader, best effort: None where the cluster does not tell us."""
        raise NotImplementedError

    def close(self) -> None:
        """End the clients' connections. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
