"""Rejections of the API server, others' objects, and the end of a sink, on a real API server.

The harness plays the kubelet's part.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devtools.faults.kube_proxy import KubeFaults, Reject, call
from devtools.kube.client import Json
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_driver_report import ReportServer
from devtools.processes import wait_until
from s3sink_operator import names
from sink_job.api.report import FinalReport
from tests.support.operator_fixture import (
    CHILD,
    DRIVER,
    SINK,
    SPEC,
    TASK,
    Operated,
    StartOperator,
    condition,
    manifest,
)

pytestmark = pytest.mark.cluster


# --- rejections and others' objects


def test_an_exceeded_quota_is_reported_with_the_message_of_the_api_server(
    sink: Operated, shared_faults: KubeFaults
) -> None:
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
    assert condition(sink.sink, "WriteRejected")["reason"] == "QuotaExceeded"


def test_a_rejected_pod_template_is_reported_and_an_edit_fixes_it(sink: Operated) -> None:
    broken = {"podTemplate": {"spec": {"priorityClassName": "nowhere"}}}
    sink.apply(driver=broken)
    assert "nowhere" in sink.wait_reason("AdmissionDenied")["message"]
    sink.apply(driver={})
    found = sink.wait_ready()
    assert not condition(found, "WriteRejected")


@pytest.mark.parametrize(
    ("section", "template", "said"),
    [
        ("driver", {"spec": {"nodeselector": {"disk": "ssd"}}}, 'unknown field "spec.nodeselector"'),
        (
            "executor",
            {"spec": {"tolerations": [{"key": "a", "operatr": "Exists"}]}},
            'unknown field "spec.tolerations[0].operatr"',
        ),
        ("executor", {"metadata": {"lables": {"a": "b"}}}, 'unknown field "metadata.lables"'),
        ("executor", {"spec": {"tolerations": [{"key": "a", "operator": "Exist"}]}}, "spec.tolerations[0].operator"),
        ("driver", {"spec": {"readinessGates": "a"}}, "cannot be handled as a Pod"),
    ],
    ids=["unknown in a driver", "unknown in an executor", "unknown in metadata", "invalid value", "wrong type"],
)
def test_a_misspelled_field_of_a_pod_template_is_reported_and_the_driver_continues(
    sink: Operated, section: str, template: Json, said: str
) -> None:
    sink.apply(executor={"mode": "Cluster"})
    sink.wait(lambda found: found.get("status", {}).get("progress", {}).get("phase") == "Starting", "a driver")
    before = sink.kube.wait("Pod", DRIVER, bool, what="a driver")
    sections: Json = {"executor": {"mode": "Cluster"}}
    sections[section] = sections.get(section, {}) | {"podTemplate": template}
    sink.apply(**sections)
    message = sink.wait_reason("InvalidSpec")["message"]
    assert message.startswith(f"spec.{section}.podTemplate: the API server rejects it")
    assert said in message
    assert sink.driver["metadata"]["uid"] == before["metadata"]["uid"]


def test_an_older_crd_is_reported_and_drivers_run_all_the_same(
    alone: Operated, start: StartOperator, faults: KubeFaults
) -> None:
    """As an API server answers the apply of a field that its definition does not know."""
    words = "failed to create typed patch object: .status.memory: field not declared in schema"
    faults.when(call("apply s3sinks/status"), Reject(500, words))
    start()
    alone.apply()
    ready = alone.wait_reason("OperatorError")
    assert ".status.memory" in ready["message"]
    assert "CustomResourceDefinition" in ready["message"]
    alone.kube.wait("Pod", DRIVER, bool, what="a driver")


def test_many_objects_with_the_operators_label_are_listed_in_parts(
    alone: Operated, start: StartOperator, faults: KubeFaults
) -> None:
    labels = {names.MANAGED_BY_LABEL: names.FIELD_MANAGER}
    for number in range(60):
        meta = {"name": f"of-others-{number}", "labels": labels}
        alone.kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    alone.apply()
    start()
    alone.wait_ready()
    assert sum(each.kind == "list configmaps" for each in list(faults.requests)) > 1


def test_an_unowned_pod_with_the_name_of_the_driver_is_never_changed(sink: Operated) -> None:
    secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    spec = {
        "containers": [{"name": "theirs", "image": "theirs", "securityContext": secure}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    theirs = sink.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": DRIVER}, "spec": spec})
    sink.apply()
    assert DRIVER in sink.wait_reason("NameTaken")["message"]
    assert sink.driver["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert not sink.driver["metadata"].get("labels")
    sink.kube.delete("Pod", DRIVER, grace_s=0)
    sink.wait_ready()


def test_edited_or_deleted_children_are_restored(sink: Operated) -> None:
    sink.started()
    before = sink.snapshot()
    sink.kube.patch("ConfigMap", CHILD, {"data": {"sink.yaml": "nothing"}})
    sink.kube.delete("ServiceAccount", CHILD)
    wait_until(lambda: sink.snapshot() == before, "the children are as they were", seconds=60)


def test_of_two_conflicting_sinks_one_runs(sink: Operated) -> None:
    sink.started()
    sink.apply("younger")
    found = sink.kube.wait("S3Sink", "younger", lambda each: condition(each, "Ready"))
    assert condition(found, "Ready")["reason"] == "Conflict"
    assert f"{sink.kube.namespace}/{SINK}" in condition(found, "Ready")["message"]
    assert sink.kube.find("Pod", names.driver_pod_name("younger")) is None
    sink.kube.delete("S3Sink", SINK)
    sink.kube.wait("Pod", names.driver_pod_name("younger"), bool, what="the younger one's turn")


def test_an_edit_of_an_older_sink_does_not_end_a_running_one(sink: Operated) -> None:
    sink.started()
    kafka = {"bootstrapServers": "senseless:9092", "topics": ["other"]}
    sink.apply(kafka=kafka)
    sink.kube.wait("S3Sink", SINK, lambda each: each.get("status", {}).get("observedGeneration") == 2)
    sink.harness.at_start(names.driver_pod_name("younger"), sink.harness.run)
    sink.apply("younger")
    younger = sink.kube.wait("Pod", names.driver_pod_name("younger"), bool)
    sink.kube.wait("S3Sink", "younger", lambda each: each.get("status", {}).get("claim"))
    sink.apply()
    found = sink.wait_reason("Conflict")
    assert f"belongs to the sink {sink.kube.namespace}/younger, which had it first" in found["message"]
    sink.kube.wait_gone("Pod", DRIVER, seconds=60)
    assert sink.kube.get("Pod", names.driver_pod_name("younger"))["metadata"]["uid"] == younger["metadata"]["uid"]


def test_a_sink_of_another_namespace_stops_nothing_and_both_are_warned(sink: Operated, control_plane: Cluster) -> None:
    victim = sink.started(kafka={**SPEC["kafka"], "groupId": "shared"})
    name = f"{sink.kube.namespace}-b"
    kube = control_plane.client().within(name)
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        spec = {"s3": SPEC["s3"] | {"bucket": sink.kube.namespace}, "kafka": {**SPEC["kafka"], "groupId": "shared"}}
        attacker = manifest("attacker", **spec)
        attacker["metadata"]["labels"] = sink.labels
        kube.apply(attacker)
        kube.wait("Pod", names.driver_pod_name("attacker"), bool)
        for where, what in ((kube, "attacker"), (sink.kube, SINK)):
            found = where.wait("S3Sink", what, lambda each: condition(each, "Conflict"), seconds=60)
            assert condition(found, "Conflict")["reason"] == "OtherNamespace"
        assert sink.driver["metadata"]["uid"] == victim["metadata"]["uid"]
    finally:
        kube.delete("Namespace", name)


def test_a_spec_that_only_the_parser_rejects_is_reported(sink: Operated) -> None:
    sink.apply(kafka={"bootstrapServers": "kafka:9092", "topicsPattern": "["})
    ready = sink.wait_reason("InvalidSpec")
    assert ready["status"] == "False"
    assert "topicsPattern" in ready["message"]
    assert not sink.kube.items("Pod")


# --- going


def running(sink: Operated) -> None:
    sink.started()


def starting(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.waiting(pod, "ContainerCreating"))
    sink.apply()
    sink.kube.wait("Pod", DRIVER, bool)


def without_a_node(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, sink.harness.unschedulable)
    sink.apply()
    sink.wait_reason("Unschedulable")


def failed(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 7))
    sink.apply()
    sink.wait_reason("ConfigurationError")


def paused(sink: Operated) -> None:
    sink.started()
    sink.apply(state="Paused")
    sink.wait_reason("Paused")


def stopped(sink: Operated) -> None:
    sink.harness.at_start(TASK, sink.harness.succeed)
    sink.started()
    sink.apply(state="Stopped")
    sink.wait_reason("Stopped")


def publishing(sink: Operated) -> None:
    sink.harness.at_start(TASK, sink.harness.run)
    sink.started()
    sink.apply(state="Stopped")
    sink.kube.wait("Pod", TASK, bool)


def wrong(sink: Operated) -> None:
    sink.apply(kafka={"bootstrapServers": "kafka:9092", "topicsPattern": "["})
    sink.wait_reason("InvalidSpec")


@pytest.mark.parametrize("state", [running, starting, without_a_node, failed, paused, stopped, publishing, wrong])
def test_a_deleted_sink_leaves_no_children_when_it_is(sink: Operated, state: Callable[[Operated], None]) -> None:
    state(sink)
    sink.kube.delete("S3Sink", SINK)
    sink.wait_gone()


def test_deletion_policy_publish_holds_the_sink_until_open_objects_are_published(sink: Operated) -> None:
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


@pytest.mark.parametrize("policy", ["Publish", "Discard"])
def test_a_sink_is_removed_with_its_terminating_namespace(sink: Operated, policy: str) -> None:
    """As the namespace's controller does it: first the namespace is marked, then what is in it is deleted."""
    sink.started(deletionPolicy=policy)
    sink.kube.delete("Namespace", str(sink.kube.namespace))
    sink.kube.delete("S3Sink", SINK)
    wait_until(lambda: sink.kube.find("S3Sink", SINK) is None, "the sink is gone", seconds=60)


