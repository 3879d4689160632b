"""Offset resets, hanging transactions and re-created topics."""

from __future__ import annotations

import argparse
import re
from typing import Any

from s3sink_operator import names
from s3sink_operator.objects import operation_of
from s3sink_operator.types import Json, ObservedOwner, OwnerState
from sink_job.api.errors import ExistingObjects, OwnershipConflict, SinkError, TopicRecreated, TransientError
from sink_job.api.report import Failure, FinalReport, ResetReport, StartReport
from sink_job.cli import discard_open, reset_offsets
from tests.operator.fake_cluster import MINUTE, Cluster, running, stopping

RESET: Json = {"nonce": "n1", "to": "Earliest"}
REPORT = ResetReport(
    generation=2,
    record=42,
    topics_dir="topics/generation=2",
    copied_again=100,
    partitions=[StartReport(topic="flights", partition=n, previous=100, start=0) for n in range(25)],
)


def stopped_with(reset: Json) -> Cluster:
    """A sink whose driver is gone and whose open objects are published, when the pod of the reset is there."""
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    cluster.edit(offsets={"reset": reset})
    cluster.converge()
    assert operation(cluster) == f"Reset:{reset['nonce']}"
    return cluster


def operation(cluster: Cluster) -> str | None:
    return None if cluster.operation is None else operation_of(cluster.operation)


def ends(cluster: Cluster, error: SinkError | None = None) -> None:
    """The operation ends: with this error, or well and with a report."""
    assert cluster.operation
    message = (
        REPORT.termination_message() if error is None else FinalReport(failure=Failure.of(error)).termination_message()
    )
    cluster.end(cluster.operation, exit_code=0 if error is None else error.exit_code, message=message)
    cluster.converge()


def offsets(cluster: Cluster) -> dict[str, Any]:
    return dict(cluster.status["offsetReset"])


def test_result_and_new_offsets_are_in_the_status_and_in_an_event() -> None:
    cluster = stopped_with(RESET)
    ends(cluster)
    reported = offsets(cluster)
    assert (reported["nonce"], reported["phase"], reported["generation"]) == ("n1", "Completed", 2)
    assert (reported["topicsDir"], reported["recopiedOffsets"], reported["skippedOffsets"]) == (
        "topics/generation=2",
        100,
        0,
    )
    assert reported["partitions"][1] == {"topic": "flights", "partition": 1, "offset": 0}
    assert len(reported["partitions"]) == 20
    assert "flights-0 at 0, flights-1 at 0" in reported["message"]
    assert ("Normal", "OffsetsReset") in cluster.events
    assert cluster.ready == ("False", "Stopped")


def test_a_failed_request_has_the_cause_and_the_action_to_take() -> None:
    cluster = stopped_with(RESET)
    ends(cluster, ExistingObjects("3 objects hold records at or above the new offsets"))
    held_up = cluster.condition("OffsetsReset")
    assert (held_up["status"], held_up["reason"]) == ("False", ExistingObjects.reason)
    assert "3 objects hold records" in held_up["message"]
    assert "edit the request" in held_up["message"]
    assert cluster.ready == ("False", ExistingObjects.reason)
    assert "offsetReset" not in cluster.status


def test_an_edited_request_is_tried_at_once() -> None:
    cluster = stopped_with(RESET)
    ends(cluster, ExistingObjects("no"))
    before = cluster.operation
    cluster.edit(offsets={"reset": RESET | {"onExisting": "NewPrefix"}})
    cluster.converge()
    assert cluster.operation not in (None, before)
    assert cluster.operation is not None
    assert "NewPrefix" in cluster.operation["spec"]["containers"][0]["args"]
    ends(cluster)
    assert offsets(cluster)["phase"] == "Completed"
    assert cluster.condition("OffsetsReset") == {}


def test_a_reset_that_was_interrupted_may_have_been_recorded_and_is_not_to_be_edited() -> None:
    cluster = stopped_with(RESET)
    ends(cluster, TransientError("S3 did not answer"))
    held_up = cluster.condition("OffsetsReset")["message"]
    assert "S3 did not answer" in held_up
    assert "resumes where it was interrupted" in held_up
    assert "is invalid" not in held_up
    assert "dit the request" not in held_up


def test_a_request_that_was_completed_before_is_reported_as_such() -> None:
    cluster = stopped_with(RESET)
    assert cluster.operation
    again = REPORT.model_copy(update={"repeated": True})
    cluster.end(cluster.operation, exit_code=0, message=again.termination_message())
    cluster.converge()
    assert (offsets(cluster)["phase"], offsets(cluster)["generation"]) == ("Completed", 2)
    assert "already completed by record 42" in offsets(cluster)["message"]


