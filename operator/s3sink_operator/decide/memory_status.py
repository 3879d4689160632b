"""The memory section of the status: what was decided, from what, and what has to be remembered."""

from __future__ import annotations

from s3sink_operator.memory_sizing import Inputs, Plan, State
from s3sink_operator.objects.pods import quantity
from s3sink_operator.status import without_none
from s3sink_operator.types import Json, to_ms, to_stamp
from sink_job.api.quantities import format_size


def section(old: Json, plan: Plan, inputs: Inputs, *, current: int, now: int) -> Json:
    """The memory section, after the plan is carried out."""
    change = old.get("lastChange")
    if plan.why is not None:
        sizes = {"from": format_size(current), "to": format_size(plan.size)}
        change = {"time": to_stamp(now), **sizes, "reason": plan.why}
    return without_none(
        {
            "current": format_size(plan.size),
            "wanted": format_size(plan.target),
            "inputs": {
                "slots": inputs.slots,
                "partSize": inputs.part_size,
                "openObjects": inputs.open_objects,
                "heldBytes": inputs.held,
            },
            "lastChange": change,
            "nextAllowed": None if plan.next_allowed is None else to_stamp(plan.next_allowed),
        }
    ) | state_section(plan.state)


def state_section(state: State) -> Json:
    """What has to be remembered of the sizes so far."""
    return without_none(
        {
            "floor": format_size(state.floor) if state.floor else None,
            "driverFloor": format_size(state.driver_floor) if state.driver_floor else None,
            "floorTime": None if state.floor_at is None else to_stamp(state.floor_at),
            "lowSince": None if state.low_since is None else to_stamp(state.low_since),
            "changes": [to_stamp(at) for at in state.changes] or None,
        }
    )


def state_of(status: Json) -> State:
    """The state of the memory, as the status tells it."""
    section = status.get("memory") or {}
    times = [at for at in map(to_ms, section.get("changes") or ()) if at is not None]
    return State(
        floor=quantity(section.get("floor")) or 0,
        driver_floor=quantity(section.get("driverFloor")) or 0,
        floor_at=to_ms(section.get("floorTime")),
        low_since=to_ms(section.get("lowSince")),
        changes=tuple(sorted(times)),
    )
