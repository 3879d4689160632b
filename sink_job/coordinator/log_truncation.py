"""Logs that end before what was read of them: Kafka has lost their tails, and gives the offsets anew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sink_job.api.errors import DataLoss
from sink_job.api.spec import OnDataLoss
from sink_job.api.topic_partition import TopicPartition

_log = logging.getLogger(__name__)
Ends = Mapping[TopicPartition, int]


class TruncationDetector:
    """What is known of logs that are too short. `next_of`: the first offset of a topic-partition that was not read."""

    def __init__(self, policy: OnDataLoss, next_of: Callable[[TopicPartition], int]) -> None:
        self._policy = policy
        self._next_of = next_of
        self._told: set[TopicPartition] = set()

    def truncated(self, ends: Ends) -> Ends:
        """Those of the log ends that are before what was read, and that nobody has been told of."""
        return {tp: end for tp, end in ends.items() if end < self._next_of(tp) and tp not in self._told}

    def report(self, short: Ends) -> None:
        """Raises DataLoss; with `onDataLoss: Continue` tells each of them once instead."""
        for tp, end in sorted(short.items()):
            read = self._next_of(tp)
            said = (
                f"{tp}: the log ends at {end}, though it was read up to {read - 1}: Kafka has lost its tail (an "
                "unclean leader election, or a restored broker). Objects hold the lost records; what is written anew "
                f"at offsets {end} to {read - 1} would be passed over"
            )
            if self._policy is OnDataLoss.FAIL:
                raise DataLoss(
                    f"{said}. Choose another sinkId and topicsDir, or go on behind it by onDataLoss: Continue"
                )
            self._told.add(tp)
            _log.warning("%s", said)
