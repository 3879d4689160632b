"""Memory that grows while a driver runs: through pods/resize on the real API server, whatever the node says to it.

The harness answers for the kubelet. Where the change is not to be had in place, the driver is restarted for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devtools.faults.kube_proxy import KubeFaults, Reject, Replay, call
from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import operator
from devtools.processes import wait_until
from s3sink_operator import names
from sink_job.api.report import MemoryReport
from sink_job.api.units.quantities import parse_size
from tests.support.operator_fixture import DRIVER, Operated, StartOperator, condition, is_ready, report

pytestmark = pytest.mark.cluster

HUNGRY = MemoryReport(
    slots=1, open_objects=400, max_open_objects=400, part_size=25 << 20, buffered_bytes=1 << 30, spilled_bytes=1 << 30
)


@pytest.fixture
def begin(tmp_path: Path, operator_kubeconfig: Path, namespace: str) -> Iterator[Callable[[], None]]:
    with ExitStack() as stack:

        def start() -> None:
            stack.enter_context(operator(tmp_path, operator_kubeconfig, namespace))

        yield start


@pytest.fixture
def sink(kube: Kube, harness: Harness) -> Iterator[Operated]:
    with harness.playing():
        yield Operated(kube, harness)


def hungers(sink: Operated) -> tuple[Json, int]:
    """A sink whose driver says that it needs more; the driver before that, and what it had, in bytes."""
    driver = sink.started()
    sink.harness.report(DRIVER, report(memory=HUNGRY))
    return driver, limit(driver)


def limit(pod: Json) -> int:
    """What the pod should have."""
    return parse_size(pod["spec"]["containers"][0]["resources"]["limits"]["memory"])


def has(pod: Json) -> int:
    """What its container has."""
    return parse_size(pod["status"]["containerStatuses"][0]["resources"]["limits"]["memory"])


def changed(found: Json) -> Json:
    """The last change of memory in the status."""
    return dict(found.get("status", {}).get("memory", {}).get("lastChange") or {})


def current(found: Json) -> int:
    """The memory in the status in bytes."""
    return parse_size(found["status"]["memory"]["current"])


def event_count(sink: Operated, reason: str) -> int:
    """How many events have this reason."""
    return sum(each["reason"] == reason for each in sink.events())


def test_a_running_driver_gets_more_memory_without_a_restart(sink: Operated, begin: Callable[[], None]) -> None:
    begin()
    driver, before = hungers(sink)
    found = sink.wait(changed, "a change of memory")
    pod = sink.kube.wait("Pod", DRIVER, lambda pod: has(pod) > before, what="more memory in the container")
    assert pod["metadata"]["uid"] == driver["metadata"]["uid"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"].endswith("i")
    managers = {each["manager"] for each in pod["metadata"]["managedFields"] if each.get("subresource") == "resize"}
    assert managers == {names.FIELD_MANAGER}
    assert changed(found)["reason"].startswith("grow: ")
    assert parse_size(found["status"]["memory"]["current"]) == limit(pod) == has(pod)
    wait_until(lambda: event_count(sink, "MemoryResized") == 1, "one event", seconds=60)
    sink.annotate(look="again")
    sink.wait(is_ready, "Ready")
    assert len(sink.status["memory"]["changeTimes"]) == 1


def test_memory_follows_the_active_topic_partitions_in_local_mode_in_both_directions(
    sink: Operated, start: StartOperator
) -> None:
    start("--shrink-after", "1s")

    def activity(count: int, applied: int) -> None:
        """Lets the driver report this many active topic-partitions, and what its tasks use at most."""
        memory = MemoryReport(
            slots=1, part_size=25 << 20, active_partitions=count, remainder_bytes=12 << 20, applied_bytes=applied
        )
        sink.harness.report(DRIVER, report(memory=memory))

    driver = sink.started()
    small = limit(driver)
    activity(40, small)
    found = sink.wait(lambda found: current(found) > small, "more memory")
    large = current(found)
    assert changed(found)["reason"].endswith("; 40 active topic-partitions, 40 per slot")
    inputs = found["status"]["memory"]["inputs"]
    assert (inputs["activePartitions"], inputs["remainderBytes"]) == (40, 12 << 20)
    sink.kube.wait("Pod", DRIVER, lambda pod: has(pod) == large, what="more memory in the container")
    activity(2, large)
    found = sink.wait(lambda found: current(found) < large, "less memory", seconds=60)
    assert changed(found)["reason"].endswith("; 2 active topic-partitions, 2 per slot")
    assert current(found) <= small
    activity(2, current(found))
    pod = sink.kube.wait("Pod", DRIVER, lambda pod: has(pod) == current(found), what="less memory in the container")
    assert pod["metadata"]["uid"] == driver["metadata"]["uid"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_running_driver_gets_less_memory_once_its_tasks_use_less(sink: Operated, start: StartOperator) -> None:
    start("--shrink-after", "1s")
    driver, before = hungers(sink)
    pod = sink.kube.wait("Pod", DRIVER, lambda pod: has(pod) > before, what="more memory in the container")
    large = has(pod)
    little = MemoryReport(slots=1, part_size=25 << 20, applied_bytes=large)
    sink.harness.report(DRIVER, report(memory=little))
    desired = current(sink.wait(lambda found: current(found) < large, "less memory", seconds=60))
    assert limit(sink.kube.get("Pod", DRIVER)) == large
    sink.harness.report(DRIVER, report(memory=little.model_copy(update={"applied_bytes": desired})))
    pod = sink.kube.wait("Pod", DRIVER, lambda pod: has(pod) == desired, what="less memory in the container")
    assert pod["metadata"]["uid"] == driver["metadata"]["uid"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize("how", ["infeasible", "error"])
def test_an_infeasible_resize_restarts_the_driver_with_more_memory(
    sink: Operated, begin: Callable[[], None], how: str
) -> None:
    begin()
    sink.harness.at_resize(DRIVER, lambda pod: sink.harness.resize(pod, how, "node has 2Gi in all"))  # type: ignore[arg-type]
    driver, before = hungers(sink)
    after = sink.next_driver(driver)
    found = sink.wait_ready()
    assert limit(after) > before
    assert "node has 2Gi in all" in found["status"]["attempts"][1]["message"]
    assert found["status"]["attempts"][1]["reason"] == "MemoryChanged"
    assert parse_size(found["status"]["memory"]["current"]) == limit(after)
    wait_until(lambda: event_count(sink, "MemoryChanged") == 1, "one event of the restart", seconds=60)
    assert event_count(sink, "MemoryResized") == 1


@pytest.mark.parametrize("how", ["deferred", "in-progress"])
def test_a_node_that_takes_its_time_for_more_memory_is_waited_for(
    sink: Operated, begin: Callable[[], None], how: str
) -> None:
    begin()
    sink.harness.at_resize(DRIVER, lambda pod: sink.harness.resize(pod, how))  # type: ignore[arg-type]
    driver, before = hungers(sink)
    sink.kube.wait("Pod", DRIVER, lambda pod: limit(pod) > before, what="that more is asked for")
    sink.wait(lambda found: changed(found) and is_ready(found), "Ready meanwhile")
    sink.harness.resize(DRIVER)
    pod = sink.kube.wait("Pod", DRIVER, lambda pod: has(pod) > before, what="more memory in the container")
    assert pod["metadata"]["uid"] == driver["metadata"]["uid"]


def test_a_rejected_resize_restarts_the_driver_with_more_memory(
    sink: Operated, begin: Callable[[], None], faults: KubeFaults
) -> None:
    """A quota, an admission plug-in, or pods of a kind that cannot be resized."""
    faults.when(
        call("patch pods/resize"), Reject(422, "Pod running on node without support for resize may not be updated")
    )
    begin()
    driver, before = hungers(sink)
    after = sink.next_driver(driver)
    found = sink.wait_ready()
    assert limit(after) > before
    assert found["status"]["attempts"][1]["reason"] == "MemoryChanged"
    assert not condition(found, "WriteRejected")


def test_an_api_server_without_resizes_ends_in_a_restart_with_more_memory(
    sink: Operated, begin: Callable[[], None], faults: KubeFaults
) -> None:
    known = sink.kube.request("GET", "/api/v1")
    known["resources"] = [each for each in known["resources"] if each["name"] != "pods/resize"]
    faults.when(lambda each: each.path == "/api/v1", Replay(json.dumps(known).encode()), times=None)
    begin()
    driver, before = hungers(sink)
    after = sink.next_driver(driver)
    sink.wait_ready()
    assert limit(after) > before
    assert not faults.count(call("patch pods/resize"))


@pytest.fixture
def policy(kube: Kube) -> Iterator[None]:
    """An admission policy that denies resizes in the test's namespace, in effect."""
    name, kinds = str(kube.namespace), ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/resize"]}
    namespaces = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    validation = {"expression": "false", "message": "no more memory here"}
    specs: list[Json] = [
        {
            "matchConstraints": {"namespaceSelector": namespaces, "resourceRules": [rule]},
            "validations": [validation],
        },
        {"policyName": name, "validationActions": ["Deny"]},
    ]
    for kind, spec in zip(kinds, specs, strict=True):
        group = "admissionregistration.k8s.io/v1"
        kube.create({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec})
    yield
    for kind in kinds:
        kube.delete(kind, name)


def is_denied(kube: Kube) -> bool:
    """Whether the API server denies a resize of the driver that changes nothing."""
    try:
        kube.patch("Pod", DRIVER, {}, subresource="resize")
    except ApiError as error:
        return error.status == 422
    return False


@pytest.mark.usefixtures("policy")
def test_a_driver_whose_resize_an_admission_policy_denies_keeps_running(
    sink: Operated, begin: Callable[[], None]
) -> None:
    """With the status 422, as for a pod that cannot be resized. The next pod would be denied, too."""
    begin()
    driver = sink.started()
    wait_until(lambda: is_denied(sink.kube), "the admission policy", seconds=60)
    sink.harness.report(DRIVER, report(memory=HUNGRY))
    found = sink.wait(lambda found: condition(found, "WriteRejected"), "the condition WriteRejected")
    assert "no more memory here" in condition(found, "WriteRejected")["message"]
    assert is_ready(found)
    assert sink.driver["metadata"]["uid"] == driver["metadata"]["uid"]
