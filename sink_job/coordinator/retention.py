"""Which of the offsets that a rebuild reads again are still in Kafka's logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.types import Cancelled
from sink_job.ledger.state import KafkaIdentity

MAX_RETENTION_CHECKS = 10
"""Polls of a log that appears truncated, or of a topic that appears deleted, before that counts as true."""

Ranges = Mapping[TopicPartition, tuple[int, int]]


class RetentionChecker:
    """Polls Kafka. `wait` pauses between two polls and returns whether the driver has to stop."""

    def __init__(self, source: TopicDiscovery, wait: Callable[[], bool]) -> None:
        self._source = source
        self._wait = wait

    def retained(self, ranges: Ranges) -> dict[TopicPartition, tuple[int, int]]:
        """The part of each range `[start, end)` that the logs still hold; `start` is not below `end` where they hold
        nothing of it. Raises Cancelled when the driver has to stop."""
        ends = self._ends(ranges)
        starts = self._source.admin.beginning_offsets(list(ranges))
        return {tp: (max(start, starts[tp]), min(end, ends[tp])) for tp, (start, end) in ranges.items()}

    def deleted(self, partitions: Iterable[TopicPartition], known: KafkaIdentity | None) -> dict[TopicPartition, str]:
        """The topic-partitions whose topic (with the id in the ledger) no longer exists in Kafka, and the reason.
        Raises Cancelled when the driver has to stop."""
        deleted = self._source.deleted(partitions, known)
        for _ in range(MAX_RETENTION_CHECKS - 1):
            if not deleted:
                break
            if self._wait():
                raise Cancelled("stopped while topics were missing in Kafka")
            deleted = self._source.deleted(deleted, known)
        return deleted

    def _ends(self, ranges: Ranges) -> Mapping[TopicPartition, int]:
        """The log ends. A new leader may lag behind for a moment."""
        for _ in range(MAX_RETENTION_CHECKS):
            ends = self._source.end_offsets(list(ranges))
            if all(ends[tp] >= end for tp, (_, end) in ranges.items()):
                break
            if self._wait():
                raise Cancelled("stopped while Kafka's logs appeared truncated")
        return ends
