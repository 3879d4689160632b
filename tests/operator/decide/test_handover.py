"""When a sink takes over what another one owns in the bucket, and what its messages say."""

from __future__ import annotations

import pytest

from s3sink_operator import names
from s3sink_operator.types import ObservedOwner, OwnerState
from sink_job.api.errors import OwnershipConflict
from tests.operator.fake_cluster import MINUTE, RESTARTED, Cluster, actions, running

OWNER = "c1/data/old/data.old"

CONFLICT = OwnershipConflict(
    "topic flights belongs to S3Sink data/old. Choose another topic. If that sink was deleted for good, start this one "
    f"once with --take-over-from={OWNER}.",
    OWNER,
)


def conflicting(state: OwnerState | None) -> Cluster:
    """A sink whose driver ended with OwnershipConflict."""
    cluster = running()
    if state is not None:
        cluster.owner = ObservedOwner(identity=OWNER, state=state)
    cluster.fail(CONFLICT)
    cluster.reconcile()
    return cluster


def arguments(cluster: Cluster) -> list[str]:
    assert cluster.driver is not None
    return [each for each in cluster.driver["spec"]["containers"][0]["args"] if "take-over" in each]


def test_what_a_deleted_sink_of_this_cluster_owned_is_taken_over_at_once() -> None:
    cluster = conflicting(OwnerState.GONE)
    cluster.converge_with_kubelet()
    assert actions(cluster) == RESTARTED
    assert arguments(cluster) == [f"--take-over-from={OWNER}"]
    assert ("Normal", "TakingOver") in cluster.events


def test_a_hand_over_that_fails_is_retried_after_the_back_off() -> None:
    cluster = conflicting(OwnerState.GONE)
    cluster.converge_with_kubelet()
    cluster.log.clear()
    cluster.fail(CONFLICT)
    cluster.converge()
    assert actions(cluster) == []
    assert cluster.ready == ("False", "OwnershipConflict")
    cluster.wait(10 * MINUTE)
    cluster.converge_with_kubelet()
    assert arguments(cluster) == [f"--take-over-from={OWNER}"]


@pytest.mark.parametrize("state", [OwnerState.EXISTS, OwnerState.UNKNOWN, None])
def test_an_owner_that_may_exist_keeps_what_it_owns(state: OwnerState | None) -> None:
    cluster = conflicting(state)
    cluster.converge()
    assert actions(cluster) == []
    cluster.wait(10 * MINUTE)
    cluster.converge_with_kubelet()
    assert arguments(cluster) == []


def test_an_existing_owner_is_watched_and_the_message_says_to_delete_it() -> None:
    cluster = conflicting(OwnerState.EXISTS)
    assert (cluster.decide().requeue_after_ms or 0) <= 15_000
    assert "Or delete S3Sink data/old: this sink takes over" in cluster.condition("Ready")["message"]
    assert "--take-over" not in cluster.condition("Ready")["message"]
    cluster.owner = ObservedOwner(identity=OWNER, state=OwnerState.GONE)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_for_an_owner_elsewhere_the_message_has_the_command_and_the_annotation_takes_over() -> None:
    cluster = conflicting(OwnerState.UNKNOWN)
    message = cluster.condition("Ready")["message"]
    assert f"kubectl annotate s3sink flights {names.TAKE_OVER_ANNOTATION}={OWNER}" in message
    cluster.annotate({names.TAKE_OVER_ANNOTATION: OWNER})
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert arguments(cluster) == [f"--take-over-from={OWNER}"]


def test_the_annotation_applies_to_the_owner_that_it_names_alone() -> None:
    cluster = conflicting(OwnerState.UNKNOWN)
    cluster.annotate({names.TAKE_OVER_ANNOTATION: "c1/data/another/data.another"})
    cluster.converge()
    assert actions(cluster) == []


def test_an_annotation_on_a_running_sink_restarts_nothing() -> None:
    cluster = running()
    cluster.annotate({names.TAKE_OVER_ANNOTATION: OWNER})
    cluster.converge()
    assert actions(cluster) == []


def test_an_annotation_that_names_no_owner_is_reported() -> None:
    cluster = running()
    cluster.annotate({names.TAKE_OVER_ANNOTATION: "yes"})
    cluster.converge()
    assert names.TAKE_OVER_ANNOTATION in cluster.condition("InvalidAnnotation")["message"]


def test_a_stopped_sink_publishes_what_it_takes_over() -> None:
    cluster = running()
    cluster.owner = ObservedOwner(identity=OWNER, state=OwnerState.GONE)
    cluster.fail(CONFLICT)
    cluster.reconcile()
    cluster.edit(state="Stopped")
    cluster.annotate({names.TAKE_OVER_ANNOTATION: OWNER})
    while cluster.operation is None:
        cluster.reconcile()
    assert f"--take-over-from={OWNER}" in cluster.operation["spec"]["containers"][0]["args"]
