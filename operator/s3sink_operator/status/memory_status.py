"""Converts between the memory section of the status and the state of the memory sizing."""

from __future__ import annotations

from s3sink_operator.sizing.memory_sizing import SizingPlan, SizingState
from s3sink_operator.status.status_model import MemoryChange, MemoryInputs, MemoryStatus
from sink_job.api.required_memory import SizingInputs


def memory_section(
    previous: MemoryStatus, plan: SizingPlan, inputs: SizingInputs, *, current: int, now: int
) -> MemoryStatus:
    """The memory section after `plan` is applied to a sink with `current` bytes."""
    change = previous.last_change
    if plan.reason is not None:
        change = MemoryChange(time=now, from_=current, to=plan.size, reason=plan.reason)
    section = MemoryStatus(
        current=plan.size,
        recommended=plan.recommended,
        inputs=MemoryInputs(
            slots=inputs.slots,
            part_size=inputs.part_size,
            open_objects=inputs.open_objects,
            held_bytes=inputs.held_bytes,
            executors=inputs.executors,
            active_partitions=inputs.active_partitions,
            remainder_bytes=inputs.remainder_bytes,
        ),
        last_change=change,
        next_change_time=plan.next_change,
    )
    return with_sizing_state(section, plan.state)


def with_sizing_state(section: MemoryStatus, state: SizingState) -> MemoryStatus:
    """The section with the state that the next reconcile pass needs."""
    return section.model_copy(
        update={
            "minimum": state.minimum or None,
            "driver_minimum": state.driver_minimum or None,
            "minimum_time": state.minimum_since,
            "low_since_time": state.low_since,
            "change_times": list(state.changes) or None,
        }
    )


def sizing_state(section: MemoryStatus | None) -> SizingState:
    """The state that the status holds."""
    if section is None:
        return SizingState()
    return SizingState(
        minimum=section.minimum or 0,
        driver_minimum=section.driver_minimum or 0,
        minimum_since=section.minimum_time,
        low_since=section.low_since_time,
        changes=tuple(sorted(section.change_times or ())),
    )
