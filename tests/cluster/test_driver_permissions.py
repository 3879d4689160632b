"""What drivers may do at the API server: create executors in Cluster mode, nothing in Local mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devtools.kube.client import Json
from devtools.kube.control_plane import Cluster
from devtools.processes import wait_until
from s3sink_operator.types import label
from sink_job.driver.executor_permission import creation_denial
from tests.support.operator_fixture import CHILD, DRIVER, Operated, report

pytestmark = pytest.mark.cluster
CLUSTER = {"mode": "Cluster", "instances": 1}
Denial = Callable[[], "str | None"]


@pytest.fixture
def denial(control_plane: Cluster, namespace: str, tmp_path: Path) -> Denial:
    """Asks the API server as the driver of the sink does."""

    def ask() -> str | None:
        access = control_plane.service_account(namespace, CHILD)
        (tmp_path / "token").write_text(str(access.token))
        (tmp_path / "ca.crt").write_bytes(Path(str(access.authority)).read_bytes())
        prefix = "spark.kubernetes.authenticate"
        return creation_denial(
            {
                "spark.master": f"k8s://{access.server}",
                "spark.kubernetes.namespace": namespace,
                f"{prefix}.oauthTokenFile": str(tmp_path / "token"),
                f"{prefix}.caCertFile": str(tmp_path / "ca.crt"),
            }
        )

    return ask


def with_executor(sink: Operated) -> None:
    """A driver in Cluster mode with one executor, as Spark creates it."""
    sink.apply(executor=CLUSTER)
    driver = sink.kube.wait("Pod", DRIVER, bool)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": DRIVER, "uid": driver["metadata"]["uid"], "controller": True}
    labels = driver["metadata"]["labels"] | {"app.kubernetes.io/component": "executor"}
    name = f"flights-{label(driver, 's3sink.io/attempt')}-exec-1"
    container = driver["spec"]["containers"][0]
    spec: Json = {
        "securityContext": driver["spec"]["securityContext"],
        "containers": [{key: container[key] for key in ("name", "image", "securityContext")}],
    }
    meta = {"name": name, "labels": labels, "ownerReferences": [owner]}
    sink.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    sink.wait_ready()


def test_a_driver_that_may_not_create_executors_is_not_ready_until_it_may(sink: Operated, denial: Denial) -> None:
    sink.kube.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "s3sink-driver"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}],
        }
    )
    with_executor(sink)
    wait_until(lambda: denial() is None, "the permission", seconds=60)
    sink.kube.delete("ClusterRole", "s3sink-driver")  # as `helm uninstall` would, without its resource policy
    wait_until(lambda: denial() is not None, "the denial", seconds=60)
    found = denial()
    assert found is not None
    assert 'clusterrole.rbac.authorization.k8s.io "s3sink-driver" not found' in found
    sink.harness.report(DRIVER, report(executor_denial=found))
    ready = sink.wait_reason("ExecutorsDenied")
    assert ready["status"] == "False"
    assert found in ready["message"]
    sink.harness.report(DRIVER, report())
    sink.wait_ready()


def test_a_sink_has_a_role_binding_in_cluster_mode_and_no_permission_in_local_mode(sink: Operated) -> None:
    before = sink.started()
    assert sink.kube.find("RoleBinding", CHILD) is None
    sink.apply(executor=CLUSTER)
    before = sink.next_driver(before)
    assert sink.kube.get("RoleBinding", CHILD)["roleRef"]["name"] == "s3sink-driver"
    sink.kube.delete("RoleBinding", CHILD)
    sink.kube.wait("RoleBinding", CHILD, lambda found: found.get("subjects"), what="the RoleBinding is restored")
    sink.apply()
    sink.next_driver(before)
    sink.kube.wait_gone("RoleBinding", CHILD)
