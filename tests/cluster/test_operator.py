"""What the operator makes of S3Sinks on a real API server, while the harness plays scheduler and kubelet.

Most tests share one operator that looks after all namespaces, as a cluster does; those that end it, or need flags of
their own, start one for themselves.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devtools.faults.kube_proxy import KubeFaults, Reject
from devtools.operator_process import IMAGE, Operator
from devtools.processes import wait_until
from s3sink_operator import names
from sink_job.api.report import RunState
from tests.support.operator_fixture import (
    CHILD,
    CHILDREN,
    DRIVER,
    SINK,
    TASK,
    Operated,
    StartOperator,
    changes,
    condition,
    report,
)

pytestmark = pytest.mark.cluster


def test_a_sink_gets_its_objects_and_a_driver_pod_that_it_owns(sink: Operated) -> None:
    uid = sink.apply()["metadata"]["uid"]
    pod = sink.kube.wait("Pod", DRIVER, bool)
    children = [pod, *(sink.kube.get(kind, CHILD) for kind in CHILDREN)]
    owner = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "name": SINK, "uid": uid, "controller": True}
    assert [child["metadata"]["ownerReferences"] for child in children] == [[owner]] * 3
    assert {child["metadata"]["labels"]["s3sink.io/sink"] for child in children} == {SINK}
    assert pod["spec"]["containers"][0]["image"] == IMAGE
    assert sink.kube.find("RoleBinding", CHILD) is None


def test_a_driver_fits_the_restricted_profile_without_a_warning(sink: Operated) -> None:
    """The namespace rejects what does not."""
    sink.started()
    assert not condition(sink.sink, "WriteRejected")


def test_a_sink_is_ready_once_its_driver_reports(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.runs(pod, report(lag=40)))
    sink.apply()
    found = sink.wait_ready()
    status = found["status"]
    assert status["observedGeneration"] == found["metadata"]["generation"]
    assert condition(found, "Ready")["message"] == "copying 1 topic-partition"
    assert condition(found, "Stalled")["status"] == condition(found, "Reconciling")["status"] == "False"
    assert {**status["progress"]["lag"], "time": ""} == {"records": 40, "seconds": 0, "time": ""}
    assert status["progress"]["partitions"] == {"assigned": 1, "active": 0}
    assert status["progress"]["mostLagging"][0]["end"] == 140
    assert status["desiredState"] == "Running"
    assert status["attempts"][0]["number"] == 1


def test_a_sink_whose_driver_does_not_report_yet_is_not_ready(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.runs(pod, report(RunState.RECOVERING)))
    sink.apply()
    assert sink.wait_reason("Recovering")["status"] == "False"
    sink.harness.report(DRIVER, report())
    sink.wait_ready()


def test_creating_a_ready_sink_takes_few_writes(sink: Operated, shared_faults: KubeFaults) -> None:
    """Two children, the pod, and the status: that it starts, and that it is ready."""
    sink.started()
    made = changes(shared_faults, str(sink.kube.namespace))
    assert made.pop("apply s3sinks/status") <= 4
    assert made == {
        "apply configmaps": 1,
        "apply serviceaccounts": 1,
        "create pods": 1,
    }


def test_an_applied_sink_is_not_written_to_by_the_operator(sink: Operated) -> None:
    """Neither spec nor labels nor annotations, so what Git has and what is there are the same."""
    before = sink.apply()
    sink.wait_ready()
    after = sink.sink
    assert after["spec"] == before["spec"]
    assert {name: after["metadata"].get(name) for name in ("labels", "annotations", "finalizers", "generation")} == {
        "labels": {"shared": "yes"},
        "annotations": None,
        "finalizers": None,
        "generation": 1,
    }
    ours = [each for each in after["metadata"]["managedFields"] if each["manager"] == names.FIELD_MANAGER]
    assert [each["subresource"] for each in ours] == ["status"]


def test_few_events_report_what_happened(sink: Operated) -> None:
    sink.started()
    wait_until(lambda: len(sink.events()) >= 2, "events", seconds=60)
    assert [each["reason"] for each in sink.events()] == ["Starting", "Running"]
    assert sink.events()[0]["involvedObject"]["uid"] == sink.sink["metadata"]["uid"]


# --- at rest


def test_nothing_is_written_while_a_sink_is_idle(alone: Operated, start: StartOperator, faults: KubeFaults) -> None:
    start("--resync", "500ms")
    alone.started()
    wait_until(lambda: len(alone.events()) >= 2, "events", seconds=60)
    faults.wait_for(lambda: _looks(faults) > 0, "a pass")
    before, looks = faults.done(aside=True), _looks(faults)
    faults.wait_for(lambda: _looks(faults) > looks + 5, "five looks that ask the API server")
    assert faults.done(aside=True) == before


def test_an_operator_that_restarts_writes_nothing(alone: Operated, start: StartOperator, faults: KubeFaults) -> None:
    first = start()
    uid = alone.started()["metadata"]["uid"]
    wait_until(lambda: len(alone.events()) >= 2, "events", seconds=60)
    assert first.terminate() == 0
    before = faults.done(aside=True)
    start("--resync", "500ms")
    looks = _looks(faults)
    faults.wait_for(lambda: _looks(faults) > looks + 3, "looks that ask the API server")
    assert faults.done(aside=True) == before
    assert alone.driver["metadata"]["uid"] == uid


def _looks(faults: KubeFaults) -> int:
    """The number of passes that read the sink from the API server."""
    return faults.count(lambda call: call.kind == "get s3sinks")


# --- edits and requests


def test_an_edit_that_the_job_sees_restarts_the_driver(sink: Operated) -> None:
    before = sink.started()
    sink.apply(rotation={"flushSize": 200})
    pod = sink.next_driver(before)
    sink.wait_ready()
    assert "flushSize: 200" in sink.kube.get("ConfigMap", CHILD)["data"]["sink.yaml"]
    assert pod["metadata"]["labels"][names.ATTEMPT_LABEL] == "2"
    assert sink.status["attempts"][1]["reason"] == "SpecChanged"


def test_a_new_spec_is_not_ready_before_its_driver_is(sink: Operated) -> None:
    before = sink.started()
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.waiting(pod, "ContainerCreating"))
    sink.apply(rotation={"flushSize": 200})
    sink.next_driver(before)
    found = sink.wait(lambda each: each["status"]["observedGeneration"] == 2)
    assert condition(found, "Ready")["status"] == "False"
    assert condition(found, "Reconciling")["status"] == "True"


def test_an_edit_that_the_job_does_not_see_restarts_nothing(sink: Operated) -> None:
    before = sink.started()
    executor = {"mode": "Local", "instances": 3}
    sink.apply(executor=executor)
    sink.wait(lambda found: found["status"]["observedGeneration"] == 2)
    sink.wait_ready()
    assert sink.driver["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("way", ["annotation", "nonce"])
def test_a_restart_is_requested_by(sink: Operated, way: str) -> None:
    before = sink.started()
    if way == "annotation":
        sink.annotate(restart="now")
    else:
        sink.apply(restartNonce="2")
    after = sink.next_driver(before)
    sink.wait_ready()
    assert sink.driver["metadata"]["uid"] == after["metadata"]["uid"]


def test_a_paused_sink_has_no_driver_and_resumes_on_request(sink: Operated) -> None:
    before = sink.started()
    observed = sink.status["progress"]["lag"]
    sink.apply(state="Paused")
    assert sink.wait_reason("Paused")["status"] == "False"
    assert sink.kube.find("Pod", DRIVER) is None
    assert sink.kube.find("Pod", TASK) is None
    progress = sink.status["progress"]
    assert "lag" not in progress, "nothing observes it"
    assert progress["lastKnownLag"] == observed
    sink.apply()
    sink.next_driver(before)
    sink.wait_ready()


def test_an_annotation_pauses_a_sink_whatever_its_spec_is(sink: Operated) -> None:
    sink.started()
    sink.annotate(state="Paused")
    sink.wait_reason("Paused")
    status = sink.status
    desired = status["desiredState"], status["desiredStateSource"]
    assert desired == ("Paused", "the annotation s3sink.io/state")
    sink.annotate(state=None)
    sink.wait_ready()


def test_a_stopped_sink_has_published_what_was_open_and_has_no_pods(sink: Operated) -> None:
    requests: list[str] = []

    def publishes(pod: str) -> None:
        requests.append(sink.kube.get("Pod", pod)["metadata"]["annotations"]["s3sink.io/operation"])
        sink.harness.succeed(pod)

    sink.harness.at_start(TASK, publishes)
    sink.started()
    sink.apply(state="Stopped")
    sink.wait_reason("Stopped")
    assert requests == ["Publish"]
    assert sink.status["published"] is True
    assert not sink.kube.items("Pod")


def test_a_sink_with_a_paused_operator_gets_only_its_status_written(sink: Operated) -> None:
    sink.started()
    sink.kube.patch("S3Sink", SINK, {"metadata": {"annotations": {names.RECONCILE_PAUSED_ANNOTATION: "true"}}})
    sink.wait_reason("ReconcilePaused")
    sink.kube.delete("Pod", DRIVER)
    sink.kube.wait_gone("Pod", DRIVER)
    sink.wait(lambda found: condition(found, "Ready")["status"] == "False", "that it has seen")
    assert sink.kube.find("Pod", DRIVER) is None
    sink.kube.patch("S3Sink", SINK, {"metadata": {"annotations": {names.RECONCILE_PAUSED_ANNOTATION: None}}})
    sink.wait_ready()


# --- metrics, logs and health of the operator


def test_the_operator_has_metrics_of_its_work(sink: Operated, everywhere: Operator) -> None:
    sink.started()
    # The operator counts a write when it has the answer, which may be after the test sees what was written.
    samples = (
        r's3sink_operator_reconciles_total\{result="ok"\} [1-9]',
        r's3sink_operator_api_writes_total\{kind="Pod",verb="post"\} [1-9]',
        r's3sink_operator_sinks\{condition="Ready",status="True"\} [1-9]',
    )

    def has_all() -> bool:
        text = everywhere.metrics()
        return all(re.search(sample, text) for sample in samples)

    wait_until(has_all, f"{samples}", seconds=60)
    assert everywhere.health() == 200


def test_an_operator_without_the_crd_reports_what_to_do(
    tmp_path: Path, namespace: str, operator_kubeconfig: Path, faults: KubeFaults
) -> None:
    faults.when(lambda call: call.path == "/apis/s3sink.io/v1alpha1", Reject(404))
    process = Operator(tmp_path, operator_kubeconfig, namespace)
    assert process.wait(60) == 75
    assert "apply the CustomResourceDefinition first" in process.troubles()[0]
