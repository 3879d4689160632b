"""The committed offsets of a sink's consumer group (P5)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from sink_job.api.errors import TopicNotFound
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.ledger.generations import commit_metadata
from sink_job.ledger.state import LedgerState, committable_offsets
from sink_job.ledger.store import Ledger

COMMIT_INTERVAL_MS = 3_600_000
"""Interval in ms at which all offsets are committed again, also while idle: well below the usual retention of a group's
offsets (`offsets.retention.minutes`: one day before Kafka 2.0, seven days since)."""

_log = logging.getLogger(__name__)


class GroupOffsets:
    """Commits the offsets of a group; remembers what it has committed."""

    def __init__(self, admin: KafkaAdmin, group: str, ledger: Ledger, clock: Callable[[], int]) -> None:
        """`clock` returns the host's clock in ms since the epoch."""
        self._admin = admin
        self._group = group
        self._ledger = ledger
        self._clock = clock
        self._committed: dict[TopicPartition, int] = {}
        self._all_committed_at = clock()

    def commit(self, state: LedgerState) -> None:
        """Commits the offsets that follow from `state` and were not committed yet."""
        offsets = committable_offsets(state)
        self._commit(state, {tp: offset for tp, offset in offsets.items() if self._committed.get(tp) != offset})

    def refresh(self, state: LedgerState, partitions: Iterable[TopicPartition]) -> None:
        """Commits the offsets of these topic-partitions again where the group's differ from the committed ones, and all
        of them every `COMMIT_INTERVAL_MS`, before Kafka expires them.

        Raises LedgerFenced when another driver has claimed the ledger.
        """
        committable = committable_offsets(state)
        offsets = {tp: committable[tp] for tp in partitions}
        now = self._clock()
        is_due = abs(now - self._all_committed_at) >= COMMIT_INTERVAL_MS
        current = {} if is_due else self._current(state, offsets)
        differing = {tp: offset for tp, offset in offsets.items() if current.get(tp) != offset}
        if differing:
            self._ledger.check_head(state)
            self._commit(state, differing)
        if is_due:
            self._all_committed_at = now

    def _current(self, state: LedgerState, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return self._admin.group_offsets(self._group, list(offsets), metadata=self._metadata(state))

    def _metadata(self, state: LedgerState) -> str:
        return commit_metadata(state.generation, self._ledger.url)

    def _commit(self, state: LedgerState, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits these offsets. The caller has appended a record or checked the head before, so a fenced driver rarely
        gets here; the offsets that it commits are correct, but lower than the newer driver's (P4, P5)."""
        if not offsets:
            return
        metadata = self._metadata(state)
        try:
            self._admin.alter_group_offsets(self._group, offsets, metadata=metadata)
        except TopicNotFound:
            self._commit_by_topic(offsets, metadata)
        self._committed |= offsets

    def _commit_by_topic(self, offsets: Mapping[TopicPartition, int], metadata: str) -> None:
        """Commits topic by topic and skips deleted topics, which have no offsets."""
        for topic in sorted({tp.topic for tp in offsets}):
            try:
                of_topic = {tp: offset for tp, offset in offsets.items() if tp.topic == topic}
                self._admin.alter_group_offsets(self._group, of_topic, metadata=metadata)
            except TopicNotFound as missing:
                _log.warning(
                    "offsets of a topic that no longer exists are not committed; its objects stay in S3: %s", missing
                )
