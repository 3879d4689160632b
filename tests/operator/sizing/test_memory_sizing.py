"""How much memory a sink gets, and when it is worth a change."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.sizing import memory_sizing
from s3sink_operator.sizing.memory_sizing import (
    DAY,
    HOUR,
    IN_PLACE,
    MINUTE,
    Bounds,
    Pace,
    SizingState,
    plan,
    start_size,
)
from sink_job.api.enums import MemoryMode
from sink_job.api.required_memory import STEP, SizingInputs, required
from sink_job.api.units.quantities import GI, MI

NOW = 1_760_000_000_000
SMALL = SizingInputs(slots=2, part_size=25 * MI)
LARGE = SizingInputs(slots=2, part_size=25 * MI, open_objects=100, held_bytes=4 * GI)
WIDE = Bounds(max=64 * GI)

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
bounds = st.builds(
    lambda mode, least, more: Bounds(mode=mode, min=least, max=least + more),
    st.sampled_from(list(MemoryMode)),
    st.integers(512 * MI, 8 * GI),
    st.integers(0, 32 * GI),
)


class Sink:
    """A sink that is given what the plans say, minute by minute."""

    def __init__(self, first: SizingInputs, allowed: Bounds = WIDE) -> None:
        self.bounds, self.state, self.now = allowed, SizingState(), NOW
        self.current = start_size(first, allowed, self.state, NOW)
        self.changes: list[int] = []

    def pass_with(self, seen: SizingInputs, pause: int = MINUTE) -> memory_sizing.SizingPlan:
        self.now += pause
        made = plan(seen, self.bounds, self.state, current=self.current, now=self.now)
        if made.reason is not None:
            self.changes.append(self.now)
        self.current, self.state = made.size, made.state
        return made


@given(inputs, st.lists(st.tuples(inputs, st.sampled_from([MINUTE, HOUR])), max_size=30), bounds, st.integers(0, 9))
def test_memory_is_never_above_its_maximum_nor_below_its_minimum(
    first: SizingInputs, seen: Sequence[tuple[SizingInputs, int]], allowed: Bounds, killed: int
) -> None:
    sink = Sink(first, allowed)
    for number, (each, pause) in enumerate(seen):
        if number == killed:
            sink.state = memory_sizing.after_oom(sink.state, current=sink.current, bounds=allowed, now=sink.now)
            sink.current = start_size(each, allowed, sink.state, sink.now)
        sink.pass_with(each, pause)
        assert allowed.min <= sink.current <= allowed.max
        assert sink.current >= sink.state.minimum or allowed.mode is not MemoryMode.AUTO


def test_the_reason_of_a_change_names_the_active_topic_partitions_and_the_share_of_a_slot() -> None:
    sink = Sink(SMALL)
    many = dataclasses.replace(SMALL, active_partitions=48, remainder_bytes=20 * MI)
    assert (sink.pass_with(many).reason or "").endswith("available; 48 active topic-partitions, 24 per slot")
    for _ in range(61):
        made = sink.pass_with(dataclasses.replace(SMALL, active_partitions=3, remainder_bytes=20 * MI))
    assert (made.reason or "").endswith("available; 3 active topic-partitions, 2 per slot")


def test_a_number_of_active_topic_partitions_that_varies_by_a_tenth_changes_nothing() -> None:
    top = dataclasses.replace(SMALL, active_partitions=48, remainder_bytes=20 * MI)
    sink = Sink(top)
    for beat in range(500):
        sink.pass_with(dataclasses.replace(top, active_partitions=48 - 5 * (beat % 2)))
    assert not sink.changes


@given(inputs, bounds)
def test_equal_inputs_never_change_what_they_started_with(seen: SizingInputs, allowed: Bounds) -> None:
    sink = Sink(seen, allowed)
    for _ in range(40):
        sink.pass_with(seen, 7 * MINUTE)
    known = seen.open_objects or seen.held_bytes or seen.active_partitions
    assert not sink.changes or not known
    assert len(sink.changes) <= 1
    if allowed.mode is not MemoryMode.DISABLED:
        assert allowed.min <= sink.current <= allowed.max


@given(inputs, inputs)
def test_from_any_size_equal_inputs_come_to_rest_within_one_change(first: SizingInputs, then: SizingInputs) -> None:
    sink = Sink(first)
    for _ in range(30):
        sink.pass_with(then, 10 * MINUTE)
    assert len(sink.changes) <= 1


@given(inputs, st.lists(st.tuples(inputs, st.sampled_from([MINUTE, HOUR, 3 * HOUR])), max_size=60), bounds)
def test_there_are_at_most_four_changes_a_day_whatever_comes(
    first: SizingInputs, seen: Sequence[tuple[SizingInputs, int]], allowed: Bounds
) -> None:
    sink = Sink(first, allowed)
    for each, pause in seen:
        sink.pass_with(each, pause)
    for at in sink.changes:
        assert sum(at <= other < at + DAY for other in sink.changes) <= memory_sizing.RESTART.changes


@given(inputs, st.integers(1, 59), st.booleans())
def test_a_square_wave_at_either_edge_changes_nothing(top: SizingInputs, minutes: int, shrinking: bool) -> None:
    """Its top is what the sink was made for, its bottom just below what would be worth a change, or a little more."""
    sink = Sink(top)
    start = len(sink.changes)
    for _ in range(3):
        sink.pass_with(top)
    settled = len(sink.changes)
    low = SizingInputs(slots=top.slots, part_size=top.part_size, open_objects=0 if shrinking else top.open_objects)
    low = dataclasses.replace(low, executors=top.executors)
    for beat in range(200):
        sink.pass_with(low if beat % 2 else top, minutes * MINUTE)
    assert settled - start <= 1
    assert len(sink.changes) == settled


def test_it_grows_at_once_and_shrinks_after_an_hour() -> None:
    sink = Sink(SMALL)
    before = sink.current
    grown = sink.pass_with(LARGE)
    assert grown.reason is not None
    assert grown.reason.startswith("grow: ")
    assert sink.current > before
    for _ in range(60):
        assert sink.pass_with(SMALL).reason is None
    assert (sink.pass_with(SMALL).reason or "").startswith("shrink: ")
    assert sink.current < before + 64 * MI


def test_the_fifth_change_of_a_day_waits_until_a_reported_time() -> None:
    sink = Sink(SMALL)
    seen = SMALL
    for step in range(5):
        seen = SizingInputs(slots=2, part_size=25 * MI, open_objects=10 ** (step + 1), held_bytes=(2**step) * GI)
        made = sink.pass_with(seen)
    assert len(sink.changes) == 4
    assert made.next_change == sink.changes[0] + DAY
    sink.now = sink.changes[0] + DAY
    assert sink.pass_with(seen).reason is not None


def test_an_insufficient_maximum_is_reported_and_never_exceeded() -> None:
    sink = Sink(SMALL, Bounds(max=2 * GI))
    made = sink.pass_with(LARGE)
    assert made.capped
    assert sink.current <= 2 * GI
    assert not sink.pass_with(LARGE).reason


@pytest.mark.parametrize("mode", [MemoryMode.DISABLED, MemoryMode.RECOMMEND])
def test_without_auto_nothing_changes_and_the_recommendation_is_shown(mode: MemoryMode) -> None:
    sink = Sink(SMALL, Bounds(mode=mode, max=8 * GI))
    before = sink.current
    made = sink.pass_with(LARGE)
    assert made.reason is None
    assert made.recommended > 4 * GI
    assert sink.current == before
    assert (before == 8 * GI) == (mode is MemoryMode.DISABLED)


def test_an_oom_kill_raises_the_minimum_for_a_week() -> None:
    state = memory_sizing.after_oom(SizingState(), current=2 * GI, bounds=WIDE, now=NOW)
    assert start_size(LARGE, WIDE, state, NOW) >= 3 * GI
    assert start_size(SMALL, WIDE, state, NOW) == 3 * GI
    assert start_size(SMALL, WIDE, state, NOW + memory_sizing.MINIMUM_RETENTION) < 3 * GI


def test_kills_raise_the_least_no_further_than_the_maximum() -> None:
    state, allowed = SizingState(), Bounds(max=4 * GI)
    for _ in range(5):
        size = start_size(SMALL, allowed, state, NOW)
        state = memory_sizing.after_oom(state, current=size, bounds=allowed, now=NOW)
    assert start_size(SMALL, allowed, state, NOW) == 4 * GI


def test_a_driver_alone_grows_with_its_partitions() -> None:
    sizes = [memory_sizing.driver_size(partitions, SizingState(), NOW) for partitions in (0, 1000, 10_000)]
    assert sizes[0] == sizes[1] < sizes[2]


def test_a_driver_alone_that_was_killed_gets_half_as_much_again_for_a_week() -> None:
    state = memory_sizing.driver_after_oom(SizingState(), current=1 * GI, now=NOW)
    assert memory_sizing.driver_size(0, state, NOW) == 3 * GI // 2
    assert memory_sizing.driver_size(0, state, NOW + memory_sizing.MINIMUM_RETENTION) < 3 * GI // 2


def test_kills_raise_a_driver_alone_no_further_than_its_most() -> None:
    state = SizingState()
    for _ in range(20):
        assert (
            not memory_sizing.is_driver_capped(state, NOW)
            or memory_sizing.driver_size(0, state, NOW) == memory_sizing.MAX_DRIVER
        )
        state = memory_sizing.driver_after_oom(state, current=memory_sizing.driver_size(0, state, NOW), now=NOW)
    assert memory_sizing.driver_size(0, state, NOW) == memory_sizing.MAX_DRIVER
    assert memory_sizing.is_driver_capped(state, NOW)
    assert not memory_sizing.is_driver_capped(state, NOW + memory_sizing.MINIMUM_RETENTION)


# -- changes in place --------------------------------------------------------------------------------------------------


def settled(seen: SizingInputs, current: int, allowed: Bounds = WIDE, pace: Pace = IN_PLACE) -> int:
    """The size after some time of these inputs, with six reconcile passes until memory may shrink."""
    state = SizingState()
    for number in range(14):
        now = NOW + number * pace.shrink_after // 6
        found = plan(seen, allowed, state, current=current, now=now, pace=pace)
        current, state = found.size, found.state
    return current


@pytest.mark.parametrize("allowed", [WIDE, Bounds(max=4 * GI), Bounds(min=2 * GI, max=3 * GI)], ids=str)
@pytest.mark.parametrize("part_size", [5 * MI, 25 * MI, 256 * MI])
@pytest.mark.parametrize("executors", [1, 2, 4, 8])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_memory_that_grew_with_any_number_of_active_topic_partitions_is_given_back(
    slots: int, executors: int, part_size: int, allowed: Bounds
) -> None:
    """2, N and 2 active ones: less than two steps stay. Without changes in place, up to the initial size or twice what
    varies."""

    def load(count: int) -> SizingInputs:
        return SizingInputs(
            slots=slots,
            executors=executors,
            part_size=part_size,
            open_objects=1,
            active_partitions=count,
            remainder_bytes=part_size // 2,
        )

    for pace in (IN_PLACE, memory_sizing.RESTART):
        first = start_size(load(2), allowed, SizingState(), NOW)
        small = settled(load(2), first, allowed, pace)
        initial = start_size(SizingInputs(slots=slots, part_size=part_size), allowed, SizingState(), NOW)
        most = small + 2 * STEP if pace is IN_PLACE else max(small, initial) + max(2 * STEP, small - initial + STEP)
        for active in (*range(3, 50), 64, 100, 200, 400, 1000):
            large = settled(load(active), small, allowed, pace)
            after = settled(load(2), large, allowed, pace)
            assert large >= small
            assert after < most, (pace, active)
            assert settled(load(2), after, allowed, pace) == after


@given(inputs)
def test_memory_is_at_rest_in_place_after_one_change(seen: SizingInputs) -> None:
    once = settled(seen, 64 * GI)
    assert settled(seen, once) == once
    assert once >= required(seen) or once == WIDE.max


@given(inputs, st.lists(st.integers(90, 100), min_size=5, max_size=5))
def test_a_load_that_varies_by_a_tenth_changes_nothing_in_place(seen: SizingInputs, shares: list[int]) -> None:
    def scaled(share: int) -> SizingInputs:
        return dataclasses.replace(
            seen,
            held_bytes=seen.held_bytes * share // 100,
            active_partitions=0,
            open_objects=max(seen.open_objects, 1),
        )

    current = settled(scaled(100), start_size(scaled(100), WIDE, SizingState(), NOW))
    for share in shares:
        assert settled(scaled(share), current) == current
