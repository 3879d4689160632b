"""The policies about what is wanted: held, deleted, refused, paused, stopped, and requests to a task pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3sink_operator import conflicts, names, pod_failures
from s3sink_operator.decide import offset_reset
from s3sink_operator.decide.attempt_history import backoff_left_ms
from s3sink_operator.decide.builders import delete_pod, operation_pod, supporting_objects
from s3sink_operator.decide.context import RESET_REQUEST_FIELD, Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.memory_sizing import MAX_DRIVER
from s3sink_operator.names import Component
from s3sink_operator.objects import operation_of
from s3sink_operator.status import Condition
from s3sink_operator.types import EventType, FailureCategory, Json, Operation, annotation, is_terminating, to_ms
from sink_job.api.enums import DeletionPolicy, State
from sink_job.api.quantities import format_size
from sink_job.api.report import Report, RunState

_TRUE = ("true", "True", "TRUE")
_ANNOTATION_VALUES = (
    (names.STATE_ANNOTATION, tuple(each.value for each in State), "spec.state holds"),
    (names.RECONCILE_PAUSED_ANNOTATION, (*_TRUE, "false", "False", "FALSE"), "the operator is not held"),
)
_MAX_SHOWN = 40
_OPERATION_OF_POLICY = {DeletionPolicy.PUBLISH: Operation.PUBLISH, DeletionPolicy.DISCARD: Operation.DISCARD}


def reconcile_paused(ctx: Context) -> PolicyResult | None:
    """The annotation that keeps the operator's hands off: it looks and tells. A deletion is held up no longer than
    deletionPolicy may."""
    if annotation(ctx.observed.sink, names.RECONCILE_PAUSED_ANNOTATION) not in _TRUE:
        return None
    since = to_ms(ctx.metadata.get("deletionTimestamp")) if names.FINALIZER in _current_finalizers(ctx) else None
    left = None if since is None else since + ctx.settings.deletion_timeout_ms - ctx.now
    if left is not None and left <= 0:
        return None
    report = ctx.report
    as_wanted = ctx.desired_state[0] is State.RUNNING and ctx.is_up_to_date
    running = report is not None and report.state is RunState.RUNNING and as_wanted
    message = f"the operator touches nothing while the annotation {names.RECONCILE_PAUSED_ANNOTATION} is true"
    if ctx.driver is not None and not as_wanted:
        message += "; the driver is not as the spec and the annotations want it now"
    return PolicyResult(
        ready="True" if running else "Unknown" if isinstance(ctx.observed.report, Report) or ctx.driver else "False",
        reason="ReconcilePaused",
        message=message,
        phase=report.state.value if report else "Unknown",
        event=EventType.NORMAL,
        requeue_after_ms=left,
    )


def deleting(ctx: Context) -> PolicyResult | None:
    """A sink on its way out: its children follow by their owner references, what is open by deletionPolicy."""
    since = to_ms(ctx.metadata.get("deletionTimestamp"))
    if since is None:
        return None
    if names.FINALIZER not in _current_finalizers(ctx):
        held_by = ", ".join(_current_finalizers(ctx))
        message = f"it is deleted, and the finalizers {held_by} of others hold it: a driver that ends is the last"
        return PolicyResult(
            reason="Deleting", message=message, phase="Deleting", reconciling=True, keep_status=not held_by
        )
    request = _OPERATION_OF_POLICY.get(_deletion_policy(ctx) or DeletionPolicy.RETAIN)
    left = since + ctx.settings.deletion_timeout_ms - ctx.now
    if request is None:
        return _remove_finalizer(ctx, "deletionPolicy is Retain: what is open stays in S3", EventType.NORMAL)
    if request not in ctx.settings.requests:
        return _remove_finalizer(
            ctx, _not_built(f"deletionPolicy {request}") + ": what is open stays in S3", EventType.WARNING
        )
    if ctx.sink is None:
        return _remove_finalizer(
            ctx, f"the spec cannot be read, so what is open stays in S3: {ctx.spec_errors}", EventType.WARNING
        )
    if ctx.unowned_object is not None or _has_conflict(ctx):
        return _remove_finalizer(ctx, "this sink was not allowed to run: what is open stays in S3", EventType.WARNING)
    if any(map(pod_failures.is_namespace_terminating, ctx.observed.rejections)):
        said = "its namespace is being deleted, and no pod can be made there: what is open stays in S3"
        return _remove_finalizer(ctx, said, EventType.WARNING)
    if left <= 0:
        minutes = ctx.settings.deletion_timeout_ms // 60_000
        said = f"{request} was not done within {minutes} minutes: what is open stays in S3"
        return _remove_finalizer(ctx, said, EventType.WARNING)
    if is_all_published(ctx):
        return _remove_finalizer(ctx, "nothing is open", EventType.NORMAL)
    way_out = "deletionPolicy: Retain lets the sink go at once"
    verdict = run_operation(ctx, request.value, doing=f"deletionPolicy {request} before the sink goes; {way_out}")
    if verdict.published:
        return replace(verdict, finalizers=_other_finalizers(ctx), delete=())  # the pod goes with the sink
    return replace(verdict, phase="Deleting", requeue_after_ms=min(left, verdict.requeue_after_ms or left))


def spec_invalid(ctx: Context) -> PolicyResult | None:
    """A spec that cannot be read. A driver of before goes on, unless it should not run at all."""
    if ctx.sink is not None:
        return None
    unwanted = ctx.desired_state[0] is not State.RUNNING and ctx.driver is not None
    message = ctx.spec_errors if unwanted else f"{ctx.spec_errors}; {_driver_without_spec(ctx)}"
    return PolicyResult(
        reason="InvalidSpec",
        message=message,
        phase="Failed",
        stalled=True,
        terminating_attempt=unwanted,
        delete=delete_pod(ctx, ctx.driver) if unwanted else (),
        conditions=[Condition(type="InvalidSpec", status="True", reason="InvalidSpec", message=ctx.spec_errors)],
        event=EventType.WARNING,
    )


def _driver_without_spec(ctx: Context) -> str:
    """What becomes of a driver that nobody can make anew."""
    if ctx.driver is None or is_terminating(ctx.driver):
        return "no driver is started until this is mended"
    end = pod_failures.termination_failure(ctx.driver)
    if end is None:
        return "the driver goes on with the settings of before"
    return f"the driver of before has ended ({end.reason}: {end.message}), and none is started until this is mended"


def conflicting(ctx: Context) -> PolicyResult | None:
    """Two sinks that want the same: the younger one does not run."""
    found = ctx.conflict
    if found is None or not found.certain:
        return None
    return PolicyResult(
        reason="Conflict",
        message=conflicts.conflict_message(ctx.resources, found),
        phase="Failed",
        stalled=True,
        terminating_attempt=True,
        delete=[*delete_pod(ctx, ctx.driver), *delete_pod(ctx, ctx.operation)],
        event=EventType.WARNING,
    )


def name_taken(ctx: Context) -> PolicyResult | None:
    """An object of our name that is not ours is never adopted, and never touched."""
    theirs = ctx.unowned_object
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
    return PolicyResult(
        reason="ForeignObject",
        message=message,
        phase="Failed",
        stalled=not before,
        reconciling=before,
        event=EventType.WARNING,
    )


def paused(ctx: Context) -> PolicyResult | None:
    """Paused: the driver is ended, what is open stays open."""
    if ctx.desired_state[0] is not State.PAUSED:
        return None
    said = f"{ctx.desired_state[1]} is Paused"
    if ctx.driver is not None or ctx.operation is not None:
        message = f"{said}: the driver is being ended, what is open stays open"
        delete = [*delete_pod(ctx, ctx.driver), *delete_pod(ctx, ctx.operation)]
        return PolicyResult(
            reason="Pausing",
            message=message,
            phase="Stopping",
            reconciling=True,
            terminating_attempt=True,
            delete=delete,
        )
    message = f"{said}: what is open stays open, and the next start goes on there"
    return PolicyResult(
        reason="Paused", message=message, phase="Paused", apply=supporting_objects(ctx), event=EventType.NORMAL
    )


def stopped(ctx: Context) -> PolicyResult | None:
    """Stopped: the driver is ended, what is open is published; then offsets can be reset."""
    if ctx.desired_state[0] is not State.STOPPED:
        return None
    said = f"{ctx.desired_state[1]} is Stopped"
    reset = offset_reset.pending(ctx) if Operation.RESET in ctx.settings.requests else None
    if not is_all_published(ctx) and not (reset is not None and offset_reset.replaces_publish(ctx)):
        return run_operation(ctx, Operation.PUBLISH.value, doing=f"{said}: what is open is published first")
    if reset is not None:
        return run_operation(
            ctx, offset_reset.operation_of(reset), doing=f"offsets are reset for the nonce {reset.nonce}"
        )
    if ctx.operation is not None:
        return PolicyResult(
            reason="Stopping",
            message=f"{said}: the pod that published what was open is removed",
            phase="Stopping",
            reconciling=True,
            delete=delete_pod(ctx, ctx.operation),
        )
    message = f"{said}: nothing is open"
    return PolicyResult(
        reason="Stopped", message=message, phase="Stopped", apply=supporting_objects(ctx), event=EventType.NORMAL
    )


def run_operation(ctx: Context, request: str, *, doing: str) -> PolicyResult:
    """One request by a task pod, which runs alone: step by step, each look takes one."""
    base = PolicyResult(reason="Stopping", message=doing, phase="Stopping", reconciling=True)
    if ctx.driver is not None:
        return replace(base, terminating_attempt=True, delete=delete_pod(ctx, ctx.driver))
    task, pause, made_for = (
        ctx.operation,
        backoff_left_ms(ctx.history.retry, Component.OPERATION, ctx.now),
        offset_reset.operation_hash(ctx, request),
    )
    if (ctx.history.retry or {}).get("operationHash", made_for) != made_for:
        pause = None  # what failed was another request
    if task is None:
        if pause is not None:
            return _operation_backing_off(ctx, base, pause)
        return replace(base, apply=supporting_objects(ctx), create=[operation_pod(ctx, request, made_for)])
    same = operation_of(task) == request and ctx.revision is not None
    same = same and annotation(task, names.SPEC_HASH_ANNOTATION) == made_for
    if is_terminating(task) or not same:
        return replace(base, delete=delete_pod(ctx, task))
    if pod_failures.succeeded(task):
        return _operation_succeeded(ctx, replace(base, delete=delete_pod(ctx, task)), request, task)
    if pod_failures.termination_failure(task) is not None:
        if pause is not None:
            return _operation_backing_off(ctx, base, pause)
        return replace(base, delete=delete_pod(ctx, task))
    stuck = pod_failures.startup_failure(task, ctx.observed.pod_event)
    return base if stuck is None else replace(base, reason=stuck.reason, message=stuck.message)


def is_all_published(ctx: Context) -> bool:
    """Whether nothing can be open: it was published since the last driver ran. That this object has had no driver says
    nothing: the ledger of one before it may hold something open."""
    return ctx.driver is None and ctx.published


def additional_conditions(ctx: Context) -> list[Condition]:
    """What is so beside the verdict: requests that wait or that this version cannot do, and what may collide."""
    found = []
    missing = []
    if offset_reset.pending(ctx) is not None and Operation.RESET not in ctx.settings.requests:
        missing.append(f"{_not_built(RESET_REQUEST_FIELD[ctx.reset_source])}: offsets stay as they are")
    held_up = offset_reset.condition(ctx)
    if held_up is not None:
        found.append(held_up)
    request = _OPERATION_OF_POLICY.get(_deletion_policy(ctx) or DeletionPolicy.RETAIN)
    if request is not None and request not in ctx.settings.requests:
        missing.append(f"{_not_built(f'deletionPolicy {request}')}: it acts as Retain")
    if missing:
        found.append(Condition(type="NotBuilt", status="True", reason="NotBuilt", message="; ".join(missing)))
    if odd := [each for each in (_invalid_annotation(ctx, *known) for known in _ANNOTATION_VALUES) if each]:
        found.append(
            Condition(type="InvalidAnnotation", status="True", reason="InvalidAnnotation", message="; ".join(odd))
        )
    if ctx.is_driver_capped:
        message = (
            f"the driver was killed for want of memory again and again, and is given {format_size(MAX_DRIVER)} at "
            "most by itself: set spec.driver.memory, or have it read fewer topic-partitions"
        )
        found.append(Condition(type="DriverMemoryCapped", status="True", reason="DriverMemoryCapped", message=message))
    near = ctx.conflict
    if near is not None and not near.certain:
        message = conflicts.conflict_message(ctx.resources, near)
        found.append(Condition(type="PossibleConflict", status="True", reason="PatternsMayMeet", message=message))
    refusals = [each for each in ctx.observed.rejections if (each.kind, each.name) not in _unneeded_pods(ctx)]
    if refusals:
        last = max(refusals, key=lambda each: (each.at_ms, each.kind, each.name))
        failure = pod_failures.api_rejection(last)
        found.append(Condition(type="WriteRefused", status="True", reason=failure.reason, message=failure.message))
    return found


def _invalid_annotation(ctx: Context, name: str, values: Sequence[str], instead: str) -> str | None:
    """What is wrong with an annotation of a user's, which is not followed then."""
    said = annotation(ctx.observed.sink, name)
    if said is None or said in values:
        return None
    shown = said if len(said) <= _MAX_SHOWN else f"{said[:_MAX_SHOWN]}…"
    return f"the annotation {name} is {shown!r} and not one of {', '.join(values)}: {instead}"


