"""An S3Sink in a namespace, with what an operator has made of it, and the harness that plays the rest of a cluster."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devtools.faults.kube_proxy import Call, KubeFaults, writes
from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import Operator
from devtools.processes import ServerFailedError, wait_until
from s3sink_operator import names
from sink_job.api.report import MemoryReport, PartitionReport, Report, RunState

StartOperator = Callable[..., Operator]
"""Starts an operator with flags, for as long as the test lasts."""

SINK = "flights"
DRIVER = names.driver_pod_name(SINK)
TASK = names.operation_pod_name(SINK)
CHILD = names.config_map_name(SINK)
SPEC: Json = {
    "kafka": {"bootstrapServers": "kafka:9092", "topics": ["flights"]},
    "rotation": {"flushSize": 100},
    "s3": {"bucket": "archive", "region": "eu-central-1"},
    "executor": {"mode": "Local"},
}
CHILDREN = ("ConfigMap", "ServiceAccount")
"""The objects beside the pods in Local mode."""
WAIT_SECONDS = 60.0
"""How long a test waits for a state: far longer than it takes on a machine with other work."""


def manifest(name: str = SINK, **spec: Any) -> Json:
    """A sink in Local mode; `spec` replaces whole sections."""
    return {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": name}, "spec": SPEC | spec}


def report(state: RunState = RunState.RUNNING, *, lag: int = 0, **changes: Any) -> Report:
    """The report of a driver of one topic-partition."""
    partition = PartitionReport(topic="flights", partition=0, committed=100, next=100, end=100 + lag, lag=lag, lag_ms=0)
    given: dict[str, Any] = {
        "sink_id": "data.flights",
        "name": SINK,
        "namespace": "data",
        "state": state,
        "epoch": 3,
        "round": 7,
        "now": time.time_ns() // 1_000_000,
        "started_at": 1_760_000_000_000,
        "assigned_partitions": 1,
        "partitions": [partition],
        "memory": MemoryReport(slots=1, open_objects=1, max_open_objects=1, part_size=25 << 20, buffered_bytes=1 << 20),
    }
    return Report(**(given | changes))


def condition(sink: Json, kind: str) -> Json:
    """One condition of a sink's status; empty where it is not there."""
    found = sink.get("status", {}).get("conditions") or ()
    return next((dict(each) for each in found if each["type"] == kind), {})


def is_ready(sink: Json) -> bool:
    """What `kubectl wait --for=condition=Ready` waits for: of the spec as it is now."""
    ready = condition(sink, "Ready")
    return ready.get("status") == "True" and ready.get("observedGeneration") == sink["metadata"]["generation"]


def reason_is(reason: str) -> Callable[[Json], bool]:
    """Whether the condition Ready has this reason."""
    return lambda sink: condition(sink, "Ready").get("reason") == reason


