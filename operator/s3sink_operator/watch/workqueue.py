"""The work queue: each key is queued once and processed by one worker at a time, in the order of due times.

Keys belong to groups, the namespaces of the sinks, and workers take due keys of each group in turn: 10,000 sinks of one
namespace delay a sink of another one by one pass (docs/adr/0040).

As in client-go: a key that is added while a worker processes it is queued again when the worker is done.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

QueueKey = TypeVar("QueueKey")

PRIORITY = -300.0
"""Delay for `add` in seconds: before all keys of the group that have been due for less than 300 s."""


def _one_group(_: object) -> Hashable:
    return None


class WorkQueue(Generic[QueueKey]):
    """`clock` returns monotonic seconds. `group_of`: the group of a key; by default all are of one group."""

    def __init__(self, clock: Callable[[], float], group_of: Callable[[QueueKey], Hashable] = _one_group) -> None:
        self._clock = clock
        self._group_of = group_of
        self._due: dict[QueueKey, float] = {}
        self._heap: list[tuple[float, int, QueueKey]] = []
        self._ready: dict[Hashable, list[tuple[float, int, QueueKey]]] = {}
        """The due keys of each group, a heap; the group whose turn is next comes first."""
        self._numbers = itertools.count()
        self._processing: set[QueueKey] = set()
        self._requeued: dict[QueueKey, float] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

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
            self._wake()

    def forget(self, key: QueueKey) -> None:
        """Removes a key from the queue."""
        self._due.pop(key, None)
        self._requeued.pop(key, None)

    async def take(self) -> QueueKey:
        """Waits for the next due key. The worker owns it until `done`. A cancelled call has taken no key."""
        while (wait := self._next_wait()) is None or wait > 0:
            await self._wait()
        group, ready = next(iter(self._ready.items()))
        _, _, key = heapq.heappop(ready)
        del self._ready[group]
        if ready:
            self._ready[group] = ready  # after the others
        del self._due[key]
        self._processing.add(key)
        self._wake()
        return key

    def done(self, key: QueueKey) -> None:
        """Releases a key that a worker took."""
        self._processing.discard(key)
        due = self._requeued.pop(key, None)
        if due is not None:
            self.add(key, due - self._clock())

    async def _wait(self) -> None:
        """Returns when a key may be due. Each due key wakes one worker."""
        woken = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        self._wake()
        try:
            await woken
        except asyncio.CancelledError:
            if woken in self._waiting:
                self._waiting.remove(woken)
            self._wake()  # another worker instead of this one
            raise

    def _wake(self) -> None:
        """Wakes one waiting worker if a key is due, or else when the next one is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting or (wait := self._next_wait()) is None:
            return
        if wait > 0:
            self._timer = asyncio.get_running_loop().call_later(wait, self._wake)
        elif not (woken := self._waiting.popleft()).done():
            woken.set_result(None)

    def _next_wait(self) -> float | None:
        """Seconds until a key is due, at most 0 if the first group has one; None without keys."""
        now = self._clock()
        while self._heap and (self._heap[0][0] <= now or self._is_outdated(self._heap[0])):
            entry = heapq.heappop(self._heap)
            if not self._is_outdated(entry):
                heapq.heappush(self._ready.setdefault(self._group_of(entry[2]), []), entry)
        while self._ready:
            group, ready = next(iter(self._ready.items()))
            while ready and self._is_outdated(ready[0]):
                heapq.heappop(ready)
            if ready:
                return ready[0][0] - now
            del self._ready[group]
        return self._heap[0][0] - now if self._heap else None

    def _is_outdated(self, entry: tuple[float, int, QueueKey]) -> bool:
        """Whether its key was taken or forgotten, or is due at another time now."""
        due, _, key = entry
        return self._due.get(key) != due