def test_removing_a_failed_request_leaves_a_stopped_sink() -> None:
    cluster = stopped_with(RESET)
    ends(cluster, ExistingObjects("no"))
    cluster.edit(offsets=None)
    cluster.converge()
    assert cluster.ready == ("False", "Stopped")


def test_a_failed_request_is_retried_after_a_pause() -> None:
    cluster = stopped_with(RESET)
    ends(cluster, ExistingObjects("no"))
    cluster.wait(3 * MINUTE)
    cluster.converge()
    ends(cluster)
    assert offsets(cluster)["phase"] == "Completed"


def test_the_nonce_is_passed_to_the_ledger() -> None:
    cluster = stopped_with(RESET)
    assert cluster.operation
    args = cluster.operation["spec"]["containers"][0]["args"]
    assert "--nonce=n1" in args


def test_the_job_reads_nonces_and_topics_of_any_characters_as_they_were_written() -> None:
    """As Kubernetes hands the words to it: it puts variables in for $(NAME), and makes one $ of two."""
    desired = {
        "nonce": "-$(POD_IP) $$",
        "to": "Offsets",
        "partitions": [{"topic": "-flights", "partition": 0, "offset": 5}],
    }
    cluster = stopped_with(desired)
    assert cluster.operation
    words = cluster.operation["spec"]["containers"][0]["args"][1:]
    handed = [re.sub(r"\$(\$)|\$\(\w+\)", lambda found: found[1] or "expanded", word) for word in words]
    commands = argparse.ArgumentParser().add_subparsers()
    reset_offsets.add_parser(commands)
    args = commands.choices["reset-offsets"].parse_args(handed[1:])
    assert args.nonce == desired["nonce"]
    assert args.offsets == desired["partitions"]


OWNER = "c1/data/old/data.old"
CONFLICT = OwnershipConflict(
    f"the ledger belongs to S3Sink data/old. If that sink was deleted for good, start this one once with "
    f"--take-over-from={OWNER}.",
    OWNER,
)


def handed_over(cluster: Cluster) -> str | None:
    """What the operation pod takes over, as the command reads it."""
    assert cluster.operation
    _, command, *words = cluster.operation["spec"]["containers"][0]["args"]
    commands = argparse.ArgumentParser().add_subparsers()
    for module in (reset_offsets, discard_open):
        module.add_parser(commands)
    identity = commands.choices[command].parse_args(words).take_over_from
    return None if identity is None else str(identity)


def test_a_reset_takes_over_from_a_deleted_owner_at_once() -> None:
    cluster = stopped_with(RESET)
    assert handed_over(cluster) is None
    cluster.owner = ObservedOwner(identity=OWNER, state=OwnerState.GONE)
    ends(cluster, CONFLICT)
    assert handed_over(cluster) == OWNER
    ends(cluster)
    assert offsets(cluster)["phase"] == "Completed"


def test_a_reset_that_another_owner_blocks_names_the_steps() -> None:
    cluster = stopped_with(RESET)
    cluster.owner = ObservedOwner(identity=OWNER, state=OwnerState.UNKNOWN)
    ends(cluster, CONFLICT)
    message = cluster.condition("OffsetsReset")["message"]
    assert f"kubectl annotate s3sink flights {names.TAKE_OVER_ANNOTATION}={OWNER}" in message
    cluster.annotate({names.TAKE_OVER_ANNOTATION: OWNER})
    cluster.converge()
    assert handed_over(cluster) == OWNER


def test_a_discard_takes_over_from_a_deleted_owner_at_once() -> None:
    cluster = running(deletionPolicy="Discard")
    cluster.delete_sink()
    cluster.converge()
    assert operation(cluster) == "Discard"
    cluster.owner = ObservedOwner(identity=OWNER, state=OwnerState.GONE)
    ends(cluster, CONFLICT)
    assert handed_over(cluster) == OWNER


def test_after_a_reset_nothing_is_published_again() -> None:
    cluster = stopped_with(RESET)
    ends(cluster)
    assert cluster.operation is None
    assert cluster.converge() == 0


def test_a_failed_request_is_forgotten_when_the_sink_runs_again() -> None:
    cluster = stopping()
    assert cluster.operation
    cluster.end(cluster.operation, exit_code=7)
    cluster.converge()
    assert cluster.status["retry"]["component"] == "operation"
    cluster.edit(state="Running")
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert "retry" not in cluster.status


def test_offsets_of_a_re_created_topic_can_be_reset_without_a_publish() -> None:
    cluster = running()
    cluster.edit(state="Stopped", offsets={"reset": RESET})
    cluster.converge()
    assert operation(cluster) == "Publish"
    ends(cluster, TopicRecreated("topic flights was deleted and created again"))
    cluster.converge()
    assert operation(cluster) == "Reset:n1"
    ends(cluster)
    assert cluster.ready == ("False", "Stopped")
