"""The status of a sink in Cluster mode, by the number of running executors."""

from __future__ import annotations

from typing import Any

from s3sink_operator.types import Json
from tests.operator.fake_cluster import Cluster, actions, running

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
