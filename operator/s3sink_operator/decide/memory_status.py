"""The memory section of the status: what was decided, from what, and what has to be remembered."""

from __future__ import annotations

from s3sink_operator.memory_sizing import SizingInputs, SizingPlan, SizingState
from s3sink_operator.objects.pods import parse_quantity
from s3sink_operator.status import without_none
from s3sink_operator.types import Json, to_ms, to_timestamp
from sink_job.api.quantities import format_size


def memory_section(old: Json, plan: SizingPlan, inputs: SizingInputs, *, current: int, now: int) -> Json:
    """The memory section, after the plan is carried out."""
    change = old.get("lastChange")
    if plan.reason is not None:
        sizes = {"from": format_size(current), "to": format_size(plan.size)}
        change = {"time": to_timestamp(now), **sizes, "reason": plan.reason}
    return without_none(
        {
            "current": format_size(plan.size),
            "wanted": format_size(plan.recommended),
            "inputs": {
                "slots": inputs.slots,
                "partSize": inputs.part_size,
                "openObjects": inputs.open_objects,
                "heldBytes": inputs.held_bytes,
            },
            "lastChange": change,
            "nextAllowed": None if plan.next_change is None else to_timestamp(plan.next_change),
        }
    ) | sizing_section(plan.state)


def sizing_section(state: SizingState) -> Json:
    """What has to be remembered of the sizes so far."""
    return without_none(
        {
            "floor": format_size(state.minimum) if state.minimum else None,
            "driverFloor": format_size(state.driver_minimum) if state.driver_minimum else None,
            "floorTime": None if state.minimum_since is None else to_timestamp(state.minimum_since),
            "lowSince": None if state.low_since is None else to_timestamp(state.low_since),
            "changes": [to_timestamp(at) for at in state.changes] or None,
        }
    )


def sizing_state(status: Json) -> SizingState:
    """The state of the memory, as the status tells it."""
    section = status.get("memory") or {}
    times = [at for at in map(to_ms, section.get("changes") or ()) if at is not None]
    return SizingState(
        minimum=parse_quantity(section.get("floor")) or 0,
        driver_minimum=parse_quantity(section.get("driverFloor")) or 0,
        minimum_since=to_ms(section.get("floorTime")),
        low_since=to_ms(section.get("lowSince")),
        changes=tuple(sorted(times)),
    )
