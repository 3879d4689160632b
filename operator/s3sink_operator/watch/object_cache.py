"""The informer cache: the last known objects by kind, namespace and name, and the sink that each belongs to.

The cache may be outdated, so a decision with writes is repeated with objects of the API server (see `reconcile`).
Responses to the operator's own requests are cached as well. A response may arrive after the event of a deletion, so
the uids of deleted objects are kept.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from s3sink_operator import names
from s3sink_operator.reasons import Reason
from s3sink_operator.status.status_update import reason_of
from s3sink_operator.types import Json, label
from s3sink_operator.watch.cached_objects import MAX_NAMESPACE_BYTES, compacted, omitted_size, without_spec


class SinkKey(NamedTuple):
    """A sink's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


MAX_TOMBSTONES = 10_000


class ObjectCache:
    """The objects of all watches. `namespace_bytes`: memory for the S3Sinks of one namespace."""

    def __init__(self, namespace_bytes: int = MAX_NAMESPACE_BYTES) -> None:
        self._namespace_bytes = namespace_bytes
        self._sizes: dict[tuple[str, str], int] = {}
        self._namespace_sizes: Counter[str] = Counter()
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._tombstones: dict[str, None] = {}
        self._pods: dict[SinkKey, dict[tuple[str, str], Json]] = {}
        self._changed: OrderedDict[SinkKey, None] = OrderedDict()
        self._conflicted: dict[str, set[SinkKey]] = {}
        self._versions: dict[SinkKey, int] = {}
        self._version_numbers = itertools.count(1)
        self.listed = False
        """Whether the first lists of all watches are complete."""
        self.on_sink: Callable[[SinkKey, Json | None], None] | None = None
        """Called with each cached sink, and with None when it is removed."""

    def on_event(self, obj: Json) -> SinkKey | None:
        """Caches the object of a watch event, unless a newer version is cached. Returns its sink."""
        meta = obj["metadata"]
        self._tombstones.pop(meta.get("uid", ""), None)  # a selector matches it again
        kept = self._objects.setdefault(obj["kind"], {})
        place = (meta.get("namespace", ""), meta["name"])
        if not _is_older(obj, kept.get(place)):
            self._remove(obj["kind"], place)
            self._keep(obj, place)
        return sink_of(obj)

    def on_response(self, obj: Json) -> None:
        """Caches the response to a request, unless a watch event reported the deletion meanwhile."""
        if obj["metadata"].get("uid") not in self._tombstones:
            self.on_event(obj)

    def on_delete(self, obj: Json) -> SinkKey | None:
        """Removes a deleted object, unless another uid is cached. Returns its sink."""
        meta = obj["metadata"]
        kept = self._objects.get(obj["kind"], {})
        place = (meta.get("namespace", ""), meta["name"])
        if uid := meta.get("uid"):
            self._tombstones[uid] = None
            if len(self._tombstones) > MAX_TOMBSTONES:
                del self._tombstones[next(iter(self._tombstones))]
        if place in kept and kept[place]["metadata"].get("uid") == meta.get("uid"):
            self._remove(obj["kind"], place)
        return sink_of(obj)

    def on_not_found(self, kind: str, namespace: str, name: str, known: Json | None) -> None:
        """Removes an object that a request did not find, unless the cached object changed from `known` meanwhile."""
        if self.get(kind, namespace, name) is known:
            self._remove(kind, (namespace, name))

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: str) -> Iterator[Json]:
        yield from list(self._objects.get(kind, {}).values())

    def has_room(self, sink: Json) -> bool:
        """Whether a sink that is cached without its spec can be cached with it now."""
        return self._namespace_sizes[sink["metadata"]["namespace"]] + omitted_size(sink) <= self._namespace_bytes

    def executors(self, sink: SinkKey) -> list[Json]:
        """The executor pods of a sink."""
        component = names.Component.EXECUTOR.value
        return [pod for pod in self._pods.get(sink, {}).values() if label(pod, names.COMPONENT_LABEL) == component]

    def conflicted(self, namespace: str) -> list[SinkKey]:
        """The sinks of a namespace that lose a conflict with another one of it."""
        return list(self._conflicted.get(namespace, ()))

    def take_changed(self) -> SinkKey | None:
        """The sink that was added, deleted or changed first since it was taken last; None without one."""
        return self._changed.popitem(last=False)[0] if self._changed else None

    @property
    def changed_count(self) -> int:
        """The number of sinks that `take_changed` has."""
        return len(self._changed)

    def version(self, sink: SinkKey) -> int:
        """A number that changes with every cached object of the sink; 0 for one that is forgotten."""
        return self._versions.get(sink, 0)

    def bump(self, sink: SinkKey) -> None:
        """Changes the version of a sink, after a change of something that it depends on."""
        self._versions[sink] = next(self._version_numbers)

    def forget(self, sink: SinkKey) -> None:
        """Removes what is known about a sink that does not exist. Anyone can create and delete objects with its name in
        their labels, so nothing stays of them."""
        if self.get("S3Sink", *sink) is None:
            self._versions.pop(sink, None)
            self._changed.pop(sink, None)

    def _keep(self, whole: Json, place: tuple[str, str]) -> None:
        obj, size = compacted(whole)
        if obj["kind"] == "S3Sink":
            if self._namespace_sizes[place[0]] + size > self._namespace_bytes:
                obj = without_spec(obj, size=size, limit=self._namespace_bytes)
            else:
                self._sizes[place] = size
                self._namespace_sizes[place[0]] += size
        self._objects[obj["kind"]][place] = obj
        sink = sink_of(obj)
        if sink is not None:
            self.bump(sink)
        if obj["kind"] == "S3Sink":
            self._changed[SinkKey(*place)] = None
            if self.on_sink is not None:
                self.on_sink(SinkKey(*place), obj)
            if reason_of(obj.get("status") or {}, "Ready") == Reason.CONFLICT:
                self._conflicted.setdefault(place[0], set()).add(SinkKey(*place))
        elif obj["kind"] == "Pod" and sink is not None:
            self._pods.setdefault(sink, {})[place] = obj

    def _remove(self, kind: str, place: tuple[str, str]) -> None:
        obj = self._objects.get(kind, {}).pop(place, None)
        if obj is None:
            return
        sink = sink_of(obj)
        if sink is not None:
            self.bump(sink)
        if kind == "S3Sink":
            self._changed[SinkKey(*place)] = None
            if self.on_sink is not None:
                self.on_sink(SinkKey(*place), None)
            self._remove_conflicted(SinkKey(*place))
            self._namespace_sizes[place[0]] -= self._sizes.pop(place, 0)
        elif kind == "Pod" and sink is not None:
            del self._pods[sink][place]
            if not self._pods[sink]:
                del self._pods[sink]

    def _remove_conflicted(self, sink: SinkKey) -> None:
        members = self._conflicted.get(sink.namespace, set())
        members.discard(sink)
        if not members:
            self._conflicted.pop(sink.namespace, None)


def sink_of(obj: Json) -> SinkKey | None:
    """The sink of an object: the object itself, or the one in its label."""
    meta = obj["metadata"]
    if obj["kind"] == "S3Sink":
        return SinkKey(meta["namespace"], meta["name"])
    name = label(obj, names.SINK_LABEL)
    return SinkKey(meta["namespace"], name) if name and meta.get("namespace") else None


def _is_older(obj: Json, known: Json | None) -> bool:
    """Whether a newer version of the same object is cached. Numeric resourceVersions are ordered."""
    if known is None or known["metadata"].get("uid") != obj["metadata"].get("uid"):
        return False
    new, old = obj["metadata"].get("resourceVersion", ""), known["metadata"].get("resourceVersion", "")
    return bool(new.isdigit() and old.isdigit() and int(new) < int(old))