@dataclass
class Operated:
    """The sink `flights` of one namespace. By default drivers run and report as soon as they are created."""

    kube: Kube
    harness: Harness
    labels: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.harness.at_start(DRIVER, self.starts)
        self.harness.at_start(TASK, self.harness.succeed)

    def starts(self, pod: str) -> None:
        """A driver that runs and reports."""
        self.runs(pod, report())

    def runs(self, pod: str, answer: Report) -> None:
        """As the startup probe has it: it answers first, and counts as started then."""
        self.harness.run(pod, ready=False, report=answer)
        self.harness.run(pod)

    def apply(self, name: str = SINK, **spec: Any) -> Json:
        """As `kubectl apply --server-side` of the manifest. Every namespace has a bucket of its own."""
        found = manifest(name, **({"s3": SPEC["s3"] | {"bucket": self.kube.namespace}} | spec))
        found["metadata"]["labels"] = self.labels
        return self.kube.apply(found)

    def annotate(self, **annotations: str | None) -> None:
        """Sets annotations of the group s3sink.io by their short names; None takes one away."""
        prefixed = {f"s3sink.io/{name}": value for name, value in annotations.items()}
        self.kube.patch("S3Sink", SINK, {"metadata": {"annotations": prefixed}})

    @property
    def sink(self) -> Json:
        return self.kube.get("S3Sink", SINK)

    @property
    def status(self) -> Json:
        return dict(self.sink.get("status", {}))

    def wait(self, is_so: Callable[[Json], object], what: str = "", *, seconds: float = WAIT_SECONDS) -> Json:
        """The sink as soon as it `is_so`; the error contains its last status."""
        try:
            return self.kube.wait("S3Sink", SINK, is_so, seconds=seconds, what=what)
        except ServerFailedError as error:
            raise AssertionError(f"{error}; the status is {self.status}") from error

    def wait_ready(self, *, seconds: float = WAIT_SECONDS) -> Json:
        return self.wait(is_ready, "Ready", seconds=seconds)

    def wait_reason(self, reason: str, *, seconds: float = WAIT_SECONDS) -> Json:
        """The condition Ready, once it has this reason."""
        return condition(self.wait(reason_is(reason), reason, seconds=seconds), "Ready")

    def started(self, **spec: Any) -> Json:
        """Applies the sink and returns its driver pod when the sink is Ready."""
        self.apply(**spec)
        self.wait_ready()
        return self.driver

    @property
    def driver(self) -> Json:
        return self.kube.get("Pod", DRIVER)

    def next_driver(self, before: Json) -> Json:
        """The driver pod that follows `before`."""
        uid = before["metadata"]["uid"]
        try:
            return self.kube.wait("Pod", DRIVER, lambda pod: pod["metadata"]["uid"] != uid, what="the next driver")
        except ServerFailedError as error:
            found = self.kube.find("Pod", DRIVER)
            raise AssertionError(f"{error}; the status is {self.status}; the pod is {found}") from error

    def left(self) -> list[str]:
        """What there is of the sink and its children, as kind/name."""
        found = [
            ("S3Sink", SINK),
            ("Pod", DRIVER),
            ("Pod", TASK),
            *((kind, CHILD) for kind in (*CHILDREN, "RoleBinding")),
        ]
        return [f"{kind}/{name}" for kind, name in found if self.kube.find(kind, name)]

    def wait_gone(self, *, seconds: float = WAIT_SECONDS) -> None:
        """Returns when nothing of the sink is left."""
        wait_until(lambda: not self.left(), "nothing is left of the sink", seconds=seconds)

    def snapshot(self) -> Json:
        """The children as they are, without what differs from one run to the next."""
        found: Json = {}
        for kind, name in [("Pod", DRIVER), *((kind, CHILD) for kind in (*CHILDREN, "RoleBinding"))]:
            if obj := self.kube.find(kind, name):
                meta = obj["metadata"]
                meta.get("annotations", {}).pop(names.REPORT_TOKEN_ANNOTATION, None)  # another one for each attempt
                kept = {key: meta.get(key) for key in ("name", "labels", "annotations")}
                body = {key: obj[key] for key in ("data", "spec", "roleRef") if key in obj}
                body.get("spec", {}).pop("nodeName", None)
                owners = [owner["name"] for owner in meta["ownerReferences"]]
                found[f"{kind}/{name}"] = {"metadata": kept, "owners": owners, **body}
        return found

    def events(self) -> list[Json]:
        """The events about the sink, oldest first."""
        found = [each for each in self.kube.items("Event") if each["involvedObject"]["kind"] == "S3Sink"]
        return sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))


def changes(faults: KubeFaults, namespace: str) -> Counter[str]:
    """How many changes of each kind have been carried out in a namespace, but for events and the Lease."""
    answered = list(faults.answered)
    return Counter(
        call.kind for call, status in answered if status < 300 and writes(call) and call.namespace == namespace
    )


def within(namespace: str, *kinds: str) -> Callable[[Call], bool]:
    """A predicate for `faults.when`: what changes an object of a namespace; of these kinds, where any are given."""
    return lambda call: writes(call) and call.namespace == namespace and (not kinds or call.kind in kinds)


__all__ = [
    "CHILD",
    "CHILDREN",
    "DRIVER",
    "SINK",
    "SPEC",
    "TASK",
    "ApiError",
    "Operated",
    "StartOperator",
    "changes",
    "condition",
    "is_ready",
    "manifest",
    "reason_is",
    "report",
    "within",
]  # fmt: skip
