"""One look at a sink: from what the watches told, or fresh from the API server, and what its driver says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import ValidationError

from s3sink_operator import names
from s3sink_operator.conflicts import Claims, claim_of
from s3sink_operator.kube_api import Api, ApiError
from s3sink_operator.object_cache import SinkKey, Store
from s3sink_operator.pod_events import Kubelet
from s3sink_operator.types import (
    Claim,
    Json,
    Observed,
    PodWarning,
    Refusal,
    Unreachable,
    is_controlled,
    is_ending,
    label,
    uid_of,
)
from sink_job.api.errors import InvalidSpec
from sink_job.api.report import Report
from sink_job.api.spec import Sink, parse_sink

CHILDREN: Mapping[str, tuple[str, ...]] = {
    "config": ("ConfigMap", "config_name"),
    "account": ("ServiceAccount", "account_name"),
    "binding": ("RoleBinding", "binding_name"),
    "driver": ("Pod", "driver_name"),
    "task": ("Pod", "task_name"),
}
TOLD = frozenset({"driver"})
"""The children that a status speaks of: it is written with the version of the sink that was seen, and corrected by the
next look, so what only leads to a status asks for no others."""

MISSES = 3
"""Looks in a row without a report, after which it is told: one answer may come late, of a driver that is busy."""

Gist = tuple[object, ...]
"""What of a report is worth a whole look as soon as it changes; figures alone are not."""


def gist_of(report: Report | Unreachable | None) -> Gist | None:
    """None without a report."""
    if not isinstance(report, Report):
        return None
    return report.state, report.failure, report.epoch, report.assigned_partitions


def is_of(report: Report, sink: Json) -> bool:
    """Whether the report tells of this sink: the address of a pod that is gone may be another's by now."""
    spec, meta = sink.get("spec"), sink["metadata"]
    chosen = spec.get("sinkId") if isinstance(spec, dict) else None
    wanted = chosen or f"{meta.get('namespace')}.{meta.get('name')}"
    return (report.namespace, report.name, report.sink_id) == (meta.get("namespace"), meta.get("name"), wanted)


class Reports(Protocol):
    """Where a driver's report comes from. Raises OSError, TimeoutError or ApiError without one."""

    async def fetch(self, pod: Json) -> bytes:
        """What `/report` answers."""
        ...


