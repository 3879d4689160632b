"""The policies about what is wanted: held, deleted, refused, paused, stopped, and requests to a task pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3sink_operator import conflicts, names, pod_failures
from s3sink_operator.decide import offset_reset
from s3sink_operator.decide.attempt_history import waits
from s3sink_operator.decide.context import RESET_OF, Context
from s3sink_operator.decide.policy_result import Verdict
from s3sink_operator.memory_sizing import MOST_OF_DRIVER
from s3sink_operator.names import Component
from s3sink_operator.objects import request_of
from s3sink_operator.status import Condition
from s3sink_operator.types import EventType, Json, Kind, Request, annotation, is_ending, to_ms
from sink_job.api.enums import DeletionPolicy, DesiredState
from sink_job.api.quantities import format_size
from sink_job.api.report import Report, RunState

_HELD = ("true", "True", "TRUE")
_KNOWN = (
    (names.STATE, tuple(each.value for each in DesiredState), "spec.state holds"),
    (names.PAUSED, (*_HELD, "false", "False", "FALSE"), "the operator is not held"),
)
_SHOWN = 40
_REQUEST_OF = {DeletionPolicy.PUBLISH: Request.PUBLISH, DeletionPolicy.DISCARD: Request.DISCARD}


def held(ctx: Context) -> Verdict | None:
    """The annotation that keeps the operator's hands off: it looks and tells. A deletion is held up no longer than
    deletionPolicy may."""
    if annotation(ctx.seen.sink, names.PAUSED) not in _HELD:
        return None
    since = to_ms(ctx.metadata.get("deletionTimestamp")) if names.FINALIZER in _finalizers(ctx) else None
    left = None if since is None else since + ctx.settings.deletion_ms - ctx.now
    if left is not None and left <= 0:
        return None
    report = ctx.report
    as_wanted = ctx.wanted[0] is DesiredState.RUNNING and ctx.is_up_to_date
    running = report is not None and report.state is RunState.RUNNING and as_wanted
    message = f"the operator touches nothing while the annotation {names.PAUSED} is true"
    if ctx.driver is not None and not as_wanted:
        message += "; the driver is not as the spec and the annotations want it now"
    return Verdict(
        ready="True" if running else "Unknown" if isinstance(ctx.seen.report, Report) or ctx.driver else "False",
        reason="ReconcilePaused",
        message=message,
        phase=report.state.value if report else "Unknown",
        event=EventType.NORMAL,
        wake_ms=left,
    )


def deleted(ctx: Context) -> Verdict | None:
    """A sink on its way out: its children follow by their owner references, what is open by deletionPolicy."""
    since = to_ms(ctx.metadata.get("deletionTimestamp"))
    if since is None:
        return None
    if names.FINALIZER not in _finalizers(ctx):
        held_by = ", ".join(_finalizers(ctx))
        message = f"it is deleted, and the finalizers {held_by} of others hold it: a driver that ends is the last"
        return Verdict(reason="Deleting", message=message, phase="Deleting", reconciling=True, silent=not held_by)
    request = _REQUEST_OF.get(_policy(ctx) or DeletionPolicy.RETAIN)
    left = since + ctx.settings.deletion_ms - ctx.now
    if request is None:
        return _released(ctx, "deletionPolicy is Retain: what is open stays in S3", EventType.NORMAL)
    if request not in ctx.settings.requests:
        return _released(ctx, _not_built(f"deletionPolicy {request}") + ": what is open stays in S3", EventType.WARNING)
    if ctx.sink is None:
        return _released(
            ctx, f"the spec cannot be read, so what is open stays in S3: {ctx.mistakes}", EventType.WARNING
        )
    if ctx.foreign is not None or _colliding(ctx):
        return _released(ctx, "this sink was not allowed to run: what is open stays in S3", EventType.WARNING)
    if any(map(pod_failures.is_by_namespace, ctx.seen.refusals)):
        said = "its namespace is being deleted, and no pod can be made there: what is open stays in S3"
        return _released(ctx, said, EventType.WARNING)
    if left <= 0:
        minutes = ctx.settings.deletion_ms // 60_000
        said = f"{request} was not done within {minutes} minutes: what is open stays in S3"
        return _released(ctx, said, EventType.WARNING)
    if is_all_published(ctx):
        return _released(ctx, "nothing is open", EventType.NORMAL)
    way_out = "deletionPolicy: Retain lets the sink go at once"
    verdict = carry_out(ctx, request.value, doing=f"deletionPolicy {request} before the sink goes; {way_out}")
    if verdict.published:
        return replace(verdict, finalizers=_without_ours(ctx), delete=())  # the pod goes with the sink
    return replace(verdict, phase="Deleting", wake_ms=min(left, verdict.wake_ms or left))


def invalid(ctx: Context) -> Verdict | None:
    """A spec that cannot be read. A driver of before goes on, unless it should not run at all."""
    if ctx.sink is not None:
        return None
    unwanted = ctx.wanted[0] is not DesiredState.RUNNING and ctx.driver is not None
    message = ctx.mistakes if unwanted else f"{ctx.mistakes}; {_without_spec(ctx)}"
    return Verdict(
        reason="InvalidSpec",
        message=message,
        phase="Failed",
        stalled=True,
        ending=unwanted,
        delete=ctx.end(ctx.driver) if unwanted else (),
        conditions=[Condition(type="InvalidSpec", status="True", reason="InvalidSpec", message=ctx.mistakes)],
        event=EventType.WARNING,
    )


def _without_spec(ctx: Context) -> str:
    """What becomes of a driver that nobody can make anew."""
    if ctx.driver is None or is_ending(ctx.driver):
        return "no driver is started until this is mended"
    end = pod_failures.ended(ctx.driver)
    if end is None:
        return "the driver goes on with the settings of before"
    return f"the driver of before has ended ({end.reason}: {end.sentence}), and none is started until this is mended"


def colliding(ctx: Context) -> Verdict | None:
    """Two sinks that want the same: the younger one does not run."""
    found = ctx.conflict
    if found is None or not found.certain:
        return None
    return Verdict(
        reason="Conflict",
        message=conflicts.sentence(ctx.claim, found),
        phase="Failed",
        stalled=True,
        ending=True,
        delete=[*ctx.end(ctx.driver), *ctx.end(ctx.task)],
        event=EventType.WARNING,
    )


def foreign(ctx: Context) -> Verdict | None:
    """An object of our name that is not ours is never adopted, and never touched."""
    theirs = ctx.foreign
    if theirs is None:
        return None
    owners = theirs["metadata"].get("ownerReferences") or ()
    before = any(owner.get("kind") == "S3Sink" and owner.get("name") == ctx.name for owner in owners)
    what = f"{theirs.get('kind') or 'Pod'} {theirs['metadata'].get('name')}"
    message = (
        f"{what} belongs to an S3Sink of this name that was deleted before: it is waited for until it is gone"
        if before
        else f"{what} is there and does not belong to this sink: remove it, or give the sink another name"
    )
    return Verdict(
        reason="ForeignObject",
        message=message,
        phase="Failed",
        stalled=not before,
        reconciling=before,
        event=EventType.WARNING,
    )


def paused(ctx: Context) -> Verdict | None:
    """Paused: the driver is ended, what is open stays open."""
    if ctx.wanted[0] is not DesiredState.PAUSED:
        return None
    said = f"{ctx.wanted[1]} is Paused"
    if ctx.driver is not None or ctx.task is not None:
        message = f"{said}: the driver is being ended, what is open stays open"
        delete = [*ctx.end(ctx.driver), *ctx.end(ctx.task)]
        return Verdict(
            reason="Pausing", message=message, phase="Stopping", reconciling=True, ending=True, delete=delete
        )
    message = f"{said}: what is open stays open, and the next start goes on there"
    return Verdict(reason="Paused", message=message, phase="Paused", apply=ctx.base(), event=EventType.NORMAL)


def stopped(ctx: Context) -> Verdict | None:
    """Stopped: the driver is ended, what is open is published; then offsets can be reset."""
    if ctx.wanted[0] is not DesiredState.STOPPED:
        return None
    said = f"{ctx.wanted[1]} is Stopped"
    reset = offset_reset.wanted(ctx) if Request.RESET in ctx.settings.requests else None
    if not is_all_published(ctx) and not (reset is not None and offset_reset.is_all_there_is_to_do(ctx)):
        return carry_out(ctx, Request.PUBLISH.value, doing=f"{said}: what is open is published first")
    if reset is not None:
        return carry_out(ctx, offset_reset.request(reset), doing=f"offsets are reset for the nonce {reset.nonce}")
    if ctx.task is not None:
        return Verdict(
            reason="Stopping",
            message=f"{said}: the pod that published what was open is removed",
            phase="Stopping",
            reconciling=True,
            delete=ctx.end(ctx.task),
        )
    message = f"{said}: nothing is open"
    return Verdict(reason="Stopped", message=message, phase="Stopped", apply=ctx.base(), event=EventType.NORMAL)


def carry_out(ctx: Context, request: str, *, doing: str) -> Verdict:
    """One request by a task pod, which runs alone: step by step, each look takes one."""
    base = Verdict(reason="Stopping", message=doing, phase="Stopping", reconciling=True)
    if ctx.driver is not None:
        return replace(base, ending=True, delete=ctx.end(ctx.driver))
    task, pause, made_for = (
        ctx.task,
        waits(ctx.story.retry, Component.TASK, ctx.now),
        offset_reset.task_hash(ctx, request),
    )
    if (ctx.story.retry or {}).get("taskHash", made_for) != made_for:
        pause = None  # what failed was another request
    if task is None:
        if pause is not None:
            return _failed_task(ctx, base, pause)
        return replace(base, apply=ctx.base(), create=[ctx.new_task(request, made_for)])
    same = request_of(task) == request and ctx.key is not None
    same = same and annotation(task, names.SPEC_HASH) == made_for
    if is_ending(task) or not same:
        return replace(base, delete=ctx.end(task))
    if pod_failures.succeeded(task):
        return _done(ctx, replace(base, delete=ctx.end(task)), request, task)
    if pod_failures.ended(task) is not None:
        if pause is not None:
            return _failed_task(ctx, base, pause)
        return replace(base, delete=ctx.end(task))
    stuck = pod_failures.not_starting(task, ctx.seen.warning)
    return base if stuck is None else replace(base, reason=stuck.reason, message=stuck.sentence)


def is_all_published(ctx: Context) -> bool:
    """Whether nothing can be open: it was published since the last driver ran. That this object has had no driver says
    nothing: the ledger of one before it may hold something open."""
    return ctx.driver is None and ctx.published


def notes(ctx: Context) -> list[Condition]:
    """What is so beside the verdict: requests that wait or that this version cannot do, and what may collide."""
    found = []
    missing = []
    if offset_reset.wanted(ctx) is not None and Request.RESET not in ctx.settings.requests:
        missing.append(f"{_not_built(RESET_OF[ctx.reset_by])}: offsets stay as they are")
    held_up = offset_reset.condition(ctx)
    if held_up is not None:
        found.append(held_up)
    request = _REQUEST_OF.get(_policy(ctx) or DeletionPolicy.RETAIN)
    if request is not None and request not in ctx.settings.requests:
        missing.append(f"{_not_built(f'deletionPolicy {request}')}: it acts as Retain")
    if missing:
        found.append(Condition(type="NotBuilt", status="True", reason="NotBuilt", message="; ".join(missing)))
    if odd := [each for each in (_odd(ctx, *known) for known in _KNOWN) if each]:
        found.append(
            Condition(type="InvalidAnnotation", status="True", reason="InvalidAnnotation", message="; ".join(odd))
        )
    if ctx.is_driver_capped:
        message = (
            f"the driver was killed for want of memory again and again, and is given {format_size(MOST_OF_DRIVER)} at "
            "most by itself: set spec.driver.memory, or have it read fewer topic-partitions"
        )
        found.append(Condition(type="DriverMemoryCapped", status="True", reason="DriverMemoryCapped", message=message))
    near = ctx.conflict
    if near is not None and not near.certain:
        message = conflicts.sentence(ctx.claim, near)
        found.append(Condition(type="PossibleConflict", status="True", reason="PatternsMayMeet", message=message))
    refusals = [each for each in ctx.seen.refusals if (each.kind, each.name) not in _not_wanted(ctx)]
    if refusals:
        last = max(refusals, key=lambda each: (each.at_ms, each.kind, each.name))
        failure = pod_failures.refused(last)
        found.append(Condition(type="WriteRefused", status="True", reason=failure.reason, message=failure.sentence))
    return found


def _odd(ctx: Context, name: str, values: Sequence[str], instead: str) -> str | None:
    """What is wrong with an annotation of a user's, which is not followed then."""
    said = annotation(ctx.seen.sink, name)
    if said is None or said in values:
        return None
    shown = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
    return f"the annotation {name} is {shown!r} and not one of {', '.join(values)}: {instead}"


