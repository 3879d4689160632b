"""The work queue: each key is queued once and processed by one worker at a time, in the order of due times.

As in client-go: a key that is added while a worker processes it is queued again when the worker is done.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

QueueKey = TypeVar("QueueKey")

PRIORITY = -300.0
"""Delay for `add` in seconds: before all keys that have been due for less than 300 s."""


class WorkQueue(Generic[QueueKey]):
    """`clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due: dict[QueueKey, float] = {}
        self._heap: list[tuple[float, int, QueueKey]] = []
        self._numbers = itertools.count()
        self._processing: set[QueueKey] = set()
        self._requeued: dict[QueueKey, float] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """The number of queued keys and of keys in processing."""
        return len(self._due) + len(self._processing)

    def add(self, key: QueueKey, after_s: float = 0.0) -> None:
        """Queues `key` for `after_s` seconds from now, unless it is due earlier. See also `PRIORITY`."""
        due = self._clock() + after_s
        if key in self._processing:
            self._requeued[key] = min(due, self._requeued.get(key, due))
        elif key not in self._due or due < self._due[key]:
            self._due[key] = due
            heapq.heappush(self._heap, (due, next(self._numbers), key))
            self._changed.set()

    def forget(self, key: QueueKey) -> None:
        """Removes a key from the queue."""
        self._due.pop(key, None)
        self._requeued.pop(key, None)

    async def take(self) -> QueueKey:
        """Waits for the next due key. The worker owns it until `done`."""
        while True:
            self._changed.clear()
            wait = self._next_wait()
            if wait is not None and wait <= 0:
                _, _, key = heapq.heappop(self._heap)
                del self._due[key]
                self._processing.add(key)
                return key
            try:
                await asyncio.wait_for(self._changed.wait(), wait)
            except TimeoutError:
                continue

    def done(self, key: QueueKey) -> None:
        """Releases a key that a worker took."""
        self._processing.discard(key)
        due = self._requeued.pop(key, None)
        if due is not None:
            self.add(key, due - self._clock())
            self._changed.set()

    def _next_wait(self) -> float | None:
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) == due:
                return due - self._clock()
            heapq.heappop(self._heap)
        return None
