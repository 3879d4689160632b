"""Decisions about a sink that should run: start, edit, restoration, sizing, status."""

from __future__ import annotations

import copy

import pytest

from s3sink_operator import names
from s3sink_operator.status.status_update import MAX_MESSAGE
from tests.operator.fake_cluster import (
    MINUTE,
    RESTARTED,
    SPEC,
    Cluster,
    actions,
    attempt,
    report,
    running,
)

CREATED = ["apply ConfigMap", "apply ServiceAccount", "create flights-s3sink-driver", "status"]


def test_a_new_sink_gets_its_objects_and_a_driver_with_few_writes() -> None:
    cluster = Cluster()
    cluster.converge()
    assert cluster.log == CREATED
    assert cluster.ready == ("False", "Starting")
    assert cluster.condition("Reconciling")["status"] == "True"
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert len(cluster.log) <= 6
    assert cluster.status["observedGeneration"] == 1
    assert cluster.status["progress"]["partitions"]["assigned"] == 1


def test_nothing_is_written_when_all_is_as_it_should_be() -> None:
    cluster = running()
    cluster.wait(10 * MINUTE)
    assert not cluster.decide().has_writes


def test_progress_is_written_every_half_a_minute_at_most() -> None:
    cluster = running()
    cluster.wait(10_000)
    cluster.report = report(lag=5)
    decision = cluster.decide()
    assert decision.status is None
    assert decision.requeue_after_ms == cluster.settings.status_poll_ms
    cluster.wait(20_000)
    cluster.converge()
    assert cluster.status["progress"]["lag"]["records"] == 5


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"rotation": {"flushSize": 5}}, id="of how objects are cut"),
        pytest.param({"kafka": SPEC["kafka"] | {"topics": ["a", "b"]}}, id="of the topics"),
        pytest.param({"kafka": SPEC["kafka"] | {"properties": {"client.dns.lookup": "x"}}}, id="of Kafka's client"),
        pytest.param({"s3": {"bucket": "archive", "region": "eu-central-1"}}, id="of how S3 is reached"),
        pytest.param({"executor": {"mode": "Local", "cores": 2}}, id="of the tasks at a time"),
        pytest.param({"executor": {"mode": "Cluster"}}, id="to executors of their own"),
        pytest.param({"driver": {"podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}}, id="of the pod template"),
        pytest.param({"image": "other:2"}, id="of the image"),
        pytest.param({"imagePullSecrets": [{"name": "login"}]}, id="of the pull secrets"),
        pytest.param({"sparkConf": {"spark.foo": "1"}}, id="of Spark's properties"),
        pytest.param({"errors": {"tolerance": "All"}}, id="of what is tolerated"),
        pytest.param({"onDataLoss": "Continue"}, id="of what happens at data loss"),
        pytest.param({"restartNonce": "again"}, id="of the nonce"),
    ],
)
def test_restarts_the_driver_after_an_edit(sections: dict[str, object]) -> None:
    cluster = running()
    cluster.edit(**sections)
    cluster.converge_with_kubelet()
    assert [each for each in actions(cluster) if "driver" in each] == RESTARTED
    assert cluster.status["attempts"][0]["number"] == 2
    assert cluster.status["attempts"][1]["reason"] == "SpecChanged"
    assert cluster.status["observedGeneration"] == 2
    assert cluster.ready == ("True", "Running")


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"rotation": {"flushSize": 100, "onPathChange": True}}, id="that writes a default down"),
        pytest.param({"deletionPolicy": "Publish"}, id="of what happens at deletion"),
        pytest.param({"executor": {"mode": "Local", "instances": 3}}, id="of executors that there are none of"),
        pytest.param({"executor": {"mode": "Local", "memory": {"max": "4Gi"}}}, id="of the memory allowed"),
        pytest.param({"state": "Running"}, id="that says again that it should run"),
        pytest.param({"offsets": {"reset": {"nonce": "n", "to": "Earliest"}}}, id="that asks for offsets"),
    ],
)
def test_leaves_the_driver_alone_after_an_edit(sections: dict[str, object]) -> None:
    cluster = running()
    cluster.edit(**sections)
    cluster.converge_with_kubelet()
    assert not [each for each in actions(cluster) if "driver" in each]
    assert cluster.status["observedGeneration"] == 2


def test_restarts_the_driver_when_the_annotation_changed_and_not_when_it_is_taken_away() -> None:
    cluster = running()
    cluster.annotate({names.RESTART_ANNOTATION: "now"})
    cluster.converge_with_kubelet()
    assert actions(cluster) == RESTARTED
    assert cluster.status["attempts"][1]["reason"] == "RestartRequested"
    del cluster.sink["metadata"]["annotations"][names.RESTART_ANNOTATION]
    assert not cluster.converge()


def test_a_restart_waits_for_the_old_driver_to_be_gone() -> None:
    cluster = running()
    cluster.deletes_slowly = True
    cluster.edit(rotation={"flushSize": 5})
    cluster.converge()
    assert actions(cluster) == ["delete flights-s3sink-driver"]
    assert cluster.ready == ("False", "SpecChanged")
    cluster.converge_with_kubelet()
    assert attempt(cluster) == "2"


def test_a_running_sink_is_adopted_without_a_write_by_an_operator_that_comes_back() -> None:
    cluster = running()
    again = Cluster(sink=copy.deepcopy(cluster.sink), objects=cluster.objects, report=report(now=cluster.now))
    assert not again.decide().has_writes


def test_a_lost_status_is_written_again_and_the_driver_continues() -> None:
    cluster = running()
    before = cluster.status
    del cluster.sink["status"]
    cluster.converge()
    assert cluster.status["conditions"] == before["conditions"]
    assert cluster.status["attempts"] == before["attempts"]
    assert not actions(cluster)


def test_an_invalid_edit_is_reported_and_the_driver_continues() -> None:
    cluster = running()
    good = copy.deepcopy(cluster.sink["spec"])
    cluster.edit(partitioner={"type": "Hourly", "timezone": "Europe/Berlim"})
    cluster.converge()
    assert cluster.ready == ("False", "InvalidSpec")
    assert "Europe/Berlin" in cluster.condition("InvalidSpec")["message"]
    assert not actions(cluster)
    cluster.sink["spec"] = good
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.condition("InvalidSpec") == {}
    assert not actions(cluster)


def test_the_message_of_an_event_is_as_long_as_that_of_a_condition_at_most() -> None:
    cluster = Cluster()
    cluster.reconcile()
    assert cluster.driver is not None
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x" * 5000}
    cluster.driver["status"] = {"phase": "Pending", "conditions": [unscheduled]}
    messages = [event.message for event in cluster.decide().events]
    assert [len(message) for message in messages] == [MAX_MESSAGE]
