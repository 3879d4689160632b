"""Detects hanging transactions (KIP-664): read_committed consumers get no record after the start of the oldest one.

Such a topic-partition appears idle: its last stable offset, which is the log end for the sink, does not move while the
log grows. A producer that dies without its transaction coordinator's knowledge leaves the transaction open until an
administrator aborts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sink_job.api.report import HangingTransactionReport
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin

HANGING_AFTER_MS = 5 * 60_000
"""Age in ms at which an unchanged last stable offset is reported. Producers end their transactions within one minute,
unless `transaction.timeout.ms` is higher."""

_log = logging.getLogger(__name__)


class _Stall(NamedTuple):
    offset: int
    since: int


class HangingTransactionDetector:
    """Checks the log ends every `every` ms; reports after `after` ms. `clock` returns ms since the epoch."""

    def __init__(
        self, admin: KafkaAdmin, clock: Callable[[], int], *, every: int, after: int = HANGING_AFTER_MS
    ) -> None:
        self._admin = admin
        self._clock = clock
        self._every = min(every, after)
        self._after = after
        self._checked_ms: int | None = None
        self._stalls: dict[TopicPartition, _Stall] = {}
        self._reported: list[HangingTransactionReport] = []

    def check(self, stable: Mapping[TopicPartition, int]) -> list[HangingTransactionReport]:
        """The topic-partitions with a hanging transaction; `stable` are the current last stable offsets."""
        now = self._clock()
        if self._checked_ms is None or abs(now - self._checked_ms) >= self._every:
            self._checked_ms = now
            self._compare(stable, self._admin.end_offsets(list(stable), committed=False), now)
        return self._reported

    def _compare(self, stable: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], now: int) -> None:
        before, reported = self._stalls, {(each.topic, each.partition) for each in self._reported}
        self._stalls = {}
        self._reported = []
        for tp, offset in sorted(stable.items()):
            end = ends.get(tp, offset)
            if end <= offset:
                continue
            was = before.get(tp)
            since = was.since if was is not None and was.offset == offset else now
            self._stalls[tp] = _Stall(offset, since)
            if now - since >= self._after:
                self._reported.append(
                    HangingTransactionReport(
                        topic=tp.topic, partition=tp.partition, offset=offset, end=end, since=since
                    )
                )
                if (tp.topic, tp.partition) not in reported:
                    _log.warning(
                        "%s: a transaction has been open since offset %d for %d s or more: the %d offsets after it are "
                        "not read before it ends. If its producer has ended, abort it with kafka-transactions.sh",
                        tp,
                        offset,
                        (now - since) // 1000,
                        end - offset,
                    )
