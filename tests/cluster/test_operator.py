"""What the operator makes of S3Sinks on a real API server, while the harness plays scheduler and kubelet.

Most tests share one operator that looks after all namespaces, as a cluster does; those that end it, or need flags of
their own, start one for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devtools.kube.client import Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.faults import KubeFaults, Refuse
from devtools.kube.harness import Harness
from devtools.operator import IMAGE, Operator, operator
from devtools.processes import wait_until
from s3sink_operator import names
from sink_job.api.report import Ending, Failure, RunState
from sink_job.api.units import parse_size
from tests.support.operated import (
    CHILD,
    CHILDREN,
    DRIVER,
    SINK,
    TASK,
    Operated,
    changes,
    condition,
    is_ready,
    report,
)

pytestmark = pytest.mark.cluster

StartOperator = Callable[..., Operator]


@pytest.fixture(scope="module")
def shared_faults(control_plane: Cluster) -> Iterator[KubeFaults]:
    """The shared operator's way to the API server."""
    with KubeFaults(control_plane.admin.server) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def everywhere(
    control_plane: Cluster, shared_faults: KubeFaults, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One operator for the sinks with its label in all namespaces."""
    kubeconfig = control_plane.kubeconfig(server=shared_faults.endpoint)
    with operator(tmp_path_factory.mktemp("operator"), kubeconfig, None, "--selector", "shared=yes") as running:
        yield running


@pytest.fixture
def start(tmp_path: Path, operator_kubeconfig: Path, namespace: str) -> Iterator[StartOperator]:
    """Starts an operator for the test's own namespace, through `faults`."""
    with ExitStack() as stack:

        def begin(*flags: str) -> Operator:
            return stack.enter_context(operator(tmp_path, operator_kubeconfig, namespace, *flags))

        yield begin


@pytest.fixture
def alone(kube: Kube, harness: Harness) -> Iterator[Operated]:
    """A sink's namespace that no operator looks after yet."""
    with harness.playing():
        yield Operated(kube, harness)


@pytest.fixture
def sink(alone: Operated, everywhere: Operator) -> Operated:
    """A sink's namespace under the shared operator."""
    assert everywhere.running()
    alone.labels = {"shared": "yes"}
    return alone


# --- making


def test_a_sink_gets_its_objects_and_a_driver_pod_that_it_owns(sink: Operated) -> None:
    uid = sink.apply()["metadata"]["uid"]
    pod = sink.kube.wait("Pod", DRIVER, bool)
    children = [pod, *(sink.kube.get(kind, CHILD) for kind in CHILDREN)]
    owner = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "name": SINK, "uid": uid, "controller": True}
    assert [child["metadata"]["ownerReferences"] for child in children] == [[owner]] * 4
    assert {child["metadata"]["labels"]["s3sink.io/sink"] for child in children} == {SINK}
    assert pod["spec"]["containers"][0]["image"] == IMAGE
    assert sink.kube.get("RoleBinding", CHILD)["roleRef"]["name"] == "s3sink-driver"


def test_a_driver_fits_the_restricted_profile_without_a_warning(sink: Operated) -> None:
    """The namespace refuses what does not."""
    sink.started()
    assert not condition(sink.sink, "WriteRefused")


def test_a_sink_is_ready_once_its_driver_reports(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.runs(pod, report(lag=40)))
    sink.apply()
    found = sink.wait_ready()
    status = found["status"]
    assert status["observedGeneration"] == found["metadata"]["generation"]
    assert condition(found, "Ready")["message"] == "copies 1 topic-partition"
    assert condition(found, "Stalled")["status"] == condition(found, "Reconciling")["status"] == "False"
    assert status["connector"]["lag"] == {"records": 40, "seconds": 0}
    assert status["connector"]["partitions"] == {"assigned": 1, "active": 0}
    assert status["connector"]["worst"][0]["end"] == 140
    assert status["state"]["wanted"] == "Running"
    assert status["attempts"][0]["number"] == 1


