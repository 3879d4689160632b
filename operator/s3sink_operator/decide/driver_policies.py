"""The policies about a sink that should run: its driver made, tried again, ended for an edit, sized, and watched."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import memory_sizing, names, objects, pod_failures
from s3sink_operator.decide.attempt_history import waits
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.executors import executors_of
from s3sink_operator.decide.policy_result import Verdict
from s3sink_operator.names import Component
from s3sink_operator.objects.pods import secret_names
from s3sink_operator.status import Condition
from s3sink_operator.types import (
    EventType,
    Json,
    Kind,
    Resize,
    Unreachable,
    annotation,
    is_ending,
    to_ms,
    to_stamp,
    uid_of,
)
from sink_job.api.quantities import format_duration, format_size
from sink_job.api.report import Report, RunState

_AGAIN_MS = 10_000
"""So soon a pod that does not start is looked at again: what holds it up may tell in events, which are not watched."""
_CAPPED_MS = 10 * 60_000
"""So long MemoryCapped is told at least."""
_AGAINST_RESIZE = {
    ("PodResizePending", "Infeasible"),
    ("PodResizePending", "Deferred"),
    ("PodResizeInProgress", "Error"),
}
_STARTING = Verdict(reason="Starting", message="the driver is starting", phase="Starting", reconciling=True)


def absent(ctx: Context) -> Verdict | None:
    """No driver: it is made, unless a failure has to be waited out or a task is still there."""
    if ctx.driver is not None:
        return None
    if ctx.task is not None:
        message = "the pod of a request is removed before the driver starts"
        return replace(_STARTING, message=message, delete=ctx.end(ctx.task))
    pause = waits(ctx.story.retry, Component.DRIVER, ctx.now)
    if pause is not None:
        return _backing_off(ctx, pause)
    return replace(_STARTING, apply=ctx.base(), create=[ctx.new_driver()], event=EventType.NORMAL)


def lost(ctx: Context) -> Verdict | None:
    """A pod whose node does not answer: left alone for a while, then deleted by force; the ledger fences it."""
    if ctx.lost is None:
        return None
    pod, node = ctx.lost
    what = "the driver" if pod is ctx.driver else "the pod of a request"
    since = min(to_ms((ctx.old.get("connector") or {}).get("nodeLostTime")) or ctx.now, ctx.now)
    left = since + ctx.settings.node_lost_ms - ctx.now
    patience = format_duration(ctx.settings.node_lost_ms)
    verdict = Verdict(
        ready="Unknown",
        reason="NodeLost",
        message=f"the node {node} does not answer; {what} is replaced if it has not come back after {patience}",
        phase="Unknown",
        reconciling=True,
        connector={"nodeLostTime": to_stamp(since)},
        event=EventType.WARNING,
        wake_ms=max(left, 0),
    )
    if left > 0:
        return verdict
    return replace(verdict, ending=True, delete=ctx.end(pod, force=True))


def ended(ctx: Context) -> Verdict | None:
    """A driver that has ended: kept for its log until the next try, which an edit brings about at once."""
    driver = ctx.driver
    if driver is None or is_ending(driver) or pod_failures.ended(driver) is None:
        return None
    pause = waits(ctx.story.retry, Component.DRIVER, ctx.now)
    if pause is not None and ctx.key is not None and ctx.key.fits(driver):
        return replace(_backing_off(ctx, pause), apply=ctx.base())
    entry = ctx.story.attempts[0] if ctx.story.attempts else {}
    message = f"the driver ended ({entry.get('reason')}: {entry.get('message')}); it is started again"
    return replace(_STARTING, reason="Restarting", message=message, event=EventType.WARNING, delete=ctx.end(driver))


def edited(ctx: Context) -> Verdict | None:
    """A driver that was started with something else than what is wanted now: it is ended, the next one follows."""
    driver, key = ctx.driver, ctx.key
    if driver is None or key is None or key.fits(driver) or is_ending(driver) or ctx.keeps_image:
        return None
    asked = annotation(driver, names.SPEC_HASH) == key.spec_hash
    reason = "RestartAsked" if asked else "SpecChanged"
    why = "a restart was asked for" if asked else "its settings have changed"
    return _restarting(ctx, driver, reason, f"the driver is restarted, since {why}; it goes on after its last round")


def ending(ctx: Context) -> Verdict | None:
    """A driver that is on its way out, by us or by others: its end is waited for, at last by force."""
    driver = ctx.driver
    if driver is None or not is_ending(driver):
        return None
    held_by = driver["metadata"].get("finalizers") or ()
    entry = ctx.story.attempts[0] if ctx.story.attempts else {}
    message = str(entry.get("message") or "the driver pod is being deleted; the next one follows")
    if held_by:
        message = f"the driver pod is being deleted, but the finalizers {', '.join(held_by)} of others hold it"
    reason = "StuckTerminating" if held_by else str(entry.get("reason") or "Restarting")
    due = to_ms(driver["metadata"]["deletionTimestamp"]) or ctx.now
    left = max(0, due + ctx.settings.node_lost_ms - ctx.now)
    return Verdict(
        reason=reason,
        message=message,
        phase="Stopping",
        reconciling=True,
        delete=ctx.end(driver),
        wake_ms=left or None,
    )


def not_starting(ctx: Context) -> Verdict | None:
    """A driver that Kubernetes has not started yet, and why."""
    driver = ctx.driver
    if driver is None or (driver.get("status") or {}).get("phase") not in (None, "Pending"):
        return None
    base = replace(_STARTING, apply=ctx.base())
    failure = pod_failures.not_starting(driver, ctx.seen.warning)
    if failure is not None:
        by_user = failure.kind is Kind.USER
        return replace(
            base,
            reason=failure.reason,
            message=failure.sentence,
            stalled=by_user,
            reconciling=not by_user,
            event=EventType.WARNING,
            wake_ms=_AGAIN_MS,
        )
    made = to_ms(driver["metadata"].get("creationTimestamp"))
    left = 0 if made is None else made + ctx.settings.starting_ms - ctx.now
    if made is None or left > 0:
        return replace(base, wake_ms=min(left, _AGAIN_MS) or None)
    secrets = secret_names(ctx.valid)
    hint = f" Are the secrets {', '.join(secrets)} there?" if secrets else ""
    message = (
        f"the driver pod has not started within {format_duration(ctx.settings.starting_ms)}: "
        f"kubectl describe pod {driver['metadata']['name']} says why.{hint}"
    )
    return replace(base, reason="StartingSlowly", message=message, event=EventType.WARNING)


def sized(ctx: Context) -> Verdict | None:
    """A driver that needs other memory than it has: changed in place where that is enough, else by a restart."""
    driver, report, bounds = ctx.driver, ctx.report, ctx.bounds
    if driver is None or report is None or report.state is not RunState.RUNNING or bounds is None:
        return None
    current = objects.memory_of(driver)
    if current is None:
        return None
    plan = memory_sizing.plan(ctx.inputs, bounds, ctx.story.state, current=current, now=ctx.now)
    steady = replace(_steady(ctx, report), plan=plan, conditions=_capped(ctx, plan, bounds))
    if plan.why is None:
        said, left = _refused_by_node(ctx, driver)
        if said is None:
            return steady
        if left > 0:
            return replace(steady, wake_ms=min(left, steady.wake_ms or left))
        message = f"the driver is restarted for its memory: its node does not give it {format_size(current)}: {said}"
        return replace(_restarting(ctx, driver, "MemoryChanged", message), plan=plan, conditions=steady.conditions)
    if _can_resize(ctx, driver, grows=plan.size > current):
        resize = Resize(
            pod=driver["metadata"]["name"], uid=uid_of(driver), container=objects.CONTAINER, memory=plan.size
        )
        return replace(steady, resize=[resize])
    verdict = _restarting(ctx, driver, "MemoryChanged", f"the driver is restarted for its memory: {plan.why}")
    return replace(verdict, plan=plan, conditions=steady.conditions)


def watched(ctx: Context) -> Verdict:
    """A driver that Kubernetes has started, as it tells of itself."""
    report = ctx.seen.report
    if isinstance(report, Report):
        return _steady(ctx, report)
    started = [each.get("started") for each in (ctx.driver or {}).get("status", {}).get("containerStatuses") or ()]
    if not isinstance(report, Unreachable) or False in started:
        return replace(_STARTING, apply=ctx.base(), wake_ms=ctx.settings.poll_ms)
    told = (ctx.old.get("connector") or {}).get("phase"), ctx.old.get("observedGeneration")
    if not report.lasts and told == (RunState.RUNNING.value, ctx.generation):
        return replace(_STARTING, silent=True, wake_ms=ctx.settings.poll_ms)
    message = f"the driver runs, but does not answer: {report.why}"
    return Verdict(
        ready="Unknown",
        reason="ReportUnreachable",
        message=message,
        phase="Unknown",
        apply=ctx.base(),
        event=EventType.WARNING,
        wake_ms=5 * ctx.settings.poll_ms,
    )


def _steady(ctx: Context, report: Report) -> Verdict:
    wake = ctx.settings.watch_ms if report.state is RunState.RUNNING else ctx.settings.poll_ms
    base = Verdict(reason=report.state.value, message="", phase=report.state.value, apply=ctx.base(), wake_ms=wake)
    match report.state:
        case RunState.RUNNING:
            return _copying(ctx, report, base)
        case RunState.STARTING:
            return replace(_STARTING, apply=base.apply, wake_ms=wake)
        case RunState.RECOVERING:
            return replace(base, message="the driver takes up what the ledger tells", reconciling=True)
        case RunState.FAILED:
            said = report.failure.message if report.failure else "the driver has failed"
            reason = report.failure.reason if report.failure else "Failed"
            return replace(base, reason=reason, message=said, reconciling=True)
        case _:
            return replace(base, message="the driver is ending", reconciling=True)


def _copying(ctx: Context, report: Report, base: Verdict) -> Verdict:
    """A driver that is where it should be copies, as soon as there is an executor to do it."""
    count = report.assigned_partitions
    copies = f"copies {count} topic-partition{'' if count == 1 else 's'}"
    copies += "; it is restarted for the operator's new image when its turn comes" if ctx.keeps_image else ""
    there = None if ctx.is_local else executors_of(ctx)
    if there is None or not there.missing:
        return replace(base, ready="True", message=copies, event=EventType.NORMAL)
    failure = there.failure
    if there.running:
        told = f"{copies}; {there.sentence()}"
        return replace(base, ready="True", message=told, event=EventType.NORMAL, wake_ms=_AGAIN_MS)
    return replace(
        base,
        reason="ExecutorsStarting" if failure is None else failure.reason,
        message=there.sentence(),
        phase="Starting",
        reconciling=failure is None or failure.kind is not Kind.USER,
        stalled=failure is not None and failure.kind is Kind.USER,
        event=EventType.NORMAL if failure is None else EventType.WARNING,
        wake_ms=_AGAIN_MS,
    )


def _restarting(ctx: Context, driver: Json, reason: str, message: str) -> Verdict:
    return Verdict(
        reason=reason,
        message=message,
        phase="Stopping",
        reconciling=True,
        ending=True,
        delete=ctx.end(driver),
        event=EventType.NORMAL,
    )


def _backing_off(ctx: Context, pause: int) -> Verdict:
    retry = ctx.story.retry or {}
    failed = int(retry.get("failures") or 1)
    times = "once" if failed == 1 else f"{failed} times in a row"
    message = f"{str(retry.get('message')).rstrip('.')}. Failed {times}, next try at {retry.get('nextTry')}"
    by_user = retry.get("kind") == Kind.USER.value
    if by_user:
        message += f", or at once: kubectl s3sink restart {ctx.name}"
    return Verdict(
        reason=str(retry.get("reason")),
        message=message,
        phase="Failed",
        reconciling=not by_user,
        stalled=by_user,
        event=EventType.WARNING,
        wake_ms=pause,
    )


def _capped(ctx: Context, plan: memory_sizing.Plan, bounds: memory_sizing.Bounds) -> list[Condition]:
    """That more memory is needed than is allowed. Told for a while at least, and without a figure: what a sink holds
    goes up and down with each look."""
    told: Json = next((each for each in ctx.old.get("conditions") or () if each.get("type") == "MemoryCapped"), {})
    since = to_ms(told.get("lastTransitionTime"))
    stays = since is not None and 0 <= ctx.now - since < _CAPPED_MS
    if not (plan.capped or stays):
        return []
    message = (
        f"more memory would be right than spec.executor.memory.max allows, {format_size(bounds.most)} (memory.wanted "
        "says how much): objects spill to disk, which is slower; allow more memory, or fewer tasks at a time"
    )
    return [Condition(type="MemoryCapped", status="True", reason="MemoryCapped", message=message)]


def _can_resize(ctx: Context, driver: Json, *, grows: bool) -> bool:
    """Only to grow, where the cluster offers it and this pod's node has not said no."""
    if not (grows and ctx.is_local and ctx.settings.resize):
        return False
    name = driver["metadata"]["name"]
    if any(each.kind == "pods/resize" or (each.kind, each.name) == ("Pod", name) for each in ctx.seen.refusals):
        return False  # a pod that is there can only have been refused a change
    return _refused_by_node(ctx, driver)[0] is None


def _refused_by_node(ctx: Context, driver: Json) -> tuple[str | None, int]:
    """What the node says against a size that was asked for, None without a word; and for how many milliseconds that may
    still change. A node that has no room now may have it soon; one that is too small, or that failed, will not.
    """
    for each in (driver.get("status") or {}).get("conditions") or ():
        kind, reason = each.get("type"), each.get("reason")
        if each.get("status") != "True" or (kind, reason) not in _AGAINST_RESIZE:
            continue
        said = f"{reason}: {each.get('message') or 'it does not say why'}"
        since = to_ms(each.get("lastTransitionTime")) or ctx.now
        return said, since + ctx.settings.resize_ms - ctx.now if reason == "Deferred" else 0
    return None, 0
