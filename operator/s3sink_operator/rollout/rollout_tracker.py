"""The state of a rollout over all sinks: kept up to date with each change of a sink, so a pass costs no scan.

It is derived from the status of the sinks in the object cache. In memory alone are the restarts that are being written
(`reserve`), and which sinks this process has observed (`confirm`): the status that a previous process left behind may
be outdated.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from s3sink_operator.metrics import ROLLOUT_HALTED, ROLLOUT_PENDING, ROLLOUT_UNAVAILABLE, ROLLOUT_UPDATED
from s3sink_operator.rollout.sink_rollout import PROGRESS_DEADLINE_MS, MaxUnavailable, SinkRollout
from s3sink_operator.types import Json, RolloutGate
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey

_log = logging.getLogger(__name__)

_MAX_NAMED = 3
"""Sinks that the reason of a halt names."""
_EXPIRY_MS = 1000


@dataclass(frozen=True, kw_only=True)
class RolloutState:
    """`pending`: sinks with previous defaults. `updated`: other sinks that should run. `unavailable`: because of the
    rollout. `free`: restarts that may start now. `halted_by`: sinks and reasons; None while it is not halted."""

    pending: int
    updated: int
    unavailable: int
    free: int
    halted_by: str | None


@dataclass
class RolloutTracker:
    """`template`: hash of the current defaults. `clock` returns ms since the epoch.

    The sets hold keys of sinks. `_failed` is a part of `_unavailable`, and so is `_overdue`; both are disjoint.
    """

    template: str
    max_unavailable: MaxUnavailable
    cache: ObjectCache
    clock: Callable[[], int]
    _sinks: dict[SinkKey, SinkRollout] = field(default_factory=dict)
    _running: int = 0
    _pending: dict[SinkKey, None] = field(default_factory=dict)
    _available: set[SinkKey] = field(default_factory=set)
    _unavailable: set[SinkKey] = field(default_factory=set)
    _failed: set[SinkKey] = field(default_factory=set)
    _overdue: set[SinkKey] = field(default_factory=set)
    _inherited: set[SinkKey] = field(default_factory=set)
    _unconfirmed: set[SinkKey] = field(default_factory=set)
    _confirmed: set[SinkKey] = field(default_factory=set)
    _reserved: set[SinkKey] = field(default_factory=set)
    _started_ms: int = 0
    _expired_ms: int = 0
    _acted_on: tuple[int, str | None] = (0, None)
    _changed: bool = True
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._started_ms = self.clock()

    def put(self, key: SinkKey, sink: Json | None) -> None:
        """Updates a sink; None: it is gone."""
        self._changed = True
        before = self._sinks.pop(key, None)
        if before is not None:
            self._running -= before.runs
            self._pending.pop(key, None)
            for members in self._classes():
                members.discard(key)
        if sink is None:
            return
        found = self._sinks[key] = SinkRollout.of(sink)
        self._running += found.runs
        if found.pending:
            self._pending[key] = None
        if found.template == self.template and key not in self._confirmed:
            self._unconfirmed.add(key)
        if found.is_available(self.template):
            self._available.add(key)
        elif found.is_unavailable(self.template):
            self._reserved.discard(key)
            self._unavailable.add(key)
            if not found.in_progress:
                self._failed.add(key)
            elif self._is_overdue(key, self.clock()):
                self._overdue.add(key)
        elif found.is_inherited(self.template) and self.clock() < self._deadline(key):
            self._inherited.add(key)

    def confirm(self, key: SinkKey) -> None:
        """Records that this process has observed the sink."""
        if key not in self._confirmed:
            self._confirmed.add(key)
            self._unconfirmed.discard(key)
            self._changed = True

    def forget(self, key: SinkKey) -> None:
        """Removes the state of a deleted sink."""
        self._confirmed.discard(key)
        self._reserved.discard(key)
        self.put(key, None)

    def reserve(self, key: SinkKey) -> None:
        """Counts a restart before its status is written."""
        self._reserved.add(key)
        self._changed = True

    def release(self, key: SinkKey) -> None:
        """Ends a reservation whose restart was not written."""
        if key in self._reserved:
            self._reserved.discard(key)
            self._changed = True

    def stop(self) -> None:
        """Starts no more restarts: the API server does not keep their record."""
        self._stopped = True

    def gate(self, key: SinkKey) -> RolloutGate:
        """Whether the rollout may restart this sink now. The answer holds until the next `await`.

        The sink itself does not count: a process may have ended after the status of its restart was written.
        """
        state = self.state(without=key)
        return RolloutGate(is_open=state.free > 0, halted_by=state.halted_by)

    def state(self, *, without: SinkKey | None = None) -> RolloutState:
        """The state now. `without`: a sink that does not count as unavailable.

        The cost does not grow with the number of sinks, except for the names in `halted_by`.
        """
        self._expire(self.clock())
        counted = (self._unavailable, self._inherited, self._reserved)
        unavailable = sum(len(each) - (without in each) for each in counted)
        failed = len(self._failed) + len(self._overdue)
        # The first sink alone proves that the new defaults work.
        limit = self.max_unavailable.of(self._running) if self._available else 1
        is_known = self.cache.listed and not self._unconfirmed and not self._stopped
        is_halted = bool(self._pending) and failed >= limit
        return RolloutState(
            pending=len(self._pending),
            updated=self._running - len(self._pending),
            unavailable=unavailable,
            free=max(0, limit - unavailable) if is_known else 0,
            halted_by=self._describe_failed(failed) if is_halted else None,
        )

    def due(self) -> list[SinkKey]:
        """The pending sinks that need a pass, because restarts may start or because the rollout is halted or continues.
        Empty until something changes again."""
        if not self._changed:
            return []
        self._changed = False
        state, before = self.state(), self._acted_on
        if (state.free, state.halted_by) == before:
            return []
        self._acted_on = state.free, state.halted_by
        if state.halted_by != before[1]:
            self._log_change(state)
            return list(self._pending)
        return list(itertools.islice(self._pending, state.free))

    def export(self) -> None:
        """Sets the metrics."""
        state = self.state()
        ROLLOUT_HALTED.set(state.halted_by is not None)
        ROLLOUT_PENDING.set(state.pending)
        ROLLOUT_UPDATED.set(state.updated)
        ROLLOUT_UNAVAILABLE.set(state.unavailable)

    def _classes(self) -> tuple[set[SinkKey], ...]:
        return (
            self._available, self._unavailable, self._failed, self._overdue, self._inherited, self._unconfirmed,
        )  # fmt: skip

    def _expire(self, now: int) -> None:
        """Updates what depends on the time, once a second."""
        if now - self._expired_ms < _EXPIRY_MS:
            return
        self._expired_ms = now
        starting = self._unavailable - self._failed - self._overdue
        self._overdue |= {key for key in starting if self._is_overdue(key, now)}
        self._inherited = {key for key in self._inherited if now < self._deadline(key)}

    def _is_overdue(self, key: SinkKey, now: int) -> bool:
        return now - self._sinks[key].start_ms >= PROGRESS_DEADLINE_MS

    def _deadline(self, key: SinkKey) -> int:
        """Until when the rollout waits for a sink that an earlier rollout made unavailable."""
        return max(self._started_ms, self._sinks[key].start_ms) + PROGRESS_DEADLINE_MS

    def _describe_failed(self, count: int) -> str:
        """Names the sinks and reasons of a halt. Constant while they are the same."""
        first = heapq.nsmallest(_MAX_NAMED, itertools.chain(self._failed, self._overdue))
        named = [f"{key} ({self._sinks[key].cause})" for key in first]
        rest = [f"{count - len(first)} more"] if count > len(first) else []
        return f"not Ready after their restart: {', '.join(named + rest)}"

    def _log_change(self, state: RolloutState) -> None:
        if state.halted_by is not None:
            _log.warning(
                "the rollout of new operator defaults is halted with %d sinks pending: %s",
                state.pending,
                state.halted_by,
            )
        else:
            _log.info("the rollout of new operator defaults is no longer halted, %d sinks are pending", state.pending)