def test_a_sink_whose_driver_does_not_report_yet_is_not_ready(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.runs(pod, report(RunState.RECOVERING)))
    sink.apply()
    assert sink.wait_reason("Recovering")["status"] == "False"
    sink.harness.report(DRIVER, report())
    sink.wait_ready()


def test_making_a_sink_and_seeing_it_ready_takes_few_writes(sink: Operated, shared_faults: KubeFaults) -> None:
    """Three children, the pod, and the status: that it starts, and that it is ready."""
    sink.started()
    made = changes(shared_faults, str(sink.kube.namespace))
    assert made.pop("apply s3sinks/status") <= 4
    assert made == {
        "apply configmaps": 1,
        "apply serviceaccounts": 1,
        "apply rolebindings": 1,
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


def test_few_events_tell_what_happened(sink: Operated) -> None:
    sink.started()
    wait_until(lambda: len(sink.events()) >= 2, "events", seconds=10)
    assert [each["reason"] for each in sink.events()] == ["Starting", "Running"]
    assert sink.events()[0]["involvedObject"]["uid"] == sink.sink["metadata"]["uid"]


# --- at rest


def test_nothing_is_written_while_a_sink_is_idle(alone: Operated, start: StartOperator, faults: KubeFaults) -> None:
    start("--resync", "500ms")
    alone.started()
    wait_until(lambda: len(alone.events()) >= 2, "events", seconds=10)
    faults.wait_for(lambda: _looks(faults) > 0, "a look")
    before, looks = faults.done(aside=True), _looks(faults)
    faults.wait_for(lambda: _looks(faults) > looks + 5, "five looks that ask the API server")
    assert faults.done(aside=True) == before


def test_an_operator_that_starts_anew_writes_nothing(alone: Operated, start: StartOperator, faults: KubeFaults) -> None:
    first = start()
    uid = alone.started()["metadata"]["uid"]
    wait_until(lambda: len(alone.events()) >= 2, "events", seconds=10)
    assert first.terminate() == 0
    before = faults.done(aside=True)
    start("--resync", "500ms")
    looks = _looks(faults)
    faults.wait_for(lambda: _looks(faults) > looks + 3, "looks that ask the API server")
    assert faults.done(aside=True) == before
    assert alone.driver["metadata"]["uid"] == uid


def _looks(faults: KubeFaults) -> int:
    """Looks at a sink that asked the API server for it."""
    return faults.count(lambda call: call.kind == "get s3sinks")


# --- edits and requests


def test_an_edit_that_the_job_sees_restarts_the_driver(sink: Operated) -> None:
    before = sink.started()
    sink.apply(rotation={"flushSize": 200})
    pod = sink.next_driver(before)
    sink.wait_ready()
    assert "flushSize: 200" in sink.kube.get("ConfigMap", CHILD)["data"]["sink.yaml"]
    assert pod["metadata"]["labels"][names.ATTEMPT] == "2"
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
def test_a_restart_is_asked_for_by(sink: Operated, way: str) -> None:
    before = sink.started()
    if way == "annotation":
        sink.annotate(restart="now")
    else:
        sink.apply(restartNonce="2")
    after = sink.next_driver(before)
    sink.wait_ready()
    assert sink.driver["metadata"]["uid"] == after["metadata"]["uid"]


def test_a_paused_sink_has_no_driver_and_goes_on_when_asked(sink: Operated) -> None:
    before = sink.started()
    sink.apply(state="Paused")
    assert sink.wait_reason("Paused")["status"] == "False"
    assert sink.kube.find("Pod", DRIVER) is None
    assert sink.kube.find("Pod", TASK) is None
    sink.apply()
    sink.next_driver(before)
    sink.wait_ready()


def test_an_annotation_pauses_a_sink_whatever_its_spec_says(sink: Operated) -> None:
    sink.started()
    sink.annotate(state="Paused")
    sink.wait_reason("Paused")
    assert sink.status["state"] == {"wanted": "Paused", "by": "the annotation s3sink.io/state"}
    sink.annotate(state=None)
    sink.wait_ready()


def test_a_stopped_sink_has_published_what_was_open_and_has_no_pods(sink: Operated) -> None:
    requests: list[str] = []

    def publishes(pod: str) -> None:
        requests.append(sink.kube.get("Pod", pod)["metadata"]["annotations"]["s3sink.io/request"])
        sink.harness.succeed(pod)

    sink.harness.at_start(TASK, publishes)
    sink.started()
    sink.apply(state="Stopped")
    sink.wait_reason("Stopped")
    assert requests == ["Publish"]
    assert sink.status["state"]["published"] is True
    assert not sink.kube.items("Pod")


def test_a_held_sink_is_told_about_and_not_touched(sink: Operated) -> None:
    sink.started()
    sink.kube.patch("S3Sink", SINK, {"metadata": {"annotations": {names.PAUSED: "true"}}})
    sink.wait_reason("ReconcilePaused")
    sink.kube.delete("Pod", DRIVER)
    sink.kube.wait_gone("Pod", DRIVER)
    sink.wait(lambda found: condition(found, "Ready")["status"] == "False", "that it has seen")
    assert sink.kube.find("Pod", DRIVER) is None
    sink.kube.patch("S3Sink", SINK, {"metadata": {"annotations": {names.PAUSED: None}}})
    sink.wait_ready()


# --- failures


def ended(code: int, reason: str, message: str) -> str:
    """What a driver leaves as its termination message."""
    failure = Failure(reason=reason, message=message, exit_code=code)
    return Ending(failure=failure).termination_message()


@pytest.mark.parametrize(
    ("code", "reason"), [(2, "SpecError"), (5, "DataLoss"), (6, "ObjectConflict"), (7, "ConfigurationError")]
)
def test_a_driver_that_ends_for_its_users_sake_is_told_and_waits(sink: Operated, code: int, reason: str) -> None:
    said = ended(code, reason, "the bucket is not there")
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, code, said))
    sink.apply()
    ready = sink.wait_reason(reason)
    assert "the bucket is not there. Failed once, next try at 2" in ready["message"]
    found = sink.sink
    assert condition(found, "Stalled")["status"] == "True"
    assert found["status"]["retry"]["failures"] == 1
    assert found["status"]["attempts"][0]["exitCode"] == code
    assert sink.driver["status"]["phase"] == "Failed"  # kept for its log


