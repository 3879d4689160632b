"""The state of a rollout over all sinks: kept up to date with each change of a sink, so a pass costs no scan.

It is derived from the status of the sinks in the object cache. In memory alone are the restarts that are being written
(`reserve`), and which sinks this process has observed (`confirm`): the status that a previous process left behind may
be outdated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from s3sink_operator.decide.rollout import PROGRESS_DEADLINE_MS, MaxUnavailable, SinkRollout
from s3sink_operator.metrics import ROLLOUT_HALTED, ROLLOUT_PENDING, ROLLOUT_UNAVAILABLE, ROLLOUT_UPDATED
from s3sink_operator.object_cache import ObjectCache, SinkKey
from s3sink_operator.types import Json, RolloutGate

_log = logging.getLogger(__name__)

_MAX_NAMED = 3
"""Sinks that the reason of a halt names."""


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
    """`template`: hash of the current defaults. `clock` returns ms since the epoch."""

    template: str
    max_unavailable: MaxUnavailable
    cache: ObjectCache
    clock: Callable[[], int]
    _sinks: dict[SinkKey, SinkRollout] = field(default_factory=dict)
    _running: int = 0
    _pending: dict[SinkKey, None] = field(default_factory=dict)
    _unavailable: set[SinkKey] = field(default_factory=set)
    _inherited: set[SinkKey] = field(default_factory=set)
    _available: set[SinkKey] = field(default_factory=set)
    _reserved: set[SinkKey] = field(default_factory=set)
    _confirmed: set[SinkKey] = field(default_factory=set)
    _unconfirmed: set[SinkKey] = field(default_factory=set)
    _started_ms: int = -1
    _acted_on: tuple[int, str | None] = (0, None)
    _changed: bool = True

    def __post_init__(self) -> None:
        self._started_ms = self.clock()

    def put(self, key: SinkKey, sink: Json | None) -> None:
        """Updates a sink; None: it is gone."""
        before = self._sinks.pop(key, None)
        if before is not None:
            self._running -= before.runs
            for members in (self._unavailable, self._inherited, self._available, self._unconfirmed):
                members.discard(key)
            self._pending.pop(key, None)
        self._changed = True
        if sink is None:
            return
        now = self._sinks[key] = SinkRollout.of(sink)
        self._running += now.runs
        if now.pending:
            self._pending[key] = None
        if now.is_available(self.template):
            self._available.add(key)
        if now.is_unavailable(self.template):
            self._unavailable.add(key)
            self._reserved.discard(key)
        if now.is_inherited(self.template):
            self._inherited.add(key)
        if now.template == self.template and key not in self._confirmed:
            self._unconfirmed.add(key)

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

    def gate(self, key: SinkKey) -> RolloutGate:
        """Whether the rollout may restart this sink now. The answer holds until the next `await`."""
        if key in self._pending:
            self._reserved.discard(key)  # its restart was not written
        state = self.state()
        return RolloutGate(is_open=state.free > 0, halted_by=state.halted_by)

    def state(self) -> RolloutState:
        """The state now. Its cost grows with the unavailable sinks, not with all of them."""
        now = self.clock()
        waiting = {key for key in self._inherited if now < self._deadline(key)}
        blocking = self._unavailable | self._reserved | waiting
        failed = [key for key in blocking if self._has_failed(key, now)]
        limit = self.max_unavailable.of(self._running)
        if not self._available:
            limit = 1  # the first sink alone proves that the new defaults work
        is_known = self.cache.listed and not self._unconfirmed
        is_halted = bool(self._pending) and len(failed) >= limit
        return RolloutState(
            pending=len(self._pending),
            updated=self._running - len(self._pending),
            unavailable=len(blocking),
            free=max(0, limit - len(blocking)) if is_known else 0,
            halted_by=self._describe(sorted(failed)) if is_halted else None,
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
        return [key for key, _ in zip(self._pending, range(state.free), strict=False)]

    def export(self) -> None:
        """Sets the metrics."""
        state = self.state()
        ROLLOUT_HALTED.set(state.halted_by is not None)
        ROLLOUT_PENDING.set(state.pending)
        ROLLOUT_UPDATED.set(state.updated)
        ROLLOUT_UNAVAILABLE.set(state.unavailable)

    def _deadline(self, key: SinkKey) -> int:
        """Until when the rollout waits for a sink that an earlier rollout made unavailable."""
        return max(self._started_ms, self._sinks[key].start_ms) + PROGRESS_DEADLINE_MS

    def _has_failed(self, key: SinkKey, now: int) -> bool:
        sink = self._sinks.get(key)
        if sink is None or sink.pending or key in self._reserved:
            return False
        return not sink.in_progress or now - sink.start_ms >= PROGRESS_DEADLINE_MS

    def _describe(self, failed: list[SinkKey]) -> str:
        """Names the sinks and reasons of a halt. Constant while they are the same."""
        named = [f"{key} ({self._sinks[key].cause})" for key in failed[:_MAX_NAMED]]
        rest = [f"{len(failed) - _MAX_NAMED} more"] if len(failed) > _MAX_NAMED else []
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
