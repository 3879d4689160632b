"""The chain of policies: the first one that applies decides the conditions and the actions of a reconcile pass.

Nothing is remembered outside of the status. After any write, also one whose response was lost, the next pass continues
from the objects in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from s3sink_operator.decide import conditions, driver_policies, lifecycle_policies, memory_policy, rollout_status
from s3sink_operator.decide.attempt_history import ObservedFailure
from s3sink_operator.decide.builders import delete_obsolete
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.deferred_status import may_follow
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.decide.status_builder import build_status
from s3sink_operator.reasons import Reason
from s3sink_operator.status import status_update
from s3sink_operator.types import (
    FINALIZERS_KIND,
    Decision,
    Event,
    EventType,
    ObjectWrites,
    Observed,
    Settings,
    one_line,
    sanitize_reason,
    to_timestamp,
)

Policy = Callable[[Context], PolicyResult | None]

POLICIES: tuple[Policy, ...] = (
    lifecycle_policies.reconciliation_is_paused,
    lifecycle_policies.sink_is_deleted,
    lifecycle_policies.namespace_is_terminating,
    lifecycle_policies.spec_is_invalid,
    lifecycle_policies.sink_conflicts,
    lifecycle_policies.name_is_taken,
    driver_policies.node_is_lost,
    lifecycle_policies.sink_is_paused,
    lifecycle_policies.sink_is_stopped,
    driver_policies.driver_is_missing,
    driver_policies.driver_is_terminating,
    driver_policies.driver_has_terminated,
    driver_policies.spec_has_changed,
    driver_policies.driver_does_not_start,
    memory_policy.memory_has_changed,
    driver_policies.driver_is_running,
)


def decide(observed: Observed, settings: Settings, now: int) -> Decision:
    """The decision about a sink at `now`, in ms since the epoch. Idempotent: repeated, it has no writes."""
    ctx = Context(observed, settings, now)
    result = next(applied for policy in POLICIES if (applied := policy(ctx)) is not None)
    if result.keep_status:
        return Decision(requeue_after_ms=result.requeue_after_ms)
    written, delay = status_update.pending_write(
        ctx.previous.document, build_status(ctx, result).document(), now=now, interval_ms=settings.progress_interval_ms
    )
    if written is not None and not observed.is_retry and may_follow(ctx.previous.document, written, result):
        written, delay = None, settings.start_poll_ms
    decision = Decision(writes=_writes(ctx, result), status=written, events=_events(ctx, result))
    decision, delays = _without_rejected(ctx, decision)
    delays.append(rollout_status.availability_left_ms(ctx, result))
    due = [ms for ms in (delay, result.requeue_after_ms, *delays) if ms is not None]
    return replace(decision, requeue_after_ms=min(due, default=None))


def _writes(ctx: Context, result: PolicyResult) -> ObjectWrites:
    """The writes of the result, with those that every policy except the pause of the operator has."""
    writes = result.writes
    if not writes.delete:
        writes = replace(writes, replacement=None)
    if result.reason == Reason.RECONCILE_PAUSED:
        return writes
    if writes.finalizers is None and ctx.sink.deletion_ms is None:
        writes = replace(writes, finalizers=lifecycle_policies.changed_finalizers(ctx))
    return replace(writes, delete=(*writes.delete, *delete_obsolete(ctx)))


def _without_rejected(ctx: Context, decision: Decision) -> tuple[Decision, list[int | None]]:
    """The decision without recently rejected writes, and in how many ms each of those is retried."""
    if not ctx.observed.rejections:
        return decision, []
    writes = decision.writes
    status_delay = ctx.rejected_for_ms("S3Sink", ctx.sink.name)
    finalizers_delay = ctx.rejected_for_ms(FINALIZERS_KIND, ctx.sink.name)
    applies = [
        (manifest, ctx.rejected_for_ms(manifest["kind"], manifest["metadata"]["name"])) for manifest in writes.apply
    ]
    deletes = [(delete, ctx.rejected_for_ms(delete.kind, delete.name)) for delete in writes.delete]
    delays = [status_delay, finalizers_delay, *(ms for _, ms in applies), *(ms for _, ms in deletes)]
    writes = replace(
        writes,
        apply=tuple(manifest for manifest, ms in applies if ms is None),
        delete=tuple(delete for delete, ms in deletes if ms is None),
    )
    if finalizers_delay is not None:
        writes = replace(writes, finalizers=None)
    if status_delay is None:
        return replace(decision, writes=writes), [ms for ms in delays if ms is not None]
    if ctx.sink.published:
        writes = replace(writes, create=())  # a driver may open objects, and the status could not record it
    if writes.starts_rollout:
        writes = replace(writes, delete=(), starts_rollout=False)  # the status could not record who was restarted
    return replace(decision, writes=writes, status=None, events=()), [ms for ms in delays if ms is not None]


def _events(ctx: Context, result: PolicyResult) -> tuple[Event, ...]:
    """A warning for each failure; an event for each other change of the reason, for each change of the memory or of the
    number of executors without a restart, when a write for a running driver is rejected, and when the rollout is
    halted."""
    events: list[Event] = []
    failure = ctx.history.new_failure
    if failure is not None:
        reason = sanitize_reason(failure.reason)
        events.append(Event(type=EventType.WARNING, reason=reason, message=_failure_message(ctx, failure)))
    ready = ctx.previous.status.condition("Ready")
    is_changed = ready is None or ready.reason != sanitize_reason(result.reason)
    is_reported = failure is not None and result.event is EventType.WARNING
    if result.event is not None and is_changed and not is_reported:
        events.append(Event(type=result.event, reason=result.reason, message=result.message))
    if result.sizing is not None and result.sizing.reason is not None and not result.terminating_attempt:
        events.append(Event(type=EventType.NORMAL, reason=Reason.MEMORY_RESIZED, message=str(result.sizing.reason)))
    scaling = ctx.scaling.plan
    may_report = not (result.terminating_attempt or result.keep_status)
    if may_report and scaling is not None and scaling.reason is not None:
        events.append(Event(type=EventType.NORMAL, reason=Reason.EXECUTORS_SCALED, message=scaling.reason))
    rejected = conditions.write_rejected(ctx, result)
    if rejected is not None and ctx.pods.driver is not None and ctx.previous.status.condition(rejected.type) is None:
        events.append(Event(type=EventType.WARNING, reason=rejected.type, message=rejected.message))
    halted = rollout_status.halted_condition(ctx, result)
    if halted is not None and ctx.previous.status.condition(halted.type) is None:
        events.append(Event(type=EventType.WARNING, reason=halted.type, message=halted.message))
    return tuple(
        replace(
            event, reason=sanitize_reason(event.reason), message=one_line(event.message)[: status_update.MAX_MESSAGE]
        )
        for event in events
    )


def _failure_message(ctx: Context, failure: ObservedFailure) -> str:
    """The message of a failure, with its attempt and the time of the next one."""
    code = "" if failure.exit_code is None else f" with exit code {failure.exit_code}"
    attempt = "" if failure.attempt is None else f"attempt {failure.attempt} failed{code}: "
    retry = ctx.history.retry
    due = None if retry is None or retry.message != failure.message else retry.next_attempt_time
    following = "" if due is None or due <= ctx.now else f". Next attempt at {to_timestamp(due)}"
    return f"{attempt}{failure.message.rstrip('.')}{following}"
