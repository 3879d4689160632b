"""Kafka's admin client in the JVM: one bulk call per request, independent of the number of partitions.

The JVM's client accepts the same properties as Spark's reader. The loops over partitions are in AdminBridge.java: from
Python, separate calls for 1,000 partitions take one to two seconds; a bulk call takes about 10 ms.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote_plus

from py4j.java_gateway import JavaGateway

from sink_job.api.errors import AccessDenied, ConfigurationError, SinkError, TopicNotFound, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import GroupMember, TopicInfo
from sink_job.kafka.errors import domain_error, parse_chain
from sink_job.kafka.java_classes import new_instance
from sink_job.kafka.properties import KafkaProperties

_MIN_TIMEOUT_MS = 1_000
_RETRY_PAUSES_S = (0.2, 0.8)


def admin_bridge(gateway: JavaGateway) -> Any:
    """The part of the client in Java, in the gateway's JVM: its loops over partitions."""
    return new_instance(gateway, files("sink_job.kafka") / "AdminBridge.java", "s3sink.AdminBridge")


class JavaKafkaAdmin:
    """The admin client of one cluster. Thread-safe.

    Each method raises TransientError (no answer in time; names the brokers), InvalidCredentials, AccessDenied (names
    the request), ConfigurationError, and the errors of its own description. Messages contain no secret.
    """

    def __init__(self, gateway: JavaGateway, properties: KafkaProperties, *, timeout_ms: int = 30_000) -> None:
        """Does not connect. `timeout_ms`: the maximum time of a request, including all retries of the client."""
        self._properties = properties
        timeout_ms = max(timeout_ms, _MIN_TIMEOUT_MS)
        settings = gateway.jvm.java.util.HashMap()
        for name, value in _client_settings(properties, timeout_ms).items():
            settings.put(name, value)
        self._bridge = admin_bridge(gateway)
        self._answer(self._bridge.open(settings, timeout_ms), "create a client")

    def end_offsets(self, partitions: Iterable[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        """The end offset (exclusive) of each partition: with `committed` the last stable offset, else the high
        watermark."""
        return self._offsets(partitions, "latest", committed=committed, doing="read the end offsets")

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition that Kafka still holds."""
        return self._offsets(partitions, "earliest", committed=False, doing="read the start offsets")

    def offsets_for_times(self, partitions: Iterable[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        """The first offset of each partition with a timestamp of `ms` (since the epoch) or later; if there is none, the
        high watermark."""
        requested = list(partitions)
        found = self._offsets(requested, str(ms), committed=False, doing="read the offsets of a time")
        without = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.end_offsets(without, committed=False)}

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        """The topics with these `names`, or those whose whole name matches the Java `pattern`. Pass one of both.

        Raises TopicNotFound for a name that does not exist. A pattern may match no topic.
        """
        if pattern is not None:
            found = _parse_topics(self._answer(self._bridge.topicsMatching(pattern), f"list the topics like {pattern}"))
            return {name: topic for name, topic in found.items() if topic}
        requested = sorted(set(names or ()))
        if not requested:
            return {}
        found = self._describe(requested)
        for pause in _RETRY_PAUSES_S:  # a broker may not know a topic that was created a moment ago
            if all(found.values()):
                break
            time.sleep(pause)
            found = self._describe(requested)
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
        """The committed offsets of the group, of these partitions or of all. Partitions without one are absent.

        With `metadata`: only offsets whose metadata is equal to it, or starts with it and a comma.
        """
        requested = None if partitions is None else format_positions(dict.fromkeys(partitions))
        if requested == "":
            return {}
        answer = self._bridge.groupOffsets(group, requested or "", metadata)
        return parse_offsets(self._answer(answer, f"read the offsets of group {group}"))

    def group_members(self, group: str) -> int:
        """The number of active members of the consumer group; 0 for a group that does not exist."""
        return int(self._answer(self._bridge.groupMembers(group), f"describe group {group}"))

    def active_groups(self, topics: Iterable[str]) -> list[GroupMember]:
        """The members of consumer groups that are assigned partitions of these topics, once for each topic. Groups that
        this login may not describe are absent."""
        requested = "\n".join(topics)
        if not requested:
            return []
        answer = self._answer(self._bridge.activeGroups(requested), "list the consumer groups")
        words = (line.split(" ") for line in answer.splitlines())
        return [GroupMember(unquote_plus(group), unquote_plus(client), topic) for group, client, topic in words]

    def group_metadata(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """The metadata of the group's committed offsets of these partitions."""
        requested = format_positions(dict.fromkeys(partitions))
        if not requested:
            return {}
        found = {}
        answer = self._bridge.groupMetadata(group, requested)
        for line in self._answer(answer, f"read the offsets of group {group}").splitlines():
            topic, partition, metadata = line.split(" ")
            found[TopicPartition(topic, int(partition))] = unquote_plus(metadata)
        return found

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        """Commits the group's offsets, each the next one to read, with `metadata`.

        Raises ConfigurationError if the group has active members.
        """
        if offsets:
            self._answer(
                self._bridge.commit(group, format_positions(offsets), metadata), f"commit the offsets of group {group}"
            )

    def log_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, int] | None:
        """The size in bytes of each partition's log on disk (compressed); None if the cluster does not report it."""
        try:
            return parse_offsets(self._answer(self._bridge.sizes("\n".join(topics)), "describe log directories"))
        except (AccessDenied, ConfigurationError, TransientError):
            return None

    def close(self) -> None:
        """Closes the connections. Idempotent."""
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
        requested = dict.fromkeys(partitions)
        if not requested:
            return {}
        try:
            return parse_offsets(
                self._answer(self._bridge.offsets(format_positions(requested), spec, committed), doing)
            )
        except (TopicNotFound, TransientError):
            # The client waits for a partition that does not exist, as during the election of a leader. Its message for
            # a deleted topic does not name the topic.
            with suppress(TransientError):
                self._check_exist(requested)
            raise

    def _check_exist(self, partitions: Iterable[TopicPartition]) -> None:
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


def format_positions(partitions: Mapping[TopicPartition, int | None]) -> str:
    """The text format of AdminBridge.java: one line per topic, with partitions or pairs of partition and offset."""
    lines: dict[str, list[str]] = defaultdict(list)
    for (topic, partition), offset in partitions.items():
        lines[topic].append(str(partition) if offset is None else f"{partition} {offset}")
    return "\n".join(f"{topic} {' '.join(words)}" for topic, words in lines.items())


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The pairs of partition and number in each line of an answer."""
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
