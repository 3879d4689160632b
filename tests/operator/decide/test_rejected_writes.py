"""Writes that the API server rejects: reported, and retried later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3sink_operator import names
from s3sink_operator.types import FINALIZERS_KIND, Rejection
from tests.operator.fake_cluster import (
    MINUTE,
    Cluster,
    actions,
    running,
)


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
