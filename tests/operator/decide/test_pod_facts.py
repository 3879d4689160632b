"""Objects with the names of a sink's children that are not its own."""

from __future__ import annotations

import copy

import pytest

from s3sink_operator.types import Json
from tests.operator.fake_cluster import (
    Cluster,
    actions,
    document,
    running,
)


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
