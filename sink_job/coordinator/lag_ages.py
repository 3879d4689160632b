"""Ages of the first records that are not in visible objects, from samples of their timestamps in Kafka.

A sample belongs to an offset. While the committed offset is that of the sample, the age is exact. After it has moved,
or if there was no lag at the sample, the sample is an upper bound of the age until the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sink_job.api.topic_partition import TopicPartition

MAX_BOUND_AGE_MS: Final = 60_000
"""Time in ms after which the sample of another offset is no longer used as a bound."""


class Lagging(NamedTuple):
    """A topic-partition: its committed offset, and the end of its log."""

    committed: int
    end: int


class _Sample(NamedTuple):
    """`time_ms`: the record's timestamp, or the time of the sample if there was no lag."""

    offset: int
    time_ms: int
    sampled_ms: int
    is_record: bool


class LagAges:
    """The samples of all topic-partitions. Times are in ms since the epoch."""

    def __init__(self) -> None:
        self._samples: dict[TopicPartition, _Sample] = {}

    def due(self, partitions: Mapping[TopicPartition, Lagging], limit: int) -> dict[TopicPartition, int]:
        """The offsets whose timestamp is unknown, at most `limit`: those sampled longest ago first."""
        found = [tp for tp, at in partitions.items() if at.end > at.committed and not self._is_exact(tp, at.committed)]
        found.sort(key=lambda tp: (self._samples[tp].sampled_ms if tp in self._samples else 0, tp))
        return {tp: partitions[tp].committed for tp in found[:limit]}

    def sampled(
        self,
        partitions: Mapping[TopicPartition, Lagging],
        requested: Mapping[TopicPartition, int],
        times: Mapping[TopicPartition, int],
        *,
        now: int,
    ) -> None:
        """Records a sample that was started at `now`: the `partitions` at that time, the `requested` offsets, and the
        timestamps that were found."""
        for tp, at in partitions.items():
            if at.end <= at.committed:
                self._samples[tp] = _Sample(at.committed, now, now, is_record=False)
        for tp, offset in requested.items():
            if tp in times:
                self._samples[tp] = _Sample(offset, times[tp], now, is_record=True)
        for tp in self._samples.keys() - partitions.keys():
            del self._samples[tp]

    def age_ms(self, tp: TopicPartition, *, committed: int, lag: int, now: int) -> int | None:
        """The age of the first record from `committed` on: 0 without a lag, None if it is unknown."""
        if not lag:
            return 0
        sample = self._samples.get(tp)
        if sample is None:
            return None
        if not self._is_exact(tp, committed) and abs(now - sample.sampled_ms) > MAX_BOUND_AGE_MS:
            return None
        return max(0, now - sample.time_ms)

    def _is_exact(self, tp: TopicPartition, committed: int) -> bool:
        sample = self._samples.get(tp)
        return sample is not None and sample.is_record and sample.offset == committed
