"""The policies about a sink that should run: its driver made, tried again, ended for an edit, sized, and watched."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import memory_sizing, names, objects, pod_failures
from s3sink_operator.decide.attempt_history import backoff_left_ms
from s3sink_operator.decide.builders import delete_pod, driver_pod, supporting_objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.executors import executor_state
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.names import Component
from s3sink_operator.objects.pods import secret_names
from s3sink_operator.status import Condition
from s3sink_operator.types import (
    EventType,
    FailureCategory,
    Json,
    Resize,
    Unreachable,
    annotation,
    is_terminating,
    to_ms,
    to_timestamp,
    uid_of,
)
from sink_job.api.quantities import format_duration, format_size
from sink_job.api.report import Report, RunState

_NOT_STARTED_POLL_MS = 10_000
"""So soon a pod that does not start is looked at again: what holds it up may tell in events, which are not watched."""
_MIN_CAPPED_MS = 10 * 60_000
"""So long MemoryCapped is told at least."""
_RESIZE_FAILURES = {
    ("PodResizePending", "Infeasible"),
    ("PodResizePending", "Deferred"),
    ("PodResizeInProgress", "Error"),
}
_STARTING = PolicyResult(reason="Starting", message="the driver is starting", phase="Starting", reconciling=True)


def driver_missing(ctx: Context) -> PolicyResult | None:
    """No driver: it is made, unless a failure has to be waited out or a task is still there."""
    if ctx.driver is not None:
        return None
    if ctx.operation is not None:
        message = "the pod of a request is removed before the driver starts"
        return replace(_STARTING, message=message, delete=delete_pod(ctx, ctx.operation))
    pause = backoff_left_ms(ctx.history.retry, Component.DRIVER, ctx.now)
    if pause is not None:
        return _backing_off(ctx, pause)
    return replace(_STARTING, apply=supporting_objects(ctx), create=[driver_pod(ctx)], event=EventType.NORMAL)


def node_lost(ctx: Context) -> PolicyResult | None:
    """A pod whose node does not answer: left alone for a while, then deleted by force; the ledger fences it."""
    if ctx.lost_node_pod is None:
        return None
    pod, node = ctx.lost_node_pod
    what = "the driver" if pod is ctx.driver else "the pod of a request"
    since = min(to_ms((ctx.previous_status.get("connector") or {}).get("nodeLostTime")) or ctx.now, ctx.now)
    left = since + ctx.settings.node_lost_timeout_ms - ctx.now
    patience = format_duration(ctx.settings.node_lost_timeout_ms)
    verdict = PolicyResult(
        ready="Unknown",
        reason="NodeLost",
        message=f"the node {node} does not answer; {what} is replaced if it has not come back after {patience}",
        phase="Unknown",
        reconciling=True,
        connector={"nodeLostTime": to_timestamp(since)},
        event=EventType.WARNING,
        requeue_after_ms=max(left, 0),
    )
    if left > 0:
        return verdict
    return replace(verdict, terminating_attempt=True, delete=delete_pod(ctx, pod, force=True))


def driver_terminated(ctx: Context) -> PolicyResult | None:
    """A driver that has ended: kept for its log until the next try, which an edit brings about at once."""
    driver = ctx.driver
    if driver is None or is_terminating(driver) or pod_failures.termination_failure(driver) is None:
        return None
    pause = backoff_left_ms(ctx.history.retry, Component.DRIVER, ctx.now)
    if pause is not None and ctx.revision is not None and ctx.revision.matches_pod(driver):
        return replace(_backing_off(ctx, pause), apply=supporting_objects(ctx))
    entry = ctx.history.attempts[0] if ctx.history.attempts else {}
    message = f"the driver ended ({entry.get('reason')}: {entry.get('message')}); it is started again"
    return replace(
        _STARTING, reason="Restarting", message=message, event=EventType.WARNING, delete=delete_pod(ctx, driver)
    )


def spec_changed(ctx: Context) -> PolicyResult | None:
    """A driver that was started with something else than what is wanted now: it is ended, the next one follows."""
    driver, key = ctx.driver, ctx.revision
    if driver is None or key is None or key.matches_pod(driver) or is_terminating(driver) or ctx.keeps_image:
        return None
    asked = annotation(driver, names.SPEC_HASH_ANNOTATION) == key.spec_hash
    reason = "RestartAsked" if asked else "SpecChanged"
    why = "a restart was asked for" if asked else "its settings have changed"
    return _restart(ctx, driver, reason, f"the driver is restarted, since {why}; it goes on after its last round")


def driver_terminating(ctx: Context) -> PolicyResult | None:
    """A driver that is on its way out, by us or by others: its end is waited for, at last by force."""
    driver = ctx.driver
    if driver is None or not is_terminating(driver):
        return None
    held_by = driver["metadata"].get("finalizers") or ()
    entry = ctx.history.attempts[0] if ctx.history.attempts else {}
    message = str(entry.get("message") or "the driver pod is being deleted; the next one follows")
    if held_by:
        message = f"the driver pod is being deleted, but the finalizers {', '.join(held_by)} of others hold it"
    reason = "StuckTerminating" if held_by else str(entry.get("reason") or "Restarting")
    due = to_ms(driver["metadata"]["deletionTimestamp"]) or ctx.now
    left = max(0, due + ctx.settings.node_lost_timeout_ms - ctx.now)
    return PolicyResult(
        reason=reason,
        message=message,
        phase="Stopping",
        reconciling=True,
        delete=delete_pod(ctx, driver),
        requeue_after_ms=left or None,
    )


def driver_not_starting(ctx: Context) -> PolicyResult | None:
    """A driver that Kubernetes has not started yet, and why."""
    driver = ctx.driver
    if driver is None or (driver.get("status") or {}).get("phase") not in (None, "Pending"):
        return None
    base = replace(_STARTING, apply=supporting_objects(ctx))
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
    made = to_ms(driver["metadata"].get("creationTimestamp"))
    left = 0 if made is None else made + ctx.settings.start_timeout_ms - ctx.now
    if made is None or left > 0:
        return replace(base, requeue_after_ms=min(left, _NOT_STARTED_POLL_MS) or None)
    secrets = secret_names(ctx.parsed_sink)
    hint = f" Are the secrets {', '.join(secrets)} there?" if secrets else ""
    message = (
        f"the driver pod has not started within {format_duration(ctx.settings.start_timeout_ms)}: "
        f"kubectl describe pod {driver['metadata']['name']} says why.{hint}"
    )
    return replace(base, reason="StartingSlowly", message=message, event=EventType.WARNING)


def memory_changed(ctx: Context) -> PolicyResult | None:
    """A driver that needs other memory than it has: changed in place where that is enough, else by a restart."""
    driver, report, bounds = ctx.driver, ctx.report, ctx.bounds
    if driver is None or report is None or report.state is not RunState.RUNNING or bounds is None:
        return None
    current = objects.sized_memory(driver)
    if current is None:
        return None
    plan = memory_sizing.plan(ctx.inputs, bounds, ctx.history.sizing, current=current, now=ctx.now)
    steady = replace(_from_report(ctx, report), sizing=plan, conditions=_memory_capped(ctx, plan, bounds))
    if plan.reason is None:
        said, left = _resize_failure(ctx, driver)
        if said is None:
            return steady
        if left > 0:
            return replace(steady, requeue_after_ms=min(left, steady.requeue_after_ms or left))
        message = f"the driver is restarted for its memory: its node does not give it {format_size(current)}: {said}"
        return replace(_restart(ctx, driver, "MemoryChanged", message), sizing=plan, conditions=steady.conditions)
    if _can_resize(ctx, driver, grows=plan.size > current):
        resize = Resize(
            pod=driver["metadata"]["name"], uid=uid_of(driver), container=objects.CONTAINER, memory=plan.size
        )
        return replace(steady, resize=[resize])
    verdict = _restart(ctx, driver, "MemoryChanged", f"the driver is restarted for its memory: {plan.reason}")
    return replace(verdict, sizing=plan, conditions=steady.conditions)


def driver_running(ctx: Context) -> PolicyResult:
    """A driver that Kubernetes has started, as it tells of itself."""
    report = ctx.observed.report
    if isinstance(report, Report):
        return _from_report(ctx, report)
    started = [each.get("started") for each in (ctx.driver or {}).get("status", {}).get("containerStatuses") or ()]
    if not isinstance(report, Unreachable) or False in started:
        return replace(_STARTING, apply=supporting_objects(ctx), requeue_after_ms=ctx.settings.start_poll_ms)
    told = (ctx.previous_status.get("connector") or {}).get("phase"), ctx.previous_status.get("observedGeneration")
    if not report.persistent and told == (RunState.RUNNING.value, ctx.generation):
        return replace(_STARTING, keep_status=True, requeue_after_ms=ctx.settings.start_poll_ms)
    message = f"the driver runs, but does not answer: {report.message}"
    return PolicyResult(
        ready="Unknown",
        reason="ReportUnreachable",
        message=message,
        phase="Unknown",
        apply=supporting_objects(ctx),
        event=EventType.WARNING,
        requeue_after_ms=5 * ctx.settings.start_poll_ms,
    )


def _from_report(ctx: Context, report: Report) -> PolicyResult:
    wake = ctx.settings.status_poll_ms if report.state is RunState.RUNNING else ctx.settings.start_poll_ms
    base = PolicyResult(
        reason=report.state.value,
        message="",
        phase=report.state.value,
        apply=supporting_objects(ctx),
        requeue_after_ms=wake,
    )
    match report.state:
        case RunState.RUNNING:
            return _copying(ctx, report, base)
        case RunState.STARTING:
            return replace(_STARTING, apply=base.apply, requeue_after_ms=wake)
        case RunState.RECOVERING:
            return replace(base, message="the driver takes up what the ledger tells", reconciling=True)
        case RunState.FAILED:
            said = report.failure.message if report.failure else "the driver has failed"
            reason = report.failure.reason if report.failure else "Failed"
            return replace(base, reason=reason, message=said, reconciling=True)
        case _:
            return replace(base, message="the driver is ending", reconciling=True)


def _copying(ctx: Context, report: Report, base: PolicyResult) -> PolicyResult:
    """A driver that is where it should be copies, as soon as there is an executor to do it."""
    count = report.assigned_partitions
    copies = f"copies {count} topic-partition{'' if count == 1 else 's'}"
    copies += "; it is restarted for the operator's new image when its turn comes" if ctx.keeps_image else ""
    there = None if ctx.is_local else executor_state(ctx)
    if there is None or not there.is_incomplete:
        return replace(base, ready="True", message=copies, event=EventType.NORMAL)
    failure = there.failure
    if there.running:
        told = f"{copies}; {there.message()}"
        return replace(base, ready="True", message=told, event=EventType.NORMAL, requeue_after_ms=_NOT_STARTED_POLL_MS)
    return replace(
        base,
        reason="ExecutorsStarting" if failure is None else failure.reason,
        message=there.message(),
        phase="Starting",
        reconciling=failure is None or failure.category is not FailureCategory.USER,
        stalled=failure is not None and failure.category is FailureCategory.USER,
        event=EventType.NORMAL if failure is None else EventType.WARNING,
        requeue_after_ms=_NOT_STARTED_POLL_MS,
    )


def _restart(ctx: Context, driver: Json, reason: str, message: str) -> PolicyResult:
    return PolicyResult(
        reason=reason,
        message=message,
        phase="Stopping",
        reconciling=True,
        terminating_attempt=True,
        delete=delete_pod(ctx, driver),
        event=EventType.NORMAL,
    )


def _backing_off(ctx: Context, pause: int) -> PolicyResult:
    retry = ctx.history.retry or {}
    failed = int(retry.get("failures") or 1)
    times = "once" if failed == 1 else f"{failed} times in a row"
    message = f"{str(retry.get('message')).rstrip('.')}. Failed {times}, next try at {retry.get('nextTry')}"
    by_user = retry.get("kind") == FailureCategory.USER.value
    if by_user:
        message += f", or at once: kubectl s3sink restart {ctx.name}"
    return PolicyResult(
        reason=str(retry.get("reason")),
        message=message,
        phase="Failed",
        reconciling=not by_user,
        stalled=by_user,
        event=EventType.WARNING,
        requeue_after_ms=pause,
    )


def _memory_capped(ctx: Context, plan: memory_sizing.SizingPlan, bounds: memory_sizing.Bounds) -> list[Condition]:
    """That more memory is needed than is allowed. Told for a while at least, and without a figure: what a sink holds
    goes up and down with each look."""
    told: Json = next(
        (each for each in ctx.previous_status.get("conditions") or () if each.get("type") == "MemoryCapped"), {}
    )
    since = to_ms(told.get("lastTransitionTime"))
    stays = since is not None and 0 <= ctx.now - since < _MIN_CAPPED_MS
    if not (plan.capped or stays):
        return []
    message = (
        f"more memory would be right than spec.executor.memory.max allows, {format_size(bounds.max)} (memory.wanted "
        "says how much): objects spill to disk, which is slower; allow more memory, or fewer tasks at a time"
    )
    return [Condition(type="MemoryCapped", status="True", reason="MemoryCapped", message=message)]


def _can_resize(ctx: Context, driver: Json, *, grows: bool) -> bool:
    """Only to grow, where the cluster offers it and this pod's node has not said no."""
    if not (grows and ctx.is_local and ctx.settings.supports_resize):
        return False
    name = driver["metadata"]["name"]
    if any(each.kind == "pods/resize" or (each.kind, each.name) == ("Pod", name) for each in ctx.observed.rejections):
        return False  # a pod that is there can only have been refused a change
    return _resize_failure(ctx, driver)[0] is None


def _resize_failure(ctx: Context, driver: Json) -> tuple[str | None, int]:
    """What the node says against a size that was asked for, None without a word; and for how many milliseconds that may
    still change. A node that has no room now may have it soon; one that is too small, or that failed, will not.
    """
    for each in (driver.get("status") or {}).get("conditions") or ():
        kind, reason = each.get("type"), each.get("reason")
        if each.get("status") != "True" or (kind, reason) not in _RESIZE_FAILURES:
            continue
        said = f"{reason}: {each.get('message') or 'it does not say why'}"
        since = to_ms(each.get("lastTransitionTime")) or ctx.now
        return said, since + ctx.settings.resize_timeout_ms - ctx.now if reason == "Deferred" else 0
    return None, 0