def test_a_driver_publishes_at_sigterm_in_a_terminating_namespace(sink: Operated, reports: ReportServer) -> None:
    """As the namespace's controller does it since 1.33: pods are deleted before everything else."""
    pod = sink.started(deletionPolicy="Publish")
    asked = reports.queries[pod["status"]["podIP"]]
    assert asked[-1:] == ["atStop=Ask"]
    sink.harness.stick(DRIVER)
    sink.kube.delete("Namespace", str(sink.kube.namespace))
    sink.kube.delete("Pod", DRIVER)
    wait_until(lambda: asked[-1:] == ["atStop=Publish"], "the driver is asked to publish", seconds=60)
    assert "publishes the open objects" in sink.wait_reason("NamespaceTerminating")["message"]
    sink.harness.succeed(DRIVER, FinalReport(published=True).termination_message())
    sink.wait(lambda found: found["status"].get("published"), "the publication is in the status")
    sink.harness.remove(DRIVER)
    sink.kube.delete("S3Sink", SINK)
    wait_until(lambda: sink.kube.find("S3Sink", SINK) is None, "the sink is gone", seconds=60)
    ended = [each for each in sink.events() if each["reason"] == "FinalizerRemoved"]
    assert [each["message"] for each in ended] in ([], ["no objects are open"])  # no event in a terminating namespace


def test_a_restart_does_not_publish(sink: Operated, reports: ReportServer) -> None:
    pod = sink.started(deletionPolicy="Publish")
    asked = reports.queries[pod["status"]["podIP"]]
    sink.harness.stick(DRIVER)
    sink.annotate(restart="now")
    wait_until(lambda: asked[-1:] == ["atStop=Exit"], "the driver is asked to exit", seconds=60)
    assert "atStop=Publish" not in asked
    sink.harness.end(DRIVER)
    sink.next_driver(pod)


def test_a_re_created_sink_waits_for_the_children_of_the_old_one(sink: Operated) -> None:
    before = sink.started()
    sink.kube.delete("S3Sink", SINK)
    sink.apply()
    after = sink.next_driver(before)
    found = sink.wait_ready()
    assert after["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
