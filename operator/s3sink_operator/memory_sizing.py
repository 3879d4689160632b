"""How much memory a sink gets: the need, by the job's own arithmetic, and when it is worth a change.

    need = heap + what stands beside it + slots × (Python + Arrow batches + parts under way + what objects hold back)

An open object holds back at most a part; what tasks really held in the last round, spilled bytes included, bounds it
further. A sink is given a seventh more than it needs. It grows early (need above 0.95 of what it has), shrinks late
(that target below 0.70 of it for an hour), at most four times a day, and never below what a kill for want of memory has
taught. Monotone: more of anything never makes the need smaller, so equal inputs end in one size.

The state is `status.memory`; losing it costs a restart at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sink_job.api import memory_budget
from sink_job.api.enums import MemoryMode
from sink_job.api.quantities import MI, format_size

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

STEP = 64 * MI
HEADROOM = (23, 20)
GROW_ABOVE = (19, 20)
SHRINK_BELOW = (7, 10)
SHRINK_AFTER = HOUR
MOST_CHANGES = 4
FLOOR_LASTS = 7 * DAY
PARTS_UNDER_WAY = 3
OOM_FACTOR = (3, 2)
MOST_OF_DRIVER = 16 * 1024 * MI
"""Kills of a driver that runs no tasks raise its size so far: more is a person's to give."""
PER_PARTITION = 64 * 1024
"""Of a driver that runs no tasks: ends, cursors and open objects of a topic-partition."""
FEW_PARTITIONS = 1024
"""There is room for so many from the beginning, so that a small sink's driver has one size."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the need is worked out from. `held`: bytes that all tasks of the last round kept back, spilled included."""

    slots: int
    part_size: int
    open_objects: int = 0
    held: int = 0


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What the user allows, in bytes."""

    mode: MemoryMode = MemoryMode.AUTO
    least: int = 512 * MI
    most: int = 8192 * MI


@dataclass(frozen=True, kw_only=True)
class State:
    """What is remembered. `changes`: when, within the last day; `low_since`: since when less would do.

    `floor`: the least that a kill has taught, of an executor or of a sink in one pod; `driver_floor`: of a driver whose
    tasks run in executors.
    """

    floor: int = 0
    driver_floor: int = 0
    floor_at: int | None = None
    low_since: int | None = None
    changes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What should be. `size` is what to have from now on; other than the current one, it is a change, for `why`."""

    size: int
    target: int
    state: State
    capped: bool
    why: str | None = None
    next_allowed: int | None = None


def need(inputs: Inputs) -> int:
    """Bytes of an executor, or of the whole sink in Local mode."""
    slots = max(1, inputs.slots)
    part = inputs.part_size
    held = max(memory_budget.MIN_TASK_MEMORY, min(inputs.open_objects * part, -(-inputs.held // slots)))
    return memory_budget.beside_tasks(slots) + slots * (memory_budget.BATCHES + (PARTS_UNDER_WAY + 1) * part + held)


def target(inputs: Inputs, *, floor: int = 0) -> int:
    """What to give for the need: with headroom, in whole steps, not below `floor`."""
    more, whole = HEADROOM
    return max(_whole(need(inputs) * more // whole), floor)


def start_size(inputs: Inputs, bounds: Bounds, state: State, now: int) -> int:
    """What a sink is started with: what an hour of these inputs would lead to."""
    state = _forgets(state, now)
    if bounds.mode is MemoryMode.OFF:
        return bounds.most
    usual = _usual(inputs)
    if bounds.mode is MemoryMode.RECOMMEND:
        return _within(max(usual, state.floor), bounds)
    known = inputs.open_objects or inputs.held
    wanted = target(inputs, floor=state.floor)
    return _within(wanted if known else max(usual, wanted), bounds)


def plan(inputs: Inputs, bounds: Bounds, state: State, *, current: int, now: int) -> Plan:
    """What to do about the memory of a sink that runs with `current` bytes."""
    state = _forgets(state, now)
    wanted = target(inputs, floor=state.floor)
    goal = _within(wanted, bounds)
    capped = bounds.mode is not MemoryMode.OFF and _above(need(inputs), max(current, goal), GROW_ABOVE)
    stays = Plan(size=current, target=wanted, state=state, capped=capped)
    if bounds.mode is not MemoryMode.AUTO:
        return replace(stays, state=replace(state, low_since=None))
    low = goal * SHRINK_BELOW[1] < current * SHRINK_BELOW[0]
    state = replace(state, low_since=(now if state.low_since is None else state.low_since) if low else None)
    if _above(need(inputs), current, GROW_ABOVE) and goal > current:
        why = f"grow: {_mi(need(inputs))} are needed of {_mi(current)}"
    elif low and state.low_since is not None and now - state.low_since >= SHRINK_AFTER:
        why = f"shrink: {_mi(goal)} have been enough for an hour, of {_mi(current)}"
    else:
        return replace(stays, state=state)
    if len(state.changes) >= MOST_CHANGES:
        return replace(stays, state=state, next_allowed=state.changes[-MOST_CHANGES] + DAY)
    return replace(stays, size=goal, state=replace(state, low_since=None, changes=(*state.changes, now)), why=why)


def killed(state: State, *, current: int, bounds: Bounds, now: int) -> State:
    """After a kill for want of memory: half as much again is the least, for a week."""
    more, whole = OOM_FACTOR
    return replace(state, floor=max(state.floor, min(bounds.most, _whole(current * more // whole))), floor_at=now)


def driver_killed(state: State, *, current: int, now: int) -> State:
    """After a kill of a driver whose tasks run in executors: half as much again is the least, for a week."""
    more, whole = OOM_FACTOR
    taught = min(_whole(current * more // whole), MOST_OF_DRIVER)
    return replace(state, driver_floor=max(state.driver_floor, taught), floor_at=now)


def is_driver_capped(state: State, now: int) -> bool:
    """Whether kills would have a driver beside executors be larger than it is ever made."""
    return _forgets(state, now).driver_floor >= MOST_OF_DRIVER


def driver_size(partitions: int, state: State, now: int) -> int:
    """Bytes of a driver whose tasks run in executors."""
    cursors = max(partitions, FEW_PARTITIONS) * PER_PARTITION
    usual = _whole(memory_budget.HEAP + memory_budget.JVM_BESIDE_HEAP + memory_budget.DRIVER + cursors)
    return max(usual, min(_forgets(state, now).driver_floor, MOST_OF_DRIVER))


def _forgets(state: State, now: int) -> State:
    """Without what was too long ago. A time to come is of a clock that was wrong: it counts as now."""
    recent = tuple(min(at, now) for at in state.changes if now - at < DAY)
    if state.low_since is not None:
        state = replace(state, low_since=min(state.low_since, now))
    if state.floor_at is not None:
        state = replace(state, floor_at=min(state.floor_at, now))
    if state.floor_at is not None and now - state.floor_at >= FLOOR_LASTS:
        return replace(state, changes=recent, floor=0, driver_floor=0, floor_at=None)
    return replace(state, changes=recent)


def _usual(inputs: Inputs) -> int:
    size = memory_budget.default_total(cores=max(1, inputs.slots), part_size=inputs.part_size, least=0, most=1 << 60)
    return _whole(size)


def _within(size: int, bounds: Bounds) -> int:
    return min(max(size, bounds.least), bounds.most)


def _above(part: int, whole: int, share: tuple[int, int]) -> bool:
    return part * share[1] > whole * share[0]


def _whole(size: int) -> int:
    return -(-size // STEP) * STEP


def _mi(size: int) -> str:
    return format_size(-(-size // MI) * MI)
