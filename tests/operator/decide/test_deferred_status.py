"""Whether a status precedes the creation of a driver, or follows it."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator.decide.chain import decide
from tests.operator.fake_cluster import RESTARTED, Cluster, running

CREATION = "create flights-s3sink-driver"


def writes_before_creation(cluster: Cluster) -> list[str]:
    """The last writes before the driver was created, since the write of another pod."""
    before = cluster.log[: len(cluster.log) - 1 - cluster.log[::-1].index(CREATION)]
    pods = [number for number, write in enumerate(before) if write.startswith(("create", "delete"))]
    return before[pods[-1] + 1 :] if pods else before


def test_a_new_driver_that_runs_at_once_is_reported_by_one_status() -> None:
    cluster = Cluster()
    cluster.reconcile()
    cluster.kubelet()
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.log.count("status") == 1


def test_a_new_driver_that_does_not_run_yet_is_reported_as_starting() -> None:
    cluster = Cluster()
    assert cluster.decide().requeue_after_ms is not None
    cluster.converge()
    assert cluster.log[-1] == "status"
    assert cluster.ready == ("False", "Starting")


def test_a_restart_is_recorded_before_the_driver_is_deleted_and_not_again_before_the_next_one_is_created() -> None:
    cluster = running()
    cluster.log.clear()
    cluster.edit(rotation={"flushSize": 200})
    cluster.converge_with_kubelet()
    assert [each for each in cluster.log if not each.startswith("apply")] == ["status", *RESTARTED, "status"]


def test_a_failure_is_recorded_before_the_next_driver_is_created() -> None:
    cluster = running()
    cluster.remove("Pod", "flights-s3sink-driver")
    decision = cluster.decide()
    assert decision.status is not None
    assert decision.status["attempts"][0]["reason"] == "PodDisappeared"
    cluster.converge_with_kubelet()
    assert "status" in writes_before_creation(cluster)


def test_a_driver_is_created_after_the_record_of_published_objects_is_removed() -> None:
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    assert cluster.status["published"]
    cluster.edit(state="Running")
    cluster.reconcile()
    assert "published" not in cluster.status
    cluster.converge_with_kubelet()
    assert "status" in writes_before_creation(cluster)


def test_a_start_whose_writes_failed_before_is_reported_first() -> None:
    """Otherwise a sink whose objects cannot be created would have no status for as long as that lasts."""
    cluster = Cluster()
    assert cluster.decide().status is None
    retried = decide(replace(cluster.observe(), is_retry=True), cluster.settings, cluster.now)
    assert retried.writes.create
    assert retried.status is not None
    assert next(each for each in retried.status["conditions"] if each["type"] == "Ready")["reason"] == "Starting"