@dataclass
class Observer:
    """Looks at sinks, and remembers what the API server refused: until it takes that object, or the sink is edited."""

    api: Api
    store: Store
    reports: Reports
    kubelet: Kubelet
    _refusals: dict[SinkKey, tuple[int, dict[tuple[str, str], Refusal]]] = field(default_factory=dict)
    _claims: Claims = field(default_factory=Claims)
    _read: dict[SinkKey, tuple[str, Sink | None]] = field(default_factory=dict)
    _missed: dict[SinkKey, int] = field(default_factory=dict)

    async def look(self, key: SinkKey, *, asking: Collection[str] | None) -> Observed | None:
        """What there is of a sink; None when the sink itself is gone. `asking`: the API server is asked for the sink
        and for these of its children (keys of CHILDREN), None: for nothing. Raises ApiError."""
        if asking is not None:
            await self._refresh(key, asking)
        sink = self.store.get("S3Sink", *key)
        if sink is None:
            return None
        children = {role: self._child(key, role) for role in CHILDREN}
        executors = self.store.executors(key)
        pods = [pod for pod in (children["driver"], children["task"], *executors) if pod is not None]
        return Observed(
            sink=sink,
            executors=executors,
            report=self._counted(key, await self._report(sink, children["driver"])),
            others=self._rivals(key),
            refusals=tuple(self._refused(key, sink).values()),
            nodes=self._nodes(pods),
            warning=await self._warning(children["driver"] or children["task"]),
            **children,
        )

    async def glance(self, key: SinkKey) -> Gist | None:
        """What the driver says of itself, without anything else; None without an answer."""
        sink = self.store.get("S3Sink", *key)
        driver = self._child(key, "driver")
        return None if sink is None else gist_of(await self._report(sink, driver))

    def note(self, key: SinkKey, sink: Json, written: set[tuple[str, str]], refusal: Refusal | None) -> None:
        """What became of the last writes, given by kind and name."""
        known = self._refused(key, sink)
        for kind, name in written:
            known.pop((kind, name), None)
            if kind == "Pod":  # it is another pod now
                known.pop(("pods/resize", name), None)
        if refusal is not None:
            known[refusal.kind, refusal.name] = refusal
        self._refusals[key] = (_generation(sink), known)
        if not known:
            del self._refusals[key]

    def forget(self, key: SinkKey) -> None:
        """The sink is gone."""
        self._refusals.pop(key, None)
        self._read.pop(key, None)
        self._missed.pop(key, None)

    def is_blind(self, key: SinkKey) -> bool:
        """Whether a name of ours is taken by an object without our labels: no watch will tell when it goes."""
        children = (self._child(key, role) for role in CHILDREN)
        return any(child is not None and label(child, names.SINK) != key.name for child in children)

    def _refused(self, key: SinkKey, sink: Json) -> dict[tuple[str, str], Refusal]:
        generation, known = self._refusals.get(key, (0, {}))
        return dict(known) if generation == _generation(sink) else {}

    def _child(self, key: SinkKey, role: str) -> Json | None:
        kind, name = CHILDREN[role]
        return self.store.get(kind, key.namespace, getattr(names, name)(key.name))

    async def _refresh(self, key: SinkKey, roles: Collection[str]) -> None:
        """Asks for each object by its name; what answers replaces what the watches told."""
        wanted = [("S3Sink", key.name)]
        wanted += [(kind, getattr(names, name)(key.name)) for role, (kind, name) in CHILDREN.items() if role in roles]
        known = [self.store.get(kind, key.namespace, name) for kind, name in wanted]
        found = await asyncio.gather(*(self.api.get(kind, key.namespace, name) for kind, name in wanted))
        for (kind, name), before, obj in zip(wanted, known, found, strict=True):
            self.store.forget(kind, key.namespace, name, before)
            if obj is not None:
                self.store.learn({"kind": kind, **obj})

    def _rivals(self, key: SinkKey) -> Sequence[Claim]:
        """What other sinks claim, as far as it may be this one's too."""
        for changed in self.store.take_changed():
            sink = self.store.get("S3Sink", *changed)
            self._claims.put(*changed, None if sink is None else self._claim(changed, sink))
        return self._claims.rivals(*key)

    def _claim(self, key: SinkKey, sink: Json) -> Claim | None:
        """None for a spec that is wrong, or a sink that is going: neither takes anything. A spec is read once."""
        if is_ending(sink):
            return None
        version = f"{uid_of(sink)} {_generation(sink)}"
        if self._read.get(key, ("", None))[0] != version:
            try:
                self._read[key] = version, parse_sink(sink, for_job=False)
            except InvalidSpec:
                self._read[key] = version, None
        read = self._read[key][1]
        return None if read is None else claim_of(read, sink)

    async def _warning(self, pod: Json | None) -> PodWarning | None:
        return None if pod is None else await self.kubelet.warning(pod)

    def _nodes(self, pods: list[Json]) -> dict[str, bool | None]:
        wanted = {pod.get("spec", {}).get("nodeName") for pod in pods} - {None}
        return {name: self._is_ready(name) for name in wanted}

    def _is_ready(self, name: str) -> bool | None:
        """Whether a node is ready; None: it is gone. Without a watch on nodes, none is known and all count as ready."""
        node = self.store.get("Node", "", name)
        if node is None:
            return None if any(True for _ in self.store.all("Node")) else True
        conditions = node.get("status", {}).get("conditions") or ()
        return all(each["status"] == "True" for each in conditions if each["type"] == "Ready")

    def _counted(self, key: SinkKey, report: Report | Unreachable | None) -> Report | Unreachable | None:
        """The report, or whether there is none for long."""
        if not isinstance(report, Unreachable):
            self._missed.pop(key, None)
            return report
        missed = self._missed[key] = self._missed.get(key, 0) + 1
        return replace(report, lasts=missed >= MISSES)

    async def _report(self, sink: Json, driver: Json | None) -> Report | Unreachable | None:
        if driver is None or is_ending(driver) or not is_controlled(driver, uid_of(sink)):
            return None
        if driver.get("status", {}).get("phase") != "Running":
            return None
        try:
            report = Report.model_validate_json(await self.reports.fetch(driver))
        except (OSError, TimeoutError, ApiError) as error:
            return Unreachable(why=str(error) or type(error).__name__)
        except ValidationError as error:
            return Unreachable(why=f"its report cannot be read: {error.error_count()} fields are wrong")
        if not is_of(report, sink):
            said = f"{report.namespace}/{report.name} ({report.sink_id})"
            return Unreachable(why=f"what answers at its address tells of another sink, {said}")
        return report


def _generation(sink: Json) -> int:
    return int(sink["metadata"].get("generation", 0))
