"""What the status of a sink has about a rollout of new operator defaults: its conditions, and the mark of a restart.

A new default image, or another version of the operator, changes the drivers of many sinks at once. A rollout restarts
a Ready driver only while fewer sinks than `MaxUnavailable` are unavailable because of it. All that this depends on is
in the status of the sinks (`SinkRollout`). Changes by users do not wait, and their effects are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from s3sink_operator import objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.reasons import Reason
from s3sink_operator.rollout.sink_rollout import DEGRADED, PENDING
from s3sink_operator.status.status_model import ConditionStatus, RolloutStatus
from s3sink_operator.status.status_update import Condition
from sink_job.api.enums import DesiredState

HALTED: Final = "RolloutHalted"
"""The type of the condition of a sink that waits because the rollout is halted, and the reason of its event."""


def compose(ctx: Context, result: PolicyResult) -> Iterator[Condition]:
    """The conditions of a sink that waits for its turn."""
    if not _waits(ctx, result):
        return
    if result.waits_for_turn:
        message = "the defaults of spec.executor.memory changed; pods are replaced when the turn of the sink comes"
        yield Condition(type=PENDING, status=ConditionStatus.TRUE, reason=Reason.WAITING_FOR_TURN, message=message)
    else:
        yield _pending_restart(ctx)
    halted = halted_condition(ctx, result)
    if halted is not None:
        yield halted


def _pending_restart(ctx: Context) -> Condition:
    image = None if ctx.pods.driver is None else objects.image_of(ctx.pods.driver)
    desired = ctx.sink.manifest.spec.image or ctx.settings.image
    change = f" (image {image}, new: {desired})" if image != desired else ""
    message = f"the driver has the previous defaults of the operator{change}; it is restarted when its turn comes"
    return Condition(type=PENDING, status=ConditionStatus.TRUE, reason=Reason.WAITING_FOR_TURN, message=message)


def halted_condition(ctx: Context, result: PolicyResult) -> Condition | None:
    """The condition of a sink that waits because the rollout is halted."""
    halted_by = ctx.observed.rollout.halted_by
    if halted_by is None or not _waits(ctx, result):
        return None
    message = (
        f"the rollout of new operator defaults is halted: {halted_by}. It continues when these sinks are Ready. Fix or "
        "pause them, or roll the operator back"
    )
    return Condition(type=HALTED, status=ConditionStatus.TRUE, reason=Reason.SINKS_NOT_READY, message=message)


def status_after(ctx: Context, result: PolicyResult) -> RolloutStatus | None:
    """The section of the status after this pass. It precedes the deletion of the driver."""
    template = objects.template_hash(ctx.settings)
    if result.writes.starts_rollout:
        start = ctx.now // 1000 * 1000
        return RolloutStatus(template=template, start_time=start, degraded=_was_degraded(ctx) or None)
    previous = ctx.previous.status.rollout
    if previous is None or ctx.sink.desired_state[0] is not DesiredState.RUNNING or ctx.sink.deletion_ms is not None:
        return None
    if ctx.pods.driver is not None and result.writes.delete and not ctx.pods.has_current_driver:
        # Restarted by the user, or because it is not Ready: what follows is not made unavailable by the rollout.
        return None if previous.available_time else previous.model_copy(update={"start_time": ctx.now // 1000 * 1000})
    if _availability_left_ms(ctx, result) == 0:
        return previous.model_copy(update={"template": template, "available_time": ctx.now // 1000 * 1000})
    return previous


def availability_left_ms(ctx: Context, result: PolicyResult) -> int | None:
    """Milliseconds until a Ready sink counts as available; None if it does, or is not Ready."""
    return _availability_left_ms(ctx, result) or None


def _availability_left_ms(ctx: Context, result: PolicyResult) -> int | None:
    previous = ctx.previous.status.rollout
    if previous is None or previous.available_time or not ctx.pods.has_current_driver:
        return None
    if previous.degraded and is_degraded(ctx, result.reason):
        return max(0, (previous.start_time or 0) + ctx.settings.rollout_pause_ms - ctx.now)
    if result.ready is not ConditionStatus.TRUE:
        return None
    ready = ctx.previous.status.condition("Ready")
    since = ready.last_transition_time if ready is not None and ready.status is ConditionStatus.TRUE else None
    since = max(since or ctx.now, previous.start_time or 0)  # an executor may be replaced while the sink stays Ready
    return max(0, since + ctx.settings.rollout_pause_ms - ctx.now)


def _waits(ctx: Context, result: PolicyResult) -> bool:
    is_pending = ctx.pods.is_rollout_pending or result.waits_for_turn
    return is_pending and not result.writes.delete and result.reason != Reason.RECONCILE_PAUSED


def is_degraded(ctx: Context, reason: str) -> bool:
    """Whether a sink that is not Ready for `reason` copies with some of its executors."""
    return reason in DEGRADED and ctx.scaling.executors.running > 0


def _was_degraded(ctx: Context) -> bool:
    ready = ctx.previous.status.condition("Ready")
    return ready is not None and is_degraded(ctx, ready.reason)
