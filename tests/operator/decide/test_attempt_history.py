"""What the operator decides when a driver ends, does not start, cannot be made, or is lost with its node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3sink_operator import names
from s3sink_operator.types import FINALIZERS_KIND, Rejection, Unreachable, to_timestamp
from sink_job.api.errors import BucketNotFound, DataLoss, ObjectConflict, TransientError
from sink_job.api.report import RunState, Totals
from tests.operator.fake_cluster import (
    MINUTE,
    RESTARTED,
    START,
    Cluster,
    actions,
    attempt,
    document,
    report,
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


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (403, 'pods "x" is forbidden: exceeded quota: q', "QuotaExceeded"),
        (403, 'admission webhook "w" denied the request: no', "AdmissionDenied"),
        (422, "Pod is invalid: spec.containers[0].image: Required", "Invalid"),
        (403, 'User "o" cannot create resource "pods" in API group ""', "OperatorPermissionDenied"),
    ],
)
def test_a_rejection_is_reported_with_its_message_and_retried_later(status: int, message: str, reason: str) -> None:
    cluster = Cluster()
    cluster.converge()
    cluster.remove("Pod", "flights-s3sink-driver")
    rejection = Rejection(
        kind="Pod", name="flights-s3sink-driver", status=status, reason="x", message=message, at_ms=cluster.now
    )
    cluster.rejections = [rejection]
    cluster.log.clear()
    cluster.converge()
    assert not actions(cluster)
    assert cluster.ready == ("False", reason)
    assert message in cluster.condition("Ready")["message"]
    cluster.wait(3 * MINUTE)
    assert cluster.decide().writes.create
    assert cluster.status["retry"]["failures"] == 1


def test_no_driver_is_created_while_the_status_cannot_clear_published() -> None:
    """Else a later stop, or a deletion, would believe it, though that driver has opened something."""
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    assert cluster.status["published"]
    cluster.edit(state="Running")
    cluster.rejections = [
        Rejection(kind="S3Sink", name="flights", status=403, reason="Forbidden", message="no", at_ms=cluster.now)
    ]
    assert not cluster.decide().writes.create
    cluster.rejections = []
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert "published" not in cluster.status


def test_a_rejection_while_stopping_is_a_failure_of_the_operation_counted_once() -> None:
    cluster = running()
    cluster.edit(state="Stopped")
    while cluster.driver is not None:
        cluster.reconcile()
        cluster.kubelet()
    message = "denied by policy"
    for kind, name in (("ConfigMap", "flights-s3sink"), ("Pod", "flights-s3sink-operation")):
        cluster.rejections = [
            *cluster.rejections,
            Rejection(kind=kind, name=name, status=403, reason="Forbidden", message=message, at_ms=cluster.now),
        ]
        cluster.converge()
        assert not cluster.decide().writes.create
    assert (cluster.status["retry"]["component"], cluster.status["retry"]["failures"]) == ("operation", 1)


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("ConfigMap", "flights-s3sink", lambda c: c.remove("ConfigMap", "flights-s3sink")),
        ("Pod", "flights-s3sink-driver", lambda c: c.edit(rotation={"flushSize": 5})),
        ("S3Sink", "flights", lambda c: c.edit(executor={"mode": "Local", "instances": 3})),
        (FINALIZERS_KIND, "flights", lambda c: c.edit(deletionPolicy="Publish")),
    ],
)
def test_any_rejected_write_is_reported_and_retried_after_a_minute(
    kind: str, name: str, change: Callable[[Cluster], None]
) -> None:
    cluster = running()
    change(cluster)
    message = 'User "o" cannot patch resource "x" in API group ""'
    cluster.rejections = [
        Rejection(kind=kind, name=name, status=403, reason="Forbidden", message=message, at_ms=cluster.now)
    ]
    cluster.converge()
    assert not actions(cluster)
    if kind != "S3Sink":
        assert cluster.condition("WriteRejected")["reason"] == "OperatorPermissionDenied"
        assert message in cluster.condition("WriteRejected")["message"]
    waits = cluster.decide().requeue_after_ms
    assert waits is not None
    assert waits <= MINUTE
    cluster.wait(MINUTE)
    assert cluster.decide().has_writes
    cluster.rejections = []
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


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


def test_lost_offsets_are_a_condition_of_their_own() -> None:
    cluster = running()
    cluster.report = report(totals=Totals(lost=12))
    cluster.wait(MINUTE)
    cluster.converge()
    assert cluster.condition("DataLoss")["status"] == "True"
    assert "12 offsets" in cluster.condition("DataLoss")["message"]
    assert cluster.ready == ("True", "Running")


def test_a_restart_ends_the_wait_after_a_rejected_pod() -> None:
    cluster = Cluster()
    pod = "flights-s3sink-driver"
    cluster.rejections = [Rejection(kind="Pod", name=pod, status=403, reason="", message="no", at_ms=cluster.now)]
    cluster.converge()
    assert cluster.ready == ("False", "AdmissionDenied")
    assert cluster.driver is None
    cluster.annotate({names.RESTART_ANNOTATION: "1"})
    cluster.converge()
    assert cluster.driver is not None