def test_an_edit_ends_the_wait_after_a_failure(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 7), sink.starts)
    sink.apply()
    before = sink.driver if sink.wait_reason("ConfigurationError") else {}
    sink.apply(rotation={"flushSize": 200})
    sink.next_driver(before)
    assert "retry" not in sink.wait_ready()["status"]


def test_a_driver_that_could_not_reach_its_servers_is_started_again_at_once(sink: Operated) -> None:
    said = ended(75, "TryAgainLater", "Kafka did not answer")
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 75, said), sink.starts)
    sink.apply()
    sink.wait_ready()
    first = sink.status["attempts"][1]
    assert (first["reason"], first["exitCode"], first["number"]) == ("TryAgainLater", 75, 1)
    assert sink.status["retry"]["failures"] == 1


def test_a_driver_that_was_killed_for_its_memory_gets_more(sink: Operated) -> None:
    sizes: list[int] = []

    def too_small_at_first(pod: str) -> None:
        limits = sink.kube.get("Pod", pod)["spec"]["containers"][0]["resources"]["limits"]
        sizes.append(parse_size(limits["memory"]))
        sink.starts(pod) if len(sizes) > 1 else sink.harness.oom_kill(pod)

    sink.harness.at_start(DRIVER, too_small_at_first)
    sink.apply()
    sink.wait_ready()
    assert sizes[1] > sizes[0] * 1.3
    assert sink.status["attempts"][1]["reason"] == "OOMKilled"


def test_a_driver_that_succeeded_though_it_should_run_is_started_again(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, sink.harness.succeed, sink.starts)
    sink.apply()
    sink.wait_ready()
    assert sink.status["attempts"][1]["reason"] == "EndedByItself"


def test_an_evicted_driver_is_started_again(sink: Operated) -> None:
    sink.started()
    sink.harness.evict(DRIVER)
    sink.wait(lambda found: found["status"]["attempts"][0]["number"] == 2 and is_ready(found), "the next attempt")
    assert sink.status["attempts"][1]["reason"] == "Evicted"


