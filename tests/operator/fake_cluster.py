"""A small cluster in memory: the uniqueness checks of an API server, a scripted kubelet, and a clock.

It carries out decisions in the order that `Decision` promises, as many of their writes as a test allows: so an
operator is killed after each of them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from s3sink_operator import names
from s3sink_operator.config.sink_restrictions import NO_RESTRICTIONS, SinkRestrictions
from s3sink_operator.decide.chain import decide
from s3sink_operator.objects import CONTAINER, has_executors
from s3sink_operator.observe.spec_cache import ParsedSink, parse
from s3sink_operator.types import (
    Decision,
    Delete,
    Json,
    Observed,
    ObservedOwner,
    Rejection,
    Resize,
    RolloutGate,
    Settings,
    SinkResources,
    Unreachable,
    to_timestamp,
)
from s3sink_operator.watch.cached_objects import OMITTED
from sink_job.api.allocation import Allocation
from sink_job.api.report import Failure, FinalReport, MemoryReport, PartitionReport, Report, RunState
from sink_job.api.units.quantities import format_size

START = 1_760_000_000_000
MINUTE = 60_000
SETTINGS = Settings(image="registry.example.com/s3sink-job:1", cluster_id="c1")

SPEC: Json = {
    "kafka": {"bootstrapServers": "kafka:9092", "topics": ["flights"]},
    "rotation": {"flushSize": 100},
    "s3": {"bucket": "archive"},
    "executor": {"mode": "Local"},
}


LOAD = MemoryReport(slots=1, open_objects=1, max_open_objects=1, part_size=25 << 20, buffered_bytes=1 << 20)
"""A small sink at work."""


def document(name: str = "flights", uid: str = "sink-uid", **spec: Any) -> Json:
    """An S3Sink as the API server gives it. `spec` replaces whole sections; None takes one away."""
    merged = {key: value for key, value in (SPEC | spec).items() if value is not None}
    return {
        "apiVersion": "s3sink.io/v1alpha1",
        "kind": "S3Sink",
        "metadata": {
            "name": name,
            "namespace": "data",
            "uid": uid,
            "generation": 1,
            "creationTimestamp": to_timestamp(START),
        },
        "spec": copy.deepcopy(merged),
    }


def report(
    state: RunState = RunState.RUNNING, *, now: int = START, lag: int = 0, lag_ms: int | None = 0, **changes: Any
) -> Report:
    """The report of a driver of one topic-partition."""
    partition = PartitionReport(
        topic="flights", partition=0, committed=100, next=100, end=100 + lag, lag=lag, lag_ms=lag_ms
    )
    given: dict[str, Any] = {
        "sink_id": "data.flights",
        "name": "flights",
        "namespace": "data",
        "state": state,
        "epoch": 3,
        "round": 7,
        "now": now,
        "started_at": START,
        "assigned_partitions": 1,
        "partitions": [partition],
        "memory": MemoryReport(slots=1, open_objects=1, max_open_objects=1, part_size=25 << 20, buffered_bytes=1 << 20),
    }
    return Report(**(given | changes))


RESTARTED = ["delete flights-s3sink-driver", "create flights-s3sink-driver"]


@lru_cache(maxsize=4096)
def _parse(text: str) -> ParsedSink:
    found: ParsedSink = parse(json.loads(text))
    return found


def parse_again(sink: Json) -> ParsedSink:
    """The sink as the observer parses it, also where a test edits the spec without a new generation."""
    return _parse(json.dumps({name: sink[name] for name in ("metadata", "spec", OMITTED) if name in sink}))


@dataclass
class Cluster:
    """One sink and what belongs to it. `objects`: by kind and name. `deletes_slowly`: a deleted pod
    terminates for a minute. `is_removed`: the API server has removed the sink."""

    sink: Json = field(default_factory=document)
    settings: Settings = SETTINGS
    restrictions: SinkRestrictions = NO_RESTRICTIONS
    now: int = START
    deletes_slowly: bool = False
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)
    report: Report | Unreachable | None = None
    others: Sequence[SinkResources] = ()
    compares_topics: bool = True
    rejections: Sequence[Rejection] = ()
    nodes: dict[str, bool | None] = field(default_factory=dict)
    executors: Sequence[Json] | None = None
    rollout: RolloutGate = field(default_factory=RolloutGate)
    log: list[str] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    is_removed: bool = False
    namespace_terminating: bool = False
    owner: ObservedOwner | None = None
    load: MemoryReport = field(default_factory=lambda: LOAD)
    _uids: int = 0

    # -- its state -----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return str(self.sink["metadata"]["name"])

    def get(self, kind: str, name: str) -> Json | None:
        return self.objects.get((kind, name))

    @property
    def driver(self) -> Json | None:
        return self.get("Pod", names.driver_pod_name(self.name))

    @property
    def operation(self) -> Json | None:
        return self.get("Pod", names.operation_pod_name(self.name))

    @property
    def status(self) -> Json:
        return dict(self.sink.get("status") or {})

    @property
    def allocation(self) -> Allocation:
        """The allocation in the ConfigMap of the sink."""
        config_map = self.get("ConfigMap", names.config_map_name(self.name))
        assert config_map is not None
        allocation = Allocation.parse(config_map["data"]["allocation.json"])
        assert allocation is not None
        return allocation

    def condition(self, kind: str) -> Json:
        return next((each for each in self.status["conditions"] if each["type"] == kind), {})

    @property
    def ready(self) -> tuple[str, str]:
        found = self.condition("Ready")
        return found["status"], found["reason"]

    def observe(self) -> Observed:
        defaults = self.settings.sink_defaults
        is_plain = defaults.is_empty and not self.restrictions.enabled
        parsed = parse_again(self.sink) if is_plain else parse(self.sink, defaults, self.restrictions)
        return Observed(
            sink=copy.deepcopy(self.sink),
            spec=parsed.spec,
            reset=parsed.reset,
            skip_error=parsed.skip_error,
            config_map=self.get("ConfigMap", names.config_map_name(self.name)),
            service_account=self.get("ServiceAccount", names.service_account_name(self.name)),
            role_binding=self.get("RoleBinding", names.role_binding_name(self.name)),
            driver=self.driver,
            operation=self.operation,
            executors=self.executors if self.executors is not None else self._usual_executors(),
            report=self.report if self.driver is not None else None,
            competitors=self.others,
            compares_topics=self.compares_topics,
            namespace_terminating=self.namespace_terminating,
            owner=self.owner,
            rejections=self.rejections,
            nodes=self.nodes,
            rollout=self.rollout,
        )

    def _usual_executors(self) -> Sequence[Json]:
        """What Spark makes as soon as the driver runs, and the kubelet starts."""
        driver = self.driver
        if driver is None or not has_executors(driver) or driver["status"]["phase"] != "Running":
            return ()
        config = self.get("ConfigMap", names.config_map_name(self.name)) or {}
        allocated = Allocation.parse(str((config.get("data") or {}).get("allocation.json")))
        count = self.sink["spec"]["executor"].get("instances", 1) if allocated is None else allocated.executors
        return [self.executor(number) for number in range(1, count + 1)]

    def executor(self, number: int, *, memory: int | None = None, **status: Any) -> Json:
        """An executor of the driver that is there; with `memory` bytes, if they are given."""
        assert self.driver is not None
        sizes = {} if memory is None else {"memory": format_size(memory)}
        container = {"name": CONTAINER, "resources": {"requests": dict(sizes), "limits": dict(sizes)}}
        labels = {**self.driver["metadata"]["labels"], names.COMPONENT_LABEL: names.Component.EXECUTOR.value}
        name = f"{self.name}-{labels[names.ATTEMPT_LABEL]}-exec-{number}"
        owner = {"apiVersion": "v1", "kind": "Pod", "uid": self.driver["metadata"]["uid"], "controller": True}
        return {
            "metadata": {"name": name, "namespace": "data", "uid": name, "labels": labels, "ownerReferences": [owner]},
            "spec": {"containers": [container]},
            "status": {"phase": "Running"} | status,
        }

    def decide(self) -> Decision:
        return decide(self.observe(), self.settings, self.now)

    # -- the operator --------------------------------------------------------------------------------------------------

    def reconcile(self, writes: int | None = None) -> int:
        """One reconcile pass, of whose writes the first `writes` are done. Returns how many were done."""
        decision = self.decide()
        done = 0
        for write in self._writes(decision):
            if writes is not None and done >= writes:
                break
            write()
            done += 1
        return done

    def converge(self, *, max_passes: int = 20) -> int:
        """Reconciles until nothing is left to write, without time passing. Returns the number of writes."""
        total = 0
        for _ in range(max_passes):
            done = self.reconcile()
            if not done:
                return total
            total += done
        raise AssertionError(f"it does not converge: {self.log[-12:]}")

    def converge_with_kubelet(self, *, max_passes: int = 40) -> int:
        """Reconciles while the kubelet starts pods and operations succeed, until nothing changes any more. Returns the
        number of writes."""
        total = 0
        for _ in range(max_passes):
            done = self.reconcile()
            moved = self.kubelet()
            total += done
            if not done and not moved:
                return total
        raise AssertionError(f"it does not converge: {self.log[-12:]}")

    def _writes(self, decision: Decision) -> Iterator[Any]:
        adds = decision.writes.finalizers is not None and names.FINALIZER in decision.writes.finalizers
        if adds:
            yield lambda: self._finalizers(decision.writes.finalizers or ())
        if decision.status is not None:
            yield lambda: self._status(decision.status or {})
        for each in decision.writes.apply:
            yield lambda each=each: self._apply(each)
        for deletion in decision.writes.delete:
            yield lambda deletion=deletion: self._delete(deletion)
        for size in decision.writes.resize:
            yield lambda size=size: self._resize(size)
        for pod in decision.writes.create:
            yield lambda pod=pod: self._create(pod)
        for event in decision.events:
            yield lambda event=event: self.events.append((event.type.value, event.reason))
        if decision.writes.finalizers is not None and not adds:
            yield lambda: self._finalizers(decision.writes.finalizers or ())

    def _status(self, status: Json) -> None:
        self.sink["status"] = copy.deepcopy(status)
        self.log.append("status")

    def _finalizers(self, finalizers: Sequence[str]) -> None:
        self.sink["metadata"]["finalizers"] = list(finalizers)
        self.log.append(f"finalizers {len(finalizers)}")
        self.is_removed = self.is_removed or ("deletionTimestamp" in self.sink["metadata"] and not finalizers)

    def _apply(self, obj: Json) -> None:
        key = obj["kind"], obj["metadata"]["name"]
        self.objects[key] = _merged(self.objects.get(key, {}), obj)
        if "data" in obj:  # what the operator has written before and does not any more, the API server takes away
            self.objects[key]["data"] = dict(obj["data"])
        if obj["kind"] == "ServiceAccount":
            self.objects[key]["metadata"]["annotations"] = dict(obj["metadata"].get("annotations") or {})
        self._named(self.objects[key])
        self.log.append(f"apply {obj['kind']}")

    def _create(self, pod: Json) -> None:
        key = pod["kind"], pod["metadata"]["name"]
        assert key not in self.objects, f"{key} is there already"
        made = copy.deepcopy(pod)
        made["status"] = {"phase": "Pending"}
        self.objects[key] = self._named(made)
        self.log.append(f"create {pod['metadata']['name']}")

    def _named(self, obj: Json) -> Json:
        if "uid" not in obj["metadata"]:
            self._uids += 1
            obj["metadata"] |= {"uid": f"uid-{self._uids}", "creationTimestamp": to_timestamp(self.now)}
        return obj

    def _delete(self, deletion: Delete) -> None:
        key = deletion.kind, deletion.name
        if self._executor_named(deletion.name) is not None:
            self.executors = [each for each in self.executors or () if each["metadata"]["name"] != deletion.name]
            self.log.append(f"delete {deletion.name}")
            return
        there = self.objects.get(key)
        assert there is not None, f"{key} is not there"
        assert there["metadata"]["uid"] == deletion.uid
        self.log.append(f"delete {deletion.name}{' by force' if deletion.grace_s == 0 else ''}")
        if self.deletes_slowly and deletion.grace_s != 0:
            there["metadata"]["deletionTimestamp"] = to_timestamp(self.now + 60_000)
        else:
            self.remove(*key)

    def _resize(self, size: Resize) -> None:
        executor = self._executor_named(size.pod)
        pod = self.objects[("Pod", size.pod)] if executor is None else executor
        assert pod["metadata"]["uid"] == size.uid
        container = next(each for each in pod["spec"]["containers"] if each["name"] == size.container)
        for kind in ("requests", "limits"):
            container["resources"][kind]["memory"] = format_size(size.memory)
        self.log.append("resize" if executor is None else f"resize {size.pod}")

    def _executor_named(self, name: str) -> Json | None:
        return next((each for each in self.executors or () if each["metadata"]["name"] == name), None)

    # -- the kubelet, people and time ----------------------------------------------------------------------------------

    def remove(self, kind: str, name: str) -> None:
        """Takes an object away, if it is there."""
        self.objects.pop((kind, name), None)
        if name == names.driver_pod_name(self.name):
            self.report = None

    def kubelet(self) -> bool:
        """Starts a pending pod, lets an operation succeed, or removes a terminating pod: whether anything happened."""
        for key, pod in [each for each in self.objects.items() if each[0][0] == "Pod"]:
            if "deletionTimestamp" in pod["metadata"]:
                self.remove(*key)
                return True
            if pod["status"]["phase"] == "Pending":
                if key[1] == names.operation_pod_name(self.name):
                    self.end(pod, exit_code=0)
                else:
                    self.run()
                return True
        return False

    def run(self, state: RunState = RunState.RUNNING, **changes: Any) -> None:
        """The driver's process runs, and its pod reports it."""
        assert self.driver is not None
        started = {"name": CONTAINER, "started": True, "state": {"running": {"startedAt": to_timestamp(self.now)}}}
        self.driver["status"] = {"phase": "Running", "containerStatuses": [started]}
        self.driver["spec"]["nodeName"] = "node-1"
        given: dict[str, Any] = {"now": self.now, "memory": self.load} | changes
        self.report = report(state, **given)

    def report_load(self, active: int, *, remainder: int, applied: int | None = None, follows: bool = True) -> None:
        """The driver reports these active topic-partitions, each with `remainder` bytes. It has applied `applied` bytes
        of memory, by default the allocation; without `follows` it does not report what it has applied."""
        applied = (applied or self.allocation.memory) if follows else None
        memory = MemoryReport(slots=2, active_partitions=active, remainder_bytes=remainder, applied_bytes=applied)
        self.report = report(now=self.now, memory=memory)

    def fail(self, error: Exception | None = None, **how: Any) -> None:
        """The driver's process ends, if there is one; with `error` it says why."""
        if self.driver is None:
            return
        failure = None if error is None else Failure.of(error)
        ending = None if failure is None else FinalReport(epoch=3, round=9, failure=failure).termination_message()
        code = how.pop("exit_code", 1 if failure is None else failure.exit_code)
        self.end(self.driver, exit_code=code, message=ending, **how)
        self.report = None

    def end(self, pod: Json, *, exit_code: int, message: str | None = None, reason: str = "") -> None:
        ended = {"exitCode": exit_code, "reason": reason, "finishedAt": to_timestamp(self.now), "message": message}
        phase = "Succeeded" if exit_code == 0 else "Failed"
        pod["status"] = {"phase": phase, "containerStatuses": [{"name": CONTAINER, "state": {"terminated": ended}}]}

    def edit(self, **sections: Any) -> None:
        """A user edits the spec: whole sections, None removes one."""
        spec = self.sink["spec"] | sections
        self.sink["spec"] = copy.deepcopy({key: value for key, value in spec.items() if value is not None})
        self.sink["metadata"]["generation"] += 1

    def annotate(self, annotations: Mapping[str, str]) -> None:
        self.sink["metadata"].setdefault("annotations", {}).update(annotations)

    def delete_sink(self) -> None:
        self.sink["metadata"]["deletionTimestamp"] = to_timestamp(self.now)

    def wait(self, ms: int) -> None:
        self.now += ms


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return copy.deepcopy(new)


def running(**spec: Any) -> Cluster:
    """A running sink with a complete status."""
    cluster = Cluster(sink=document(**spec))
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running"), cluster.status
    cluster.log.clear()
    cluster.events.clear()
    return cluster


def actions(cluster: Cluster) -> list[str]:
    return [each for each in cluster.log if each != "status"]


def stopping() -> Cluster:
    """A sink that is being stopped: the pod that publishes what is open is there."""
    cluster = running()
    cluster.edit(state="Stopped")
    while cluster.operation is None:
        cluster.reconcile()
    return cluster


def attempt(cluster: Cluster) -> str:
    assert cluster.driver is not None
    return str(cluster.driver["metadata"]["labels"][names.ATTEMPT_LABEL])
