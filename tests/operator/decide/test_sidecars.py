"""What the operator decides when other containers of a pod live on after the sink's own has ended."""

from __future__ import annotations

from s3sink_operator.objects import CONTAINER
from s3sink_operator.types import Json, Unreachable, to_timestamp
from tests.operator.fake_cluster import MINUTE, Cluster, running, stopping


def end_beside_a_sidecar(cluster: Cluster, pod: Json | None, *, exit_code: int, reason: str = "Error") -> None:
    assert pod is not None
    ended = {"exitCode": exit_code, "reason": reason, "finishedAt": to_timestamp(cluster.now)}
    own = {"name": CONTAINER, "started": False, "state": {"terminated": ended}}
    pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "proxy", "state": {"running": {}}}, own]}
    cluster.report = Unreachable(message="connection refused")


def test_a_driver_that_terminated_beside_a_sidecar_is_restarted() -> None:
    cluster = running()
    end_beside_a_sidecar(cluster, cluster.driver, exit_code=137, reason="OOMKilled")
    cluster.converge()
    assert cluster.status["attempts"][0]["reason"] == "OOMKilled"
    cluster.wait(5 * MINUTE)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert cluster.status["attempts"][0]["number"] == 2


def test_an_operation_that_succeeded_beside_a_sidecar_is_completed() -> None:
    cluster = stopping()
    end_beside_a_sidecar(cluster, cluster.operation, exit_code=0)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")
    assert cluster.operation is None


def test_an_operation_that_failed_beside_a_sidecar_is_retried() -> None:
    cluster = stopping()
    end_beside_a_sidecar(cluster, cluster.operation, exit_code=7)
    cluster.converge()
    assert cluster.ready == ("False", "ConfigurationError")
    cluster.wait(5 * MINUTE)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")


def test_a_sidecar_that_ended_first_ends_nothing() -> None:
    cluster = running()
    assert cluster.driver is not None
    ended = {"exitCode": 1, "finishedAt": to_timestamp(cluster.now)}
    cluster.driver["status"]["containerStatuses"].append({"name": "proxy", "state": {"terminated": ended}})
    assert cluster.converge() == 0
