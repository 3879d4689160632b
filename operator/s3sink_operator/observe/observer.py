"""Observes one sink: from the object cache or from the API server, together with the report of its driver."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from s3sink_operator import names
from s3sink_operator.config.sink_defaults import NO_DEFAULTS, SinkDefaults
from s3sink_operator.config.sink_restrictions import NO_RESTRICTIONS, SinkRestrictions
from s3sink_operator.conflicts.overlaps import resources_of
from s3sink_operator.conflicts.resource_index import ResourceIndex
from s3sink_operator.failures import pod_failures
from s3sink_operator.kube.kube_api import ApiError, KubeApi, ResponseTooLarge
from s3sink_operator.observe.limited_report import read_report
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.observe.pod_events import PodEventReader
from s3sink_operator.observe.required_roles import Role
from s3sink_operator.observe.spec_cache import ParsedSink, SpecCache
from s3sink_operator.observe.stop_action import has_publish_policy, stop_action
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.reasons import Reason
from s3sink_operator.types import (
    REPLACEMENT_KIND,
    Json,
    Observed,
    ParsedSpec,
    PodEvent,
    Rejection,
    SinkResources,
    Unreachable,
    is_controlled,
    is_terminating,
    label,
    uid_of,
)
from s3sink_operator.watch.cached_objects import omitted_size
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from sink_job.api.enums import StopAction
from sink_job.api.report import Report

_log = logging.getLogger(__name__)

ALL_ROLES: Final = frozenset(Role)
MAX_MISSED_POLLS: Final = 3
"""Consecutive failed polls of a report before it is reported: a busy driver may answer late once."""
MAX_MISSED_POLLS_AT_END: Final = 30
"""The same of a driver that reported its end: at least a minute, as its process may end late and the kubelet later."""


ReportFingerprint = tuple[object, ...]
"""The part of a report whose change requires a reconcile pass. Changed figures alone do not."""


def report_fingerprint(report: Report | Unreachable | None) -> ReportFingerprint | None:
    """None without a report."""
    if not isinstance(report, Report):
        return None
    return (
        report.state,
        report.failure,
        report.epoch,
        report.assigned_partitions,
        report.executor_denial,
        report.executor_rejection,
        report.no_progress_ms is None,
        report.memory.applied_bytes,
    )


def belongs_to(report: Report, sink: Json) -> bool:
    """Whether the report is of this sink. The address of a deleted pod may belong to another pod by now."""
    spec, meta = sink.get("spec"), sink["metadata"]
    chosen = spec.get("sinkId") if isinstance(spec, dict) else None
    sink_id = chosen or f"{meta.get('namespace')}.{meta.get('name')}"
    return (report.namespace, report.name, report.sink_id) == (meta.get("namespace"), meta.get("name"), sink_id)


class ReportClient(Protocol):
    """Fetches the report of a driver, and sets what the driver does at SIGTERM. Raises OSError, TimeoutError or
    ApiError."""

    async def fetch(self, pod: Json, at_stop: StopAction) -> bytes:
        """The response of `/report`."""
        ...


@dataclass
class Observer:
    """Observes sinks. Keeps the rejections of the API server until the object is written or the sink is edited."""

    api: KubeApi
    cache: ObjectCache
    report_client: ReportClient
    pod_events: PodEventReader
    templates: TemplateChecker
    owners: OwnerChecker
    defaults: SinkDefaults = NO_DEFAULTS
    restrictions: SinkRestrictions = NO_RESTRICTIONS
    _rejections: dict[SinkKey, tuple[int, dict[tuple[str, str], Rejection]]] = field(default_factory=dict)
    resources: ResourceIndex = field(default_factory=ResourceIndex)
    _indexing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _specs: SpecCache = field(init=False)
    _missed_polls: dict[SinkKey, int] = field(default_factory=dict)
    _terminating_namespaces: dict[SinkKey, str] = field(default_factory=dict)
    _parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """One report is parsed at a time: the memory for it does not depend on the number of sinks."""

    def __post_init__(self) -> None:
        self._specs = SpecCache(self.defaults, self.restrictions)

    async def observe(self, key: SinkKey, *, refresh: Collection[Role]) -> Observed | None:
        """The state of a sink; None if it is gone. `refresh`: what to read from the API server; the rest is as cached.
        Raises ApiError."""
        await self._refresh(key, refresh)
        sink = await self._whole_sink(key)
        if sink is None:
            return None
        driver, operation = self._child(key, Role.DRIVER), self._child(key, Role.OPERATION)
        parsed = await self._checked(sink, self._specs.parse(sink), driver)
        namespace_terminating = await self._is_namespace_terminating(key, sink, driver)
        if namespace_terminating or (driver is not None and is_terminating(driver) and has_publish_policy(sink)):
            await self._answer_stopping(sink, driver, namespace_terminating=namespace_terminating)
        await self._index_changed()
        executors = self.cache.executors(key)
        pods = [pod for pod in (driver, operation, *executors) if pod is not None]
        return Observed(
            sink=sink,
            spec=parsed.spec,
            reset=parsed.reset,
            skip_error=parsed.skip_error,
            config_map=self._child(key, Role.CONFIG_MAP),
            service_account=self._child(key, Role.SERVICE_ACCOUNT),
            role_binding=self._child(key, Role.ROLE_BINDING),
            driver=driver,
            operation=operation,
            executors=executors,
            report=self._with_persistence(key, await self._fetch_report(sink, driver)),
            competitors=self.resources.competitors(*key),
            compares_topics=self.resources.has_indexed_topics(*key),
            namespace_terminating=namespace_terminating,
            rejections=tuple(self._current_rejections(key, sink).values()),
            nodes=self._node_readiness(pods),
            owner=await self.owners.owner(sink, [pod for pod in (driver, operation) if pod is not None]),
            pod_event=await self._pod_event(driver or operation),
        )

    async def _whole_sink(self, key: SinkKey) -> Json | None:
        """The sink. One that is cached without its spec is read if it is being deleted, which needs the spec, and as
        soon as its namespace has room for it. Raises ApiError."""
        sink = self.cache.get("S3Sink", *key)
        if sink is None or not omitted_size(sink):
            return sink
        if is_terminating(sink):
            whole = await self.api.get("S3Sink", *key)
            return None if whole is None else {"kind": "S3Sink", **whole}
        if self.cache.has_room(sink):
            await self._refresh(key, {Role.SINK})
        return self.cache.get("S3Sink", *key)

    async def poll_report(self, key: SinkKey) -> ReportFingerprint | None:
        """The fingerprint of the driver's report and nothing else; None without an answer."""
        sink = self.cache.get("S3Sink", *key)
        driver = self._child(key, Role.DRIVER)
        return None if sink is None else report_fingerprint(await self._fetch_report(sink, driver))

    def record_outcome(
        self, key: SinkKey, sink: Json, written: set[tuple[str, str]], rejection: Rejection | None
    ) -> None:
        """Records the outcome of the last writes, given by kind and name."""
        known = self._current_rejections(key, sink)
        for kind, name in written:
            known.pop((kind, name), None)
            if kind == "Pod":  # another pod now
                known.pop(("pods/resize", name), None)
                known.pop((REPLACEMENT_KIND, name), None)
        if rejection is not None:
            known[rejection.kind, rejection.name] = rejection
        self._rejections[key] = (_generation(sink), known)
        if not known:
            del self._rejections[key]

    def forget(self, key: SinkKey) -> None:
        """Removes the state of a deleted sink."""
        self._rejections.pop(key, None)
        self._specs.forget(*key)
        self.templates.forget(*key)
        self._terminating_namespaces.pop(key, None)
        self._missed_polls.pop(key, None)
        self.cache.forget(key)
        if self.cache.get("S3Sink", *key) is None:
            self.resources.put(*key, None)
        for role in (Role.DRIVER, Role.OPERATION):
            self.pod_events.forget(key.namespace, role.object_name(key.name))

    def has_unwatched_child(self, key: SinkKey) -> bool:
        """Whether an object without the operator's labels has the name of a child. No watch reports its deletion."""
        children = (self._child(key, role) for role in Role if role is not Role.SINK)
        return any(child is not None and label(child, names.SINK_LABEL) != key.name for child in children)

    def _current_rejections(self, key: SinkKey, sink: Json) -> dict[tuple[str, str], Rejection]:
        generation, known = self._rejections.get(key, (0, {}))
        return dict(known) if generation == _generation(sink) else {}

    def _child(self, key: SinkKey, role: Role) -> Json | None:
        return self.cache.get(role.kind, key.namespace, role.object_name(key.name))

    async def _refresh(self, key: SinkKey, roles: Collection[Role]) -> None:
        """Reads objects by name into the cache."""
        targets = [(role.kind, role.object_name(key.name)) for role in Role if role in roles]
        cached = [self.cache.get(kind, key.namespace, name) for kind, name in targets]
        found = await asyncio.gather(*(self.api.get(kind, key.namespace, name) for kind, name in targets))
        for (kind, name), before, obj in zip(targets, cached, found, strict=True):
            self.cache.on_not_found(kind, key.namespace, name, before)
            if obj is not None:
                self.cache.on_response({"kind": kind, **obj})

    async def _checked(self, sink: Json, parsed: ParsedSink, driver: Json | None) -> ParsedSink:
        """The parsed sink; with an error if the API server rejects one of its pod templates."""
        found = parsed.spec.sink
        error = "" if found is None else await self.templates.error(sink, found, driver)
        return replace(parsed, spec=ParsedSpec(sink=None, error=error), reset=None) if error else parsed

    async def _index_changed(self) -> None:
        """Indexes the resources of the sinks that have changed, at the start of all sinks. Other passes wait, so that
        none decides on a part of them; other tasks, such as the renewal of the Lease, run after each sink."""
        async with self._indexing:
            for _ in range(self.cache.changed_count):
                if (changed := self.cache.take_changed()) is None:
                    return
                self._index(changed)
                if self.cache.changed_count:
                    await asyncio.sleep(0)

    def _index(self, key: SinkKey) -> None:
        """Indexes the resources of one sink. An unexpected error does not fail the passes of other sinks."""
        sink = self.cache.get("S3Sink", *key)
        try:
            self.resources.put(*key, None if sink is None else self._resources_of(sink))
        except Exception:
            _log.exception("%s: its resources cannot be compared with those of other sinks", key)
            self.resources.put(*key, None)

    def _resources_of(self, sink: Json) -> SinkResources | None:
        """None for a sink that is deleted or whose spec cannot be parsed: neither owns resources."""
        readable = None if is_terminating(sink) else self._specs.parse(sink).readable
        return None if readable is None else resources_of(readable, sink)

    async def _pod_event(self, pod: Json | None) -> PodEvent | None:
        return None if pod is None else await self.pod_events.last_warning(pod)

    def _node_readiness(self, pods: list[Json]) -> dict[str, bool | None]:
        nodes = {pod.get("spec", {}).get("nodeName") for pod in pods} - {None}
        return {name: self._is_node_ready(name) for name in nodes}

    def _is_node_ready(self, name: str) -> bool | None:
        """Whether a node is ready; None if it is gone. Without a watch on nodes all of them count as ready."""
        node = self.cache.get("Node", "", name)
        if node is None:
            return None if any(True for _ in self.cache.all("Node")) else True
        conditions = node.get("status", {}).get("conditions") or ()
        return all(each["status"] == "True" for each in conditions if each["type"] == "Ready")

    def _with_persistence(self, key: SinkKey, report: Report | Unreachable | None) -> Report | Unreachable | None:
        """The report; or the failure, marked as persistent after some consecutive failures."""
        if not isinstance(report, Unreachable):
            self._missed_polls.pop(key, None)
            return report
        missed = self._missed_polls[key] = self._missed_polls.get(key, 0) + 1
        return replace(report, persistent=missed >= MAX_MISSED_POLLS, overdue=missed >= MAX_MISSED_POLLS_AT_END)

    async def _is_namespace_terminating(self, key: SinkKey, sink: Json, driver: Json | None) -> bool:
        """Whether the namespace is terminating, for a sink with deletionPolicy Publish whose driver is being deleted.

        A dry run needs no permission on namespaces: in a terminating one the API server rejects every creation.
        """
        if self._terminating_namespaces.get(key) == uid_of(sink):
            return True
        if driver is None or not is_terminating(driver) or not has_publish_policy(sink):
            return False
        meta = {"generateName": f"{key.name}-s3sink-check-", "namespace": key.namespace}
        try:
            await self.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, dry_run=True)
        except ApiError as error:
            if not pod_failures.is_terminating_namespace_message(error.status, error.message):
                return False
            self._terminating_namespaces[key] = uid_of(sink)
            return True
        return False

    async def _answer_stopping(self, sink: Json, driver: Json | None, *, namespace_terminating: bool) -> None:
        """Sends a driver that is being deleted what it does. Without success it is sent again in the next pass."""
        if driver is None or not is_controlled(driver, uid_of(sink)) or pod_failures.termination_failure(driver):
            return
        if not is_terminating(driver) or driver.get("status", {}).get("phase") != "Running":
            return
        with contextlib.suppress(OSError, TimeoutError, ApiError):
            action = stop_action(sink, driver, namespace_terminating=namespace_terminating)
            await self.report_client.fetch(driver, action)

    async def _fetch_report(self, sink: Json, driver: Json | None) -> Report | Unreachable | None:
        if driver is None or is_terminating(driver) or not is_controlled(driver, uid_of(sink)):
            return None
        if driver.get("status", {}).get("phase") != "Running":
            return None
        try:
            action = stop_action(sink, driver, namespace_terminating=False)
            text = await self.report_client.fetch(driver, action)
            async with self._parsing:
                report = await asyncio.to_thread(read_report, text)
        except ResponseTooLarge as error:
            return Unreachable(message=str(error), reason=Reason.REPORT_TOO_LARGE)
        except (OSError, TimeoutError, ApiError) as error:
            return Unreachable(message=str(error) or type(error).__name__)
        if isinstance(report, Unreachable):
            return report
        if not belongs_to(report, sink):
            other = f"{report.namespace}/{report.name} ({report.sink_id})"
            return Unreachable(message=f"the report at its address is of another sink, {other}")
        return report


def _generation(sink: Json) -> int:
    return int(sink["metadata"].get("generation", 0))
