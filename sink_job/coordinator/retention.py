"""What Kafka's logs still hold of offsets that are to be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.types import Cancelled
from sink_job.ledger.state import KafkaIdentity

MAX_RETENTION_CHECKS = 10
"""How often a log is asked for its end that is short of what was read of it, or for a topic that does not exist, before
that is believed."""

Ranges = Mapping[TopicPartition, tuple[int, int]]


class RetentionChecker:
    """Asks Kafka. `wait` pauses between two questions, and returns whether the driver is to stop."""

    def __init__(self, source: TopicDiscovery, wait: Callable[[], bool]) -> None:
        self._source = source
        self._wait = wait

    def retained(self, wanted: Ranges) -> dict[TopicPartition, tuple[int, int]]:
        """Of each range `[start, end)` what the logs hold, from their first to their last offset; where they hold
        nothing of it, `start` is not below `end`. Raises Cancelled when the driver is to stop."""
        ends = self._ends(wanted)
        starts = self._source.admin.beginning_offsets(list(wanted))
        return {tp: (max(start, starts[tp]), min(end, ends[tp])) for tp, (start, end) in wanted.items()}

    def deleted(self, partitions: Iterable[TopicPartition], known: KafkaIdentity | None) -> dict[TopicPartition, str]:
        """Those whose topic, as the ledger knows it, is in Kafka no longer, and why. Raises Cancelled when the driver
        is to stop."""
        gone = self._source.deleted(partitions, known)
        for _ in range(MAX_RETENTION_CHECKS - 1):
            if not gone:
                break
            if self._wait():
                raise Cancelled("stopped while topics were missing in Kafka")
            gone = self._source.deleted(gone, known)
        return gone

    def _ends(self, wanted: Ranges) -> Mapping[TopicPartition, int]:
        """The log ends. A broker that has just become the leader may know less for a moment."""
        for _ in range(MAX_RETENTION_CHECKS):
            ends = self._source.end_offsets(list(wanted))
            if all(ends[tp] >= end for tp, (_, end) in wanted.items()):
                break
            if self._wait():
                raise Cancelled("stopped while Kafka's logs were short of what was read of them")
        return ends
