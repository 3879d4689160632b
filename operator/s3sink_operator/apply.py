"""Carries out a decision, in its order, and says what the API server refused.

Each write is safe by itself: an apply says what should be, a create has a name that only one can have, a delete names
the uid that was seen. A conflict is no failure: somebody was faster, and the next look shows what is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from s3sink_operator.kube_api import ApiError, KubeApi
from s3sink_operator.names import FIELD_MANAGER
from s3sink_operator.object_cache import ObjectCache, SinkKey
from s3sink_operator.types import (
    FINALIZERS_KIND,
    Decision,
    Delete,
    Event,
    Json,
    Rejection,
    Resize,
    to_timestamp,
    uid_of,
)
from sink_job.api.spec import GROUP, VERSION

_log = logging.getLogger(__name__)

Write = Callable[[], Awaitable[None]]
_EVENT_DEDUPLICATION_MS = 10 * 60_000
_MAX_EVENT_MESSAGE = 1024  # of an event, as the API server has it


@dataclass
class ApplyResult:
    """`version`: the sink's that was seen, or that our last write of it made. `refusal`: what the server would not do;
    what came behind it was left out. `written`: kinds and names of what it did. `stale`: what was seen is not what is;
    look again at once."""

    version: str
    rejection: Rejection | None = None
    written: set[tuple[str, str]] = field(default_factory=set)
    stale: bool = False

    @property
    def continues(self) -> bool:
        return self.rejection is None and not self.stale


@dataclass
class DecisionApplier:
    """Writes to the API server, and tells the store what came of it. `clock` gives ms."""

    api: KubeApi
    cache: ObjectCache
    clock: Callable[[], int]
    _events: dict[tuple[str, str, str], int] = field(default_factory=dict)

    async def apply(self, key: SinkKey, sink: Json, decision: Decision) -> ApplyResult:
        """Raises ApiError for what is worth another try, and OSError or TimeoutError without an answer."""
        outcome = ApplyResult(version=sink["metadata"]["resourceVersion"])
        for kind, name, write in self._writes(outcome, key, sink, decision):
            await self._attempt(outcome, kind, name, write)
            if not outcome.continues:
                return outcome
        for event in decision.events:
            await self._event(key, sink, event)
        keeps, wanted = _finalizers(sink, decision)
        if keeps - wanted:
            await self._attempt(outcome, FINALIZERS_KIND, key.name, lambda: self._finalize(outcome, key, sink, wanted))
        return outcome

    def _writes(
        self, outcome: ApplyResult, key: SinkKey, sink: Json, decision: Decision
    ) -> Iterator[tuple[str, str, Write]]:
        """All that comes before the events: the kind as refusals tell it, the object's name, and the write."""
        keeps, wanted = _finalizers(sink, decision)
        if wanted - keeps:
            yield FINALIZERS_KIND, key.name, lambda: self._finalize(outcome, key, sink, keeps | wanted)
        if (status := decision.status) is not None:
            yield "S3Sink", key.name, lambda: self._status(outcome, key, status)
        for manifest in decision.apply:
            yield manifest["kind"], manifest["metadata"]["name"], self._applying(manifest)
        for delete in decision.delete:
            yield delete.kind, delete.name, self._deleting(key, delete)
        for resize in decision.resize:
            yield "pods/resize", resize.pod, self._resizing(key, resize)
        for manifest in decision.create:
            yield manifest["kind"], manifest["metadata"]["name"], self._creating(manifest)

    async def _attempt(self, outcome: ApplyResult, kind: str, name: str, write: Write) -> None:
        try:
            await write()
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                outcome.stale = True
                return
            if error.is_transient:
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
        """With the version that was seen: a status never comes from an old look."""
        meta = {"name": key.name, "namespace": key.namespace, "resourceVersion": outcome.version}
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "S3Sink", "metadata": meta, "status": status}
        self._wrote(outcome, await self.api.apply(body, subresource="status"))

    async def _finalize(self, outcome: ApplyResult, key: SinkKey, sink: Json, wanted: set[str]) -> None:
        """Replaces the list as a whole; the uid makes sure that it is this sink's."""
        meta = {"uid": uid_of(sink), "resourceVersion": outcome.version, "finalizers": sorted(wanted)}
        self._wrote(outcome, await self.api.merge_patch("S3Sink", key.namespace, key.name, {"metadata": meta}))

    def _wrote(self, outcome: ApplyResult, sink: Json) -> None:
        outcome.version = sink["metadata"]["resourceVersion"]
        self.cache.on_response({"kind": "S3Sink", **sink})

    def _applying(self, manifest: Json) -> Write:
        async def write() -> None:
            self.cache.on_response({"kind": manifest["kind"], **await self.api.apply(manifest)})

        return write

    def _creating(self, manifest: Json) -> Write:
        async def write() -> None:
            self.cache.on_response({"kind": manifest["kind"], **await self.api.create(manifest)})

        return write

    def _deleting(self, key: SinkKey, delete: Delete) -> Write:
        async def write() -> None:
            await self.api.delete(delete.kind, key.namespace, delete.name, uid=delete.uid, grace_s=delete.grace_s)

        return write

    def _resizing(self, key: SinkKey, resize: Resize) -> Write:
        async def write() -> None:
            memory = {"memory": str(resize.memory)}
            container = {"name": resize.container, "resources": {"requests": memory, "limits": memory}}
            body: Json = {"metadata": {"uid": resize.uid}, "spec": {"containers": [container]}}
            found = await self.api.strategic_patch("Pod", key.namespace, resize.pod, body, subresource="resize")
            self.cache.on_response({"kind": "Pod", **found})

        return write

    async def _event(self, key: SinkKey, sink: Json, event: Event) -> None:
        """Tells it once in ten minutes. An event that cannot be written is no reason to stop."""
        now, same = self.clock(), (uid_of(sink), event.reason, event.message)
        self._events = {each: at for each, at in self._events.items() if now - at < _EVENT_DEDUPLICATION_MS}
        if same in self._events:
            return
        self._events[same] = now
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
            _log.warning("%s: the event %s is not written: %s", key, event.reason, error)


def _finalizers(sink: Json, decision: Decision) -> tuple[set[str], set[str]]:
    """Those that are there, and those that should be."""
    there = set(sink["metadata"].get("finalizers") or ())
    return there, there if decision.finalizers is None else set(decision.finalizers)
