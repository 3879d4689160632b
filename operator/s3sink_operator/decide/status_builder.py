"""Builds the status of a sink from the facts, the attempt history and the result of the policy. Pure."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import names
from s3sink_operator.decide import conditions, rollout_status
from s3sink_operator.decide.attempt_history import AttemptHistory
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.failures import pod_failures
from s3sink_operator.names import Component
from s3sink_operator.sizing.executor_count import ScalingBounds
from s3sink_operator.status import memory_status, reported_progress, reported_tables, status_update
from s3sink_operator.status.progress_model import SinkProgress
from s3sink_operator.status.status_model import (
    AppliedDefaultStatus,
    Attempt,
    MemoryStatus,
    ResourceClaim,
    S3SinkStatus,
    ScalingChange,
    ScalingStatus,
    TableStatus,
)
from s3sink_operator.types import is_terminating, to_timestamp
from sink_job.api.report import RunState


def build_status(ctx: Context, result: PolicyResult) -> S3SinkStatus:
    """The status after this pass."""
    history = _history_with_end(ctx, result)
    state, source = ctx.sink.desired_state
    published = _is_published(ctx, result)
    return S3SinkStatus(
        observed_generation=ctx.sink.generation,
        conditions=status_update.conditions(
            ctx.previous.status.conditions or (),
            conditions.compose(ctx, result, history),
            generation=ctx.sink.generation,
            now=ctx.now,
        ),
        desired_state=state,
        desired_state_source=source,
        published=published or None,
        published_endpoint=(ctx.sink.s3_endpoint or None) if published else None,
        progress=_progress(ctx, result),
        tables=_tables(ctx),
        memory=_memory(ctx, result),
        scaling=_scaling(ctx),
        attempts=status_update.newest_attempts(history.attempts),
        retry=history.retry,
        offset_reset=result.offset_reset or ctx.previous.status.offset_reset,
        rollout=rollout_status.status_after(ctx, result),
        applied_defaults=_applied_defaults(ctx),
        node_lost_time=result.node_lost_time,
        claim=_claim(ctx),
        replicas=_replicas(ctx),
        selector=names.selector(ctx.sink.name, Component.EXECUTOR),
    )


def _claim(ctx: Context) -> ResourceClaim | None:
    """The resources that the sink holds after this pass, with the time of the first one that found no conflict."""
    previous = ctx.previous.status.claim
    if ctx.sink.parsed is None:
        return previous
    if ctx.conflicts.is_lost:
        return None
    digest = ctx.conflicts.resources.digest
    return (
        previous
        if previous and previous.digest == digest
        else ResourceClaim(digest=digest, since=to_timestamp(ctx.now))
    )


def _applied_defaults(ctx: Context) -> list[AppliedDefaultStatus] | None:
    applied = ctx.settings.sink_defaults.applied(ctx.sink.written_spec)
    return [AppliedDefaultStatus(field=each.field, value=each.value) for each in applied] or None


def _history_with_end(ctx: Context, result: PolicyResult) -> AttemptHistory:
    """The history with the end of the attempt that this result terminates."""
    driver, history = ctx.pods.driver, ctx.history
    if not result.terminating_attempt or driver is None:
        return history
    has_ended = history.newest is not None and history.newest.has_ended
    pending = (driver.get("status") or {}).get("phase") in (None, "Pending")
    if has_ended or pending or is_terminating(driver):
        return history
    ended = history.with_end(driver, result.reason, result.message, _reported(ctx) or ctx.previous.progress, ctx.now)
    before = (ctx.previous.status.attempts or [Attempt()])[0]
    after = ended.attempts[0]
    if (before.number, before.reason, before.message) == (after.number, after.reason, after.message):
        return replace(ended, attempts=(before, *ended.attempts[1:]))  # an earlier pass recorded it: keep its time
    return ended


def _is_published(ctx: Context, result: PolicyResult) -> bool:
    """Whether all open objects are published. A driver may open objects again."""
    if result.published is not None:
        return result.published
    if ctx.pods.has_published_at_stop:
        return True
    components = {pod["metadata"]["labels"].get(names.COMPONENT_LABEL) for pod in result.writes.create}
    creates_driver = Component.DRIVER.value in components
    return ctx.sink.published and ctx.pods.driver is None and not creates_driver


def _reported(ctx: Context) -> SinkProgress | None:
    """The progress of the report. A starting driver does not report all of it."""
    report = ctx.pods.report
    return None if report is None or report.state is RunState.STARTING else reported_progress.progress(report)


def _progress(ctx: Context, result: PolicyResult) -> SinkProgress:
    """The progress of the report, or else that of the previous status."""
    found = _reported(ctx)
    if found is not None:
        if found.lag is None:
            found = found.model_copy(update={"last_known_lag": reported_progress.last_known_lag(ctx.previous.progress)})
    else:
        found = reported_progress.without_report(ctx.previous.progress)
        if ctx.previous.status.observed_generation != ctx.sink.generation:
            found = found.model_copy(update={"topics": None, "most_lagging": None})
    if result.published and ctx.pods.operation is not None:
        final = pod_failures.final_report(ctx.pods.operation)
        ended = pod_failures.ended_ms(ctx.pods.operation) or ctx.now
        found = found if final is None else reported_progress.progress_after_publish(found, final, ended)
    return found.model_copy(update={"phase": result.phase})


def _tables(ctx: Context) -> list[TableStatus] | None:
    """The tables of the report, or else those of the previous status while the spec has any."""
    report = ctx.pods.report
    if report is not None and report.table_sums is not None:
        return reported_tables.tables(report.tables)
    has_tables = ctx.sink.parsed is None or bool(ctx.sink.parsed.spec.tables)
    return ctx.previous.status.tables if has_tables else None


def _memory(ctx: Context, result: PolicyResult) -> MemoryStatus | None:
    previous = ctx.previous.status.memory
    if ctx.sink.parsed is None:
        return previous
    previous = previous or MemoryStatus()
    current = ctx.memory.current or ctx.sizing.start_size
    if result.sizing is not None:
        return memory_status.memory_section(previous, result.sizing, ctx.sizing.inputs, current=current, now=ctx.now)
    unchanged = previous.model_copy(update={"current": current})
    return memory_status.with_sizing_state(unchanged, ctx.history.sizing)


def _scaling(ctx: Context) -> ScalingStatus | None:
    """The number of executors after this pass, which is also the operator's record of it; None with a fixed number."""
    previous, plan = ctx.previous.status.scaling, ctx.scaling.plan
    if ctx.sink.parsed is None:
        return previous
    bounds = ScalingBounds.of(ctx.sink.parsed.spec.executor)
    if plan is None or bounds is None:
        return None
    previous = previous or ScalingStatus()
    change = previous.last_change
    if plan.reason is not None:
        change = ScalingChange(time=ctx.now, from_=ctx.scaling.current, to=plan.executors, reason=plan.reason)
    return ScalingStatus(
        desired=plan.executors,
        bounds=bounds.text,
        low_since_time=plan.state.low_since,
        low_most=plan.state.low_most,
        last_change=change,
    )


def _replicas(ctx: Context) -> int:
    """Number of running executors. In Local mode the driver pod counts as all of them."""
    if ctx.sink.parsed is None:
        return 0
    if ctx.sink.is_local:
        return ctx.sink.parsed.spec.executor.instances if ctx.pods.report is not None else 0
    return ctx.scaling.executors.running
