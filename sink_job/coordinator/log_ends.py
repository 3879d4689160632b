"""Truncated logs: the log end is below the last offset that was read, and Kafka assigns the lost offsets again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sink_job.api.enums import OnDataLoss
from sink_job.api.errors import DataLoss
from sink_job.api.topic_partition import TopicPartition

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