def _not_wanted(ctx: Context) -> list[tuple[str, str]]:
    """Pods that nobody asks for any more: that one was refused is past."""
    state, ending = ctx.wanted[0], is_ending(ctx.seen.sink)
    driver = [] if state is DesiredState.RUNNING and not ending else [("Pod", names.driver_name(ctx.name))]
    return driver if state is DesiredState.STOPPED or ending else [*driver, ("Pod", names.task_name(ctx.name))]


def finalizers(ctx: Context) -> list[str] | None:
    """The finalizers that a sink which is not being deleted should have; None if it has them."""
    request = _REQUEST_OF.get(_policy(ctx) or DeletionPolicy.RETAIN)
    needed = request is not None and request in ctx.settings.requests
    there = names.FINALIZER in _finalizers(ctx)
    if needed == there:
        return None
    return [*_finalizers(ctx), names.FINALIZER] if needed else _without_ours(ctx)


def _colliding(ctx: Context) -> bool:
    return ctx.conflict is not None and ctx.conflict.certain


def _failed_task(ctx: Context, base: Verdict, pause: int) -> Verdict:
    retry = ctx.story.retry or {}
    message = f"{retry.get('message')}. It is tried again at {retry.get('nextTry')}"
    by_user = retry.get("kind") == Kind.USER.value
    return replace(
        base,
        reason=str(retry.get("reason")),
        message=message,
        phase="Failed",
        reconciling=not by_user,
        stalled=by_user,
        event=EventType.WARNING,
        wake_ms=pause,
    )


def _done(ctx: Context, verdict: Verdict, request: str, task: Json) -> Verdict:
    reset = offset_reset.wanted(ctx)
    if reset is None or request != offset_reset.request(reset):
        return replace(verdict, published=True)
    told = offset_reset.done(ctx, reset, task)
    message = f"offsets were reset: {told.get('message', 'the pod left no word')}"
    kind = EventType.NORMAL
    return replace(verdict, reason="OffsetsReset", message=message, published=True, offsets=told, event=kind)


def _released(ctx: Context, message: str, kind: EventType) -> Verdict:
    return Verdict(
        reason="Released",
        message=message,
        phase="Deleting",
        reconciling=True,
        finalizers=_without_ours(ctx),
        event=kind,
    )


def _policy(ctx: Context) -> DeletionPolicy | None:
    written = ctx.spec.get("deletionPolicy")
    return DeletionPolicy(written) if written in list(DeletionPolicy) else None


def _finalizers(ctx: Context) -> list[str]:
    return list(ctx.metadata.get("finalizers") or ())


def _without_ours(ctx: Context) -> list[str]:
    return [each for each in _finalizers(ctx) if each != names.FINALIZER]


def _not_built(what: str) -> str:
    return f"{what} is not built yet in this version of the job"
