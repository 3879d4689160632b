"""Decisions about a sink that should not run: paused, stopped, deleted, with a paused operator, and operations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.objects import operation_of
from s3sink_operator.types import to_timestamp
from sink_job.api.errors import AccessDenied
from sink_job.api.report import FinalReport, RunState, Totals
from tests.operator.fake_cluster import MINUTE, SETTINGS, Cluster, actions, document, report, running

END = "delete flights-s3sink-driver"
PUBLISH = ["create flights-s3sink-operation", "delete flights-s3sink-operation"]


@pytest.mark.parametrize("by", ["spec", "annotation"])
def test_pausing_terminates_the_driver_and_keeps_open_objects(by: str) -> None:
    cluster = running()
    if by == "spec":
        cluster.edit(state="Paused")
    else:
        cluster.annotate({names.STATE_ANNOTATION: "Paused"})
    cluster.converge_with_kubelet()
    assert actions(cluster) == [END]
    assert cluster.ready == ("False", "Paused")
    assert cluster.condition("Reconciling")["status"] == "False"
    assert cluster.status["desiredState"] == "Paused"
    assert by in cluster.status["desiredStateSource"]
    assert cluster.status["progress"]["phase"] == "Paused"


def test_resuming_starts_another_attempt() -> None:
    cluster = running(state="Running")
    cluster.edit(state="Paused")
    cluster.converge_with_kubelet()
    cluster.edit(state="Running")
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert cluster.status["attempts"][0]["number"] == 2


def test_an_annotation_overrides_the_spec_and_the_spec_holds_when_it_is_gone() -> None:
    cluster = running(state="Running")
    cluster.annotate({names.STATE_ANNOTATION: "Stopped"})
    cluster.converge_with_kubelet()
    assert cluster.status["desiredState"] == "Stopped"
    cluster.annotate({names.STATE_ANNOTATION: "nonsense"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_stopping_publishes_open_objects_first() -> None:
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    assert actions(cluster) == [END, *PUBLISH]
    assert cluster.ready == ("False", "Stopped")
    assert cluster.status["published"]
    cluster.wait(60 * MINUTE)
    assert not cluster.decide().has_writes


def test_a_stopped_sink_has_the_lag_at_the_end_of_its_last_pod() -> None:
    cluster = running()
    cluster.report = report(lag=500)
    cluster.converge()
    cluster.edit(state="Stopped")
    while cluster.operation is None:
        cluster.reconcile()
    ending = FinalReport(epoch=4, round=12, totals=Totals(records=500, objects=2), lag=0)
    cluster.end(cluster.operation, exit_code=0, message=ending.termination_message())
    cluster.converge()
    reported = cluster.status["progress"]
    assert reported["lastKnownLag"] == {"records": 0, "seconds": 0, "time": to_timestamp(cluster.now)}
    assert "lag" not in reported, "nothing observes it any more"
    assert (reported["round"], reported["records"], reported["openObjects"]) == (12, 500, 0)
    assert "mostLagging" not in reported


def test_the_pod_that_publishes_reads_no_further_and_has_all_the_memory() -> None:
    cluster = running(executor={"mode": "Cluster"})
    cluster.edit(state="Stopped")
    cluster.converge()
    assert cluster.operation
    container = cluster.operation["spec"]["containers"][0]
    assert container["args"][-1] == "--publish-open"
    assert "--until-caught-up" not in container["args"]
    assert "--spark-properties" not in container["args"]
    assert container["resources"]["limits"]["memory"] == cluster.status["memory"]["current"]


def test_driver_and_operation_pod_never_run_at_the_same_time() -> None:
    cluster = running()
    cluster.deletes_slowly = True
    cluster.edit(state="Stopped")
    cluster.converge()
    assert actions(cluster) == [END]
    cluster.kubelet()
    cluster.converge()
    assert cluster.operation
    cluster.edit(state="Running")
    cluster.converge()
    assert cluster.driver is None
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_a_sink_created_as_stopped_publishes_objects_that_a_previous_one_left_open() -> None:
    cluster = Cluster(sink=document(state="Stopped"))
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")
    assert actions(cluster).count("create flights-s3sink-operation") == 1


def test_figures_stay_while_the_next_driver_starts_but_for_those_of_what_may_no_longer_be_read() -> None:
    cluster = running()
    cluster.report = report(now=cluster.now, lag=5)
    cluster.wait(MINUTE)
    cluster.converge()
    assert cluster.status["progress"]["lag"]["records"] == 5
    cluster.run(RunState.STARTING)
    cluster.converge()
    assert cluster.status["progress"]["lastKnownLag"]["records"] == 5
    assert cluster.status["progress"]["topics"]
    cluster.edit(kafka={"bootstrapServers": "kafka:9092", "topics": ["other"]})
    cluster.converge()
    assert not {"lag", "topics", "mostLagging"} & cluster.status["progress"].keys()


def test_a_stopped_sink_with_another_store_publishes_there() -> None:
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    cluster.log.clear()
    cluster.edit(s3=cluster.sink["spec"]["s3"] | {"endpoint": "https://elsewhere.example.com"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")
    assert actions(cluster).count("create flights-s3sink-operation") == 1


def test_a_driver_that_went_before_it_was_seen_running_may_have_left_something_open() -> None:
    cluster = Cluster()
    cluster.converge()
    assert cluster.driver
    cluster.remove("Pod", cluster.driver["metadata"]["name"])
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")
    assert actions(cluster).count("create flights-s3sink-operation") == 1


def test_a_sink_that_ran_again_since_publishes_again() -> None:
    cluster = running()
    for state in ("Stopped", "Running", "Stopped"):
        cluster.edit(state=state)
        cluster.converge_with_kubelet()
    assert actions(cluster).count("create flights-s3sink-operation") == 2


def test_a_failed_publish_is_reported_and_retried_later() -> None:
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge()
    assert cluster.operation
    message = '{"failure": {"reason": "AccessDenied", "message": "S3 says no: grant it", "exitCode": 7}}'
    cluster.end(cluster.operation, exit_code=AccessDenied.exit_code, message=message)
    cluster.converge()
    assert cluster.ready == ("False", "AccessDenied")
    assert cluster.condition("Stalled")["status"] == "True"
    assert "S3 says no" in cluster.condition("Ready")["message"]
    cluster.wait(3 * MINUTE)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")


def test_a_driver_that_failed_does_not_delay_publishing_nor_the_other_way_round() -> None:
    cluster = running()
    cluster.fail(AccessDenied("no"))
    cluster.converge()
    cluster.edit(state="Stopped")
    cluster.converge()
    assert cluster.operation
    cluster.end(cluster.operation, exit_code=7)
    cluster.converge()
    cluster.edit(state="Running")
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


# -- offsets -----------------------------------------------------------------------------------------------------------

RESET = {"reset": {"nonce": "n1", "to": "Earliest"}}


def test_a_reset_waits_until_the_sink_is_stopped() -> None:
    cluster = running()
    cluster.edit(offsets=RESET)
    cluster.converge_with_kubelet()
    assert cluster.condition("OffsetsReset")["reason"] == "WaitingForStopped"
    assert not actions(cluster)


def test_a_reset_runs_once_for_each_nonce_after_open_objects_are_published() -> None:
    cluster = running()
    cluster.edit(state="Stopped", offsets=RESET)
    cluster.converge()
    assert cluster.operation
    assert operation_of(cluster.operation) == "Publish"
    cluster.kubelet()
    cluster.converge()
    assert cluster.operation
    assert operation_of(cluster.operation) == "Reset:n1"
    assert cluster.operation["spec"]["containers"][0]["args"][:5] == [
        "s3sink",
        "reset-offsets",
        "/etc/s3sink/sink.yaml",
        "--to",
        "Earliest",
    ]
    cluster.converge_with_kubelet()
    reported = {"nonce": "n1", "to": "Earliest", "time": "", "phase": "Completed", "completedNonces": {"spec": "n1"}}
    assert cluster.status["offsetReset"] | {"time": ""} == reported
    assert not cluster.decide().has_writes
    cluster.edit(offsets={"reset": {"nonce": "n2", "to": "Latest"}})
    cluster.converge_with_kubelet()
    assert cluster.status["offsetReset"]["nonce"] == "n2"


# -- held --------------------------------------------------------------------------------------------------------------


def held(**spec: Any) -> Cluster:
    cluster = running(**spec)
    cluster.annotate({names.RECONCILE_PAUSED_ANNOTATION: "true"})
    cluster.converge()
    return cluster


def test_a_paused_operator_only_writes_the_status() -> None:
    cluster = held()
    cluster.edit(rotation={"flushSize": 5}, deletionPolicy="Publish")
    cluster.converge()
    assert not actions(cluster)
    cluster.remove("ConfigMap", "flights-s3sink")
    cluster.converge()
    assert not actions(cluster)
    cluster.annotate({names.RECONCILE_PAUSED_ANNOTATION: "false"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert cluster.status["attempts"][0]["number"] == 2


@pytest.mark.parametrize(
    ("edit", "ready"),
    [
        pytest.param({}, "True", id="nothing"),
        pytest.param({"deletionPolicy": "Publish"}, "True", id="what restarts no driver"),
        pytest.param({"rotation": {"flushSize": 5}}, "Unknown", id="settings"),
        pytest.param({"rotation": {}}, "Unknown", id="settings that cannot be read"),
        pytest.param({"state": "Stopped"}, "Unknown", id="the state"),
    ],
)
def test_a_sink_with_a_paused_operator_is_ready_while_its_driver_is_up_to_date(
    edit: dict[str, Any], ready: str
) -> None:
    cluster = held()
    cluster.edit(**edit)
    cluster.converge()
    assert cluster.ready == (ready, "ReconcilePaused")


def test_a_sink_with_a_paused_operator_is_ready_with_the_previous_default_image() -> None:
    cluster = held()
    cluster.settings = replace(SETTINGS, image="registry.example.com/s3sink-job:2")
    cluster.converge()
    assert cluster.ready == ("True", "ReconcilePaused")


def test_a_deleted_sink_with_a_paused_operator_is_removed_after_the_deletion_timeout() -> None:
    cluster = held(deletionPolicy="Publish")
    cluster.delete_sink()
    cluster.converge()
    assert cluster.decide().requeue_after_ms == SETTINGS.deletion_timeout_ms
    cluster.wait(SETTINGS.deletion_timeout_ms)
    cluster.converge()
    assert cluster.is_removed
    assert actions(cluster) == ["finalizers 0"]


# -- a spec that cannot be read ----------------------------------------------------------------------------------------


def test_a_driver_that_terminates_with_an_invalid_spec_is_restarted_after_a_fix() -> None:
    cluster = running()
    cluster.edit(rotation={})
    cluster.converge()
    assert "the driver continues with the previous settings" in cluster.condition("Ready")["message"]
    cluster.fail(AccessDenied("no"))
    cluster.converge()
    reported = cluster.condition("Ready")
    assert reported["reason"] == "InvalidSpec"
    assert "the previous driver terminated (AccessDenied: no)" in reported["message"]
    assert "continues" not in reported["message"]
    assert cluster.status["attempts"][0]["reason"] == "AccessDenied"
    cluster.edit(rotation={"flushSize": 7})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_no_driver_is_started_with_an_invalid_spec_and_that_is_reported() -> None:
    cluster = running()
    cluster.edit(rotation={})
    cluster.remove("Pod", "flights-s3sink-driver")
    cluster.converge()
    assert "no driver is started until the spec is fixed" in cluster.condition("Ready")["message"]


# -- deletion ----------------------------------------------------------------------------------------------------------


def test_a_deleted_sink_held_by_other_finalizers_is_not_ready() -> None:
    cluster = running()
    cluster.sink["metadata"]["finalizers"] = ["example.com/backup"]
    cluster.delete_sink()
    cluster.fail(AccessDenied("no"))
    cluster.converge()
    assert cluster.ready == ("False", "Deleting")
    assert "example.com/backup" in cluster.condition("Ready")["message"]
    assert not actions(cluster)


def in_state(state: str, policy: str) -> Cluster:
    cluster = Cluster(sink=document(deletionPolicy=policy))
    cluster.converge_with_kubelet()
    match state:
        case "Starting":
            cluster.remove("Pod", "flights-s3sink-driver")
            cluster.converge()
        case "Paused" | "Stopped":
            cluster.edit(state=state)
            cluster.converge_with_kubelet()
        case "Failed":
            cluster.fail(AccessDenied("no"))
            cluster.converge()
        case "InvalidSpec":
            cluster.edit(rotation={})
            cluster.converge()
    cluster.log.clear()
    cluster.events.clear()
    return cluster


STATES = ["Running", "Starting", "Paused", "Stopped", "Failed", "InvalidSpec"]


@pytest.mark.parametrize("state", STATES)
def test_with_retain_there_is_no_finalizer_and_nothing_to_do(state: str) -> None:
    cluster = in_state(state, "Retain")
    assert not cluster.sink["metadata"].get("finalizers")
    cluster.delete_sink()
    assert not cluster.decide().has_writes


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("policy", ["Publish", "Discard"])
def test_with_another_policy_a_sink_with_open_objects_is_removed_after_an_operation(state: str, policy: str) -> None:
    cluster = in_state(state, policy)
    assert cluster.sink["metadata"]["finalizers"] == [names.FINALIZER]
    cluster.delete_sink()
    cluster.converge_with_kubelet()
    assert cluster.is_removed
    ran = "create flights-s3sink-operation" in cluster.log
    assert ran == (state not in ("Stopped", "InvalidSpec"))
    assert cluster.driver is None or state == "InvalidSpec"


def test_the_finalizer_comes_before_anything_that_it_is_needed_for() -> None:
    cluster = Cluster(sink=document(deletionPolicy="Publish"))
    cluster.reconcile(writes=1)
    assert cluster.log == ["finalizers 1"]


def test_finalizers_of_others_are_left_alone() -> None:
    cluster = in_state("Running", "Publish")
    cluster.sink["metadata"]["finalizers"].append("other.io/x")
    cluster.edit(deletionPolicy="Retain")
    cluster.converge_with_kubelet()
    assert cluster.sink["metadata"]["finalizers"] == ["other.io/x"]


def test_a_deletion_has_a_timeout_and_reports_open_objects() -> None:
    cluster = in_state("Running", "Publish")
    cluster.delete_sink()
    cluster.converge()
    assert not cluster.is_removed
    assert "deletionPolicy: Retain" in cluster.condition("Ready")["message"]
    cluster.wait(10 * MINUTE)
    cluster.converge()
    assert cluster.is_removed
    assert cluster.events[-1] == ("Warning", "FinalizerRemoved")


def test_retain_is_the_way_out_of_a_deletion_that_waits() -> None:
    cluster = in_state("Running", "Publish")
    cluster.delete_sink()
    cluster.converge()
    cluster.edit(deletionPolicy="Retain")
    cluster.converge()
    assert cluster.is_removed


def test_a_failed_publishing_at_deletion_is_tried_again_within_its_bound() -> None:
    cluster = in_state("Paused", "Publish")
    cluster.delete_sink()
    cluster.converge()
    assert cluster.operation
    cluster.end(cluster.operation, exit_code=75)
    cluster.converge_with_kubelet()
    assert cluster.is_removed
    assert cluster.log.count("create flights-s3sink-operation") == 2
