"""The number of executors in the status, which is also the operator's record of it."""

from __future__ import annotations

from s3sink_operator.decide.context import Context
from s3sink_operator.executor_count import ScalingBounds
from s3sink_operator.status_model import ScalingChange, ScalingStatus


def scaling_section(ctx: Context) -> ScalingStatus | None:
    """The section after this pass; None with a fixed number."""
    previous, plan = ctx.previous_status.scaling, ctx.scaling_plan
    if ctx.sink is None:
        return previous
    bounds = ScalingBounds.of(ctx.sink.spec.executor)
    if plan is None or bounds is None:
        return None
    previous = previous or ScalingStatus()
    change = previous.last_change
    if plan.reason is not None:
        change = ScalingChange(time=ctx.now, from_=ctx.current_executors, to=plan.executors, reason=plan.reason)
    return ScalingStatus(
        desired=plan.executors,
        bounds=bounds.text,
        low_since_time=plan.state.low_since,
        low_most=plan.state.low_most,
        last_change=change,
    )