def test_a_driver_that_is_deleted_by_hand_is_made_again(sink: Operated) -> None:
    before = sink.started()
    sink.kube.delete("Pod", DRIVER)
    sink.next_driver(before)
    sink.wait(lambda found: found["status"]["attempts"][0]["number"] == 2 and is_ready(found), "the next attempt")
    assert sink.status["attempts"][1]["reason"] in ("Deleted", "Gone")  # it depends on whether its end was seen


def test_a_driver_without_a_node_says_what_is_missing(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, sink.harness.unschedulable)
    sink.apply()
    assert "Insufficient memory" in sink.wait_reason("Unschedulable")["message"]
    sink.starts(DRIVER)
    sink.wait_ready()


def test_an_image_that_cannot_be_pulled_is_told_and_left_to_the_kubelet(sink: Operated) -> None:
    message = "manifest unknown"
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.waiting(pod, "ImagePullBackOff", message))
    sink.apply()
    assert message in sink.wait_reason("ImagePullFailed")["message"]
    assert condition(sink.sink, "Stalled")["status"] == "True"


def test_a_driver_that_does_not_answer_is_unknown_and_left_alone(sink: Operated) -> None:
    before = sink.started()
    sink.harness.silence(DRIVER)
    sink.annotate(look="again")
    assert sink.wait_reason("ReportUnreachable")["status"] == "Unknown"
    assert sink.driver["metadata"]["uid"] == before["metadata"]["uid"]
    sink.harness.report(DRIVER, report())
    sink.wait_ready()


def test_a_driver_on_a_lost_node_is_replaced_after_a_while(alone: Operated, start: StartOperator) -> None:
    start("--node-lost-timeout", "2s")
    before = alone.started()
    alone.harness.lose_node()
    alone.wait_reason("NodeLost")
    alone.next_driver(before)
    alone.wait_ready()


def test_a_driver_that_is_stuck_terminating_is_ended_by_force(alone: Operated, start: StartOperator) -> None:
    """Once its own time to end is over, and as long again as a lost node is given."""
    start("--node-lost-timeout", "1s")
    alone.harness.stick(DRIVER)
    before = alone.started(driver={"podTemplate": {"spec": {"terminationGracePeriodSeconds": 1}}})
    alone.annotate(restart="1")
    if alone.driver["metadata"]["uid"] == before["metadata"]["uid"]:
        alone.kube.delete("Pod", DRIVER, grace_s=1)
    alone.next_driver(before)
    alone.wait_ready()


# --- refusals and others' objects


def test_a_quota_without_room_is_told_in_the_servers_words(sink: Operated, shared_faults: KubeFaults) -> None:
    sink.kube.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no"}, "spec": {"hard": {"pods": "0"}}}
    )
    sink.kube.wait("ResourceQuota", "no", lambda quota: quota.get("status", {}).get("hard"))
    sink.apply()
    ready = sink.wait_reason("QuotaExceeded")
    assert "exceeded quota: no, requested: pods=1, used: pods=0, limited: pods=0" in ready["message"]
    namespace = sink.kube.namespace
    tries = [
        call for call in list(shared_faults.requests) if call.kind == "create pods" and call.namespace == namespace
    ]
    assert len(tries) == 1
    assert condition(sink.sink, "WriteRefused")["reason"] == "QuotaExceeded"


def test_a_template_that_the_server_refuses_is_told_and_an_edit_heals_it(sink: Operated) -> None:
    broken = {"podTemplate": {"spec": {"priorityClassName": "nowhere"}}}
    sink.apply(driver=broken)
    assert "nowhere" in sink.wait_reason("AdmissionRefused")["message"]
    sink.apply(driver={})
    found = sink.wait_ready()
    assert not condition(found, "WriteRefused")


