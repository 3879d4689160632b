"""The memory that a sink requires: more of anything never requires less."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api import memory_budget
from sink_job.api.required_memory import SizingInputs, recommended, required
from sink_job.api.units.quantities import GI, MI

inputs = st.builds(
    SizingInputs,
    slots=st.integers(1, 16),
    part_size=st.integers(5 * MI, 256 * MI),
    open_objects=st.integers(0, 5000),
    held_bytes=st.integers(0, 64 * GI),
    executors=st.integers(1, 8),
    active_partitions=st.integers(0, 5000),
    remainder_bytes=st.integers(0, 512 * MI),
)


@given(inputs, inputs)
def test_more_of_anything_never_needs_less(one: SizingInputs, other: SizingInputs) -> None:
    more = SizingInputs(
        slots=max(one.slots, other.slots),
        part_size=max(one.part_size, other.part_size),
        open_objects=max(one.open_objects, other.open_objects),
        held_bytes=one.held_bytes * max(one.slots, other.slots) + other.held_bytes,
        executors=min(one.executors, other.executors),
        active_partitions=max(one.active_partitions, other.active_partitions),
        remainder_bytes=max(one.remainder_bytes, other.remainder_bytes),
    )
    assert required(one) <= required(more)
    assert recommended(one) <= recommended(more)


@pytest.mark.parametrize("name", ["slots", "part_size", "open_objects", "active_partitions", "remainder_bytes"])
@given(seen=inputs, more=st.integers(1, 1000))
def test_more_of_one_input_never_needs_less(name: str, seen: SizingInputs, more: int) -> None:
    """With more slots, each holds less of `held_bytes`, the sum of all: it is left out there."""
    seen = dataclasses.replace(seen, held_bytes=0) if name == "slots" else seen
    assert required(seen) <= required(dataclasses.replace(seen, **{name: getattr(seen, name) + more}))


@given(inputs)
def test_more_executors_never_need_more_each(seen: SizingInputs) -> None:
    assert required(dataclasses.replace(seen, executors=seen.executors + 1)) <= required(seen)


@given(inputs)
def test_a_slot_can_hold_its_share_of_the_active_topic_partitions(seen: SizingInputs) -> None:
    idle = dataclasses.replace(seen, active_partitions=0, open_objects=0)
    share = seen.partitions_per_slot * min(seen.remainder_bytes, seen.part_size)
    beyond = max(0, share - memory_budget.MIN_TASK_MEMORY)
    assert required(seen) - required(idle) >= seen.slots * beyond
    assert seen.partitions_per_slot * seen.slots * seen.executors >= seen.active_partitions


@given(inputs)
def test_a_task_may_hold_in_memory_what_its_memory_was_sized_for(seen: SizingInputs) -> None:
    """The job divides what the operator gives: uploads with more part buffers take none of it."""
    slots, part = seen.slots, seen.part_size
    sized = (required(seen) - memory_budget.beside_tasks(slots)) // slots - memory_budget.BATCHES - 4 * part
    budget = memory_budget.divide(recommended(seen), cores=slots, part_size=part).budget
    assert budget >= sized


@given(inputs, st.integers(0, 1 << 40))
def test_the_recommended_memory_covers_the_required_one_with_headroom(seen: SizingInputs, minimum: int) -> None:
    assert recommended(seen, minimum=minimum) * 20 >= required(seen) * 23
    assert recommended(seen, minimum=minimum) >= minimum
