"""How many executors a sink has with `scaling.mode: Auto`, and when a change is worth it.

    required = active topic-partitions / (cores × partitionsPerTask), rounded up, within minInstances and maxInstances

The number grows as soon as more are required. It shrinks after fewer sufficed for the whole period, with a reserve of a
quarter of the active topic-partitions, to the most that sufficed at any time of the period. So activity that varies by
a fifth, or that returns within the period, never changes the number. A resize of the memory is completed first.
Edited bounds lead to the required number at once, as with a new sink.

The state is kept in `status.scaling`. Losing it counts as an edit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sink_job.api.enums import ExecutorMode, ScalingMode
from sink_job.api.sections.operator_sections import ExecutorSpec
from sink_job.api.units.quantities import format_duration

RESERVE: Final = 4
"""Fewer executors have to suffice for this part of the active topic-partitions more: 4 for a quarter."""


@dataclass(frozen=True, kw_only=True)
class ScalingBounds:
    """The bounds that the user sets. `per_executor`: active topic-partitions for which an executor suffices."""

    min: int
    max: int
    per_executor: int

    @classmethod
    def of(cls, spec: ExecutorSpec) -> ScalingBounds | None:
        """The bounds of a sink whose number follows activity; None with mode Fixed, and in Local mode."""
        scaling = spec.scaling
        if scaling.mode is not ScalingMode.AUTO or spec.mode is ExecutorMode.LOCAL:
            return None
        capacity = spec.cores * scaling.partitions_per_task
        return cls(min=scaling.min_instances, max=scaling.max_instances, per_executor=capacity)

    @property
    def text(self) -> str:
        """A text that changes with them."""
        return f"{self.min} to {self.max}, {self.per_executor} active topic-partitions each"

    def clamp(self, executors: int) -> int:
        """The number within the bounds that is closest."""
        return min(max(executors, self.min), self.max)


@dataclass(frozen=True, kw_only=True)
class ScalingState:
    """The state between reconcile passes. `low_since`: since when fewer executors would suffice, in ms since the epoch.
    `low_most`: the most of them that sufficed since then."""

    low_since: int | None = None
    low_most: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScalingPlan:
    """The desired number of executors. One other than the current number is a change, for `reason`."""

    executors: int
    state: ScalingState = ScalingState()
    reason: str | None = None


def required(active: int, bounds: ScalingBounds) -> int:
    """Executors for this many active topic-partitions."""
    return bounds.clamp(-(-active // bounds.per_executor))


def start(active: int, bounds: ScalingBounds) -> ScalingPlan:
    """The number that a driver is started with."""
    return ScalingPlan(executors=required(active, bounds))


def edited(active: int, bounds: ScalingBounds, *, current: int | None) -> ScalingPlan:
    """The plan after an edit of the bounds, for a sink that has `current` executors, None for unknown."""
    needed = required(active, bounds)
    if current in (None, needed):
        return ScalingPlan(executors=needed)
    return ScalingPlan(
        executors=needed,
        reason=f"{'grow' if needed > (current or 0) else 'shrink'}: spec.executor.scaling is {bounds.text}; "
        f"{_count(needed)} required, {current} before",
    )


def unchanged(bounds: ScalingBounds, state: ScalingState, *, current: int) -> ScalingPlan:
    """The plan while the activity is unknown."""
    return ScalingPlan(executors=bounds.clamp(current), state=state)


def plan(
    active: int,
    bounds: ScalingBounds,
    state: ScalingState,
    *,
    current: int,
    now: int,
    shrink_after: int,
    may_shrink: bool = True,
) -> ScalingPlan:
    """The plan for a sink that runs with `current` executors. `shrink_after`: the period in ms. `may_shrink`: False
    during a resize of the memory."""
    current = bounds.clamp(current)
    needed, enough = required(active, bounds), required(active + active // RESERVE, bounds)
    if needed > current:
        return ScalingPlan(
            executors=needed, reason=f"grow: {_count(needed)} required, {current} before{_activity(active, bounds)}"
        )
    if enough >= current:
        return ScalingPlan(executors=current)
    state = _extended(state, enough, current, now)
    if not may_shrink or state.low_since is None or now - state.low_since < shrink_after:
        return ScalingPlan(executors=current, state=state)
    fewer, period = state.low_most or enough, format_duration(shrink_after)
    reason = f"shrink: {_count(fewer)} sufficient for {period}, {current} before{_activity(active, bounds)}"
    return ScalingPlan(executors=fewer, reason=reason)


def _extended(state: ScalingState, enough: int, current: int, now: int) -> ScalingState:
    """The state after one more pass with too many executors. A time in the future comes from a wrong clock and counts
    as now."""
    if state.low_since is None or state.low_most is None or state.low_most >= current:
        return ScalingState(low_since=now, low_most=enough)
    return replace(state, low_since=min(state.low_since, now), low_most=max(state.low_most, enough))


def _count(executors: int) -> str:
    return f"{executors} executor{'' if executors == 1 else 's'}"


def _activity(active: int, bounds: ScalingBounds) -> str:
    plural = "" if active == 1 else "s"
    return f"; {active} active topic-partition{plural}, {bounds.per_executor} for each executor"
