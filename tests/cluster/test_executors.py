"""Executors of a running application on the real API server: scaled, resized in place, and replaced.

The harness is the kubelet, and the test creates the pods that Spark would create.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from devtools.faults.kube_proxy import KubeFaults, Reject, call
from devtools.kube.client import Json
from devtools.processes import wait_until
from s3sink_operator.objects.pods import actual_memory, memory_limit
from sink_job.api.allocation import Allocation
from sink_job.api.report import MemoryReport
from sink_job.api.required_memory import STEP
from sink_job.api.units.quantities import MI, format_size
from tests.support.operator_fixture import CHILD, DRIVER, SINK, Operated, StartOperator, condition, is_ready, report

pytestmark = pytest.mark.cluster

FEW, MANY = 3, 96


def allocation(config: Json) -> Allocation:
    found = Allocation.parse(config.get("data", {}).get("allocation.json", ""))
    assert found is not None
    return found


class Application:
    """The application of a running driver in Cluster mode: its executors, and what the driver reports."""

    def __init__(self, sink: Operated) -> None:
        self.sink = sink
        self.made = 0
        self.driver: Json = {}

    def begin(self, instances: int = 1, scaling: Json | None = None) -> None:
        """Applies a sink in Cluster mode; returns when it is Ready with its executors. `scaling`: starts with one."""
        number = {"instances": instances} if scaling is None else {"scaling": scaling}
        self.sink.apply(executor={"mode": "Cluster", **number})
        self.driver = self.sink.kube.wait("Pod", DRIVER, lambda pod: pod["status"].get("phase") == "Running")
        for _ in range(instances):
            self.executor()
        self.sink.wait_ready()
        self.report(FEW)

    @property
    def allocation(self) -> Allocation:
        return allocation(self.sink.kube.get("ConfigMap", CHILD))

    def executor(self) -> str:
        """One more executor, as Spark creates it from the template: with the memory of the allocation."""
        self.made += 1
        pod = yaml.safe_load(self.sink.kube.get("ConfigMap", CHILD)["data"]["executor.yaml"])
        owner = {"apiVersion": "v1", "kind": "Pod", "name": DRIVER, "uid": self.driver["metadata"]["uid"]}
        pod["metadata"] |= {"name": f"{SINK}-1-exec-{self.made}", "ownerReferences": [owner | {"controller": True}]}
        container = pod["spec"]["containers"][0]
        container["image"] = "job:1"
        for kind in ("requests", "limits"):
            container.setdefault("resources", {}).setdefault(kind, {})["memory"] = format_size(self.allocation.memory)
        self.sink.kube.create(pod)
        return str(pod["metadata"]["name"])

    def report(self, active: int, **memory: Any) -> None:
        """The driver reports these active topic-partitions; by default it has applied the allocation."""
        given = {"slots": 1, "active_partitions": active, "remainder_bytes": 20 * MI}
        applied = {"applied_bytes": self.allocation.memory}
        self.sink.harness.report(DRIVER, report(memory=MemoryReport(**(given | applied | memory))))

    def wait_allocation(self, is_so: Any, what: str) -> Allocation:
        # The time since when less memory suffices is written at most every 30 s.
        found = self.sink.kube.wait("ConfigMap", CHILD, lambda found: is_so(allocation(found)), what=what, seconds=60)
        return allocation(found)

    def wait_memory(self, name: str, memory: int) -> Json:
        """The executor once its container has this memory."""
        return self.sink.kube.wait("Pod", name, lambda pod: actual_memory(pod) == memory, what=f"{memory} bytes")

    def grow(self) -> int:
        """Many topic-partitions become active: the new memory in bytes."""
        before = self.allocation.memory
        self.report(MANY)
        return self.wait_allocation(lambda found: found.memory > before, "more memory").memory

    def directions(self) -> set[str]:
        """The directions of the events about the number of executors."""
        found = [each["message"] for each in self.sink.events() if each["reason"] == "ExecutorsScaled"]
        return {message.split(":")[0] for message in found}

    def assert_same_driver(self) -> None:
        assert self.sink.driver["metadata"]["uid"] == self.driver["metadata"]["uid"]
        assert len(self.sink.status["attempts"]) == 1


@pytest.fixture
def application(alone: Operated) -> Application:
    return Application(alone)


def test_executors_follow_the_active_topic_partitions_in_place_in_both_directions(
    application: Application, start: StartOperator
) -> None:
    start("--shrink-after", "1s")
    application.begin(instances=2)
    names = [f"{SINK}-1-exec-{number}" for number in (1, 2)]
    small = application.allocation.memory
    large = application.grow()
    before = [application.wait_memory(name, large) for name in names]
    application.report(FEW, applied_bytes=large)
    shrunk = application.wait_allocation(lambda found: found.memory < large, "less memory").memory
    assert all(memory_limit(application.sink.kube.get("Pod", name)) == large for name in names), "tasks use it"
    application.report(FEW)
    after = [application.wait_memory(name, shrunk) for name in names]
    assert [each["metadata"]["uid"] for each in before] == [each["metadata"]["uid"] for each in after]
    assert not [each for pod in after for each in pod["status"]["containerStatuses"] if each["restartCount"]]
    assert shrunk <= small + STEP, "the recommended memory has a reserve, which the initial memory may lack"
    application.assert_same_driver()
    application.sink.wait(is_ready, "Ready")


def test_the_number_of_executors_follows_the_active_topic_partitions_in_both_directions(
    application: Application, start: StartOperator
) -> None:
    start("--shrink-after", "1s")
    application.begin(scaling={"mode": "Auto", "maxInstances": 2})
    assert application.allocation.executors == 1
    application.report(MANY, remainder_bytes=0)
    application.wait_allocation(lambda found: found.executors == 2, "a second executor")
    application.executor()
    found = application.sink.wait(lambda found: found["status"]["replicas"] == 2, "two executors")
    assert found["status"]["scaling"]["desired"] == 2
    assert found["spec"]["executor"]["instances"] == 1, "the operator does not write the spec"
    application.report(FEW, remainder_bytes=0)
    application.wait_allocation(lambda found: found.executors == 1, "one executor")
    application.assert_same_driver()
    application.sink.wait(is_ready, "Ready")
    # The operator queues an event after the change that it is about.
    wait_until(lambda: application.directions() == {"grow", "shrink"}, "events of both directions", seconds=60)


def test_an_executor_that_its_node_cannot_resize_is_replaced_and_the_driver_is_kept(
    application: Application, start: StartOperator
) -> None:
    start()
    application.begin()
    name = f"{SINK}-1-exec-1"
    application.sink.harness.at_resize(
        name, lambda pod: application.sink.harness.resize(pod, "infeasible", "2Gi in all")
    )
    large = application.grow()
    application.report(MANY)
    application.sink.kube.wait_gone("Pod", name)
    application.wait_memory(application.executor(), large)
    application.sink.wait(lambda found: is_ready(found) and found["status"]["replicas"] == 1, "Ready with the next one")
    application.assert_same_driver()


def test_an_executor_whose_resize_exceeds_a_quota_is_kept_and_the_rejection_is_reported(
    application: Application, start: StartOperator, faults: KubeFaults
) -> None:
    faults.when(call("patch pods/resize"), Reject(403, "exceeded quota: memory"), times=None)
    start()
    application.begin()
    application.grow()
    application.report(MANY)
    application.sink.wait(lambda found: condition(found, "WriteRejected"), "the rejection")
    assert application.sink.kube.find("Pod", f"{SINK}-1-exec-1")
    application.assert_same_driver()


def test_scaling_and_an_edited_maximum_change_a_running_application(
    application: Application, start: StartOperator
) -> None:
    start()
    application.begin()
    application.sink.kube.patch("S3Sink", SINK, {"spec": {"replicas": 3}}, subresource="scale")
    application.wait_allocation(lambda found: found.executors == 3, "three executors")
    application.sink.wait(lambda found: found["status"]["observedGeneration"] == 2, "the scaled sink")
    application.executor()
    application.executor()
    application.sink.wait(lambda found: found["status"]["replicas"] == 3, "three executors")
    large = application.grow()
    application.sink.kube.patch("S3Sink", SINK, {"spec": {"executor": {"memory": {"max": "1Gi"}}}})
    limited = application.wait_allocation(lambda found: found.memory < large, "the maximum").memory
    application.report(MANY)
    application.wait_memory(f"{SINK}-1-exec-1", limited)
    assert limited == 1024 * MI
    application.assert_same_driver()
