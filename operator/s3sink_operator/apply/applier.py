"""Applies a decision in its order, and returns what the API server rejected.

Each write is idempotent: an apply states the desired object, a create has a unique name, a delete has the observed uid
as a precondition. A conflict is not a failure: another client was faster, and the next pass observes its change.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from s3sink_operator.apply.replacement_check import check_replacement, is_of_webhook
from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.names import FIELD_MANAGER
from s3sink_operator.types import (
    FINALIZERS_KIND,
    REPLACEMENT_KIND,
    Decision,
    Delete,
    Event,
    Json,
    Rejection,
    Replacement,
    Resize,
    to_timestamp,
    uid_of,
)
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from sink_job.api.spec import GROUP, VERSION
from sink_job.api.units.quantities import format_size

_log = logging.getLogger(__name__)

Write = Callable[[], Awaitable[None]]
_EVENT_DEDUPLICATION_MS = 10 * 60_000
_MAX_EVENT_MESSAGE = 1024  # limit of the API server


@dataclass
class ApplyResult:
    """The result of a decision's writes.

    `version`: observed resourceVersion of the sink, or that after the last write. `rejection`: the write that the API
    server rejected, or the replacement of a pod; the writes after it were skipped. `written`: kinds and names of the
    written objects. `stale`: the observed state is outdated, the next pass follows at once.
    """

    version: str
    rejection: Rejection | None = None
    written: set[tuple[str, str]] = field(default_factory=set)
    stale: bool = False

    @property
    def continues(self) -> bool:
        return self.rejection is None and not self.stale


class RecentEvents:
    """The events of the last ten minutes. An event costs the same in a burst of any size."""

    def __init__(self) -> None:
        self._at: dict[int, int] = {}  # by the hash of the event, whose message may be long; oldest first

    def add(self, written: tuple[str, str, str], now: int) -> bool:
        """Adds an event (uid, reason, message) at `now`, in ms. Returns False if it is one of the recent ones."""
        event = hash(written)
        while self._at and now - self._at[oldest := next(iter(self._at))] >= _EVENT_DEDUPLICATION_MS:
            del self._at[oldest]
        if now - self._at.get(event, now - _EVENT_DEDUPLICATION_MS) < _EVENT_DEDUPLICATION_MS:
            return False
        self._at.pop(event, None)
        self._at[event] = now
        return True

    def __len__(self) -> int:
        return len(self._at)


@dataclass
class DecisionApplier:
    """Writes to the API server, and puts the responses into the cache. `clock` returns ms since the epoch."""

    api: KubeApi
    cache: ObjectCache
    clock: Callable[[], int]
    _events: RecentEvents = field(default_factory=RecentEvents)

    async def apply(self, key: SinkKey, sink: Json, decision: Decision) -> ApplyResult:
        """Applies a decision. Raises ApiError for transient errors, OSError or TimeoutError without an answer."""
        outcome = ApplyResult(version=sink["metadata"]["resourceVersion"])
        for kind, name, write in self._writes(outcome, key, sink, decision):
            await self._attempt(outcome, kind, name, write)
            if not outcome.continues:
                return outcome
        for event in decision.events:
            await self._event(key, sink, event)
        current, desired = _finalizers(sink, decision)
        if current - desired:
            await self._attempt(outcome, FINALIZERS_KIND, key.name, lambda: self._finalize(outcome, key, sink, desired))
        return outcome

    def _writes(
        self, outcome: ApplyResult, key: SinkKey, sink: Json, decision: Decision
    ) -> Iterator[tuple[str, str, Write]]:
        """The writes before the events: the kind as in rejections, the name of the object, and the write."""
        if (replacement := decision.writes.replacement) is not None:
            yield REPLACEMENT_KIND, replacement.pod["metadata"]["name"], self._checking(replacement)
        current, desired = _finalizers(sink, decision)
        if desired - current:
            yield FINALIZERS_KIND, key.name, lambda: self._finalize(outcome, key, sink, current | desired)
        if (status := decision.status) is not None:
            yield "S3Sink", key.name, lambda: self._status(outcome, key, status)
        for manifest in decision.writes.apply:
            yield manifest["kind"], manifest["metadata"]["name"], self._applying(manifest)
        for delete in decision.writes.delete:
            yield delete.kind, delete.name, self._deleting(key, delete)
        for resize in decision.writes.resize:
            yield "pods/resize", resize.pod, self._resizing(key, resize)
        for manifest in decision.writes.create:
            yield manifest["kind"], manifest["metadata"]["name"], self._creating(manifest)

    async def _attempt(self, outcome: ApplyResult, kind: str, name: str, write: Write) -> None:
        try:
            await write()
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                outcome.stale = True
                return
            if error.is_transient and not (kind == REPLACEMENT_KIND and is_of_webhook(error)):
                raise
            outcome.rejection = Rejection(
                kind=kind,
                name=name,
                status=error.status,
                reason=error.reason,
                message=error.message,
                at_ms=self.clock(),
            )
        else:
            outcome.written.add((kind, name))

    async def _status(self, outcome: ApplyResult, key: SinkKey, status: Json) -> None:
        """Writes the status with the observed resourceVersion: an outdated status is never written."""
        meta = {"name": key.name, "namespace": key.namespace, "resourceVersion": outcome.version}
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "S3Sink", "metadata": meta, "status": status}
        self._wrote(outcome, await self.api.apply(body, subresource="status"))

    async def _finalize(self, outcome: ApplyResult, key: SinkKey, sink: Json, finalizers: set[str]) -> None:
        """Replaces the list of finalizers. The uid is a precondition."""
        meta = {"uid": uid_of(sink), "resourceVersion": outcome.version, "finalizers": sorted(finalizers)}
        self._wrote(outcome, await self.api.merge_patch("S3Sink", key.namespace, key.name, {"metadata": meta}))

    def _wrote(self, outcome: ApplyResult, sink: Json) -> None:
        outcome.version = sink["metadata"]["resourceVersion"]
        self.cache.on_response({"kind": "S3Sink", **sink})

    def _checking(self, replacement: Replacement) -> Write:
        async def write() -> None:
            await check_replacement(self.api, replacement)

        return write

    def _applying(self, manifest: Json) -> Write:
        async def write() -> None:
            self.cache.on_response({"kind": manifest["kind"], **await self.api.apply(manifest)})

        return write

    def _creating(self, manifest: Json) -> Write:
        async def write() -> None:
            self.cache.on_response({"kind": manifest["kind"], **await self.api.create(manifest, strict=True)})

        return write

    def _deleting(self, key: SinkKey, delete: Delete) -> Write:
        async def write() -> None:
            await self.api.delete(delete.kind, key.namespace, delete.name, uid=delete.uid, grace_s=delete.grace_s)

        return write

    def _resizing(self, key: SinkKey, resize: Resize) -> Write:
        async def write() -> None:
            memory = {"memory": format_size(resize.memory)}
            container = {"name": resize.container, "resources": {"requests": memory, "limits": memory}}
            body: Json = {"metadata": {"uid": resize.uid}, "spec": {"containers": [container]}}
            found = await self.api.strategic_patch("Pod", key.namespace, resize.pod, body, subresource="resize")
            self.cache.on_response({"kind": "Pod", **found})

        return write

    async def _event(self, key: SinkKey, sink: Json, event: Event) -> None:
        """Writes an event, the same one at most once in ten minutes. A failure is only logged."""
        now = self.clock()
        if not self._events.add((uid_of(sink), event.reason, event.message), now):
            return
        reference = {name: sink["metadata"].get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
        body: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name}.", "namespace": key.namespace},
            "involvedObject": {"apiVersion": f"{GROUP}/{VERSION}", "kind": "S3Sink", **reference},
            "type": event.type.value,
            "reason": event.reason,
            "message": event.message[:_MAX_EVENT_MESSAGE],
            "source": {"component": FIELD_MANAGER},
            "firstTimestamp": to_timestamp(now),
            "lastTimestamp": to_timestamp(now),
            "count": 1,
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": FIELD_MANAGER,
        }
        try:
            await self.api.create(body)
        except (ApiError, OSError, TimeoutError) as error:
            _log.warning("%s: the event %s cannot be written: %s", key, event.reason, error)


def _finalizers(sink: Json, decision: Decision) -> tuple[set[str], set[str]]:
    """The current and the desired finalizers."""
    current = set(sink["metadata"].get("finalizers") or ())
    return current, current if decision.writes.finalizers is None else set(decision.writes.finalizers)