def _unneeded_pods(ctx: Context) -> list[tuple[str, str]]:
    """Pods that nobody asks for any more: that one was refused is past."""
    state, ending = ctx.desired_state[0], is_terminating(ctx.observed.sink)
    driver = [] if state is State.RUNNING and not ending else [("Pod", names.driver_pod_name(ctx.name))]
    return driver if state is State.STOPPED or ending else [*driver, ("Pod", names.operation_pod_name(ctx.name))]


def changed_finalizers(ctx: Context) -> list[str] | None:
    """The finalizers that a sink which is not being deleted should have; None if it has them."""
    request = _OPERATION_OF_POLICY.get(_deletion_policy(ctx) or DeletionPolicy.RETAIN)
    needed = request is not None and request in ctx.settings.requests
    there = names.FINALIZER in _current_finalizers(ctx)
    if needed == there:
        return None
    return [*_current_finalizers(ctx), names.FINALIZER] if needed else _other_finalizers(ctx)


def _has_conflict(ctx: Context) -> bool:
    return ctx.conflict is not None and ctx.conflict.certain


def _operation_backing_off(ctx: Context, base: PolicyResult, pause: int) -> PolicyResult:
    retry = ctx.history.retry or {}
    message = f"{retry.get('message')}. It is tried again at {retry.get('nextTry')}"
    by_user = retry.get("kind") == FailureCategory.USER.value
    return replace(
        base,
        reason=str(retry.get("reason")),
        message=message,
        phase="Failed",
        reconciling=not by_user,
        stalled=by_user,
        event=EventType.WARNING,
        requeue_after_ms=pause,
    )


