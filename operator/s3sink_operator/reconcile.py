"""Observe, decide, execute: one look at one sink, as often as anything of it changes.

The first look is at what the watches told, which costs nothing. Where that leads to a write, a second one asks the API
server itself and the decision is made anew: a late watch, or a list from before, never ends a driver. What only leads
to a status asks for the sink and its driver.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from s3sink_operator import status
from s3sink_operator.apply import DecisionApplier
from s3sink_operator.decide.chain import decide
from s3sink_operator.kube_api import ApiError
from s3sink_operator.metrics import RECONCILE_SECONDS, RECONCILES
from s3sink_operator.object_cache import SinkKey
from s3sink_operator.observe import CHILDREN, STATUS_ROLES, Observer, ReportFingerprint, report_fingerprint
from s3sink_operator.types import Decision, Settings

_log = logging.getLogger(__name__)

MIN_RETRY_S, MAX_RETRY_S = 1.0, 120.0
_STALE_RETRY_S = 0.2
_UNWATCHED_REFRESH_S = 5.0
_STEADY_S = 15.0
_ERROR_RETRY_S = 60.0
_STATUS_REJECTED = (400, 413, 422, 500)
_ALL_ROLES = frozenset(CHILDREN)


@dataclass(frozen=True)
class _Steady:
    """After a look at a running driver that had nothing to write: as long as nothing else is heard of the sink, and the
    driver says the same, a glance at its report takes the place of a look. `until`: seconds of the monotonic clock."""

    version: int
    fingerprint: ReportFingerprint
    until: float


@dataclass
class Reconciler:
    """`clock` gives ms. `resync_s`: a look that asks the API server comes at least so often."""

    observer: Observer
    applier: DecisionApplier
    settings: Settings
    clock: Callable[[], int]
    resync_s: float = 300.0
    _failures: dict[SinkKey, int] = field(default_factory=dict)
    _refreshed: dict[SinkKey, float] = field(default_factory=dict)
    _steady: dict[SinkKey, _Steady] = field(default_factory=dict)

    async def reconcile(self, key: SinkKey) -> float | None:
        """Does what is to be done now; returns in how many seconds to look again, None when the sink is gone."""
        started = time.monotonic()
        try:
            again = await self._reconcile(key)
        except (ApiError, OSError, TimeoutError) as error:
            again = self._retry(key, error)
            RECONCILES.labels(result="retry").inc()
        except Exception as error:
            _log.exception("%s: a look at this sink failed", key)
            await self._report_error(key, f"the operator cannot look at this sink: {type(error).__name__}, see its log")
            again = _ERROR_RETRY_S
            RECONCILES.labels(result="error").inc()
        else:
            self._failures.pop(key, None)
            RECONCILES.labels(result="ok").inc()
        RECONCILE_SECONDS.observe(time.monotonic() - started)
        return again

    async def _reconcile(self, key: SinkKey) -> float | None:
        asking = _ALL_ROLES if self._refresh_due_s(key) <= 0 else None
        if asking is None and await self._is_steady(key):
            return self._requeue_after_s(key, self.settings.status_poll_ms)
        while True:
            state = self.observer.cache.version(key)
            observed = await self.observer.observe(key, refresh=asking)
            if asking == _ALL_ROLES:
                self._refreshed[key] = time.monotonic()
            if observed is None:
                self._forget(key)
                return None
            decision = decide(observed, self.settings, self.clock())
            if not decision.has_writes:
                gist = report_fingerprint(observed.report)
                if gist is not None and decision.requeue_after_ms == self.settings.status_poll_ms:
                    self._steady[key] = _Steady(state, gist, time.monotonic() + _STEADY_S)
                return self._requeue_after_s(key, decision.requeue_after_ms)
            needed = _ALL_ROLES if decision.changes_objects else STATUS_ROLES
            if asking is not None and needed <= asking:
                break
            asking = needed
        outcome = await self.applier.apply(key, observed.sink, decision)
        self.observer.record_outcome(key, observed.sink, outcome.written, outcome.rejection)
        if outcome.rejection is not None:
            what = outcome.rejection
            _log.warning("%s: %s %s was refused: %s", key, what.kind, what.name, what.message)
            if what.kind == "S3Sink" and what.status in _STATUS_REJECTED:
                hint = "; the CustomResourceDefinition is another version's: apply this one's" * (what.status == 500)
                await self._report_error(key, f"the API server does not take this sink's status: {what.message}{hint}")
            return 0.0
        return _STALE_RETRY_S if outcome.stale else self._requeue_after_s(key, decision.requeue_after_ms)

    async def _report_error(self, key: SinkKey, what: str) -> None:
        """What kept a look from its end, in the status that was written last: nothing else of that is known to hold."""
        sink = self.observer.cache.get("S3Sink", *key)
        told = None if sink is None else status.operator_error(sink.get("status") or {}, what, now=self.clock())
        if sink is None or told is None:
            return
        try:
            await self.applier.apply(key, sink, Decision(status=told))
        except (ApiError, OSError, TimeoutError) as error:
            _log.warning("%s: that cannot be told in its status: %s", key, error)

    async def _is_steady(self, key: SinkKey) -> bool:
        """Whether a glance is enough: it is all that a thousand drivers which run cost from one moment to the next."""
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
        """Seconds until a look has to ask the API server. The watches' first lists are as good as its answers."""
        now = time.monotonic()
        asked = self._refreshed.setdefault(key, now - random.uniform(0, self.resync_s / 2))
        every = min(_UNWATCHED_REFRESH_S, self.resync_s) if self.observer.has_unwatched_child(key) else self.resync_s
        return asked + every - now

    def _requeue_after_s(self, key: SinkKey, wake_ms: int | None) -> float:
        """Not later than the next look that asks the API server."""
        due = max(0.0, self._refresh_due_s(key))
        return due if wake_ms is None else min(wake_ms / 1000, due)

    def _retry(self, key: SinkKey, error: Exception) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        _log.warning("%s: the API server: %s", key, error)
        said = error.retry_after_s if isinstance(error, ApiError) else None
        return said if said is not None else min(MAX_RETRY_S, MIN_RETRY_S * 2 ** min(failures - 1, 10))

    def _forget(self, key: SinkKey) -> None:
        self._failures.pop(key, None)
        self._refreshed.pop(key, None)
        self._steady.pop(key, None)
        self.observer.forget(key)
