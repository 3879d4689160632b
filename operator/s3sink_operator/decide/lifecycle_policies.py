"""The policies about the desired state: paused, stopped, deleted, an invalid spec, and conflicts."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import names
from s3sink_operator.conflicts import overlaps
from s3sink_operator.decide import offset_reset
from s3sink_operator.decide.builders import delete_pod, supporting_objects
from s3sink_operator.decide.conditions import TRUE
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.operations import is_all_published, run_operation
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.failures import pod_failures
from s3sink_operator.reasons import Reason
from s3sink_operator.status.status_model import ConditionStatus
from s3sink_operator.types import EventType, ObjectWrites, Operation, annotation, is_terminating
from sink_job.api.enums import DeletionPolicy, DesiredState
from sink_job.api.report import Report, RunState

_OPERATION_OF_POLICY = {DeletionPolicy.PUBLISH: Operation.PUBLISH, DeletionPolicy.DISCARD: Operation.DISCARD}


def reconciliation_is_paused(ctx: Context) -> PolicyResult | None:
    """The annotation that pauses the operator for this sink: it only writes the status.

    A deletion is held no longer than `deletion_timeout_ms`.
    """
    if annotation(ctx.observed.sink, names.RECONCILE_PAUSED_ANNOTATION) not in TRUE:
        return None
    since = ctx.sink.deletion_ms if names.FINALIZER in ctx.sink.finalizers else None
    left = None if since is None else since + ctx.settings.deletion_timeout_ms - ctx.now
    if left is not None and left <= 0:
        return None
    report = ctx.pods.report
    as_desired = ctx.sink.desired_state[0] is DesiredState.RUNNING and ctx.pods.is_up_to_date
    message = f"the annotation {names.RECONCILE_PAUSED_ANNOTATION} pauses the operator for this sink"
    if ctx.pods.driver is not None and not as_desired:
        message += "; the driver differs from the spec and the annotations"
    ready = ConditionStatus.FALSE
    if report is not None and report.state is RunState.RUNNING and as_desired:
        ready = ConditionStatus.TRUE
    elif isinstance(ctx.observed.report, Report) or ctx.pods.driver is not None:
        ready = ConditionStatus.UNKNOWN
    return PolicyResult(
        ready=ready,
        reason=Reason.RECONCILE_PAUSED,
        message=message,
        phase=report.state.value if report else "Unknown",
        event=EventType.NORMAL,
        requeue_after_ms=left,
    )


def sink_is_deleted(ctx: Context) -> PolicyResult | None:
    """A deleted sink: deletionPolicy decides about the open objects. Its children follow by their owner references."""
    if ctx.sink.deletion_ms is None:
        return None
    if names.FINALIZER not in ctx.sink.finalizers:
        others = ", ".join(ctx.sink.finalizers)
        message = f"the sink is deleted; the finalizers {others} of other controllers hold it"
        return PolicyResult(
            reason=Reason.DELETING, message=message, phase="Deleting", reconciling=True, keep_status=not others
        )
    operation = _OPERATION_OF_POLICY.get(ctx.sink.deletion_policy)
    left = ctx.sink.deletion_ms + ctx.settings.deletion_timeout_ms - ctx.now
    if operation is None:
        return _remove_finalizer(ctx, "deletionPolicy is Retain: open objects stay in S3", EventType.NORMAL)
    if is_all_published(ctx) or ctx.pods.has_published_at_stop:
        return _remove_finalizer(ctx, "no objects are open", EventType.NORMAL)
    if ctx.pods.publishes_at_stop and left > 0:
        return replace(namespace_terminating(ctx), requeue_after_ms=min(left, ctx.settings.start_poll_ms))
    if (obstacle := _obstacle(ctx, operation, left)) is not None:
        return _remove_finalizer(ctx, f"{obstacle}; open objects stay in S3", EventType.WARNING)
    message = f"deletionPolicy {operation} runs before the sink is removed; deletionPolicy: Retain removes it at once"
    result = run_operation(ctx, operation.value, message=message)
    if result.published:
        # The pod is deleted with the sink.
        return replace(result, writes=ObjectWrites(finalizers=_other_finalizers(ctx)))
    return replace(result, phase="Deleting", requeue_after_ms=min(left, result.requeue_after_ms or left))


def _obstacle(ctx: Context, operation: Operation, left_ms: int) -> str | None:
    """Why the operation of deletionPolicy cannot run; None if it can."""
    if ctx.sink.parsed is None:
        return f"the spec is invalid: {ctx.sink.spec_error}"
    if ctx.pods.unowned_object is not None or ctx.conflicts.is_lost:
        return "the sink was not allowed to run"
    if ctx.observed.namespace_terminating or any(map(pod_failures.is_namespace_terminating, ctx.observed.rejections)):
        return "the namespace is terminating, no pod can be created"
    if left_ms <= 0:
        return f"{operation} did not complete within {ctx.settings.deletion_timeout_ms // 60_000} minutes"
    return None


def namespace_terminating(ctx: Context) -> PolicyResult:
    """The result while the driver of a sink with deletionPolicy Publish ends with its namespace."""
    message = "the namespace is terminating, no pod can be created"
    if ctx.pods.publishes_at_stop:
        message = "the namespace is terminating: the driver publishes the open objects before it ends"
    elif ctx.sink.published:
        message += "; no objects are open"
    return PolicyResult(
        reason=Reason.NAMESPACE_TERMINATING,
        message=message,
        phase="Stopping",
        reconciling=True,
        terminating_attempt=True,
        event=EventType.NORMAL,
        requeue_after_ms=ctx.settings.start_poll_ms if ctx.pods.publishes_at_stop else None,
    )


def namespace_is_terminating(ctx: Context) -> PolicyResult | None:
    """The driver ends with its namespace, and no other one can follow."""
    return namespace_terminating(ctx) if ctx.observed.namespace_terminating else None


def spec_is_invalid(ctx: Context) -> PolicyResult | None:
    """An invalid or restricted spec. A running driver continues, unless the desired state is not Running."""
    if ctx.sink.parsed is not None:
        return None
    terminate = ctx.sink.desired_state[0] is not DesiredState.RUNNING and ctx.pods.driver is not None
    return PolicyResult(
        reason=ctx.observed.spec.reason,
        message=ctx.sink.spec_error if terminate else f"{ctx.sink.spec_error}; {_driver_without_spec(ctx)}",
        phase="Failed",
        stalled=True,
        terminating_attempt=terminate,
        writes=ObjectWrites(delete=delete_pod(ctx, ctx.pods.driver) if terminate else ()),
        event=EventType.WARNING,
    )


def _driver_without_spec(ctx: Context) -> str:
    """The state of the driver while the spec is invalid."""
    if ctx.pods.driver is None or is_terminating(ctx.pods.driver):
        return "no driver is started until the spec is fixed"
    failure = pod_failures.termination_failure(ctx.pods.driver)
    if failure is None:
        return "the driver continues with the previous settings"
    return (
        f"the previous driver terminated ({failure.reason}: {failure.message}); no new driver is started until the "
        "spec is fixed"
    )


def sink_conflicts(ctx: Context) -> PolicyResult | None:
    """A sink whose resources another sink of the namespace had first does not run."""
    if ctx.conflicts.first_owner is None or not ctx.conflicts.first_owner.certain:
        return None
    return PolicyResult(
        reason=Reason.CONFLICT,
        message=overlaps.conflict_message(ctx.conflicts.resources, ctx.conflicts.first_owner),
        phase="Failed",
        stalled=True,
        terminating_attempt=True,
        writes=ObjectWrites(delete=[*delete_pod(ctx, ctx.pods.driver), *delete_pod(ctx, ctx.pods.operation)]),
        event=EventType.WARNING,
    )


def name_is_taken(ctx: Context) -> PolicyResult | None:
    """An object with the name of a child that the sink does not own is neither adopted nor changed."""
    taken = ctx.pods.unowned_object
    if taken is None:
        return None
    owners = taken["metadata"].get("ownerReferences") or ()
    of_deleted = any(owner.get("kind") == "S3Sink" and owner.get("name") == ctx.sink.name for owner in owners)
    what = f"{taken.get('kind') or 'Pod'} {taken['metadata'].get('name')}"
    message = f"{what} exists and is not owned by this sink: delete it, or give the sink another name"
    if of_deleted:
        message = f"{what} is owned by a deleted S3Sink of this name: waiting for its removal"
    return PolicyResult(
        reason=Reason.NAME_TAKEN,
        message=message,
        phase="Failed",
        stalled=not of_deleted,
        reconciling=of_deleted,
        event=EventType.WARNING,
    )


def sink_is_paused(ctx: Context) -> PolicyResult | None:
    """Paused: the driver terminates, open objects stay open."""
    state, source = ctx.sink.desired_state
    if state is not DesiredState.PAUSED:
        return None
    if ctx.pods.driver is not None or ctx.pods.operation is not None:
        return PolicyResult(
            reason=Reason.PAUSING,
            message=f"{source} is Paused: the driver is terminating, open objects stay open",
            phase="Stopping",
            reconciling=True,
            terminating_attempt=True,
            writes=ObjectWrites(delete=[*delete_pod(ctx, ctx.pods.driver), *delete_pod(ctx, ctx.pods.operation)]),
        )
    return PolicyResult(
        reason=Reason.PAUSED,
        message=f"{source} is Paused: open objects stay open, the next start resumes after the last round",
        phase="Paused",
        writes=ObjectWrites(apply=supporting_objects(ctx)),
        event=EventType.NORMAL,
    )


def sink_is_stopped(ctx: Context) -> PolicyResult | None:
    """Stopped: the driver terminates and the open objects are published; then offsets can be reset."""
    state, source = ctx.sink.desired_state
    if state is not DesiredState.STOPPED:
        return None
    reset = ctx.reset.pending
    if not is_all_published(ctx) and not (reset is not None and offset_reset.replaces_publish(ctx)):
        message = f"{source} is Stopped: publishing open objects"
        return run_operation(ctx, Operation.PUBLISH.value, message=message)
    if reset is not None:
        message = f"resetting offsets for the nonce {reset.nonce}"
        return run_operation(ctx, offset_reset.operation_of(reset), message=message)
    if ctx.pods.operation is not None:
        return PolicyResult(
            reason=Reason.STOPPING,
            message=f"{source} is Stopped: deleting the operation pod",
            phase="Stopping",
            reconciling=True,
            writes=ObjectWrites(delete=delete_pod(ctx, ctx.pods.operation)),
        )
    return PolicyResult(
        reason=Reason.STOPPED,
        message=f"{source} is Stopped: no objects are open",
        phase="Stopped",
        writes=ObjectWrites(apply=supporting_objects(ctx)),
        event=EventType.NORMAL,
    )


def changed_finalizers(ctx: Context) -> list[str] | None:
    """The finalizers of a sink that is not deleted; None if they are as desired."""
    needed = ctx.sink.deletion_policy in _OPERATION_OF_POLICY
    if needed == (names.FINALIZER in ctx.sink.finalizers):
        return None
    return [*ctx.sink.finalizers, names.FINALIZER] if needed else _other_finalizers(ctx)


def _remove_finalizer(ctx: Context, message: str, event: EventType) -> PolicyResult:
    return PolicyResult(
        reason=Reason.FINALIZER_REMOVED,
        message=message,
        phase="Deleting",
        reconciling=True,
        writes=ObjectWrites(finalizers=_other_finalizers(ctx)),
        event=event,
    )


def _other_finalizers(ctx: Context) -> list[str]:
    return [each for each in ctx.sink.finalizers if each != names.FINALIZER]
