"""The objects of a sink: created, restored and deleted."""

from __future__ import annotations

import pytest

from s3sink_operator import names
from tests.operator.fake_cluster import (
    RESTARTED,
    actions,
    attempt,
    running,
)


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