def test_a_foreign_pod_of_the_drivers_name_is_never_touched(sink: Operated) -> None:
    secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    spec = {
        "containers": [{"name": "theirs", "image": "theirs", "securityContext": secure}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    theirs = sink.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": DRIVER}, "spec": spec})
    sink.apply()
    assert DRIVER in sink.wait_reason("ForeignObject")["message"]
    assert sink.driver["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert not sink.driver["metadata"].get("labels")
    sink.kube.delete("Pod", DRIVER, grace_s=0)
    sink.wait_ready()


def test_children_that_were_edited_or_deleted_by_hand_are_as_before_again(sink: Operated) -> None:
    sink.started()
    before = sink.snapshot()
    sink.kube.patch("ConfigMap", CHILD, {"data": {"sink.yaml": "nothing"}})
    sink.kube.delete("ServiceAccount", CHILD)
    sink.kube.delete("RoleBinding", CHILD)
    wait_until(lambda: sink.snapshot() == before, "the children are as they were", seconds=20)


def test_two_sinks_of_the_same_data_do_not_both_run(sink: Operated) -> None:
    sink.started()
    sink.apply("younger")
    found = sink.kube.wait("S3Sink", "younger", lambda each: condition(each, "Ready"))
    assert condition(found, "Ready")["reason"] == "Conflict"
    assert f"{sink.kube.namespace}/{SINK}" in condition(found, "Ready")["message"]
    assert sink.kube.find("Pod", names.driver_name("younger")) is None
    sink.kube.delete("S3Sink", SINK)
    sink.kube.wait("Pod", names.driver_name("younger"), bool, what="the younger one's turn")


def test_a_spec_that_only_the_parser_refuses_is_told(sink: Operated) -> None:
    sink.apply(kafka={"bootstrapServers": "kafka:9092", "topicsPattern": "["})
    ready = sink.wait_reason("InvalidSpec")
    assert ready["status"] == "False"
    assert "topicsPattern" in ready["message"]
    assert not sink.kube.items("Pod")


# --- going


@pytest.mark.parametrize("state", ["Running", "Paused"])
def test_a_deleted_sink_leaves_nothing(sink: Operated, state: str) -> None:
    sink.started()
    if state == "Paused":
        sink.apply(state="Paused")
        sink.wait_reason("Paused")
    sink.kube.delete("S3Sink", SINK)
    sink.wait_gone()


def test_deletion_policy_publish_holds_the_sink_until_what_is_open_is_published(sink: Operated) -> None:
    done: list[str] = []

    def publishes(pod: str) -> None:
        done.append(pod)
        sink.harness.succeed(pod)

    sink.harness.at_start(TASK, publishes)
    sink.started(deletionPolicy="Publish")
    sink.wait(lambda found: found["metadata"].get("finalizers") == [names.FINALIZER], "the finalizer")
    sink.kube.delete("S3Sink", SINK)
    sink.wait_gone()
    assert done == [TASK]


def test_a_sink_that_is_made_anew_at_once_waits_for_what_is_left_of_the_old_one(sink: Operated) -> None:
    before = sink.started()
    sink.kube.delete("S3Sink", SINK)
    sink.apply()
    after = sink.next_driver(before)
    found = sink.wait_ready()
    assert after["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]


# --- what the operator tells of itself


def test_the_operator_tells_of_its_work_in_metrics(sink: Operated, everywhere: Operator) -> None:
    sink.started()
    text = everywhere.metrics()
    assert re.search(r's3sink_operator_reconciles_total\{result="ok"\} [1-9]', text)
    assert re.search(r's3sink_operator_api_writes_total\{kind="Pod",verb="post"\} [1-9]', text)
    assert re.search(r's3sink_operator_sinks\{condition="Ready",status="True"\} [1-9]', text)
    assert everywhere.health() == 200


def test_an_operator_without_the_crd_says_what_to_do(
    tmp_path: Path, namespace: str, operator_kubeconfig: Path, faults: KubeFaults
) -> None:
    faults.when(lambda call: call.path == "/apis/s3sink.io/v1alpha1", Refuse(404))
    process = Operator(tmp_path, operator_kubeconfig, namespace)
    assert process.wait(30) == 75
    assert "apply the CustomResourceDefinition first" in process.troubles()[0]