def _operation_succeeded(ctx: Context, verdict: PolicyResult, request: str, task: Json) -> PolicyResult:
    reset = offset_reset.pending(ctx)
    if reset is None or request != offset_reset.operation_of(reset):
        return replace(verdict, published=True)
    told = offset_reset.completed(ctx, reset, task)
    message = f"offsets were reset: {told.get('message', 'the pod left no word')}"
    kind = EventType.NORMAL
    return replace(verdict, reason="OffsetsReset", message=message, published=True, offsets=told, event=kind)


def _remove_finalizer(ctx: Context, message: str, kind: EventType) -> PolicyResult:
    return PolicyResult(
        reason="Released",
        message=message,
        phase="Deleting",
        reconciling=True,
        finalizers=_other_finalizers(ctx),
        event=kind,
    )


def _deletion_policy(ctx: Context) -> DeletionPolicy | None:
    written = ctx.spec.get("deletionPolicy")
    return DeletionPolicy(written) if written in list(DeletionPolicy) else None


def _current_finalizers(ctx: Context) -> list[str]:
    return list(ctx.metadata.get("finalizers") or ())


def _other_finalizers(ctx: Context) -> list[str]:
    return [each for each in _current_finalizers(ctx) if each != names.FINALIZER]


def _not_built(what: str) -> str:
    return f"{what} is not built yet in this version of the job"
