"""How much memory a sink gets: the required memory (`sink_job.api.required_memory`), and when a change is worth it.

The recommended memory is 15 % above the required memory. Memory grows early (required above 0.95 of the current size)
and shrinks late, after some time, by at least two steps. Most of a small executor is fixed, so the part that varies is
compared: a change in place waits for ten minutes and gives back a fifth of it. A change that restarts the sink waits
for an hour, happens at most four times a day, and gives back half of what is above the initial size, or shrinks to less
than 0.70 of the whole size. Memory is never below the minimum learned from an out-of-memory kill. The function is
monotone: more of any input, and fewer executors, never lower the result, so equal inputs converge to one size.

The state is kept in `status.memory`. Losing it costs at most one restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sink_job.api import memory_budget
from sink_job.api.enums import MemoryMode
from sink_job.api.required_memory import STEP, SizingInputs, initial, recommended, required, round_up
from sink_job.api.units.quantities import MI, format_duration, format_size

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

GROW_ABOVE = (19, 20)
SHRINK_BELOW = (7, 10)
SHRINK_STEPS = 2
MINIMUM_RETENTION = 7 * DAY
OOM_FACTOR = (3, 2)
MAX_DRIVER = 16 * 1024 * MI
"""Out-of-memory kills raise a driver that runs no tasks up to this size. More requires spec.driver.memory."""
PER_PARTITION = 64 * 1024
"""Bytes that a driver that runs no tasks holds for a topic-partition: end offset, cursor and open objects."""
MIN_PARTITIONS = 1024
"""A driver has room for this many topic-partitions from the start, so the drivers of small sinks have one size."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds that the user sets, in bytes."""

    mode: MemoryMode = MemoryMode.AUTO
    min: int = 512 * MI
    max: int = 8192 * MI


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often memory changes.

    `shrink_after`: ms for which less memory has to suffice. `changes`: the maximum within a day. `limits_growth`:
    whether memory no longer grows after these changes, too. `shrink_variable`: the part that varies shrinks to at most
    this share of it. `keeps_initial`: the initial memory counts as fixed.
    """

    shrink_after: int
    changes: int
    shrink_variable: tuple[int, int]
    limits_growth: bool = True
    keeps_initial: bool = False


RESTART: Final = Pace(shrink_after=HOUR, changes=4, shrink_variable=(1, 2), keeps_initial=True)
"""Changes that restart a sink, or replace its executors: less is worth only half of the part that varies."""
IN_PLACE: Final = Pace(shrink_after=10 * MINUTE, changes=24, shrink_variable=(4, 5), limits_growth=False)
"""Changes of running containers."""


@dataclass(frozen=True, kw_only=True)
class SizingState:
    """The state between reconcile passes. Times are ms since the epoch, sizes bytes.

    `minimum`: learned from an out-of-memory kill, of an executor or of a sink in Local mode. `driver_minimum`: of a
    driver whose tasks run in executors. `minimum_since`: when they were learned. `low_since`: since when less memory
    would suffice. `changes`: the changes within the last day.
    """

    minimum: int = 0
    driver_minimum: int = 0
    minimum_since: int | None = None
    low_since: int | None = None
    changes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SizingPlan:
    """The desired memory in bytes. A `size` other than the current one is a change, for `reason`.

    `next_change`: the earliest time of the next change in ms since the epoch, if the daily limit is reached.
    """

    size: int
    recommended: int
    state: SizingState
    capped: bool
    reason: str | None = None
    next_change: int | None = None


def start_size(inputs: SizingInputs, bounds: Bounds, state: SizingState, now: int) -> int:
    """Bytes that a sink is started with: what an hour of these inputs would lead to."""
    state = _without_expired(state, now)
    if bounds.mode is MemoryMode.DISABLED:
        return bounds.max
    first = initial(inputs)
    if bounds.mode is MemoryMode.RECOMMEND:
        return _clamp(max(first, state.minimum), bounds)
    observed = inputs.open_objects or inputs.held_bytes or inputs.active_partitions
    size = recommended(inputs, minimum=state.minimum)
    return _clamp(size if observed else max(first, size), bounds)


def plan(
    inputs: SizingInputs, bounds: Bounds, state: SizingState, *, current: int, now: int, pace: Pace = RESTART
) -> SizingPlan:
    """The plan for a sink that runs with `current` bytes."""
    state = _without_expired(state, now)
    size = recommended(inputs, minimum=state.minimum)
    target = _clamp(size, bounds)
    capped = bounds.mode is not MemoryMode.DISABLED and _exceeds(required(inputs), max(current, target), GROW_ABOVE)
    unchanged = SizingPlan(size=current, recommended=size, state=state, capped=capped)
    if (edited := _edited_bounds(bounds, current)) is not None:
        size, reason = edited
        return replace(unchanged, size=size, state=replace(state, low_since=None), reason=reason)
    if bounds.mode is not MemoryMode.AUTO:
        return replace(unchanged, state=replace(state, low_since=None))
    low = target * SHRINK_BELOW[1] < current * SHRINK_BELOW[0]
    low = low or _is_variable_part_low(inputs, target, current, pace, least=bounds.min)
    state = replace(state, low_since=(now if state.low_since is None else state.low_since) if low else None)
    if _exceeds(required(inputs), current, GROW_ABOVE) and target > current:
        reason = f"grow: {_mi(required(inputs))} required, {_mi(current)} available{_activity(inputs)}"
    elif low and state.low_since is not None and now - state.low_since >= pace.shrink_after:
        period = format_duration(pace.shrink_after)
        reason = f"shrink: {_mi(target)} sufficient for {period}, {_mi(current)} available{_activity(inputs)}"
    else:
        return replace(unchanged, state=state)
    if len(state.changes) >= pace.changes and (pace.limits_growth or target < current):
        return replace(unchanged, state=state, next_change=state.changes[-pace.changes] + DAY)
    changed = replace(state, low_since=None, changes=(*state.changes, now))
    return replace(unchanged, size=target, state=changed, reason=reason)


def _is_variable_part_low(inputs: SizingInputs, target: int, current: int, pace: Pace, *, least: int) -> bool:
    """Whether `target` is at least two steps below `current`, and leaves little enough of the part that varies.

    `least`: the minimum of the user, which never varies.
    """
    idle = replace(inputs, open_objects=0, held_bytes=0, active_partitions=0, remainder_bytes=0)
    fixed = max(recommended(idle), least)
    if pace.keeps_initial:
        fixed = max(fixed, initial(inputs))
    needed, given = max(0, target - fixed), max(0, current - fixed)
    share = pace.shrink_variable
    return current - max(target, fixed) >= SHRINK_STEPS * STEP and needed * share[1] <= given * share[0]


def _edited_bounds(bounds: Bounds, current: int) -> tuple[int, str] | None:
    """The size and the reason of a change that the bounds require at once, whatever the inputs are."""
    if current > bounds.max:
        return bounds.max, f"shrink: spec.executor.memory.max is {format_size(bounds.max)}"
    if bounds.mode is MemoryMode.DISABLED and current < bounds.max:
        return bounds.max, f"grow: spec.executor.memory.max is {format_size(bounds.max)}, and sizing is off"
    if current < bounds.min:
        return bounds.min, f"grow: spec.executor.memory.min is {format_size(bounds.min)}"
    return None


def after_oom(state: SizingState, *, current: int, bounds: Bounds, now: int) -> SizingState:
    """The state after an out-of-memory kill: 1.5 times the current size becomes the minimum for a week."""
    numerator, denominator = OOM_FACTOR
    learned = min(bounds.max, round_up(current * numerator // denominator))
    return replace(state, minimum=max(state.minimum, learned), minimum_since=now)


def driver_after_oom(state: SizingState, *, current: int, now: int) -> SizingState:
    """As `after_oom`, for a driver whose tasks run in executors."""
    numerator, denominator = OOM_FACTOR
    learned = min(round_up(current * numerator // denominator), MAX_DRIVER)
    return replace(state, driver_minimum=max(state.driver_minimum, learned), minimum_since=now)


def is_driver_capped(state: SizingState, now: int) -> bool:
    """Whether a driver whose tasks run in executors has reached the limit of automatic sizing."""
    return _without_expired(state, now).driver_minimum >= MAX_DRIVER


def driver_size(partitions: int, state: SizingState, now: int, *, registration: int = 0) -> int:
    """Bytes of a driver whose tasks run in executors, for this many topic-partitions and `registration` bytes to
    register tables."""
    cursors = max(partitions, MIN_PARTITIONS) * PER_PARTITION
    least = round_up(memory_budget.HEAP + memory_budget.JVM_BESIDE_HEAP + memory_budget.DRIVER + registration + cursors)
    return max(least, min(_without_expired(state, now).driver_minimum, MAX_DRIVER))


def _without_expired(state: SizingState, now: int) -> SizingState:
    """The state without expired entries. A time in the future comes from a wrong clock and counts as now."""
    recent = tuple(min(at, now) for at in state.changes if now - at < DAY)
    if state.low_since is not None:
        state = replace(state, low_since=min(state.low_since, now))
    if state.minimum_since is not None:
        state = replace(state, minimum_since=min(state.minimum_since, now))
    if state.minimum_since is not None and now - state.minimum_since >= MINIMUM_RETENTION:
        return replace(state, changes=recent, minimum=0, driver_minimum=0, minimum_since=None)
    return replace(state, changes=recent)


def _clamp(size: int, bounds: Bounds) -> int:
    return min(max(size, bounds.min), bounds.max)


def _activity(inputs: SizingInputs) -> str:
    """The active topic-partitions, as a part of a reason; empty if none is known."""
    count = inputs.active_partitions
    if not count:
        return ""
    return f"; {count} active topic-partition{'' if count == 1 else 's'}, {inputs.partitions_per_slot} per slot"


def _exceeds(part: int, whole: int, ratio: tuple[int, int]) -> bool:
    return part * ratio[1] > whole * ratio[0]


def _mi(size: int) -> str:
    return format_size(-(-size // MI) * MI)
