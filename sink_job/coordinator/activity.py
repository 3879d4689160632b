"""Which topic-partitions are active, and how large the staged remainder of each is: the inputs of the memory sizing.

A single round shows neither: a short one reads a few of the active topic-partitions, and a remainder grows from 0 to a
part and starts again. Both are therefore observed over a window of time.
"""

from __future__ import annotations

from collections.abc import Mapping

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import PartitionState

WINDOW_MS = 60_000
"""Minimum time in ms for which a topic-partition counts as active after a round with records of it."""


class PartitionActivity:
    """Counts the active topic-partitions: those with records in the current or the previous window.

    `window_ms` is the length of a window. A topic-partition is active for one to two windows after its last record.
    """

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        self._window_ms = window_ms
        self._start: int | None = None
        self._current: dict[TopicPartition, int] = {}
        self._previous: dict[TopicPartition, int] = {}

    def add(self, states: Mapping[TopicPartition, PartitionState], now: int) -> None:
        """Adds the topic-partitions of which a round had records, with their state after it. `now`: ms."""
        self._advance(now)
        for tp, state in states.items():
            self._current[tp] = max(self._current.get(tp, 0), staged_bytes(state))

    def observed(self, now: int) -> tuple[int, int]:
        """The number of active topic-partitions, and the mean of their largest staged remainders in bytes."""
        self._advance(now)
        remainders = dict(self._previous)
        for tp, size in self._current.items():
            remainders[tp] = max(remainders.get(tp, 0), size)
        return len(remainders), -(-sum(remainders.values()) // max(1, len(remainders)))

    def _advance(self, now: int) -> None:
        """Starts the window of `now`. A clock that was set back starts a window without ending an activity."""
        if self._start is None or now < self._start:
            self._start = now
        elapsed = (now - self._start) // self._window_ms
        if elapsed:
            self._previous = self._current if elapsed == 1 else {}
            self._current = {}
            self._start += elapsed * self._window_ms


def staged_bytes(state: PartitionState) -> int:
    """The bytes of all staged remainders of a topic-partition."""
    return sum(extent.length for each in state.open for extent in each.staged)
