"""The reconcile pass of one sink: observe, decide, apply.

A pass decides on the object cache first, which costs nothing. If that decision has writes, it reads the objects that
these writes depend on from the API server and decides again: an outdated cache never deletes a driver. What the writes
themselves or the driver prove is not read, see `required_roles`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from s3sink_operator.apply.applier import DecisionApplier
from s3sink_operator.decide.chain import decide
from s3sink_operator.kube.kube_api import ApiError
from s3sink_operator.metrics import RECONCILE_DURATION, RECONCILES
from s3sink_operator.observe.observer import ALL_ROLES, Observer, ReportFingerprint, report_fingerprint
from s3sink_operator.observe.required_roles import Role, required_roles
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.status import status_update
from s3sink_operator.types import Decision, Observed, Rejection, Settings
from s3sink_operator.watch.object_cache import SinkKey

_log = logging.getLogger(__name__)

MIN_RETRY_S, MAX_RETRY_S = 1.0, 120.0
_STALE_RETRY_S = 0.2
_UNWATCHED_REFRESH_S = 5.0
_STEADY_S = 15.0
_ERROR_RETRY_S = 60.0
_STATUS_REJECTED = (400, 413, 422, 500)


@dataclass(frozen=True)
class _Steady:
    """State after a pass that found a running driver and had no writes. While the cache version and the report's
    fingerprint are unchanged, a poll of the report replaces a pass. `until`: seconds of the monotonic clock."""

    version: int
    fingerprint: ReportFingerprint
    until: float


@dataclass(frozen=True)
class _PendingDecision:
    """A decision before its writes, and what it was made from. `read`: the objects that were read from the API server,
    the others are as cached. `version`: that of the cache before the observation."""

    decision: Decision
    observed: Observed
    read: frozenset[Role]
    version: int

    def missing_reads(self) -> frozenset[Role]:
        """The objects that the writes depend on and that were not read."""
        return required_roles(self.decision, self.observed) - self.read if self.decision.has_writes else frozenset()


@dataclass
class Reconciler:
    """`clock` returns ms since the epoch. `resync_s`: maximum time between two passes that read the API server."""

    observer: Observer
    applier: DecisionApplier
    settings: Settings
    clock: Callable[[], int]
    rollout: RolloutTracker
    resync_s: float = 300.0
    _failures: dict[SinkKey, int] = field(default_factory=dict)
    _refreshed: dict[SinkKey, float] = field(default_factory=dict)
    _steady: dict[SinkKey, _Steady] = field(default_factory=dict)
    _outdated: set[SinkKey] = field(default_factory=set)

    async def reconcile(self, key: SinkKey) -> float | None:
        """Runs one pass. Returns the seconds until the next one, None if the sink is gone."""
        started = time.monotonic()
        try:
            requeue_s = await self._reconcile(key)
        except (ApiError, OSError, TimeoutError) as error:
            requeue_s = self._retry(key, error)
            RECONCILES.labels(result="retry").inc()
        except Exception as error:
            _log.exception(
                "%s: reconcile failed with an unexpected error; it is retried. The running driver is not affected", key
            )
            await self._report_error(
                key, f"reconcile failed with an unexpected error ({type(error).__name__}): see the operator log"
            )
            requeue_s = _ERROR_RETRY_S
            RECONCILES.labels(result="error").inc()
        else:
            self._failures.pop(key, None)
            RECONCILES.labels(result="ok").inc()
        if requeue_s is not None:
            self.rollout.confirm(key)
        RECONCILE_DURATION.observe(time.monotonic() - started)
        return requeue_s

    async def _reconcile(self, key: SinkKey) -> float | None:
        is_retry = key in self._failures or key in self._outdated
        is_due = self._refresh_due_s(key) <= 0 or key in self._outdated
        if not is_due and await self._is_steady(key):
            return self._requeue_after_s(key, self.settings.status_poll_ms)
        pending = await self._decide(key, read=ALL_ROLES if is_due else frozenset(), is_retry=is_retry)
        if pending is not None and pending.decision.has_writes:
            pending = await self._decide_on_live_reads(key, pending)
        if pending is None:
            self._forget(key)
            return None
        return await self._apply(key, pending) if pending.decision.has_writes else self._settle(key, pending)

    async def _decide(self, key: SinkKey, *, read: frozenset[Role], is_retry: bool) -> _PendingDecision | None:
        """Decides on the cache, after the objects in `read` are read from the API server. None if the sink is gone."""
        version = self.observer.cache.version(key)
        observed = await self.observer.observe(key, refresh=read)
        if read == ALL_ROLES:
            self._refreshed[key] = time.monotonic()
            self._outdated.discard(key)
        if observed is None:
            return None
        observed = replace(observed, rollout=self.rollout.gate(key), is_retry=is_retry)
        decision = decide(observed, self.settings, self.clock())
        if not decision.writes.starts_rollout:
            self.rollout.release(key)
        return _PendingDecision(decision, observed, read, version)

    async def _decide_on_live_reads(self, key: SinkKey, pending: _PendingDecision) -> _PendingDecision | None:
        """Decides again, after the objects that the writes depend on are read. That decision may have other writes,
        which depend on more objects: those are read as well, until every object that matters was read."""
        current: _PendingDecision | None = pending
        while current is not None and (missing := current.missing_reads()):
            current = await self._decide(key, read=current.read | missing, is_retry=current.observed.is_retry)
        return current

    def _settle(self, key: SinkKey, pending: _PendingDecision) -> float:
        """Ends a pass without writes."""
        requeue_after_ms = pending.decision.requeue_after_ms
        fingerprint = report_fingerprint(pending.observed.report)
        if fingerprint is not None and requeue_after_ms == self.settings.status_poll_ms:
            self._steady[key] = _Steady(pending.version, fingerprint, time.monotonic() + _STEADY_S)
        return self._requeue_after_s(key, requeue_after_ms)

    async def _apply(self, key: SinkKey, pending: _PendingDecision) -> float:
        decision, sink = pending.decision, pending.observed.sink
        if decision.writes.starts_rollout:
            self.rollout.reserve(key)  # before any other pass can ask: nothing was awaited since the gate was read
        outcome = await self.applier.apply(key, sink, decision)
        self.observer.record_outcome(key, sink, outcome.written, outcome.rejection)
        if decision.writes.starts_rollout and outcome.continues:
            self._check_recorded(key)
        if outcome.rejection is not None:
            await self._on_rejection(key, outcome.rejection)
            return 0.0
        if outcome.stale:
            self._outdated.add(key)
            return _STALE_RETRY_S
        return self._requeue_after_s(key, decision.requeue_after_ms)

    async def _on_rejection(self, key: SinkKey, rejection: Rejection) -> None:
        """Logs a rejected write. The next pass decides what follows from it."""
        _log.warning("%s: the API server rejected %s %s: %s", key, rejection.kind, rejection.name, rejection.message)
        if rejection.kind == "Pod":
            self._outdated.add(key)  # for lack of a child that is still cached, for example
        if rejection.kind == "S3Sink" and rejection.status in _STATUS_REJECTED:
            hint = "; apply the CustomResourceDefinition of this version" * (rejection.status == 500)
            await self._report_error(key, f"the API server rejected the status: {rejection.message}{hint}")

    def _check_recorded(self, key: SinkKey) -> None:
        """Stops the rollout if the status does not record its restart."""
        sink = self.observer.cache.get("S3Sink", *key)
        if sink is not None and "rollout" not in (sink.get("status") or {}):
            self.rollout.stop()
            _log.error(
                "%s: the API server dropped status.rollout, without which the rollout of new operator defaults does "
                "not continue: apply the CustomResourceDefinition of this version and restart the operator",
                key,
            )

    def due(self) -> list[SinkKey]:
        """The sinks that need a pass because the rollout has come to them, or is halted."""
        found = self.rollout.due()
        for key in found:
            self.observer.cache.bump(key)
        return found

    async def _report_error(self, key: SinkKey, cause: str) -> None:
        """Reports a failed pass in the previous status. The rest of that status may be stale."""
        sink = self.observer.cache.get("S3Sink", *key)
        if sink is None:
            return
        changed = status_update.operator_error(sink.get("status") or {}, cause, now=self.clock())
        if changed is None:
            return
        try:
            await self.applier.apply(key, sink, Decision(status=changed))
        except (ApiError, OSError, TimeoutError) as error:
            _log.warning("%s: the status cannot be written: %s", key, error)

    async def _is_steady(self, key: SinkKey) -> bool:
        """Whether a poll of the report replaces this pass. It is the only cost of a thousand running drivers."""
        before = self._steady.pop(key, None)
        if before is None or before.until <= time.monotonic() or before.version != self.observer.cache.version(key):
            return False
        if await self.observer.poll_report(key) != before.fingerprint or before.version != self.observer.cache.version(
            key
        ):
            return False
        self._steady[key] = before
        return True

    def _refresh_due_s(self, key: SinkKey) -> float:
        """Seconds until a pass has to read the API server. The first lists of the watches count as such a read."""
        now = time.monotonic()
        refreshed = self._refreshed.setdefault(key, now - random.uniform(0, self.resync_s / 2))
        interval = min(_UNWATCHED_REFRESH_S, self.resync_s) if self.observer.has_unwatched_child(key) else self.resync_s
        return refreshed + interval - now

    def _requeue_after_s(self, key: SinkKey, requeue_after_ms: int | None) -> float:
        """Seconds until the next pass: not later than the next one that reads the API server."""
        due = max(0.0, self._refresh_due_s(key))
        return due if requeue_after_ms is None else min(requeue_after_ms / 1000, due)

    def _retry(self, key: SinkKey, error: Exception) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        _log.warning("%s: request to the API server failed: %s", key, error)
        retry_after_s = error.retry_after_s if isinstance(error, ApiError) else None
        return (
            retry_after_s if retry_after_s is not None else min(MAX_RETRY_S, MIN_RETRY_S * 2 ** min(failures - 1, 10))
        )

    def _forget(self, key: SinkKey) -> None:
        self._failures.pop(key, None)
        self._refreshed.pop(key, None)
        self._steady.pop(key, None)
        self._outdated.discard(key)
        self.observer.forget(key)
        self.rollout.forget(key)
