"""What to do about one sink: pure, from what was seen and the time into what to write.

A chain of small policies; the first that has something to say says all of it, conditions and actions alike. Nothing is
remembered but in the status: after any write, also one that was lost, the next look goes on from what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from s3sink_operator import status
from s3sink_operator.decide import driver_policies, lifecycle_policies
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.decide.status_builder import build_status
from s3sink_operator.types import (
    FINALIZERS_KIND,
    Decision,
    Event,
    EventType,
    Observed,
    Settings,
)

Policy = Callable[[Context], PolicyResult | None]

POLICIES: tuple[Policy, ...] = (
    lifecycle_policies.reconcile_paused,
    lifecycle_policies.deleting,
    lifecycle_policies.spec_invalid,
    lifecycle_policies.conflicting,
    lifecycle_policies.name_taken,
    driver_policies.node_lost,
    lifecycle_policies.paused,
    lifecycle_policies.stopped,
    driver_policies.driver_missing,
    driver_policies.driver_terminating,
    driver_policies.driver_terminated,
    driver_policies.spec_changed,
    driver_policies.driver_not_starting,
    driver_policies.memory_changed,
    driver_policies.driver_running,
)


def decide(observed: Observed, settings: Settings, now: int) -> Decision:
    """What to do about the sink now, in milliseconds since the epoch. Done twice, it changes nothing."""
    ctx = Context(observed, settings, now)
    verdict = next(said for policy in POLICIES if (said := policy(ctx)) is not None)
    if verdict.keep_status:
        return Decision(requeue_after_ms=verdict.requeue_after_ms)
    written, wait = status.pending_write(
        ctx.previous_status, build_status(ctx, verdict), now=now, pause_ms=settings.progress_interval_ms
    )
    finalizers = verdict.finalizers
    if finalizers is None and "deletionTimestamp" not in ctx.metadata and verdict.reason != "ReconcilePaused":
        finalizers = lifecycle_policies.changed_finalizers(ctx)
    made = Decision(
        apply=tuple(verdict.apply),
        create=tuple(verdict.create),
        delete=tuple(verdict.delete),
        resize=tuple(verdict.resize),
        finalizers=finalizers,
        status=written,
        events=_events(ctx, verdict),
    )
    made, left = _without_refused(ctx, made)
    wakes = [ms for ms in (wait, verdict.requeue_after_ms, *left) if ms is not None]
    return replace(made, requeue_after_ms=min(wakes, default=None))


def _without_refused(ctx: Context, made: Decision) -> tuple[Decision, list[int]]:
    """The decision without what the API server has just refused, and in how many milliseconds that is tried again."""
    if not ctx.observed.rejections:
        return made, []
    of_sink, of_finalizers = ctx.rejected_for_ms("S3Sink", ctx.name), ctx.rejected_for_ms(FINALIZERS_KIND, ctx.name)
    applies = [(each, ctx.rejected_for_ms(each["kind"], each["metadata"]["name"])) for each in made.apply]
    deletes = [(each, ctx.rejected_for_ms(each.kind, each.name)) for each in made.delete]
    left = [
        ms for ms in (of_sink, of_finalizers, *(ms for _, ms in applies), *(ms for _, ms in deletes)) if ms is not None
    ]
    kept = replace(
        made,
        apply=tuple(each for each, ms in applies if ms is None),
        delete=tuple(each for each, ms in deletes if ms is None),
    )
    if of_sink is not None:
        kept = replace(kept, status=None, events=())
        if ctx.published:
            kept = replace(kept, create=())  # a driver may open something, which the status could not say
    if of_finalizers is not None:
        kept = replace(kept, finalizers=None)
    return kept, left


def _events(ctx: Context, verdict: PolicyResult) -> tuple[Event, ...]:
    """One where the reason changes: people look for what happened, not for how often it was looked at."""
    made = []
    if verdict.event is not None and status.reason_of(ctx.previous_status, "Ready") != status.sanitize_reason(
        verdict.reason
    ):
        made.append(Event(type=verdict.event, reason=verdict.reason, message=verdict.message))
    if verdict.resize and verdict.sizing is not None:
        made.append(Event(type=EventType.NORMAL, reason="MemoryResized", message=str(verdict.sizing.reason)))
    return tuple(made)
