"""Decisions about a sink that should run: start, edit, restoration, sizing, status."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from s3sink_operator import names
from s3sink_operator.types import Json, SinkResources, to_timestamp
from tests.operator.fake_cluster import (
    MINUTE,
    RESTARTED,
    SPEC,
    START,
    Cluster,
    actions,
    attempt,
    document,
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


def test_a_deleted_driver_is_re_created_at_once() -> None:
    cluster = running()
    cluster.remove("Pod", "flights-s3sink-driver")
    cluster.converge_with_kubelet()
    assert actions(cluster) == ["create flights-s3sink-driver"]
    assert attempt(cluster) == "2"
    assert cluster.status["attempts"][1]["reason"] == "PodDisappeared"


@pytest.mark.parametrize("kind", ["ConfigMap", "ServiceAccount", "RoleBinding"])
def test_a_deleted_child_is_re_created(kind: str) -> None:
    cluster = running(executor={"mode": "Cluster"})
    cluster.remove(kind, "flights-s3sink")
    cluster.converge()
    assert actions(cluster) == [f"apply {kind}"]


def test_a_sink_in_local_mode_has_no_role_binding() -> None:
    assert running().get("RoleBinding", "flights-s3sink") is None
    assert running(executor={"mode": "Cluster"}).get("RoleBinding", "flights-s3sink")


def test_a_sink_that_changes_to_local_mode_loses_its_permissions_and_gets_them_back() -> None:
    cluster = running(executor={"mode": "Cluster"})
    cluster.edit(executor={"mode": "Local"})
    cluster.converge_with_kubelet()
    assert cluster.get("RoleBinding", "flights-s3sink") is None
    assert not cluster.decide().has_writes
    cluster.edit(executor={"mode": "Cluster"})
    cluster.converge_with_kubelet()
    assert cluster.get("RoleBinding", "flights-s3sink")


def test_the_permissions_are_kept_until_the_driver_that_uses_them_is_gone() -> None:
    cluster = running(executor={"mode": "Cluster"})
    cluster.deletes_slowly = True
    cluster.edit(executor={"mode": "Local"})
    cluster.converge()
    assert cluster.driver
    assert "deletionTimestamp" in cluster.driver["metadata"]
    assert cluster.get("RoleBinding", "flights-s3sink")
    cluster.remove("Pod", "flights-s3sink-driver")
    cluster.deletes_slowly = False
    cluster.converge()
    assert cluster.get("RoleBinding", "flights-s3sink") is None


def test_an_edited_config_map_is_restored_and_fields_of_others_are_kept() -> None:
    cluster = running()
    config = cluster.objects["ConfigMap", "flights-s3sink"]
    desired = config["data"]["sink.yaml"]
    config["metadata"]["labels"]["team"] = "a"
    assert not cluster.decide().has_writes
    config["data"]["sink.yaml"] = "nonsense"
    cluster.converge()
    assert cluster.objects["ConfigMap", "flights-s3sink"]["data"]["sink.yaml"] == desired
    assert cluster.objects["ConfigMap", "flights-s3sink"]["metadata"]["labels"]["team"] == "a"


def test_a_driver_whose_hash_was_edited_by_hand_is_replaced() -> None:
    cluster = running()
    assert cluster.driver
    cluster.driver["metadata"]["annotations"][names.SPEC_HASH_ANNOTATION] = "edited"
    cluster.converge_with_kubelet()
    assert actions(cluster) == RESTARTED


# -- others ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ConfigMap", "ServiceAccount", "RoleBinding"])
def test_an_unowned_object_with_the_name_of_a_child_is_never_overwritten(kind: str) -> None:
    cluster = Cluster()
    theirs: Json = {"kind": kind, "metadata": {"name": "flights-s3sink", "uid": "theirs"}}
    cluster.objects[kind, "flights-s3sink"] = copy.deepcopy(theirs)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "NameTaken")
    assert cluster.objects == {(kind, "flights-s3sink"): theirs}


def test_an_object_of_ours_that_came_back_without_its_owner_is_ours() -> None:
    """As from a backup that keeps labels and leaves owners out."""
    cluster = running()
    cluster.objects["ConfigMap", "flights-s3sink"]["metadata"].pop("ownerReferences")
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.objects["ConfigMap", "flights-s3sink"]["metadata"]["ownerReferences"]


def test_a_foreign_pod_of_our_name_is_never_touched() -> None:
    cluster = Cluster()
    pod = {"kind": "Pod", "metadata": {"name": "flights-s3sink-driver", "uid": "x"}, "status": {"phase": "Running"}}
    cluster.objects["Pod", "flights-s3sink-driver"] = pod
    cluster.converge()
    assert not actions(cluster)
    assert cluster.ready == ("False", "NameTaken")
    assert "flights-s3sink-driver" in cluster.condition("Ready")["message"]


def test_the_pod_of_a_sink_that_was_deleted_before_is_waited_for() -> None:
    before = Cluster(sink=document(uid="old"))
    before.converge_with_kubelet()
    cluster = Cluster(objects=before.objects)
    cluster.converge()
    assert cluster.ready == ("False", "NameTaken")
    assert cluster.condition("Reconciling")["status"] == "True"
    cluster.objects.clear()
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def older() -> SinkResources:
    return SinkResources(
        namespace="data",
        name="elder",
        creation_time=to_timestamp(START - 1000),
        bucket="archive",
        topics_dir="topics",
        topics=["flights"],
        group="g",
        sink_id="s",
        brokers="kafka:9092",
    )


def test_of_two_conflicting_sinks_the_later_one_is_terminated_and_both_are_named() -> None:
    cluster = running()
    other = older()
    cluster.others = [replace(other, held=other.digest, held_since="1970-01-01T00:00:00Z")]
    cluster.converge()
    assert cluster.driver is None
    assert cluster.ready == ("False", "Conflict")
    message = cluster.condition("Ready")["message"]
    assert "data/elder" in message
    assert "data/flights" in message
    assert "claim" not in cluster.status
    cluster.others = []
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_an_older_sink_that_is_edited_does_not_end_a_running_one() -> None:
    cluster = running()
    claim = cluster.status["claim"]
    cluster.others = [replace(older(), held="what it held before the edit")]
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.status["claim"] == claim


def test_a_sink_of_another_namespace_is_a_warning_and_stops_nothing() -> None:
    cluster = running()
    cluster.others = [replace(older(), namespace="attacker")]
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.condition("Conflict")["reason"] == "OtherNamespace"
    assert "attacker/elder" in cluster.condition("Conflict")["message"]
    assert not actions(cluster)


def test_the_time_of_a_claim_changes_with_an_edit_of_the_resources_alone() -> None:
    cluster = running()
    before = cluster.status["claim"]
    cluster.now += MINUTE
    cluster.edit(rotation={"flushSize": 7})
    cluster.converge_with_kubelet()
    assert cluster.status["claim"] == before
    cluster.edit(kafka={"bootstrapServers": "kafka:9092", "topics": ["flights", "more"]})
    cluster.converge_with_kubelet()
    assert cluster.status["claim"]["since"] > before["since"]


# -- bad edits ---------------------------------------------------------------------------------------------------------


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
