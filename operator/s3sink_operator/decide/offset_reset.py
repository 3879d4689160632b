"""Offset resets: the operation of a request, its result in the status, and what blocks it."""

from __future__ import annotations

import hashlib

from pydantic import ValidationError

from s3sink_operator.decide import handover
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.sink_facts import BY_ANNOTATION, RESET_REQUEST_FIELD
from s3sink_operator.failures import pod_failures
from s3sink_operator.names import Component
from s3sink_operator.reasons import Reason
from s3sink_operator.status.progress_model import MAX_MOST_LAGGING
from s3sink_operator.status.status_model import OffsetResetStatus, ResetPosition
from s3sink_operator.types import FailureCategory, Json, Operation
from sink_job.api.enums import DesiredState
from sink_job.api.errors import TopicRecreated
from sink_job.api.report import ResetReport
from sink_job.api.sections.operator_sections import OffsetResetSpec

COMPLETED = "Completed"
"""`offsetReset.phase` of a request that was carried out."""


def operation_of(reset: OffsetResetSpec) -> str:
    """The operation of a request, as in the annotation of its pod."""
    return f"{Operation.RESET}:{reset.nonce}"


def operation_hash(ctx: Context, operation: str) -> str:
    """A digest of what an operation pod is started for: the settings of the sink and, for a reset, the request. An
    edited request has another digest and is tried at once."""
    revision, reset = ctx.sink.revision, ctx.reset.pending
    spec_hash = "" if revision is None else revision.spec_hash
    if reset is None or operation != operation_of(reset):
        return spec_hash
    return hashlib.sha256(f"{spec_hash} {reset.model_dump_json()}".encode()).hexdigest()[:16]


def replaces_publish(ctx: Context) -> bool:
    """Whether the open objects cannot be published and the reset is the solution: a topic was re-created."""
    return ctx.history.retry is not None and ctx.history.retry.reason == TopicRecreated.reason


def completed(ctx: Context, reset: OffsetResetSpec, pod: Json) -> OffsetResetStatus:
    """`status.offsetReset` after the operation pod succeeded."""
    nonces = ctx.reset.completed_nonces.model_copy(update={ctx.reset.source: reset.nonce})
    text = pod_failures.termination_message(pod)
    return _result(text).model_copy(
        update={
            "nonce": reset.nonce,
            "to": reset.to,
            "time": ctx.now,
            "phase": COMPLETED,
            "completed_nonces": nonces,
        }
    )


def _result(text: str | None) -> OffsetResetStatus:
    """The part of the status that the pod reports in its termination message."""
    report = _parse_report(text)
    if report is None:
        return OffsetResetStatus(message=text or None)
    return OffsetResetStatus(
        generation=report.generation,
        topics_dir=report.topics_dir,
        recopied_offsets=report.copied_again,
        skipped_offsets=report.skipped,
        message=summary(report),
        partitions=[
            ResetPosition(topic=each.topic, partition=each.partition, offset=each.start)
            for each in report.partitions[:MAX_MOST_LAGGING]
        ],
    )


def summary(report: ResetReport) -> str:
    """The result of a reset in one line."""
    count = len(report.partitions) + report.more
    shown = ", ".join(f"{each.topic}-{each.partition} at {each.start}" for each in report.partitions[:3])
    text = f"already completed by record {report.record}; " if report.repeated else ""
    text += f"generation {report.generation} starts with {shown}{' …' if count > 3 else ''}; new objects are below "
    text += report.topics_dir or "the root of the bucket"
    text += f"; {report.copied_again} offsets are copied again" if report.copied_again else ""
    return text + (f"; {report.skipped} offsets are skipped, they are in no object" if report.skipped else "")


def blocked_by(ctx: Context) -> tuple[str, str] | None:
    """The reason and message of what blocks the request; None without a request, or if nothing blocks it."""
    if ctx.reset.error:
        return Reason.INVALID_REQUEST, f"{RESET_REQUEST_FIELD[BY_ANNOTATION]} is invalid: {ctx.reset.error}"
    reset = ctx.reset.pending
    if reset is None:
        return None
    field = RESET_REQUEST_FIELD[ctx.reset.source]
    if ctx.sink.desired_state[0] is not DesiredState.STOPPED:
        return Reason.WAITING_FOR_STOPPED, f"{field} requires the state Stopped"
    retry = ctx.history.retry
    if retry is None or retry.component != Component.OPERATION.value:
        return None
    if retry.operation_hash != operation_hash(ctx, operation_of(reset)):
        return None
    message = f"{field} failed: {handover.failure_message(ctx, retry.message).rstrip('.')}. "
    if retry.category is FailureCategory.USER:
        return retry.reason, message + "Fix the cause or edit the request"
    return retry.reason, message + "It is retried and resumes where it was interrupted"


def _parse_report(text: str | None) -> ResetReport | None:
    if not text:
        return None
    try:
        return ResetReport.model_validate_json(text)
    except ValidationError:
        return None
