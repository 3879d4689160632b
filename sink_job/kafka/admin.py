"""What the driver asks Kafka, in bulk, through the JVM's own client: one call a question, however many partitions.

The JVM's client, because it takes the very properties that Spark's reader takes. The loops are in AdminBridge.java:
entry by entry from Python, 1,000 partitions cost one to two seconds; so they cost some 10 ms.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from types import TracebackType
from typing import Self
from urllib.parse import unquote_plus

from py4j.java_gateway import JavaGateway

from sink_job.api.errors import AccessDenied, ConfigurationError, SinkError, TopicNotFound, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import TopicInfo
from sink_job.kafka.errors import domain_error, parse_chain
from sink_job.kafka.jvm import new_instance
from sink_job.kafka.properties import KafkaProperties

_MIN_TIMEOUT_MS = 1_000
_RETRY_PAUSES_S = (0.2, 0.8)


class JavaKafkaAdmin:
    """One cluster's answers. Its methods may be called from any thread.

    Each raises TransientError (no answer in time; names the brokers), InvalidCredentials, AccessDenied (names what was
    asked), ConfigurationError, and what it says of its own. No message holds a secret.
    """

    def __init__(self, gateway: JavaGateway, properties: KafkaProperties, *, timeout_ms: int = 30_000) -> None:
        """Does not connect yet. `timeout_ms`: how long one question may take, all retries of the client included."""
        self._properties = properties
        timeout_ms = max(timeout_ms, _MIN_TIMEOUT_MS)
        settings = gateway.jvm.java.util.HashMap()
        for name, value in _client_settings(properties, timeout_ms).items():
            settings.put(name, value)
        self._bridge = new_instance(gateway, files("sink_job.kafka") / "AdminBridge.java", "s3sink.AdminBridge")
        self._answer(self._bridge.open(settings, timeout_ms), "make a client")

    def end_offsets(self, partitions: Iterable[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        """The offset behind the last record of each; `committed`: behind the last that a read_committed reader gets."""
        return self._offsets(partitions, "latest", committed=committed, doing="read the end offsets")

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that Kafka still holds of each."""
        return self._offsets(partitions, "earliest", committed=False, doing="read the start offsets")

    def offsets_for_times(self, partitions: Iterable[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        """The first offset whose record time is `ms` (since the epoch) or later; where there is none, the end."""
        asked = list(partitions)
        found = self._offsets(asked, str(ms), committed=False, doing="read the offsets of a time")
        after_all = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.end_offsets(after_all, committed=False)}

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        """The topics of these names, or those whose whole name matches the Java pattern; one of both is given.

        Raises TopicNotFound for a name that does not exist; a pattern may match nothing.
        """
        if pattern is not None:
            found = _parse_topics(self._answer(self._bridge.topicsMatching(pattern), f"list the topics like {pattern}"))
            return {name: topic for name, topic in found.items() if topic}
        wanted = sorted(set(names or ()))
        if not wanted:
            return {}
        found = self._describe(wanted)
        for pause in _RETRY_PAUSES_S:  # a broker may not have heard yet of a topic that was made a moment ago
            if all(found.values()):
                break
            time.sleep(pause)
            found = self._describe(wanted)
        if missing := [name for name, topic in found.items() if topic is None]:
            exist = "does not exist" if len(missing) == 1 else "do not exist"
            raise TopicNotFound(f"Kafka at {self._properties.bootstrap_servers}: {_some(missing)} {exist}")
        return {name: topic for name, topic in found.items() if topic}

    def cluster_id(self) -> str:
        """Kafka's cluster id."""
        return self._answer(self._bridge.clusterId(), "describe the cluster")

    def group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, metadata: str = ""
    ) -> dict[TopicPartition, int]:
        """The group's committed offsets, of these partitions or of all; partitions without one are absent. With a
        `mark` only those whose metadata is it, or begins with it and a comma."""
        asked = None if partitions is None else _format(dict.fromkeys(partitions))
        if asked == "":
            return {}
        answer = self._bridge.groupOffsets(group, asked or "", metadata)
        return _parse(self._answer(answer, f"read the offsets of group {group}"))

    def group_members(self, group: str) -> int:
        """How many active members the consumer group has; 0 for a group that does not exist."""
        return int(self._answer(self._bridge.groupMembers(group), f"describe group {group}"))

    def group_metadata(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """The metadata that the group's offsets of these partitions were committed with."""
        asked = _format(dict.fromkeys(partitions))
        if not asked:
            return {}
        found = {}
        for line in self._answer(
            self._bridge.groupMarks(group, asked), f"read the offsets of group {group}"
        ).splitlines():
            topic, partition, mark = line.split(" ")
            found[TopicPartition(topic, int(partition))] = unquote_plus(mark)
        return found

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        """Set the group's offsets, each the next one to read, with `mark` as their metadata. ConfigurationError while
        somebody consumes with it."""
        if offsets:
            self._answer(self._bridge.commit(group, _format(offsets), metadata), f"commit the offsets of group {group}")

    def log_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, int] | None:
        """Bytes on disk (as compressed as they are) of each partition; None where the cluster does not tell us."""
        try:
            return _parse(self._answer(self._bridge.sizes("\n".join(topics)), "describe log directories"))
        except (AccessDenied, ConfigurationError, TransientError):
            return None

    def close(self) -> None:
        """End the connections. Idempotent."""
        self._bridge.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: str, *, committed: bool, doing: str
    ) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions)
        if not asked:
            return {}
        try:
            return _parse(self._answer(self._bridge.offsets(_format(asked), spec, committed), doing))
        except (TopicNotFound, TransientError):
            # The client waits for a partition that does not exist as for one that is on its way to another leader, and
            # what it says of a topic that is gone does not say so.
            with suppress(TransientError):
                self._refuse_unknown(asked)
            raise

    def _refuse_unknown(self, partitions: Iterable[TopicPartition]) -> None:
        known = self.topics([partition.topic for partition in partitions])
        for partition in partitions:
            if partition.partition >= known[partition.topic].partitions:
                raise TopicNotFound(f"Kafka: topic {partition.topic} has no partition {partition.partition}")

    def _describe(self, names: Sequence[str]) -> dict[str, TopicInfo | None]:
        return _parse_topics(self._answer(self._bridge.topics("\n".join(names)), f"describe {_some(names)}"))

    def _answer(self, text: str, doing: str) -> str:
        if text.startswith("+"):
            return text[1:]
        chain = parse_chain(self._properties.redact(text[1:]))
        error: SinkError = domain_error(chain, doing=doing, servers=self._properties.bootstrap_servers)
        raise error


