"""Carries out a decision, in its order, and says what the API server refused.

Each write is safe by itself: an apply says what should be, a create has a name that only one can have, a delete names
the uid that was seen. A conflict is no failure: somebody was faster, and the next look shows what is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from s3sink_operator.api import Api, ApiError
from s3sink_operator.model import Decision, Delete, Event, Json, Refusal, Resize, to_stamp, uid_of
from s3sink_operator.names import FIELD_MANAGER
from s3sink_operator.store import SinkKey, Store

_SAME_EVENT_MS = 10 * 60_000
_LONGEST_MESSAGE = 1024  # of an event, as the API server has it


@dataclass
class Outcome:
    """`refusals` are what the server would not do. `stale`: what was seen is not what is; look again at once."""

    refusals: list[Refusal] = field(default_factory=list)
    stale: bool = False


@dataclass
class Executor:
    """Writes to the API server, and tells the store what came of it. `clock` gives ms."""

    api: Api
    store: Store
    clock: Callable[[], int]
    _events: dict[tuple[str, str, str], int] = field(default_factory=dict)

    async def carry_out(self, key: SinkKey, sink: Json, decision: Decision) -> Outcome:
        """Raises ApiError for what is worth another try, and OSError or TimeoutError without an answer."""
        outcome = Outcome()
        keeps = set(sink["metadata"].get("finalizers") or ())
        wanted = keeps if decision.finalizers is None else set(decision.finalizers)
        if wanted - keeps:
            await self._attempt(outcome, "S3Sink", key.name, lambda: self._finalizers(key, sink, keeps | wanted))
        if decision.status is not None:
            await self._attempt(outcome, "S3Sink", key.name, lambda: self._status(key, sink, decision.status or {}))
        for manifest in decision.apply:
            await self._attempt(outcome, manifest["kind"], manifest["metadata"]["name"], self._applying(manifest))
        for delete in decision.delete:
            await self._attempt(outcome, delete.kind, delete.name, self._deleting(key, delete))
        for resize in decision.resize:
            await self._attempt(outcome, "Pod", resize.pod, self._resizing(key, resize))
        for manifest in decision.create:
            if not outcome.refusals:  # a pod without its account would only fail
                await self._attempt(outcome, manifest["kind"], manifest["metadata"]["name"], self._creating(manifest))
        for event in decision.events:
            await self._event(key, sink, event)
        if keeps - wanted and not outcome.refusals:
            await self._attempt(outcome, "S3Sink", key.name, lambda: self._finalizers(key, sink, wanted))
        return outcome

    async def _attempt(self, outcome: Outcome, kind: str, name: str, write: Callable[[], Awaitable[None]]) -> None:
        try:
            await write()
        except ApiError as error:
            if error.is_conflict or error.is_gone:
                outcome.stale = True
            elif error.is_worth_another_try:
                raise
            else:
                refusal = Refusal(
                    kind=kind,
                    name=name,
                    status=error.status,
                    reason=error.reason,
                    message=error.message,
                    at_ms=self.clock(),
                )
                outcome.refusals.append(refusal)

    async def _status(self, key: SinkKey, sink: Json, status: Json) -> None:
        """With the version that was seen: a status never comes from an old look."""
        meta = {"name": key.name, "namespace": key.namespace, "resourceVersion": sink["metadata"]["resourceVersion"]}
        body = {"apiVersion": sink["apiVersion"], "kind": "S3Sink", "metadata": meta, "status": status}
        self.store.put({"kind": "S3Sink", **await self.api.apply(body, subresource="status")})

    async def _finalizers(self, key: SinkKey, sink: Json, wanted: set[str]) -> None:
        """Replaces the list as a whole; the uid makes sure that it is this sink's."""
        version = (self.store.get("S3Sink", *key) or sink)["metadata"]["resourceVersion"]
        meta = {"uid": uid_of(sink), "resourceVersion": version, "finalizers": sorted(wanted)}
        found = await self.api.merge("S3Sink", key.namespace, key.name, {"metadata": meta})
        self.store.put({"kind": "S3Sink", **found})

    def _applying(self, manifest: Json) -> Callable[[], Awaitable[None]]:
        async def write() -> None:
            self.store.put({"kind": manifest["kind"], **await self.api.apply(manifest)})

        return write

    def _creating(self, manifest: Json) -> Callable[[], Awaitable[None]]:
        async def write() -> None:
            self.store.put({"kind": manifest["kind"], **await self.api.create(manifest)})

        return write

    def _deleting(self, key: SinkKey, delete: Delete) -> Callable[[], Awaitable[None]]:
        async def write() -> None:
            await self.api.delete(delete.kind, key.namespace, delete.name, uid=delete.uid, grace_s=delete.grace_s)

        return write

    def _resizing(self, key: SinkKey, resize: Resize) -> Callable[[], Awaitable[None]]:
        async def write() -> None:
            memory = {"memory": str(resize.memory)}
            container = {"name": resize.container, "resources": {"requests": memory, "limits": memory}}
            body: Json = {"metadata": {"uid": resize.uid}, "spec": {"containers": [container]}}
            found = await self.api.strategic("Pod", key.namespace, resize.pod, body, subresource="resize")
            self.store.put({"kind": "Pod", **found})

        return write

    async def _event(self, key: SinkKey, sink: Json, event: Event) -> None:
        """Tells it once in ten minutes. An event that cannot be written is no reason to stop."""
        now, same = self.clock(), (uid_of(sink), event.reason, event.message)
        self._events = {each: at for each, at in self._events.items() if now - at < _SAME_EVENT_MS}
        if same in self._events:
            return
        self._events[same] = now
        reference = {name: sink["metadata"].get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
        body: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name}.", "namespace": key.namespace},
            "involvedObject": {"apiVersion": sink["apiVersion"], "kind": "S3Sink", **reference},
            "type": event.type.value,
            "reason": event.reason,
            "message": event.message[:_LONGEST_MESSAGE],
            "source": {"component": FIELD_MANAGER},
            "firstTimestamp": to_stamp(now),
            "lastTimestamp": to_stamp(now),
            "count": 1,
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": FIELD_MANAGER,
        }
        outcome = Outcome()
        await self._attempt(outcome, "Event", key.name, self._telling(body))

    def _telling(self, body: Json) -> Callable[[], Awaitable[None]]:
        async def write() -> None:
            await self.api.create(body)

        return write
