"""What the operator decides about a request whose pod does not come to an end."""

from __future__ import annotations

import pytest

from tests.operator.fake_cluster import MINUTE, Cluster, actions
from tests.operator.fake_cluster import stopping as being_stopped


@pytest.fixture
def stopping() -> Cluster:
    """A sink that is being stopped: the pod that publishes what is open runs on the node `node-2`."""
    cluster = being_stopped()
    assert cluster.operation is not None
    cluster.operation["status"] = {"phase": "Running"}
    cluster.operation["spec"]["nodeName"] = "node-2"
    cluster.converge()
    cluster.log.clear()
    return cluster


@pytest.mark.parametrize("node", [None, False], ids=["gone", "not ready"])
def test_an_operation_on_a_lost_node_is_replaced_by_force_after_five_minutes(
    stopping: Cluster, node: bool | None
) -> None:
    stopping.nodes = {"node-2": node}
    stopping.converge()
    assert stopping.ready == ("Unknown", "NodeLost")
    assert "node-2" in stopping.condition("Ready")["message"]
    assert not actions(stopping)
    stopping.wait(5 * MINUTE)
    stopping.converge_with_kubelet()
    assert actions(stopping)[:2] == ["delete flights-s3sink-operation by force", "create flights-s3sink-operation"]
    assert stopping.ready == ("False", "Stopped")


def test_an_operation_continues_when_its_node_returns(stopping: Cluster) -> None:
    stopping.nodes = {"node-2": False}
    stopping.converge()
    stopping.nodes = {"node-2": True}
    stopping.wait(5 * MINUTE)
    stopping.converge()
    assert not actions(stopping)
    assert "nodeLostTime" not in stopping.status


def test_an_operation_is_terminated_after_a_timeout_and_retried(stopping: Cluster) -> None:
    operation = stopping.operation
    assert operation
    assert operation["spec"]["activeDeadlineSeconds"] == 6 * 3600
    operation["status"] = {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active for too long"}
    stopping.converge_with_kubelet()
    assert actions(stopping)[:2] == ["delete flights-s3sink-operation", "create flights-s3sink-operation"]
    assert stopping.ready == ("False", "Stopped")
