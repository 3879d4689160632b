"""The memory section of the status: the state of the sizing comes back from it, whoever wrote it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.sizing.memory_sizing import SizingPlan, SizingState
from s3sink_operator.status.memory_status import memory_section, sizing_state, with_sizing_state
from s3sink_operator.status.status_model import MemoryChange, MemoryStatus
from sink_job.api.required_memory import SizingInputs
from sink_job.api.units.quantities import GI, MI
from tests.operator.fake_cluster import START

INPUTS = SizingInputs(
    slots=2, part_size=25 * MI, executors=3, open_objects=4, held_bytes=5, active_partitions=6, remainder_bytes=7
)
STATE = SizingState(minimum=GI, minimum_since=START, low_since=START - 1000, changes=(START - 5000,))
SECONDS = st.integers(0, 4_000_000_000)
STATES = st.builds(
    SizingState,
    minimum=st.integers(0, 1 << 50),
    driver_minimum=st.integers(0, 1 << 50),
    minimum_since=st.none() | SECONDS.map(lambda each: each * 1000),
    low_since=st.none() | SECONDS.map(lambda each: each * 1000),
    changes=st.lists(SECONDS.map(lambda each: each * 1000), max_size=4).map(lambda each: tuple(sorted(each))),
)


@given(STATES)
def test_the_state_of_the_sizing_comes_back_from_the_json_of_the_status(state: SizingState) -> None:
    document = with_sizing_state(MemoryStatus(current=GI), state).document()
    assert sizing_state(MemoryStatus.model_validate(document)) == state


def test_without_a_status_the_state_is_that_of_a_new_sink() -> None:
    assert sizing_state(None) == sizing_state(MemoryStatus()) == SizingState()


def test_times_of_changes_in_any_order_are_sorted() -> None:
    section = MemoryStatus(change_times=[START, START - 2000, START - 1000])
    assert sizing_state(section).changes == (START - 2000, START - 1000, START)


def test_nothing_is_written_of_a_state_that_remembers_nothing() -> None:
    assert with_sizing_state(MemoryStatus(), SizingState()).document() == {}


def test_a_change_is_recorded_with_both_sizes_its_time_and_its_reason() -> None:
    plan = SizingPlan(size=2 * GI, recommended=3 * GI, state=STATE, capped=False, reason="grow: more", next_change=9000)
    section = memory_section(MemoryStatus(), plan, INPUTS, current=GI, now=START)
    assert section.last_change == MemoryChange(time=START, from_=GI, to=2 * GI, reason="grow: more")
    assert (section.current, section.recommended, section.next_change_time) == (2 * GI, 3 * GI, 9000)
    assert sizing_state(section) == STATE


def test_without_a_change_the_last_one_is_kept() -> None:
    change = MemoryChange(time=START - 9000, from_=GI, to=2 * GI, reason="grow")
    plan = SizingPlan(size=GI, recommended=GI, state=SizingState(), capped=False)
    section = memory_section(MemoryStatus(last_change=change, minimum=GI), plan, INPUTS, current=GI, now=START)
    assert section.last_change == change
    assert section.minimum is None


def test_all_inputs_are_in_the_status() -> None:
    plan = SizingPlan(size=GI, recommended=GI, state=SizingState(), capped=False)
    inputs = memory_section(MemoryStatus(), plan, INPUTS, current=GI, now=START).inputs
    assert inputs is not None
    written = inputs.model_dump(by_alias=False)
    assert written == {name: getattr(INPUTS, name) for name in written}
