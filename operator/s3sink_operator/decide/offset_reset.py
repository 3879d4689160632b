"""Requests about offsets: which one is new, what its pod is made for, and what is told of it."""

from __future__ import annotations

import hashlib

from pydantic import ValidationError

from s3sink_operator import pod_failures
from s3sink_operator.crd.status import MAX_MOST_LAGGING
from s3sink_operator.decide.context import BY_ANNOTATION, RESET_REQUEST_FIELD, Context
from s3sink_operator.names import Component
from s3sink_operator.status import Condition
from s3sink_operator.types import FailureCategory, Json, Operation, to_timestamp
from sink_job.api.enums import State
from sink_job.api.errors import TopicRecreated
from sink_job.api.operator_sections import OffsetReset
from sink_job.api.report import ResetReport


def pending(ctx: Context) -> OffsetReset | None:
    """The request that was not carried out yet."""
    reset = ctx.sink.spec.offsets.reset if ctx.sink is not None else None
    return None if reset is None or reset.nonce == ctx.completed_resets.get(ctx.reset_source) else reset


def operation_of(reset: OffsetReset) -> str:
    """What a task pod for it is annotated with."""
    return f"{Operation.RESET}:{reset.nonce}"


def operation_hash(ctx: Context, asked: str) -> str:
    """A digest of what a task pod is started for: the sink's settings, and of a reset the request, so that an edit of
    one that failed is tried at once."""
    key, reset = ctx.revision, pending(ctx)
    spec = "" if key is None else key.spec_hash
    if reset is None or asked != operation_of(reset):
        return spec
    return hashlib.sha256(f"{spec} {reset.model_dump_json()}".encode()).hexdigest()[:16]


def replaces_publish(ctx: Context) -> bool:
    """Whether what is open cannot be published any more, and the reset is the way out: the topic was made anew."""
    return (ctx.history.retry or {}).get("reason") == TopicRecreated.reason


def completed(ctx: Context, reset: OffsetReset, task: Json) -> Json:
    """`status.offsets` once the task has succeeded."""
    said = pod_failures.termination_message(task)
    told: Json = {"nonce": reset.nonce, "to": reset.to.value, "time": to_timestamp(ctx.now), "result": "Done"}
    told["carriedOut"] = ctx.completed_resets | {ctx.reset_source: reset.nonce}
    report = _parse_report(said)
    if report is None:
        return told | ({"message": said} if said else {})
    partitions = [
        {"topic": each.topic, "partition": each.partition, "offset": each.start}
        for each in report.partitions[:MAX_MOST_LAGGING]
    ]
    return told | {
        "generation": report.generation,
        "topicsDir": report.topics_dir,
        "copiedAgain": report.copied_again,
        "skipped": report.skipped,
        "message": summary(report),
        "partitions": partitions,
    }


def summary(report: ResetReport) -> str:
    """What came of a reset, for people."""
    count = len(report.partitions) + report.more
    shown = ", ".join(f"{each.topic}-{each.partition} at {each.start}" for each in report.partitions[:3])
    said = f"this request was carried out before, by record {report.record}; " if report.repeated else ""
    said += f"generation {report.generation} starts: {shown}{' …' if count > 3 else ''}; objects go below "
    said += f"{report.topics_dir or 'the bucket itself'}"
    said += f"; {report.copied_again} offsets are copied again" if report.copied_again else ""
    return said + (f"; {report.skipped} offsets are in no object and are not copied" if report.skipped else "")


def condition(ctx: Context) -> Condition | None:
    """What holds up the request, and what to do about it; None where nothing does."""
    if ctx.reset_errors:
        message = f"{RESET_REQUEST_FIELD[BY_ANNOTATION]} is not carried out: {ctx.reset_errors}"
        return Condition(type="OffsetsReset", status="False", reason="InvalidRequest", message=message)
    reset = pending(ctx)
    if reset is None or Operation.RESET not in ctx.settings.requests:
        return None
    where = RESET_REQUEST_FIELD[ctx.reset_source]
    if ctx.desired_state[0] is not State.STOPPED:
        message = f"{where} waits until the sink is Stopped"
        return Condition(type="OffsetsReset", status="False", reason="WaitsForStopped", message=message)
    retry = ctx.history.retry or {}
    failed = retry.get("pod") == Component.OPERATION.value and retry.get("operationHash") == operation_hash(
        ctx, operation_of(reset)
    )
    if not failed:
        return None
    message = f"{where} is not done: {retry.get('message')}. "
    if retry.get("kind") == FailureCategory.USER.value:
        message += "Edit the request, or mend what it names"
    else:
        message += "It is tried again, and goes on where it was interrupted"
    return Condition(type="OffsetsReset", status="False", reason=str(retry.get("reason")), message=message)


def _parse_report(said: str | None) -> ResetReport | None:
    if not said:
        return None
    try:
        return ResetReport.model_validate_json(said)
    except ValidationError:
        return None
