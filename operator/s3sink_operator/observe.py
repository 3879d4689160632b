"""One look at a sink: from what the watches told, or fresh from the API server, and what its driver says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import ValidationError

from s3sink_operator import names
from s3sink_operator.conflicts import ResourceIndex, resources_of
from s3sink_operator.kube_api import ApiError, KubeApi
from s3sink_operator.object_cache import ObjectCache, SinkKey
from s3sink_operator.pod_events import PodEventReader
from s3sink_operator.types import (
    Json,
    Observed,
    PodEvent,
    Rejection,
    SinkResources,
    Unreachable,
    is_controlled,
    is_terminating,
    label,
    uid_of,
)
from sink_job.api.errors import SpecError
from sink_job.api.report import Report
from sink_job.api.spec import Sink, parse_sink

CHILDREN: Mapping[str, tuple[str, ...]] = {
    "config_map": ("ConfigMap", "config_map_name"),
    "service_account": ("ServiceAccount", "service_account_name"),
    "role_binding": ("RoleBinding", "role_binding_name"),
    "driver": ("Pod", "driver_pod_name"),
    "operation": ("Pod", "operation_pod_name"),
}
STATUS_ROLES = frozenset({"driver"})
"""The children that a status speaks of: it is written with the version of the sink that was seen, and corrected by the
next look, so what only leads to a status asks for no others."""

MAX_MISSED_POLLS = 3
"""Looks in a row without a report, after which it is told: one answer may come late, of a driver that is busy."""

ReportFingerprint = tuple[object, ...]
"""What of a report is worth a whole look as soon as it changes; figures alone are not."""


def report_fingerprint(report: Report | Unreachable | None) -> ReportFingerprint | None:
    """None without a report."""
    if not isinstance(report, Report):
        return None
    return report.state, report.failure, report.epoch, report.assigned_partitions


def belongs_to(report: Report, sink: Json) -> bool:
    """Whether the report tells of this sink: the address of a pod that is gone may be another's by now."""
    spec, meta = sink.get("spec"), sink["metadata"]
    chosen = spec.get("sinkId") if isinstance(spec, dict) else None
    wanted = chosen or f"{meta.get('namespace')}.{meta.get('name')}"
    return (report.namespace, report.name, report.sink_id) == (meta.get("namespace"), meta.get("name"), wanted)


class ReportClient(Protocol):
    """Where a driver's report comes from. Raises OSError, TimeoutError or ApiError without one."""

    async def fetch(self, pod: Json) -> bytes:
        """What `/report` answers."""
        ...


