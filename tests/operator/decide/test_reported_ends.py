"""What is reported of a driver that ends: one event for each failed attempt, and no false alarm beside it."""

from __future__ import annotations

import pytest

from s3sink_operator.names import RESTART_ANNOTATION
from s3sink_operator.types import Event, Unreachable
from sink_job.api.errors import BucketNotFound, TransientError
from sink_job.api.report import Failure, RunState
from tests.operator.fake_cluster import MINUTE, Cluster, running, stopping

CONNECTION_REFUSED = Unreachable(message="connection refused", persistent=True, overdue=False)


def warnings(cluster: Cluster) -> list[Event]:
    """The warnings of the next pass, which is carried out."""
    found = [each for each in cluster.decide().events if each.type == "Warning"]
    cluster.reconcile()
    return found


def fail_after_reporting(cluster: Cluster) -> None:
    """As the job ends: it reports its failure, closes its port, and then its pod has ended."""
    error = BucketNotFound("no bucket archive")
    cluster.run(RunState.FAILED, failure=Failure.of(error))
    cluster.converge()
    cluster.fail(error)


def test_a_failure_that_the_driver_reported_itself_has_a_warning() -> None:
    cluster = running()
    fail_after_reporting(cluster)
    (event,) = warnings(cluster)
    assert event.reason == BucketNotFound.reason
    assert event.message.startswith("attempt 1 failed with exit code 7: no bucket archive. Next attempt at 20")


def test_each_failed_attempt_has_one_warning_with_the_same_reason() -> None:
    cluster = running()
    for attempt in (1, 2, 3):
        fail_after_reporting(cluster)
        assert [each.reason for each in warnings(cluster)] == [BucketNotFound.reason]
        for _ in range(3):
            assert not warnings(cluster), "one for each attempt, not for each pass"
        assert cluster.status["retry"]["failures"] == attempt
        cluster.wait(70 * MINUTE)
        cluster.converge_with_kubelet()


def test_a_failure_that_is_retried_at_once_has_one_warning() -> None:
    cluster = running()
    cluster.fail(TransientError("no broker answers"))
    cluster.converge_with_kubelet()
    assert [each for each in cluster.events if each[0] == "Warning"] == [("Warning", TransientError.reason)]


def test_a_driver_pod_that_disappeared_has_a_warning() -> None:
    cluster = running()
    cluster.remove("Pod", "flights-s3sink-driver")
    assert [each.reason for each in warnings(cluster)] == ["PodDisappeared"]


def test_a_failed_operation_has_a_warning_for_each_attempt() -> None:
    cluster = stopping()
    for _ in range(2):
        operation = cluster.operation
        assert operation
        cluster.end(operation, exit_code=75)
        (event,) = warnings(cluster)
        assert event.reason == TransientError.reason
        cluster.wait(70 * MINUTE)
        cluster.converge()
        assert cluster.operation is not operation


@pytest.mark.parametrize("edit", [{"state": "Paused"}, {"rotation": {"flushSize": 5}}])
def test_an_attempt_that_the_operator_ends_has_no_warning(edit: dict[str, object]) -> None:
    cluster = running()
    cluster.edit(**edit)
    cluster.converge_with_kubelet()
    assert not [each for each in cluster.events if each[0] == "Warning"]


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.STOPPING, RunState.ENDED])
def test_a_driver_that_reported_its_end_is_not_unreachable_before_its_pod_has_ended(state: RunState) -> None:
    cluster = running()
    cluster.run(state)
    cluster.converge()
    before = cluster.status
    cluster.report = CONNECTION_REFUSED
    assert cluster.converge() == 0
    assert cluster.status == before
    assert cluster.decide().requeue_after_ms == 2_000


def test_a_driver_that_does_not_end_after_it_reported_its_end_becomes_unreachable() -> None:
    cluster = running()
    cluster.run(RunState.STOPPING)
    cluster.converge()
    cluster.report = Unreachable(message="timed out")
    cluster.converge()
    assert cluster.ready == ("Unknown", "ReportUnreachable")


def test_a_starting_driver_whose_port_closes_is_still_starting() -> None:
    cluster = Cluster()
    cluster.converge()
    cluster.run(RunState.STARTING)
    cluster.converge()
    cluster.report = Unreachable(message="connection refused", persistent=False, overdue=False)
    cluster.converge()
    assert cluster.ready == ("False", "Starting")


def test_a_restart_on_request_after_a_failure_is_no_second_warning() -> None:
    cluster = running()
    fail_after_reporting(cluster)
    assert len(warnings(cluster)) == 1
    cluster.annotate({RESTART_ANNOTATION: "now"})
    cluster.events.clear()
    cluster.converge_with_kubelet()
    assert ("Normal", "Restarting") in cluster.events
    assert not [each for each in cluster.events if each[0] == "Warning"]
