"""The policies about the driver of a sink that should run: created, restarted, resized and monitored."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import names
from s3sink_operator.decide import handover
from s3sink_operator.decide.attempt_history import backoff_left_ms
from s3sink_operator.decide.backing_off import backing_off
from s3sink_operator.decide.builders import delete_pod, driver_pod, supporting_objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.memory_facts import ExecutorState
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.failures import pod_failures
from s3sink_operator.names import Component
from s3sink_operator.objects.pods import secret_names
from s3sink_operator.reasons import Reason
from s3sink_operator.rollout.sink_rollout import PROGRESS_DEADLINE_MS
from s3sink_operator.status.status_model import Attempt, ConditionStatus
from s3sink_operator.types import (
    EventType,
    FailureCategory,
    Json,
    ObjectWrites,
    Unreachable,
    annotation,
    is_terminating,
    to_ms,
)
from sink_job.api.report import Report, RunState
from sink_job.api.units.quantities import format_duration

_NOT_STARTED_POLL_MS = 10_000
"""Poll interval of a pod that does not start. Its cause may be in events, which are not watched."""
_ENDING = (RunState.STOPPING, RunState.ENDED, RunState.FAILED)
"""A driver that reported one of these states may end before its pod has ended."""
_STARTING = PolicyResult(reason=Reason.STARTING, message="the driver is starting", phase="Starting", reconciling=True)


def driver_is_missing(ctx: Context) -> PolicyResult | None:
    """Creates the driver, after the back-off and after the operation pod is gone."""
    if ctx.pods.driver is not None:
        return None
    if ctx.pods.operation is not None:
        message = "deleting the operation pod before the driver starts"
        return replace(_STARTING, message=message, writes=ObjectWrites(delete=delete_pod(ctx, ctx.pods.operation)))
    left_ms = backoff_left_ms(ctx.history.retry, Component.DRIVER, ctx.now)
    if handover.is_due(ctx):
        message = f"taking over from {handover.take_over_from(ctx)}, which is fenced first"
        return replace(_start(ctx), reason=Reason.TAKING_OVER, message=message)
    if left_ms is not None:
        return backing_off(ctx, left_ms)
    return _start(ctx)


def _start(ctx: Context) -> PolicyResult:
    """Creates the driver."""
    writes = ObjectWrites(apply=supporting_objects(ctx), create=[driver_pod(ctx)])
    return replace(_STARTING, writes=writes, event=EventType.NORMAL)


def node_is_lost(ctx: Context) -> PolicyResult | None:
    """A pod on a node that is not ready: after a timeout it is deleted by force. The ledger fences it."""
    if ctx.pods.on_lost_node is None:
        return None
    pod, node = ctx.pods.on_lost_node
    what = "the driver" if pod is ctx.pods.driver else "the operation pod"
    since = min(ctx.previous.status.node_lost_time or ctx.now, ctx.now)
    left = since + ctx.settings.node_lost_timeout_ms - ctx.now
    timeout = format_duration(ctx.settings.node_lost_timeout_ms)
    result = PolicyResult(
        ready=ConditionStatus.UNKNOWN,
        reason=Reason.NODE_LOST,
        message=f"the node {node} is not ready; {what} is replaced if the node does not return within {timeout}",
        phase="Unknown",
        reconciling=True,
        node_lost_time=since,
        event=EventType.WARNING,
        requeue_after_ms=max(left, 0),
    )
    if left > 0:
        return result
    return replace(result, terminating_attempt=True, writes=ObjectWrites(delete=delete_pod(ctx, pod, force=True)))


def driver_has_terminated(ctx: Context) -> PolicyResult | None:
    """A terminated driver: its pod is kept for its log until the next attempt. An edit starts that at once."""
    driver = ctx.pods.driver
    if driver is None or is_terminating(driver) or pod_failures.termination_failure(driver) is None:
        return None
    left_ms = backoff_left_ms(ctx.history.retry, Component.DRIVER, ctx.now)
    waits = left_ms is not None and not handover.is_due(ctx)
    if waits and left_ms is not None and ctx.sink.revision is not None and ctx.sink.revision.matches_pod(driver):
        return replace(backing_off(ctx, left_ms), writes=ObjectWrites(apply=supporting_objects(ctx)))
    attempt = ctx.history.newest or Attempt()
    return replace(
        _STARTING,
        reason=Reason.RESTARTING,
        message=f"the driver terminated ({attempt.reason}: {attempt.message}); restarting it",
        event=EventType.NORMAL,  # the failure has a warning of its own
        writes=ObjectWrites(delete=delete_pod(ctx, driver)),
    )


def spec_has_changed(ctx: Context) -> PolicyResult | None:
    """A driver of another revision: it is terminated and the next one follows.

    A change of the operator's defaults restarts a driver that is not Ready and copies nothing at once, since nothing is
    lost, and any other driver when the rollout comes to it.
    """
    driver, revision = ctx.pods.driver, ctx.sink.revision
    if driver is None or revision is None or revision.matches_pod(driver) or is_terminating(driver):
        return None
    if ctx.pods.is_rollout_pending:
        result = restart(ctx, driver, Reason.DEFAULTS_CHANGED, "the defaults of the operator changed")
        if is_not_ready(ctx):
            return result
        waits = not ctx.observed.rollout.is_open or _may_get_executors(ctx)
        return None if waits else result.starting_rollout()
    if annotation(driver, names.SPEC_HASH_ANNOTATION) == revision.spec_hash:
        return restart(ctx, driver, Reason.RESTART_REQUESTED, "a restart was requested")
    return restart(ctx, driver, Reason.SPEC_CHANGED, "its settings changed")


def is_not_ready(ctx: Context) -> bool:
    """Whether the driver is not Ready for certain, so that a restart has nothing to lose.

    The state of a driver that does not answer is unknown. A driver that runs copies with the executors that it has, and
    without one it may get one: with its own image, but not with a broken new one.
    """
    if driver_does_not_start(ctx) is not None:
        return True
    if (executors := _executors_of_running(ctx)) is not None:
        return not executors.running and not _may_get_executors(ctx)
    result = driver_is_running(ctx)
    return result.ready is ConditionStatus.FALSE and not result.keep_status


def _executors_of_running(ctx: Context) -> ExecutorState | None:
    """The executors of a driver that reports Running; None without one, and in Local mode."""
    is_running = ctx.pods.report is not None and ctx.pods.report.state is RunState.RUNNING
    return ctx.scaling.executors if is_running and not ctx.sink.is_local else None


def _may_get_executors(ctx: Context) -> bool:
    """Whether a running driver without executors had one recently, and only capacity is missing."""
    executors, mark = _executors_of_running(ctx), ctx.previous.status.rollout
    if executors is None or executors.running or (mark is not None and mark.available_time is None):
        return False
    if executors.failure is not None and executors.failure.category is not FailureCategory.SCHEDULING:
        return False
    ready = ctx.previous.status.condition("Ready")
    if ready is None or ready.status is ConditionStatus.TRUE:
        return True
    return ctx.now - (ready.last_transition_time or ctx.now) < PROGRESS_DEADLINE_MS


def driver_is_terminating(ctx: Context) -> PolicyResult | None:
    """A driver pod that is being deleted, by the operator or by others. After a timeout it is deleted by force."""
    driver = ctx.pods.driver
    if driver is None or not is_terminating(driver):
        return None
    finalizers = driver["metadata"].get("finalizers") or ()
    attempt = ctx.history.newest or Attempt()
    reason = attempt.reason or Reason.RESTARTING
    message = attempt.message or "the driver pod is being deleted; the next one follows"
    if finalizers:
        reason = Reason.TERMINATION_BLOCKED
        message = f"the driver pod is being deleted; finalizers of other controllers hold it: {', '.join(finalizers)}"
    due = to_ms(driver["metadata"]["deletionTimestamp"]) or ctx.now
    left = max(0, due + ctx.settings.node_lost_timeout_ms - ctx.now)
    return PolicyResult(
        reason=reason,
        message=message,
        phase="Stopping",
        reconciling=True,
        writes=ObjectWrites(delete=delete_pod(ctx, driver)),
        requeue_after_ms=left or None,
    )


def driver_does_not_start(ctx: Context) -> PolicyResult | None:
    """A pending driver pod, and why it does not start."""
    driver = ctx.pods.driver
    if driver is None or (driver.get("status") or {}).get("phase") not in (None, "Pending"):
        return None
    base = replace(_STARTING, writes=ObjectWrites(apply=supporting_objects(ctx)))
    failure = pod_failures.startup_failure(driver, ctx.observed.pod_event)
    if failure is not None:
        by_user = failure.category is FailureCategory.USER
        return replace(
            base,
            reason=failure.reason,
            message=failure.message,
            stalled=by_user,
            reconciling=not by_user,
            event=EventType.WARNING,
            requeue_after_ms=_NOT_STARTED_POLL_MS,
        )
    created = to_ms(driver["metadata"].get("creationTimestamp"))
    left = 0 if created is None else created + ctx.settings.start_timeout_ms - ctx.now
    if created is None or left > 0:
        return replace(base, requeue_after_ms=min(left, _NOT_STARTED_POLL_MS) or None)
    secrets = secret_names(ctx.sink.manifest)
    hint = f". Check that the Secrets {', '.join(secrets)} exist" if secrets else ""
    message = (
        f"the driver pod did not start within {format_duration(ctx.settings.start_timeout_ms)}: see "
        f"kubectl describe pod {driver['metadata']['name']}{hint}"
    )
    return replace(base, reason=Reason.SLOW_START, message=message, event=EventType.WARNING)


def driver_is_running(ctx: Context) -> PolicyResult:
    """A running driver, as it reports itself."""
    report = ctx.observed.report
    if isinstance(report, Report):
        return running(ctx, report)
    started = [each.get("started") for each in (ctx.pods.driver or {}).get("status", {}).get("containerStatuses") or ()]
    if not isinstance(report, Unreachable) or False in started:
        return _wait_for_start(ctx)
    phase = ctx.previous.progress.phase
    if not (report.overdue if phase in _ENDING else report.persistent):
        if phase in (None, _STARTING.phase):
            return _wait_for_start(ctx)
        return replace(_STARTING, keep_status=True, requeue_after_ms=ctx.settings.start_poll_ms)
    return PolicyResult(
        ready=ConditionStatus.UNKNOWN,
        reason=report.reason,
        message=f"the driver runs but has no report that can be read: {report.message}",
        phase="Unknown",
        writes=ObjectWrites(apply=supporting_objects(ctx)),
        event=EventType.WARNING,
        requeue_after_ms=5 * ctx.settings.start_poll_ms,
    )


def _wait_for_start(ctx: Context) -> PolicyResult:
    """The driver was started and does not answer yet."""
    writes = ObjectWrites(apply=supporting_objects(ctx))
    return replace(_STARTING, writes=writes, requeue_after_ms=ctx.settings.start_poll_ms)


def running(ctx: Context, report: Report) -> PolicyResult:
    """The result for a driver that reports this."""
    state, settings = report.state, ctx.settings
    base = PolicyResult(
        reason=state.value,
        message="",
        phase=state.value,
        writes=ObjectWrites(apply=supporting_objects(ctx)),
        requeue_after_ms=settings.status_poll_ms if state is RunState.RUNNING else settings.start_poll_ms,
    )
    match state:
        case RunState.RUNNING:
            return _copying(ctx, report, base)
        case RunState.STARTING:
            return replace(_STARTING, writes=base.writes, requeue_after_ms=base.requeue_after_ms)
        case RunState.RECOVERING:
            return replace(base, message="the driver is recovering from the ledger", reconciling=True)
        case RunState.FAILED:
            message = report.failure.message if report.failure else "the driver failed"
            reason = report.failure.reason if report.failure else "Failed"
            return replace(base, reason=reason, message=message, reconciling=True)
        case _:
            return replace(base, message="the driver is terminating", reconciling=True)


def _copying(ctx: Context, report: Report, base: PolicyResult) -> PolicyResult:
    """A running driver is ready as soon as one executor runs."""
    executors = None if ctx.sink.is_local else ctx.scaling.executors
    if executors is not None and (rejected := _executors_are_rejected(ctx, report, executors, base)) is not None:
        return rejected
    if report.no_progress_ms is not None:
        return replace(
            base,
            ready=ConditionStatus.UNKNOWN,
            reason=Reason.NO_PROGRESS,
            message="the driver answers, but no task and no request to Kafka has completed for several minutes: see "
            "its log and those of the executors. Without progress the kubelet restarts it after 17 minutes",
            event=EventType.WARNING,
        )
    count = report.assigned_partitions
    message = f"copying {count} topic-partition{'' if count == 1 else 's'}"
    message += "; a restart for the new defaults of the operator is pending" if ctx.pods.is_rollout_pending else ""
    ready = replace(base, ready=ConditionStatus.TRUE, message=message, event=EventType.NORMAL)
    if executors is None or not executors.is_incomplete:
        return ready
    if executors.running:
        return replace(ready, message=f"{message}; {executors.message()}", requeue_after_ms=_NOT_STARTED_POLL_MS)
    failure = executors.failure
    by_user = failure is not None and failure.category is FailureCategory.USER
    return replace(
        base,
        reason=Reason.EXECUTORS_STARTING if failure is None else failure.reason,
        message=executors.message(),
        phase="Starting",
        reconciling=not by_user,
        stalled=by_user,
        event=EventType.NORMAL if failure is None else EventType.WARNING,
        requeue_after_ms=_NOT_STARTED_POLL_MS,
    )


def _executors_are_rejected(
    ctx: Context, report: Report, executors: ExecutorState, base: PolicyResult
) -> PolicyResult | None:
    """The API server denies the driver all executors, or rejects the next one."""
    count = f"{executors.running} of {executors.desired} executors are running"
    if report.executor_denial is not None:
        return replace(
            base,
            reason=Reason.EXECUTORS_DENIED,
            message=f"{count}, and no other can be created: {report.executor_denial}. Restore the ClusterRole "
            f"{ctx.settings.driver_cluster_role} and the RoleBinding {names.role_binding_name(ctx.sink.name)}; the "
            "chart and the operator create them",
            stalled=True,
            event=EventType.WARNING,
        )
    if executors.is_incomplete and report.executor_rejection is not None:
        return replace(
            base,
            reason=Reason.EXECUTORS_REJECTED,
            message=f"{count}, and the API server rejects the next one: {report.executor_rejection}. Increase the "
            "quota, or correct what the admission policy or webhook rejects; Spark retries every second",
            reconciling=True,
            event=EventType.WARNING,
            requeue_after_ms=_NOT_STARTED_POLL_MS,
        )
    return None


def restart(ctx: Context, driver: Json, reason: str, cause: str) -> PolicyResult:
    """Terminates the driver; the next one follows."""
    return PolicyResult(
        reason=reason,
        message=f"restarting the driver: {cause}; it resumes after its last round",
        phase="Stopping",
        reconciling=True,
        terminating_attempt=True,
        writes=ObjectWrites(delete=delete_pod(ctx, driver)),
        event=EventType.NORMAL,
    )
