"""The policy about the memory of a running sink: in place where that is possible, or else by replacing pods.

A change is first recorded in the allocation, which the driver reads between two rounds. Containers follow it one by
one: they grow at once, and shrink after the driver has reported that its tasks use no more than the new size. An
executor that cannot be resized is replaced: Spark creates the next one with the new size. Only a sink in Local mode,
and a driver that does not report what it has applied, are restarted. Changed defaults of the operator change the memory
of all sinks at once, so what makes a sink unavailable for them waits for its turn in their rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from s3sink_operator import objects
from s3sink_operator.decide import driver_policies
from s3sink_operator.decide.builders import delete_pod, driver_pod, supporting_objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.failures.pod_failures import is_admission_denial
from s3sink_operator.objects.pods import actual_memory
from s3sink_operator.reasons import Reason
from s3sink_operator.sizing import memory_sizing
from s3sink_operator.sizing.memory_sizing import Pace
from s3sink_operator.types import (
    REPLACEMENT_KIND,
    Json,
    ObjectWrites,
    Rejection,
    Replacement,
    Resize,
    is_terminating,
    to_ms,
    uid_of,
)
from sink_job.api.report import RunState
from sink_job.api.units.quantities import format_size

_UNPROCESSABLE = 422
_RESIZE_FAILURES = {
    ("PodResizePending", "Infeasible"),
    ("PodResizePending", "Deferred"),
    ("PodResizeInProgress", "Error"),
}


def memory_has_changed(ctx: Context) -> PolicyResult | None:
    """A running driver: the memory of its tasks follows the plan."""
    driver, report, bounds, current = ctx.pods.driver, ctx.pods.report, ctx.sink.memory_bounds, ctx.memory.current
    if driver is None or report is None or report.state is not RunState.RUNNING or bounds is None or current is None:
        return None
    pace = _pace(ctx)
    plan = memory_sizing.plan(ctx.sizing.inputs, bounds, ctx.history.sizing, current=current, now=ctx.now, pace=pace)
    if ctx.memory.has_edited_bounds and ctx.sizing.start_size != current:
        reason = f"{'grow' if ctx.sizing.start_size > current else 'shrink'}: spec.executor.memory is {_bounds(ctx)}"
        plan = replace(plan, size=ctx.sizing.start_size, reason=reason, state=replace(plan.state, low_since=None))
    steady = replace(driver_policies.running(ctx, report), sizing=plan)
    if plan.state.low_since is not None and ctx.now < plan.state.low_since + pace.shrink_after:
        steady = _requeued(steady, plan.state.low_since + pace.shrink_after - ctx.now)
    follows = report.memory.applied_bytes is not None
    if plan.reason is not None:
        in_place = _can_resize(ctx, driver, grows=plan.size > current) if ctx.sink.is_local else follows
        if not in_place:
            cause = f"its memory changes ({plan.reason})"
            return _restart(ctx, driver, cause, replace(steady, sizing=plan))
    if plan.reason is not None or ctx.memory.has_edited_bounds:
        by_defaults = plan.reason is not None and ctx.memory.has_edited_bounds and ctx.memory.has_changed_by_defaults
        steady = replace(
            steady, writes=ObjectWrites(apply=supporting_objects(ctx, memory=plan.size, by_defaults=by_defaults))
        )
    if ctx.sink.is_local:
        return _of_driver(ctx, driver, steady, plan.size)
    return _of_executors(ctx, steady, plan.size) if follows else steady


def _restart(ctx: Context, driver: Json, cause: str, steady: PolicyResult) -> PolicyResult:
    """A restart would also bring new defaults of the operator, so it waits for the turn in their rollout. A driver is
    kept while the API server rejects the next one; the dry run is retried after a while."""
    kept = replace(steady, sizing=None)
    if ctx.pods.is_rollout_pending:
        return kept
    replacement = _replacement(ctx, driver)
    left = ctx.rejected_for_ms(REPLACEMENT_KIND, driver["metadata"]["name"])
    if left is not None:
        return _requeued(replace(kept, writes=replace(kept.writes, replacement=replacement)), left)
    result = driver_policies.restart(ctx, driver, Reason.MEMORY_CHANGED, cause)
    writes = replace(result.writes, replacement=replacement)
    return _in_turn(ctx, replace(result, sizing=steady.sizing, writes=writes), kept)


def _replacement(ctx: Context, driver: Json) -> Replacement:
    """The next driver pod. Only the memory of its own container differs: the settings are the same."""
    pod = driver_pod(ctx)
    return Replacement(pod=pod, growth=(objects.memory_limit(pod) or 0) - (objects.memory_limit(driver) or 0))


def _in_turn(ctx: Context, result: PolicyResult, waiting: PolicyResult) -> PolicyResult:
    """`result`, which makes the sink unavailable; but `waiting` until its turn in the rollout of changed defaults."""
    if not ctx.memory.has_changed_by_defaults or driver_policies.is_not_ready(ctx):
        return result
    return result.starting_rollout() if ctx.observed.rollout.is_open else replace(waiting, waits_for_turn=True)


def _bounds(ctx: Context) -> str:
    return objects.memory_bounds(ctx.sink.manifest)


def _pace(ctx: Context) -> Pace:
    """In place if API server and driver support it, and the API server rejected no resize of this sink."""
    follows = ctx.pods.report is not None and ctx.pods.report.memory.applied_bytes is not None
    if not (follows and ctx.settings.supports_resize) or any(map(_is_of_pod, ctx.observed.rejections)):
        return memory_sizing.RESTART
    return replace(memory_sizing.IN_PLACE, shrink_after=ctx.settings.shrink_after_ms)


# -- Local mode --------------------------------------------------------------------------------------------------------


def _of_driver(ctx: Context, driver: Json, steady: PolicyResult, size: int) -> PolicyResult:
    """Resizes the driver pod. A node that cannot increase its memory is left by a restart."""
    limit = objects.memory_limit(driver) or size
    if limit != size:
        rejection = _invalid_resize(ctx, driver)
        if rejection is None:
            return _with_resizes(ctx, steady, [driver], size)
        left = 0 if size > limit else _until_restart(ctx)
        if left > 0:
            return _requeued(steady, left)
        cause = f"it cannot be resized to {format_size(size)} ({rejection.message})"
        return _restart(ctx, driver, cause, steady)
    failure = _resize_failure(ctx, driver)
    if failure is None or _shrinks(driver, size):
        return steady
    if failure.left_ms > 0:
        return _requeued(steady, failure.left_ms)
    cause = f"its node cannot resize it to {format_size(size)} ({failure.message})"
    return _restart(ctx, driver, cause, steady)


def _can_resize(ctx: Context, driver: Json, *, grows: bool) -> bool:
    """Whether API server and node support it, and neither rejected it. A pod shrinks after its tasks, which the driver
    has to report."""
    if not ctx.settings.supports_resize or _invalid_resize(ctx, driver) is not None:
        return False
    return _resize_failure(ctx, driver) is None if grows else _applied(ctx) is not None


def _until_restart(ctx: Context) -> int:
    """Milliseconds until a restart is worth less memory."""
    changed = ctx.history.sizing.changes
    return changed[-1] + memory_sizing.RESTART.shrink_after - ctx.now if changed else 0


# -- Cluster mode ------------------------------------------------------------------------------------------------------


def _of_executors(ctx: Context, steady: PolicyResult, allocated: int) -> PolicyResult:
    """Resizes the executors, and replaces those that cannot be resized, one at a time."""
    size = ctx.sink.executor_limit(allocated)
    pods = [pod for pod in ctx.pods.executors if not is_terminating(pod) and _is_running(pod)]
    different = [pod for pod in pods if (objects.memory_limit(pod) or size) != size]
    resizable = [pod for pod in different if ctx.settings.supports_resize and _invalid_resize(ctx, pod) is None]
    replaced = [pod for pod in different if pod not in resizable]
    waits = []
    for pod in pods:
        failure = None if pod in different or _shrinks(pod, size) else _resize_failure(ctx, pod)
        if failure is not None and failure.left_ms > 0:
            waits.append(failure.left_ms)
        elif failure is not None:
            replaced.append(pod)
    result = _with_resizes(ctx, steady, resizable, size)
    has_all = len(pods) >= ctx.scaling.desired
    if replaced and has_all and _applied(ctx) == allocated:
        writes = replace(result.writes, delete=delete_pod(ctx, replaced[0]))
        result = _in_turn(ctx, replace(result, writes=writes), result)
    return _requeued(result, min(waits)) if waits else result


def _is_running(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"


# -- both --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _ResizeFailure:
    """Why a node did not resize a pod; and for how many ms that may change, 0 if it will not."""

    message: str
    left_ms: int


def _resize_failure(ctx: Context, pod: Json) -> _ResizeFailure | None:
    """A node without free memory may have it later. A node that is too small, or that failed, will not."""
    for each in (pod.get("status") or {}).get("conditions") or ():
        kind, reason = each.get("type"), each.get("reason")
        if each.get("status") != "True" or (kind, reason) not in _RESIZE_FAILURES:
            continue
        message = f"{reason}: {each.get('message') or 'no message'}"
        since = to_ms(each.get("lastTransitionTime")) or ctx.now
        left = since + ctx.settings.resize_timeout_ms - ctx.now if reason == "Deferred" else 0
        return _ResizeFailure(message=message, left_ms=max(0, left))
    return None


def _with_resizes(ctx: Context, result: PolicyResult, pods: Sequence[Json], size: int) -> PolicyResult:
    """The result with the resizes of `pods` to `size` bytes. Smaller ones only after the driver has applied that size:
    no task has more then. A rejected one is retried after a while."""
    applied = _applied(ctx)
    resizes = [
        Resize(pod=pod["metadata"]["name"], uid=uid_of(pod), container=objects.CONTAINER, memory=size)
        for pod in pods
        if (objects.memory_limit(pod) or 0) < size or (applied is not None and applied <= size)
        if ctx.rejected_for_ms("pods/resize", pod["metadata"]["name"]) is None
    ]
    return replace(result, writes=replace(result.writes, resize=resizes))


def _applied(ctx: Context) -> int | None:
    return None if ctx.pods.report is None else ctx.pods.report.memory.applied_bytes


def _shrinks(pod: Json, size: int) -> bool:
    """Whether the container still has more than `size`. The kubelet retries until its processes use less."""
    actual = actual_memory(pod)
    return actual is not None and actual > size


def _is_of_pod(rejection: Rejection) -> bool:
    """Whether a resize was rejected: of an existing pod nothing else is written."""
    return rejection.kind in ("Pod", "pods/resize")


def _invalid_resize(ctx: Context, pod: Json) -> Rejection | None:
    """The rejection of a pod that cannot be resized. A quota or an admission plug-in would reject a new pod, too."""
    name = pod["metadata"]["name"]
    found = next((each for each in ctx.observed.rejections if _is_of_pod(each) and each.name == name), None)
    is_invalid = found is not None and found.status == _UNPROCESSABLE and not is_admission_denial(found)
    return found if is_invalid else None


def _requeued(result: PolicyResult, ms: int) -> PolicyResult:
    return replace(result, requeue_after_ms=min(ms, result.requeue_after_ms or ms))
