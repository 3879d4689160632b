"""The driver of a sink that should run: pending, lost, without an answer, and without some of its executors."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator.types import Json, Unreachable, to_timestamp
from sink_job.api.report import RunState
from tests.operator.fake_cluster import (
    MINUTE,
    START,
    Cluster,
    actions,
    document,
    running,
)

NO_NODE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu."}
NO_IMAGE = {"name": "s3sink", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}


def with_executors(*status: Json, instances: int = 2) -> Cluster:
    """A sink that ran with all of its executors, and has those in `status` by now; None: one that runs."""
    cluster = running(executor={"mode": "Cluster", "instances": instances})
    cluster.executors = [cluster.executor(number, **each) for number, each in enumerate(status, 1)]
    cluster.log.clear()
    cluster.converge()
    return cluster


def pending(**more: Any) -> Json:
    return {"phase": "Pending"} | more


def test_with_all_of_its_executors_a_sink_is_ready_and_counts_them() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 2})
    assert cluster.status["replicas"] == 2


def test_without_a_single_executor_nothing_is_copied_and_the_sink_is_not_ready() -> None:
    cluster = with_executors()
    assert cluster.ready == ("False", "ExecutorsStarting")
    assert cluster.condition("Ready")["message"].startswith("0 of 2 executors are running")
    assert cluster.condition("Reconciling")["status"] == "True"


def test_unschedulable_executors_are_reported_with_the_message_of_the_scheduler() -> None:
    cluster = with_executors(pending(conditions=[NO_NODE]))
    assert cluster.ready == ("False", "Unschedulable")
    assert "3 Insufficient cpu" in cluster.condition("Ready")["message"]


def test_executors_without_their_image_require_user_action() -> None:
    cluster = with_executors(pending(containerStatuses=[NO_IMAGE]))
    assert cluster.ready == ("False", "ImagePullFailed")
    assert cluster.condition("Stalled")["status"] == "True"


def test_a_sink_with_some_executors_is_ready_and_explains_the_missing_ones() -> None:
    cluster = with_executors({}, pending(conditions=[NO_NODE]))
    assert cluster.ready == ("True", "Running")
    message = cluster.condition("Ready")["message"]
    assert "1 of 2 executors are running" in message
    assert "3 Insufficient cpu" in message


def test_executors_that_are_missing_end_no_driver() -> None:
    assert not actions(with_executors())


def test_executors_of_the_attempt_before_do_not_count() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 1})
    old = cluster.executor(1)
    old["metadata"]["labels"]["s3sink.io/attempt"] = "0"
    cluster.executors = [old]
    cluster.converge()
    assert cluster.ready == ("False", "ExecutorsStarting")
    assert cluster.status["replicas"] == 0


def test_pods_of_others_with_the_labels_of_executors_do_not_count() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 1})
    theirs = cluster.executor(1)
    theirs["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}]
    cluster.executors = [theirs]
    cluster.converge()
    assert cluster.ready == ("False", "ExecutorsStarting")
    assert cluster.status["replicas"] == 0


DENIAL = 'the API server denies the driver to create pods in namespace data: clusterrole "s3sink-driver" not found'


def test_a_driver_that_may_not_create_executors_is_not_ready_although_all_of_them_run() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 1})
    cluster.run(executor_denial=DENIAL)
    cluster.converge()
    assert cluster.ready == ("False", "ExecutorsDenied")
    message = cluster.condition("Ready")["message"]
    assert "1 of 1 executors are running" in message
    assert DENIAL in message
    assert "Restore the ClusterRole s3sink-driver" in message
    assert cluster.condition("Stalled")["status"] == "True"
    assert ("Warning", "ExecutorsDenied") in cluster.events
    assert not actions(cluster), "the executors that run are kept"


QUOTA = 'pods "flights-1-exec-2" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2'


def test_a_sink_whose_executors_the_api_server_rejects_is_not_ready_although_one_runs() -> None:
    cluster = with_executors({})
    cluster.run(executor_rejection=QUOTA)
    cluster.converge()
    assert cluster.ready == ("False", "ExecutorsRejected")
    message = cluster.condition("Ready")["message"]
    assert "1 of 2 executors are running" in message
    assert QUOTA in message
    assert cluster.condition("Stalled")["status"] == "False", "a quota may become free"
    assert ("Warning", "ExecutorsRejected") in cluster.events
    assert not actions(cluster), "the executor that runs is kept"


def test_a_rejection_of_an_executor_that_runs_by_now_is_of_no_interest() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 1})
    cluster.run(executor_rejection=QUOTA)
    cluster.converge()
    assert cluster.ready == ("True", "Running")


def test_a_driver_is_ready_again_as_soon_as_it_may_create_executors() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 1})
    cluster.run(executor_denial=DENIAL)
    cluster.converge()
    cluster.run()
    cluster.converge()
    assert cluster.ready == ("True", "Running")


def test_readiness_is_unknown_while_nothing_completes_and_true_again_afterwards() -> None:
    cluster = with_executors({})
    cluster.run(no_progress_ms=240_000)
    cluster.converge()
    assert cluster.ready == ("Unknown", "NoProgress")
    assert ("Warning", "NoProgress") in cluster.events
    assert not actions(cluster), "the kubelet ends a driver that hangs"
    cluster.run(no_progress_ms=250_000)
    assert cluster.converge() == 0, "the time alone is no reason for a write"
    cluster.run()
    cluster.converge()
    assert cluster.ready == ("True", "Running")


@pytest.mark.parametrize(
    ("status", "reason", "stalled"),
    [
        pytest.param(
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: too little memory"}],
            },
            "Unschedulable",
            "False",
            id="no node has room",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "containerStatuses": [{"name": "s3sink", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
            },
            "ImagePullFailed",
            "True",
            id="the image cannot be pulled",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "containerStatuses": [{"name": "s3sink", "state": {"waiting": {"reason": "CreateContainerError"}}}],
            },
            "CreateContainerFailed",
            "True",
            id="the container cannot be made",
        ),
    ],
)
def test_a_pod_that_does_not_start_is_reported_and_left_to_kubernetes(
    status: dict[str, object], reason: str, stalled: str
) -> None:
    cluster = Cluster()
    cluster.converge()
    assert cluster.driver
    cluster.driver["status"] = status
    cluster.log.clear()
    cluster.converge()
    assert not actions(cluster)
    assert cluster.ready == ("False", reason)
    assert cluster.condition("Stalled")["status"] == stalled
    cluster.edit(image="fixed:1")
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_a_slow_start_is_reported_with_the_secrets_of_the_pod() -> None:
    cluster = Cluster(sink=document(s3={"bucket": "archive", "credentials": {"secret": "s3-keys"}}))
    cluster.converge()
    cluster.wait(5 * MINUTE)
    cluster.converge()
    assert cluster.ready == ("False", "SlowStart")
    assert "s3-keys" in cluster.condition("Ready")["message"]


@pytest.mark.parametrize("node", [pytest.param(False, id="not ready"), pytest.param(None, id="gone")])
def test_a_driver_on_a_lost_node_is_replaced_by_force_after_five_minutes(node: bool | None) -> None:
    cluster = running()
    cluster.deletes_slowly = True
    cluster.nodes = {"node-1": node}
    cluster.report = Unreachable(message="no route")
    cluster.converge()
    assert cluster.ready == ("Unknown", "NodeLost")
    assert not actions(cluster)
    cluster.wait(5 * MINUTE)
    cluster.converge_with_kubelet()
    assert actions(cluster) == ["delete flights-s3sink-driver by force", "create flights-s3sink-driver"]


def test_a_node_that_comes_back_keeps_its_driver() -> None:
    cluster = running()
    cluster.nodes = {"node-1": False}
    cluster.converge()
    cluster.wait(4 * MINUTE)
    cluster.nodes = {"node-1": True}
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert "nodeLostTime" not in cluster.status


def test_a_driver_that_does_not_end_is_ended_by_force() -> None:
    cluster = running()
    cluster.deletes_slowly = True
    cluster.edit(rotation={"flushSize": 5})
    cluster.converge()
    cluster.wait(7 * MINUTE)
    cluster.converge()
    assert actions(cluster)[:2] == ["delete flights-s3sink-driver", "delete flights-s3sink-driver by force"]


def test_a_pod_with_finalizers_of_others_is_named_and_deleted_once() -> None:
    cluster = running()
    assert cluster.driver
    metadata = cluster.driver["metadata"]
    metadata |= {
        "deletionTimestamp": to_timestamp(START),
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["other.io/x"],
    }
    cluster.wait(20 * MINUTE)
    cluster.converge()
    assert cluster.ready == ("False", "TerminationBlocked")
    assert "other.io/x" in cluster.condition("Ready")["message"]
    assert not actions(cluster)


def test_a_starting_driver_is_polled_more_often_than_a_running_one() -> None:
    cluster = Cluster()
    cluster.converge()
    cluster.run(RunState.RECOVERING)
    cluster.converge()
    assert cluster.decide().requeue_after_ms == 2_000
    cluster.run()
    cluster.converge()
    assert cluster.decide().requeue_after_ms == 3_000


def test_a_driver_that_does_not_answer_is_unknown_and_never_restarted() -> None:
    cluster = running()
    cluster.report = Unreachable(message="timed out")
    cluster.wait(60 * MINUTE)
    cluster.converge()
    assert cluster.ready == ("Unknown", "ReportUnreachable")
    assert "timed out" in cluster.condition("Ready")["message"]
    assert not actions(cluster)
    assert cluster.status["progress"]["partitions"]["assigned"] == 1, "the last figures stay"


def test_one_missed_poll_is_not_reported_and_soon_repeated() -> None:
    cluster = running()
    cluster.report = Unreachable(message="timed out", persistent=False)
    assert cluster.converge() == 0
    assert cluster.ready == ("True", "Running")
    assert cluster.decide().requeue_after_ms == 2_000


def test_a_driver_that_has_not_answered_yet_is_not_running() -> None:
    cluster = Cluster()
    cluster.converge()
    cluster.run()
    cluster.report = Unreachable(message="timed out", persistent=False, overdue=False)
    cluster.converge()
    assert cluster.ready == ("False", "Starting")
    cluster.report = Unreachable(message="timed out", overdue=False)
    cluster.converge()
    assert cluster.ready == ("Unknown", "ReportUnreachable")


@pytest.mark.parametrize(
    ("state", "ready"),
    [(RunState.STARTING, "Starting"), (RunState.RECOVERING, "Recovering"), (RunState.STOPPING, "Stopping")],
)
def test_a_driver_that_is_not_running_yet_is_not_ready(state: RunState, ready: str) -> None:
    cluster = Cluster()
    cluster.converge()
    cluster.run(state)
    cluster.converge()
    assert cluster.ready == ("False", ready)
    assert cluster.condition("Reconciling")["status"] == "True"
