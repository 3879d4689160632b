"""What is reported while a failed driver or operation waits for its next attempt."""

from __future__ import annotations

import pytest

from s3sink_operator.decide.backing_off import backing_off
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.handover import OWNER_POLL_MS
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.status.status_model import ConditionStatus
from s3sink_operator.types import Delete, EventType, ObjectWrites, ObservedOwner, OwnerState, to_timestamp
from sink_job.api.errors import AccessDenied, BucketNotFound, OwnershipConflict
from tests.operator.fake_cluster import MINUTE, Cluster, running

OWNER = "c1/data/old/data.old"


def failed(error: Exception | None, owner: OwnerState | None = None) -> Cluster:
    """A sink whose driver failed with this error, or with exit code 75 and no error."""
    cluster = running()
    if owner is not None:
        cluster.owner = ObservedOwner(identity=OWNER, state=owner)
    cluster.fail(error, **({"exit_code": 75} if error is None else {}))
    cluster.converge()
    return cluster


def reported(cluster: Cluster, left_ms: int = 5000, base: PolicyResult | None = None) -> PolicyResult:
    return backing_off(Context(cluster.observe(), cluster.settings, cluster.now), left_ms, base)


def test_the_message_has_the_failure_the_next_attempt_and_the_command_for_an_earlier_one() -> None:
    cluster = failed(BucketNotFound("there is no bucket archive."))
    next_attempt = cluster.status["retry"]["nextAttemptTime"]
    result = reported(cluster)
    assert result.reason == "BucketNotFound"
    assert result.message == (
        f"there is no bucket archive. Failed once; next attempt at {next_attempt}. To retry now: kubectl s3sink "
        "restart flights, or another text in the annotation s3sink.io/restart"
    )
    assert next_attempt > to_timestamp(cluster.now)
    assert (result.ready, result.phase, result.event) == (ConditionStatus.FALSE, "Failed", EventType.WARNING)
    assert result.requeue_after_ms == 5000


def test_repeated_failures_are_counted() -> None:
    cluster = failed(AccessDenied("no"))
    for _ in range(2):
        cluster.wait(60 * MINUTE)
        cluster.reconcile()
        cluster.reconcile()
        cluster.fail(AccessDenied("no"))
        cluster.converge()
    assert cluster.status["retry"]["failures"] == 3
    assert "no. Failed 3 times in a row; next attempt at " in reported(cluster).message


@pytest.mark.parametrize(
    ("error", "reconciling", "stalled"), [(BucketNotFound("no bucket"), False, True), (None, True, False)]
)
def test_a_failure_that_the_user_has_to_resolve_is_stalled_and_another_one_is_being_reconciled(
    error: Exception | None, reconciling: bool, stalled: bool
) -> None:
    result = reported(failed(error))
    assert (result.reconciling, result.stalled) == (reconciling, stalled)


def test_an_owner_that_still_exists_is_polled_more_often_than_the_back_off_ends() -> None:
    conflict = OwnershipConflict("topic flights belongs to S3Sink data/old.", OWNER)
    exists = failed(conflict, owner=OwnerState.EXISTS)
    assert reported(exists, left_ms=10 * MINUTE).requeue_after_ms == OWNER_POLL_MS
    assert reported(exists, left_ms=1).requeue_after_ms == 1
    assert "delete S3Sink data/old" in reported(exists).message
    unknown = failed(conflict, owner=OwnerState.UNKNOWN)
    assert reported(unknown, left_ms=10 * MINUTE).requeue_after_ms == 10 * MINUTE


def test_the_writes_of_the_policy_are_kept_and_its_message_is_replaced() -> None:
    writes = ObjectWrites(delete=(Delete(kind="Pod", name="a", uid="u"),))
    base = PolicyResult(reason="Stopping", message="stopping", phase="Stopping", writes=writes, published=False)
    result = reported(failed(AccessDenied("no")), base=base)
    assert (result.writes, result.published) == (writes, False)
    assert (result.reason, result.phase) == ("AccessDenied", "Failed")
    assert "stopping" not in result.message
