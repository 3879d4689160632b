"""Plays scheduler and kubelet on a control plane that has neither: what a pod goes through, a test says.

Every method makes one step and returns when the API server has it, so a test is in charge of the order of things.
`settle` and `playing` do for all pods what a healthy cluster does: schedule, start, answer resizes, end what is
deleted. Statuses are those that a kubelet writes (phases, reasons and conditions by Kubernetes' "Pod Lifecycle" and the
kubelet's own texts); the API server checks them as it checks a kubelet's.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import urllib3

from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.fake_driver_report import ReportServer, of_sink
from devtools.kube.pod_status import (
    about_resize,
    condition,
    conditions_of,
    container_status,
    containers_of,
    now,
    report_port,
    wants_resize,
    with_resources,
)
from sink_job.api.report import Report

Resized = Literal["done", "deferred", "infeasible", "in-progress", "error"]
Step = Callable[[str], object]
_OWNED = ("Pod", "ConfigMap", "ServiceAccount", "RoleBinding")


class Harness:
    """The pods of one namespace (`kube.namespace`), named by their names alone, and the nodes they are on.

    By default that is one node, `node_name`. `collect`: it also acts as the garbage collector, in `settle` and
    `playing`, where the control plane has none.
    """

    def __init__(self, kube: Kube, reports: ReportServer, *, collect: bool = False) -> None:
        self.kube = kube
        self._reports = reports
        self._collect = collect
        self.node_name = f"node-{kube.namespace}"
        self._starts: dict[str, list[Step]] = {}
        self._ends: dict[str, Step] = {}
        self._resizes: dict[str, Step] = {}
        self._stuck: set[str] = set()
        self._lost: set[str] = set()
        self._nodes: set[str] = set()
        self._addresses: dict[str, str] = {}
        self._acting = threading.Lock()

    # --- nodes

    def node(self, name: str | None = None, *, memory: str = "64Gi", cpu: str = "32") -> Json:
        """A node that is Ready; made when it is not there."""
        name = name or self.node_name
        self._nodes.add(name)
        if not self.kube.find("Node", name):
            with _suppressed(409):
                self.kube.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        size = {"cpu": cpu, "memory": memory, "pods": "10000", "ephemeral-storage": "100Gi"}
        self._lost.discard(name)
        status = {
            "capacity": size,
            "allocatable": size,
            "conditions": [condition("Ready", "True", "KubeletReady", "")],
        }
        return self.kube.patch("Node", name, {"status": status}, subresource="status")

    def lose_node(self, name: str | None = None) -> None:
        """The node is lost: Ready is Unknown, its pods stop answering, and their terminations are not reported."""
        name = name or self.node_name
        self._lost.add(name)
        message = "Kubelet stopped posting node status."
        unknown = condition("Ready", "Unknown", "NodeStatusUnknown", message)
        self.kube.patch("Node", name, {"status": {"conditions": [unknown]}}, subresource="status")
        for pod in self.pods():
            if pod["spec"].get("nodeName") == name:
                self._set_conditions(pod, condition("Ready", "False", "NodeNotReady", "Node is not ready"))
                self._silence(pod)

    def remove_node(self, name: str | None = None) -> None:
        """The node is gone from the cluster; its pods are not."""
        name = name or self.node_name
        self._lost.add(name)
        self.kube.delete("Node", name)

    def remove_nodes(self) -> None:
        """All nodes of this harness are gone."""
        for name in self._nodes:
            with _suppressed(404):
                self.remove_node(name)

    # --- what happens to a pod

    def pods(self) -> list[Json]:
        return self.kube.items("Pod")

    def schedule(self, pod: str, node: str | None = None) -> Json:
        """Binds a pod to a node (another one when `node_name` is lost), as the scheduler does; it stays Pending."""
        node = node or self._healthy_node()
        self._ensure_node(node)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.kube.post(
            "Pod",
            pod,
            "binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target},
        )
        return self.kube.get("Pod", pod)

    def unschedulable(self, pod: str, message: str = "0/1 nodes are available: 1 Insufficient memory.") -> Json:
        """No node takes it: Pending, with the scheduler's condition."""
        unschedulable = condition("PodScheduled", "False", "Unschedulable", message)
        return self._set_conditions(self._get(pod), unschedulable)

    def waiting(self, pod: str, reason: str, message: str = "") -> Json:
        """On its node, but its containers do not start: ErrImagePull, ImagePullBackOff, CreateContainerConfigError …"""
        found = self._scheduled(pod)
        state = {"waiting": {"reason": reason, "message": message}}
        statuses = [container_status(found, each, state, ready=False) for each in containers_of(found)]
        conditions = [condition("Ready", "False", "ContainersNotReady", "")]
        return self._set_status(found, phase="Pending", statuses=statuses, conditions=conditions)

    def run(
        self,
        pod: str,
        *,
        ready: bool = True,
        report: Report | Mapping[str, Any] | None = None,
        address: str | None = None,
    ) -> Json:
        """Running on its node (scheduled first where it is not), with an IP; it answers `report` if one is given.

        `address`: of this machine, such as the API server's proxy reaches (see `devtools.kube.fake_driver_report`).
        """
        found = self._scheduled(pod)
        uid = found["metadata"]["uid"]
        address = self._addresses.setdefault(uid, address or self._reports.address())
        state = {"running": {"startedAt": now()}}
        statuses = [container_status(found, each, state, ready=ready) for each in containers_of(found)]
        flag = "True" if ready else "False"
        conditions = [condition(each, flag, "", "") for each in ("Initialized", "ContainersReady", "Ready")]
        network = {"podIP": address, "podIPs": [{"ip": address}], "hostIP": "127.0.0.1", "startTime": now()}
        answer = self._set_status(found, phase="Running", statuses=statuses, conditions=conditions, more=network)
        if report is not None:
            self.report(pod, report)
        return answer

    def report(self, pod: str, report: Report | Mapping[str, Any] | None) -> None:
        """From now on the running pod answers this at `/report`; None: it accepts connections but does not answer.

        A `Report` of a sink's pod is made that sink's; a mapping is answered as it is.
        """
        found = self._get(pod)
        owners = [each["name"] for each in found["metadata"].get("ownerReferences") or () if each["kind"] == "S3Sink"]
        if owners and isinstance(report, Report):
            report = of_sink(report, found["metadata"]["namespace"], owners[0])
        token = (found["metadata"].get("annotations") or {}).get("s3sink.io/report-token")
        self._reports.answer(found["status"]["podIP"], report_port(found), report, token=token)

    def silence(self, pod: str) -> None:
        """From now on nothing listens at the pod's address."""
        self._silence(self._get(pod))

    def succeed(self, pod: str, message: str = "") -> Json:
        """All containers end with 0: phase Succeeded, with this termination message."""
        return self._ended(pod, "Succeeded", 0, "Completed", message)

    def fail(self, pod: str, exit_code: int, message: str = "", *, reason: str = "Error") -> Json:
        """All containers end with `exit_code`: phase Failed, with this termination message."""
        return self._ended(pod, "Failed", exit_code, reason, message)

    def oom_kill(self, pod: str) -> Json:
        """The kernel ends the containers for their memory: exit code 137, reason OOMKilled, no message."""
        return self._ended(pod, "Failed", 137, "OOMKilled", "")

    def evict(self, pod: str, message: str = "The node was low on resource: memory.") -> Json:
        """The kubelet ends the pod for the node's sake: in one update, since the operator may delete an ended pod."""
        disrupted = condition("DisruptionTarget", "True", "TerminationByKubelet", message)
        more = {"reason": "Evicted", "message": message}
        return self._ended(pod, "Failed", 137, "Error", "", more=more, further=[disrupted])

    def resize(self, pod: str, how: Resized = "done", message: str = "") -> Json:
        """Answers a resize that was asked for: the containers get it, or the pod's condition says why not (yet)."""
        found = self._get(pod)
        if how == "done":
            statuses = [
                with_resources(status, container)
                for status, container in zip(found["status"]["containerStatuses"], containers_of(found), strict=True)
            ]
            found["status"]["conditions"] = [each for each in conditions_of(found) if not about_resize(each)]
            return self._set_status(found, statuses=statuses)
        asked = {
            "deferred": ("PodResizePending", "Deferred"),
            "infeasible": ("PodResizePending", "Infeasible"),
            "in-progress": ("PodResizeInProgress", ""),
            "error": ("PodResizeInProgress", "Error"),
        }
        kind, reason = asked[how]
        found["status"]["conditions"] = [each for each in conditions_of(found) if not about_resize(each)]
        return self._set_status(found, conditions=[condition(kind, "True", reason, message)])

    def end(self, pod: str, *, exit_code: int = 0, message: str = "") -> None:
        """What a kubelet does for a deleted pod: its containers end, then the pod is removed for good."""
        found = self._get(pod)
        if found["status"].get("phase") == "Running":
            self._ended(
                pod, "Failed" if exit_code else "Succeeded", exit_code, "Error" if exit_code else "Completed", message
            )
        self.remove(pod)

    def remove(self, pod: str) -> None:
        """The pod object goes away without a word on its containers."""
        found = self._get(pod)
        self._silence(found)
        self._stuck.discard(pod)
        with _suppressed(404, 409):
            self.kube.delete("Pod", pod, grace_s=0, uid=found["metadata"]["uid"])

    # --- the automatic steps of `settle` and `playing`

    def at_start(self, pod: str, *steps: Step) -> None:
        """What is done instead of `run` when pods of this name are to start: `lambda pod: harness.fail(pod, 1)`.

        One step for each start, the last one for all that follow.
        """
        self._starts[pod] = [*steps]

    def at_end(self, pod: str, step: Step) -> None:
        """What is done instead of `end` when a pod of this name is deleted."""
        self._ends[pod] = step

    def at_resize(self, pod: str, step: Step) -> None:
        """What is done instead of `resize` when a pod of this name is to have other resources."""
        self._resizes[pod] = step

    def stick(self, pod: str) -> None:
        """The pod does not end when it is deleted, until `end` or `remove`: it stays Terminating."""
        self._stuck.add(pod)

    def settle(self) -> None:
        """Does all that a healthy cluster would do now, until nothing is left to do."""
        while sum(self._step(pod) for pod in self.pods()):
            pass
        if self._collect and self._collect_garbage():
            self.settle()

    @contextlib.contextmanager
    def playing(self) -> Iterator[None]:
        """A thread does the same at once whenever a pod changes."""
        stop = threading.Event()
        threading.Thread(target=self._play, args=(stop,), name="harness", daemon=True).start()
        try:
            yield
        finally:
            # Its watch may take a second more to end; nothing is done from here on.
            with self._acting:
                stop.set()

    def _play(self, stop: threading.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(urllib3.exceptions.HTTPError, ApiError):
                listed = self.kube.request("GET", f"/api/v1/namespaces/{self.kube.namespace}/pods")
                for pod in listed["items"]:
                    self._step_safely(pod, stop)
                if self._collect and not stop.is_set():
                    self._collect_garbage()
                version = listed["metadata"]["resourceVersion"]
                for event in self.kube.watch("Pod", resource_version=version, stop=stop, timeout_s=1):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._step_safely(event["object"], stop)

    def _step_safely(self, pod: Json, stop: threading.Event) -> None:
        """As `_step` on the pod as it is now: an event may be older than a change of this thread."""
        with self._acting, _suppressed(404, 409, 422):
            if not stop.is_set():
                self._step(self._get(pod["metadata"]["name"]))

    def _step(self, pod: Json) -> bool:
        """The next thing that happens to a pod; whether there was one."""
        name, status = pod["metadata"]["name"], pod["status"]
        if pod["spec"].get("nodeName") in self._lost or pod["spec"].get("schedulingGates"):
            return False
        if "deletionTimestamp" in pod["metadata"]:
            if name in self._stuck:
                return False
            self._ends.get(name, self.end)(name)
            return not pod["metadata"].get("finalizers")
        if status.get("phase", "Pending") == "Pending" and not status.get("containerStatuses"):
            if any(each["reason"] == "Unschedulable" for each in conditions_of(pod) if "reason" in each):
                return False
            steps = self._starts.get(name) or [self.run]
            (steps.pop(0) if len(steps) > 1 else steps[0])(name)
            return True
        if status.get("phase") == "Running" and wants_resize(pod) and not any(map(about_resize, conditions_of(pod))):
            self._resizes.get(name, self.resize)(name)
            return True
        return False

    def _collect_garbage(self) -> bool:
        """Deletes what lost all its owners; whether there was anything."""
        orphans = [
            (kind, each["metadata"])
            for kind in _OWNED
            for each in self.kube.items(kind)
            if "deletionTimestamp" not in each["metadata"] and self._is_orphan(each["metadata"])
        ]
        for kind, metadata in orphans:
            with _suppressed(404, 409):
                self.kube.delete(kind, metadata["name"], uid=metadata["uid"])
        return bool(orphans)

    def _is_orphan(self, metadata: Json) -> bool:
        owners = metadata.get("ownerReferences") or []
        found = [self.kube.find(each["kind"], each["name"]) for each in owners]
        uids = [each["metadata"]["uid"] for each in found if each]
        return bool(owners) and not any(each["uid"] in uids for each in owners)

    # --- how

    def _get(self, pod: str) -> Json:
        return self.kube.get("Pod", pod)

    def _healthy_node(self) -> str:
        names = itertools.chain([self.node_name], (f"{self.node_name}-{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in self._lost)

    def _ensure_node(self, name: str) -> None:
        if name not in self._lost and not self.kube.find("Node", name):
            self.node(name)

    def _scheduled(self, pod: str) -> Json:
        found = self._get(pod)
        return found if found["spec"].get("nodeName") else self.schedule(pod)

    def _silence(self, pod: Json) -> None:
        if address := pod["status"].get("podIP"):
            self._reports.refuse(address)

    def _ended(
        self,
        pod: str,
        phase: str,
        exit_code: int,
        reason: str,
        message: str,
        *,
        more: Json | None = None,
        further: Sequence[Json] = (),
    ) -> Json:
        """`further`: conditions besides those of an ended pod."""
        found = self._scheduled(pod)
        self._silence(found)
        started = found["status"].get("startTime") or now()
        end = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now()}
        state = {"terminated": {**end, **({"message": message} if message else {})}}
        statuses = [container_status(found, each, state, ready=False) for each in containers_of(found)]
        why = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        conditions = [condition(each, "False", why, "") for each in ("ContainersReady", "Ready")]
        return self._set_status(found, phase=phase, statuses=statuses, conditions=[*conditions, *further], more=more)

    def _set_conditions(self, pod: Json, *conditions: Json) -> Json:
        return self._set_status(pod, conditions=conditions)

    def _set_status(
        self,
        pod: Json,
        *,
        phase: str | None = None,
        statuses: list[Json] | None = None,
        conditions: tuple[Json, ...] | list[Json] = (),
        more: Json | None = None,
    ) -> Json:
        """Writes what changes; conditions are merged by type into those that `pod` has."""
        merged = {each["type"]: each for each in [*conditions_of(pod), *conditions]}
        status: Json = {"conditions": list(merged.values()), "observedGeneration": pod["metadata"].get("generation", 1)}
        if phase:
            status["phase"] = phase
        if statuses is not None:
            status["containerStatuses"] = statuses
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {**status, **(more or {})}}
        return self.kube.patch("Pod", pod["metadata"]["name"], patch, subresource="status")


@contextlib.contextmanager
def _suppressed(*statuses: int) -> Iterator[None]:
    """Lets those rejections of the API server pass."""
    try:
        yield
    except ApiError as error:
        if error.status not in statuses:
            raise