def _client_settings(properties: KafkaProperties, timeout_ms: int) -> dict[str, str]:
    return {
        "enable.metrics.push": "false",
        **properties.client(),
        "default.api.timeout.ms": str(timeout_ms),
        "request.timeout.ms": str(min(timeout_ms, 10_000)),
    }


def _format(partitions: Mapping[TopicPartition, int | None]) -> str:
    """The text of AdminBridge.java: a line for each topic, its partitions or its pairs of partition and offset."""
    lines: dict[str, list[str]] = defaultdict(list)
    for (topic, partition), offset in partitions.items():
        lines[topic].append(str(partition) if offset is None else f"{partition} {offset}")
    return "\n".join(f"{topic} {' '.join(words)}" for topic, words in lines.items())


def _parse(text: str) -> dict[TopicPartition, int]:
    found = {}
    for line in text.splitlines():
        topic, *numbers = line.split(" ")
        for partition, number in zip(numbers[::2], numbers[1::2], strict=True):
            found[TopicPartition(topic, int(partition))] = int(number)
    return found


def _parse_topics(text: str) -> dict[str, TopicInfo | None]:
    found: dict[str, TopicInfo | None] = {}
    for line in sorted(text.splitlines()):
        name, *known = line.split(" ")
        found[name] = TopicInfo(known[0], int(known[1])) if known else None
    return found


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"topic {shown}" if len(names) == 1 else f"topics {shown}{' …' if len(names) > 3 else ''}"
