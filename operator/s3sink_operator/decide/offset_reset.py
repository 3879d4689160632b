"""Requests about offsets: which one is new, what its pod is made for, and what is told of it."""

from __future__ import annotations

import hashlib

from pydantic import ValidationError

from s3sink_operator import pod_failures
from s3sink_operator.crd.status import WORST
from s3sink_operator.decide.context import BY_ANNOTATION, RESET_OF, Context
from s3sink_operator.names import Component
from s3sink_operator.status import Condition
from s3sink_operator.types import Json, Kind, Request, to_stamp
from sink_job.api.enums import DesiredState
from sink_job.api.errors import TopicRecreated
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.report import ResetReport


def wanted(ctx: Context) -> OffsetResetSpec | None:
    """The request that was not carried out yet."""
    reset = ctx.sink.spec.offsets.reset if ctx.sink is not None else None
    return None if reset is None or reset.nonce == ctx.carried_out.get(ctx.reset_by) else reset


def request(reset: OffsetResetSpec) -> str:
    """What a task pod for it is annotated with."""
    return f"{Request.RESET}:{reset.nonce}"


def task_hash(ctx: Context, asked: str) -> str:
    """A digest of what a task pod is started for: the sink's settings, and of a reset the request, so that an edit of
    one that failed is tried at once."""
    key, reset = ctx.key, wanted(ctx)
    spec = "" if key is None else key.spec_hash
    if reset is None or asked != request(reset):
        return spec
    return hashlib.sha256(f"{spec} {reset.model_dump_json()}".encode()).hexdigest()[:16]


def is_all_there_is_to_do(ctx: Context) -> bool:
    """Whether what is open cannot be published any more, and the reset is the way out: the topic was made anew."""
    return (ctx.story.retry or {}).get("reason") == TopicRecreated.reason


def done(ctx: Context, reset: OffsetResetSpec, task: Json) -> Json:
    """`status.offsets` once the task has succeeded."""
    said = pod_failures.said_by(task)
    told: Json = {"nonce": reset.nonce, "to": reset.to.value, "time": to_stamp(ctx.now), "result": "Done"}
    told["carriedOut"] = ctx.carried_out | {ctx.reset_by: reset.nonce}
    report = _report(said)
    if report is None:
        return told | ({"message": said} if said else {})
    partitions = [
        {"topic": each.topic, "partition": each.partition, "offset": each.start} for each in report.partitions[:WORST]
    ]
    return told | {
        "generation": report.generation,
        "topicsDir": report.topics_dir,
        "copiedAgain": report.copied_again,
        "skipped": report.skipped,
        "message": sentence(report),
        "partitions": partitions,
    }


def sentence(report: ResetReport) -> str:
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
    if ctx.reset_mistakes:
        message = f"{RESET_OF[BY_ANNOTATION]} is not carried out: {ctx.reset_mistakes}"
        return Condition(type="OffsetsReset", status="False", reason="InvalidRequest", message=message)
    reset = wanted(ctx)
    if reset is None or Request.RESET not in ctx.settings.requests:
        return None
    where = RESET_OF[ctx.reset_by]
    if ctx.wanted[0] is not DesiredState.STOPPED:
        message = f"{where} waits until the sink is Stopped"
        return Condition(type="OffsetsReset", status="False", reason="WaitsForStopped", message=message)
    retry = ctx.story.retry or {}
    failed = retry.get("pod") == Component.TASK.value and retry.get("taskHash") == task_hash(ctx, request(reset))
    if not failed:
        return None
    message = f"{where} is not done: {retry.get('message')}. "
    if retry.get("kind") == Kind.USER.value:
        message += "Edit the request, or mend what it names"
    else:
        message += "It is tried again, and goes on where it was interrupted"
    return Condition(type="OffsetsReset", status="False", reason=str(retry.get("reason")), message=message)


def _report(said: str | None) -> ResetReport | None:
    if not said:
        return None
    try:
        return ResetReport.model_validate_json(said)
    except ValidationError:
        return None
