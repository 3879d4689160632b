"""How failures of the driver and of operations are counted, and when the next attempt starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3sink_operator import names
from sink_job.api.errors import BucketNotFound, DataLoss, ObjectConflict, TransientError
from tests.operator.fake_cluster import (
    MINUTE,
    RESTARTED,
    Cluster,
    actions,
    attempt,
    running,
    stopping,
)


def _evict(cluster: Cluster) -> None:
    assert cluster.driver
    cluster.driver["status"] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
    cluster.report = None


@pytest.mark.parametrize(
    ("fail", "reason", "stalled", "pause_min"),
    [
        pytest.param(
            lambda c: c.fail(BucketNotFound("no bucket: make it")), BucketNotFound.reason, True, 2, id="no bucket"
        ),
        pytest.param(lambda c: c.fail(DataLoss("gone")), "DataLoss", True, 2, id="data lost"),
        pytest.param(lambda c: c.fail(ObjectConflict("other")), "ObjectConflict", True, 2, id="an existing object"),
        pytest.param(lambda c: c.fail(exit_code=2), "InvalidSpec", True, 2, id="a manifest that the job rejects"),
        pytest.param(lambda c: c.fail(exit_code=3), "LedgerFenced", True, 2, id="another driver"),
        pytest.param(
            lambda c: c.fail(TransientError("slow")), TransientError.reason, False, 0, id="Kafka that is away"
        ),
        pytest.param(lambda c: c.fail(exit_code=0), "UnexpectedExit", False, 0, id="success though it should run"),
        pytest.param(lambda c: c.fail(exit_code=137, reason="OOMKilled"), "OOMKilled", False, 0, id="out of memory"),
        pytest.param(lambda c: c.fail(exit_code=137), "Killed", False, 0, id="a kill"),
        pytest.param(lambda c: c.fail(exit_code=11), "TooManyExecutorFailures", False, 0, id="executors that fail"),
        pytest.param(_evict, "Evicted", False, 0, id="an eviction"),
    ],
)
def test_a_driver_that_ended_is_started_again_after_a_pause(
    fail: Callable[[Cluster], None], reason: str, stalled: bool, pause_min: int
) -> None:
    cluster = running()
    cluster.wait(MINUTE)
    fail(cluster)
    cluster.reconcile()
    assert cluster.status["attempts"][0]["reason"] == reason
    assert cluster.status["retry"]["failures"] == 1
    if pause_min:
        assert cluster.ready == ("False", reason)
        assert not actions(cluster), "the pod is kept for its log"
        assert cluster.condition("Stalled")["status"] == str(stalled)
        assert not cluster.decide().has_writes
        cluster.wait(int(pause_min * MINUTE * 1.1) + 1000)
    cluster.converge_with_kubelet()
    assert [each for each in actions(cluster) if "driver" in each] == RESTARTED
    assert cluster.ready == ("True", "Running")


def test_the_status_has_reason_exit_code_and_start_of_the_next_attempt() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("no bucket archive: make it"))
    cluster.converge()
    reported = cluster.status["attempts"][0]
    assert (reported["exitCode"], reported["resumesFrom"]) == (7, "after round 9 of the ledger")
    message = cluster.condition("Ready")["message"]
    assert message.startswith("no bucket archive: make it. Failed once; next attempt at ")
    assert cluster.events == [("Warning", BucketNotFound.reason)]


def test_pauses_grow_with_failures_in_a_row_and_are_forgotten_after_a_stable_spell() -> None:
    cluster = running()
    for failures in (1, 2, 3):
        cluster.wait(MINUTE)
        cluster.fail(BucketNotFound("no bucket"))
        cluster.reconcile()
        assert cluster.status["retry"]["failures"] == failures
        cluster.wait(70 * MINUTE)
        cluster.converge_with_kubelet()
    cluster.wait(11 * MINUTE)
    cluster.converge()
    assert cluster.status["retry"]["failures"] == 3, "the last pause was 12 minutes"
    cluster.wait(3 * MINUTE)
    cluster.converge()
    assert "retry" not in cluster.status


def test_an_infrastructure_failure_is_retried_within_ten_minutes_or_at_once_after_a_restart() -> None:
    cluster = running()
    for _ in range(12):
        cluster.fail(TransientError("Kafka did not answer"))
        cluster.reconcile()
        cluster.wait(10 * MINUTE)
        cluster.converge_with_kubelet()
        assert cluster.ready == ("True", "Running")
    cluster.fail(TransientError("Kafka did not answer"))
    cluster.converge()
    message = cluster.condition("Ready")["message"]
    assert (
        "To retry now: kubectl s3sink restart flights, or another text in the annotation s3sink.io/restart" in message
    )
    cluster.annotate({names.RESTART_ANNOTATION: "now"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_a_restart_ends_the_pause_of_an_operation() -> None:
    cluster = stopping()
    for _ in range(2):
        assert cluster.operation is not None
        cluster.end(cluster.operation, exit_code=75)
        cluster.converge()
    assert "To retry now: kubectl s3sink restart flights" in cluster.condition("Ready")["message"]
    cluster.annotate({names.RESTART_ANNOTATION: "now"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "Stopped")


def test_a_failure_is_counted_once_in_any_number_of_passes() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("no bucket"))
    for _ in range(5):
        cluster.reconcile()
        cluster.wait(1000)
    assert cluster.status["retry"]["failures"] == 1
    assert len(cluster.status["attempts"]) == 1


def test_an_edit_ends_a_pause() -> None:
    cluster = running()
    cluster.edit(s3={"bucket": "missing"})
    cluster.converge_with_kubelet()
    cluster.fail(BucketNotFound("no bucket"))
    cluster.converge()
    cluster.edit(s3={"bucket": "archive"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert "retry" not in cluster.status


def test_a_restart_by_annotation_ends_a_pause() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("no bucket"))
    cluster.converge()
    cluster.annotate({names.RESTART_ANNOTATION: "now"})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_a_failed_driver_deleted_by_hand_does_not_shorten_the_pause() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("no bucket"))
    cluster.converge()
    cluster.remove("Pod", "flights-s3sink-driver")
    assert not cluster.decide().writes.create
    cluster.wait(3 * MINUTE)
    cluster.converge_with_kubelet()
    assert attempt(cluster) == "2"
