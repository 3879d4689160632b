"""Notices transactions that stay open: read_committed readers get nothing behind the first offset of the oldest one.

Such a topic-partition looks idle: its last stable offset, where the sink's log end is, stands still while records come
in behind it. A producer that died without its coordinator noticing leaves it so for good, until somebody aborts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sink_job.api.report import HangingTransactionReport
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin

HANGING_AFTER_MS = 5 * 60_000
"""How long a last stable offset stands before that is told; producers end their transactions within a minute, unless
they ask for more."""

_log = logging.getLogger(__name__)


class _Stall(NamedTuple):
    offset: int
    since: int


class HangingTransactionDetector:
    """Looks now and then. `clock` gives ms since the epoch; `every` and `after` are ms."""

    def __init__(
        self, admin: KafkaAdmin, clock: Callable[[], int], *, every: int, after: int = HANGING_AFTER_MS
    ) -> None:
        self._admin = admin
        self._clock = clock
        self._every = min(every, after)
        self._after = after
        self._looked_at: int | None = None
        self._standing: dict[TopicPartition, _Stall] = {}
        self._told: list[HangingTransactionReport] = []

    def check(self, stable: Mapping[TopicPartition, int]) -> list[HangingTransactionReport]:
        """The topic-partitions that stand; `stable` are their last stable offsets, as just asked."""
        now = self._clock()
        if self._looked_at is None or abs(now - self._looked_at) >= self._every:
            self._looked_at = now
            self._compare(stable, self._admin.end_offsets(list(stable), committed=False), now)
        return self._told

    def _compare(self, stable: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], now: int) -> None:
        before, told = self._standing, {(each.topic, each.partition) for each in self._told}
        self._standing = {}
        self._told = []
        for tp, offset in sorted(stable.items()):
            end = ends.get(tp, offset)
            if end <= offset:
                continue
            was = before.get(tp)
            since = was.since if was is not None and was.offset == offset else now
            self._standing[tp] = _Stall(offset, since)
            if now - since >= self._after:
                self._told.append(
                    HangingTransactionReport(
                        topic=tp.topic, partition=tp.partition, offset=offset, end=end, since=since
                    )
                )
                if (tp.topic, tp.partition) not in told:
                    _log.warning(
                        "%s: a transaction has been open since offset %d for %d s or more: the %d offsets from there "
                        "on are not read before it ends. If its producer is gone, abort it by kafka-transactions.sh",
                        tp,
                        offset,
                        (now - since) // 1000,
                        end - offset,
                    )
