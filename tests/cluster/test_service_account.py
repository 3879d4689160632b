"""Who a sink's pods are: annotations for the cloud, an account of the user's own, uids of the cluster's own.

By an operator that leaves uids to the cluster, on a real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import operator
from tests.support.operator_fixture import CHILD, DRIVER, Operated

pytestmark = pytest.mark.cluster
ROLE = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lake"}


@pytest.fixture
def sink(kube: Kube, harness: Harness, control_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[Operated]:
    kubeconfig = control_plane.kubeconfig(namespace=namespace)
    with harness.playing(), operator(tmp_path, kubeconfig, namespace, "--run-as-user", "Cluster"):
        yield Operated(kube, harness)


def annotations_of(sink: Operated) -> Json:
    return dict(sink.kube.get("ServiceAccount", CHILD)["metadata"].get("annotations") or {})


def test_annotations_come_and_go_with_the_spec_and_those_of_others_stay(sink: Operated) -> None:
    first = sink.started(serviceAccount={"annotations": ROLE | {"more": "yes"}})
    sink.kube.patch("ServiceAccount", CHILD, {"metadata": {"annotations": {"theirs": "stays"}}})
    assert (ROLE | {"more": "yes", "theirs": "stays"}).items() <= annotations_of(sink).items()
    sink.apply(serviceAccount={"annotations": ROLE})
    second = sink.next_driver(first)
    assert (ROLE | {"theirs": "stays"}).items() <= annotations_of(sink).items()
    assert "more" not in annotations_of(sink)
    sink.apply()
    sink.next_driver(second)
    assert annotations_of(sink) == {"theirs": "stays"}


def test_pods_run_under_an_account_of_the_users_own_which_gets_the_drivers_role(sink: Operated) -> None:
    sink.kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "lake-writer"}})
    sink.apply(serviceAccount={"name": "lake-writer"}, executor={"mode": "Cluster"})
    pod = sink.kube.wait("Pod", DRIVER, bool)
    assert pod["spec"]["serviceAccountName"] == "lake-writer"
    (subject,) = sink.kube.get("RoleBinding", CHILD)["subjects"]
    assert (subject["kind"], subject["name"]) == ("ServiceAccount", "lake-writer")


def test_a_missing_service_account_is_reported_with_the_message_of_the_api_server(sink: Operated) -> None:
    sink.apply(serviceAccount={"name": "nosuch"})
    ready = sink.wait_reason("AdmissionDenied")
    assert 'serviceaccount "nosuch" not found' in ready["message"]


def test_no_uid_is_named_where_the_cluster_assigns_them(sink: Operated) -> None:
    context = sink.started()["spec"]["securityContext"]
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys()
    assert context["runAsNonRoot"] is True