@dataclass
class Observer:
    """Looks at sinks, and remembers what the API server refused: until it takes that object, or the sink is edited."""

    api: KubeApi
    cache: ObjectCache
    report_client: ReportClient
    pod_events: PodEventReader
    _rejections: dict[SinkKey, tuple[int, dict[tuple[str, str], Rejection]]] = field(default_factory=dict)
    _resources: ResourceIndex = field(default_factory=ResourceIndex)
    _read: dict[SinkKey, tuple[str, Sink | None]] = field(default_factory=dict)
    _missed_polls: dict[SinkKey, int] = field(default_factory=dict)

    async def observe(self, key: SinkKey, *, asking: Collection[str] | None) -> Observed | None:
        """What there is of a sink; None when the sink itself is gone. `asking`: the API server is asked for the sink
        and for these of its children (keys of CHILDREN), None: for nothing. Raises ApiError."""
        if asking is not None:
            await self._refresh(key, asking)
        sink = self.cache.get("S3Sink", *key)
        if sink is None:
            return None
        children = {role: self._child(key, role) for role in CHILDREN}
        executors = self.cache.executors(key)
        pods = [pod for pod in (children["driver"], children["operation"], *executors) if pod is not None]
        return Observed(
            sink=sink,
            executors=executors,
            report=self._with_persistence(key, await self._fetch_report(sink, children["driver"])),
            competitors=self._competitors(key),
            rejections=tuple(self._current_rejections(key, sink).values()),
            nodes=self._node_readiness(pods),
            pod_event=await self._pod_event(children["driver"] or children["operation"]),
            **children,
        )

    async def poll_report(self, key: SinkKey) -> ReportFingerprint | None:
        """What the driver says of itself, without anything else; None without an answer."""
        sink = self.cache.get("S3Sink", *key)
        driver = self._child(key, "driver")
        return None if sink is None else report_fingerprint(await self._fetch_report(sink, driver))

    def record_outcome(
        self, key: SinkKey, sink: Json, written: set[tuple[str, str]], refusal: Rejection | None
    ) -> None:
        """What became of the last writes, given by kind and name."""
        known = self._current_rejections(key, sink)
        for kind, name in written:
            known.pop((kind, name), None)
            if kind == "Pod":  # it is another pod now
                known.pop(("pods/resize", name), None)
        if refusal is not None:
            known[refusal.kind, refusal.name] = refusal
        self._rejections[key] = (_generation(sink), known)
        if not known:
            del self._rejections[key]

    def forget(self, key: SinkKey) -> None:
        """The sink is gone."""
        self._rejections.pop(key, None)
        self._read.pop(key, None)
        self._missed_polls.pop(key, None)

    def has_unwatched_child(self, key: SinkKey) -> bool:
        """Whether a name of ours is taken by an object without our labels: no watch will tell when it goes."""
        children = (self._child(key, role) for role in CHILDREN)
        return any(child is not None and label(child, names.SINK_LABEL) != key.name for child in children)

    def _current_rejections(self, key: SinkKey, sink: Json) -> dict[tuple[str, str], Rejection]:
        generation, known = self._rejections.get(key, (0, {}))
        return dict(known) if generation == _generation(sink) else {}

    def _child(self, key: SinkKey, role: str) -> Json | None:
        kind, name = CHILDREN[role]
        return self.cache.get(kind, key.namespace, getattr(names, name)(key.name))

    async def _refresh(self, key: SinkKey, roles: Collection[str]) -> None:
        """Asks for each object by its name; what answers replaces what the watches told."""
        wanted = [("S3Sink", key.name)]
        wanted += [(kind, getattr(names, name)(key.name)) for role, (kind, name) in CHILDREN.items() if role in roles]
        known = [self.cache.get(kind, key.namespace, name) for kind, name in wanted]
        found = await asyncio.gather(*(self.api.get(kind, key.namespace, name) for kind, name in wanted))
        for (kind, name), before, obj in zip(wanted, known, found, strict=True):
            self.cache.on_not_found(kind, key.namespace, name, before)
            if obj is not None:
                self.cache.on_response({"kind": kind, **obj})

    def _competitors(self, key: SinkKey) -> Sequence[SinkResources]:
        """What other sinks claim, as far as it may be this one's too."""
        for changed in self.cache.drain_changed():
            sink = self.cache.get("S3Sink", *changed)
            self._resources.put(*changed, None if sink is None else self._resources_of(changed, sink))
        return self._resources.competitors(*key)

    def _resources_of(self, key: SinkKey, sink: Json) -> SinkResources | None:
        """None for a spec that is wrong, or a sink that is going: neither takes anything. A spec is read once."""
        if is_terminating(sink):
            return None
        version = f"{uid_of(sink)} {_generation(sink)}"
        if self._read.get(key, ("", None))[0] != version:
            try:
                self._read[key] = version, parse_sink(sink, for_job=False)
            except SpecError:
                self._read[key] = version, None
        read = self._read[key][1]
        return None if read is None else resources_of(read, sink)

    async def _pod_event(self, pod: Json | None) -> PodEvent | None:
        return None if pod is None else await self.pod_events.last_warning(pod)

    def _node_readiness(self, pods: list[Json]) -> dict[str, bool | None]:
        wanted = {pod.get("spec", {}).get("nodeName") for pod in pods} - {None}
        return {name: self._is_node_ready(name) for name in wanted}

    def _is_node_ready(self, name: str) -> bool | None:
        """Whether a node is ready; None: it is gone. Without a watch on nodes, none is known and all count as ready."""
        node = self.cache.get("Node", "", name)
        if node is None:
            return None if any(True for _ in self.cache.all("Node")) else True
        conditions = node.get("status", {}).get("conditions") or ()
        return all(each["status"] == "True" for each in conditions if each["type"] == "Ready")

    def _with_persistence(self, key: SinkKey, report: Report | Unreachable | None) -> Report | Unreachable | None:
        """The report, or whether there is none for long."""
        if not isinstance(report, Unreachable):
            self._missed_polls.pop(key, None)
            return report
        missed = self._missed_polls[key] = self._missed_polls.get(key, 0) + 1
        return replace(report, persistent=missed >= MAX_MISSED_POLLS)

    async def _fetch_report(self, sink: Json, driver: Json | None) -> Report | Unreachable | None:
        if driver is None or is_terminating(driver) or not is_controlled(driver, uid_of(sink)):
            return None
        if driver.get("status", {}).get("phase") != "Running":
            return None
        try:
            report = Report.model_validate_json(await self.report_client.fetch(driver))
        except (OSError, TimeoutError, ApiError) as error:
            return Unreachable(message=str(error) or type(error).__name__)
        except ValidationError as error:
            return Unreachable(message=f"its report cannot be read: {error.error_count()} fields are wrong")
        if not belongs_to(report, sink):
            said = f"{report.namespace}/{report.name} ({report.sink_id})"
            return Unreachable(message=f"what answers at its address tells of another sink, {said}")
        return report


def _generation(sink: Json) -> int:
    return int(sink["metadata"].get("generation", 0))
