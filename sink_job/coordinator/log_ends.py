"""The ends of Kafka's logs: polled once a turn, and checked for truncated logs and hanging transactions.

A log is truncated if its end is below the last offset that was read: Kafka assigns the lost offsets again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from sink_job.api.enums import IsolationLevel, OnDataLoss
from sink_job.api.errors import DataLoss
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.hanging_transactions import HangingTransactionDetector
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.topic_discovery import TopicDiscovery

MAX_TRUNCATION_CHECKS = 10
"""Polls of a log whose end is below the last offset that was read, before the log counts as truncated."""

_log = logging.getLogger(__name__)
Ends = Mapping[TopicPartition, int]


class TruncationDetector:
    """Detects truncated logs. `next_of` returns the next offset to read of a topic-partition."""

    def __init__(self, policy: OnDataLoss, next_of: Callable[[TopicPartition], int]) -> None:
        self._policy = policy
        self._next_of = next_of
        self._reported: set[TopicPartition] = set()

    def truncated(self, ends: Ends) -> Ends:
        """The log ends below the next offset to read, without those already reported."""
        return {tp: end for tp, end in ends.items() if end < self._next_of(tp) and tp not in self._reported}

    def report(self, short: Ends) -> None:
        """Raises DataLoss; with `onDataLoss: Continue` logs each truncation once instead."""
        for tp, end in sorted(short.items()):
            read = self._next_of(tp)
            message = (
                f"{tp}: the log was truncated: it ends at {end}, but was read up to {read - 1} (an unclean leader "
                "election, or a restored broker). The objects contain the lost records; new records at offsets "
                f"{end} to {read - 1} would be skipped"
            )
            if self._policy is OnDataLoss.FAIL:
                raise DataLoss(
                    f"{message}. Choose another sinkId and topicsDir, or set onDataLoss: Continue to resume after them"
                )
            self._reported.add(tp)
            _log.warning("%s", message)


class LogEnds:
    """The log ends of one sink. `next_of` returns the next offset to read of a topic-partition; `wait` pauses between
    two polls of a log that appears truncated and returns whether the driver has to stop."""

    def __init__(
        self,
        sink: Sink,
        context: CoordinatorContext,
        discovery: TopicDiscovery,
        progress: Progress,
        *,
        next_of: Callable[[TopicPartition], int],
        wait: Callable[[], bool],
    ) -> None:
        self._discovery = discovery
        self._progress = progress
        self._wait = wait
        self._truncation = TruncationDetector(sink.spec.on_data_loss, next_of)
        self._hanging: HangingTransactionDetector | None = None
        if sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED:  # no effect on read_uncommitted
            self._hanging = HangingTransactionDetector(
                context.admin, context.clock, every=context.discovery_interval_ms, after=context.hanging_after_ms
            )

    def poll(self, partitions: Sequence[TopicPartition]) -> tuple[Ends, bool]:
        """The log ends of these topic-partitions, and whether a log appears truncated."""
        ends = self._discovery.end_offsets(partitions)
        self._progress.log_ends(ends)
        if self._hanging is not None:
            self._progress.hanging(self._hanging.check(ends))
        return ends, bool(self._truncation.truncated(ends))

    def poll_until_plausible(self, partitions: Callable[[], Sequence[TopicPartition]]) -> Ends:
        """The log ends, polled again until no log appears truncated: a new leader may lag behind for a moment.

        A log that stays truncated has lost records: raises DataLoss; with `onDataLoss: Continue` reading resumes after
        them.
        """
        for _ in range(MAX_TRUNCATION_CHECKS):
            ends = self._discovery.end_offsets(partitions())
            truncated = self._truncation.truncated(ends)
            if not truncated or self._wait():
                return ends
        self._truncation.report(truncated)
        return ends
