"""How many executors a sink has over its active topic-partitions, and when the number changes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.sizing import executor_count
from s3sink_operator.sizing.executor_count import ScalingBounds, ScalingPlan, ScalingState, plan, required
from sink_job.api.enums import ExecutorMode, ScalingMode
from sink_job.api.sections.operator_sections import ExecutorSpec, ScalingSpec

NOW: Final = 1_760_000_000_000
MINUTE: Final = 60_000
PERIOD: Final = 10 * MINUTE
MAX_ACTIVE: Final = 500

bounds = st.builds(
    lambda one, other, per: ScalingBounds(min=min(one, other), max=max(one, other), per_executor=per),
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1, 128),
)
activity = st.integers(0, MAX_ACTIVE)
BY_SIXTEEN: Final = ScalingBounds(min=1, max=8, per_executor=16)


class Sink:
    """A sink whose number of executors is that of the plans, minute by minute."""

    def __init__(self, active: int, allowed: ScalingBounds = BY_SIXTEEN) -> None:
        self.bounds, self.state, self.now = allowed, ScalingState(), NOW
        self.executors = executor_count.start(active, allowed).executors
        self.reasons: list[str] = []

    def pass_with(self, active: int, *, minutes: int = 1, may_shrink: bool = True) -> ScalingPlan:
        self.now += minutes * MINUTE
        made = plan(
            active,
            self.bounds,
            self.state,
            current=self.executors,
            now=self.now,
            shrink_after=PERIOD,
            may_shrink=may_shrink,
        )
        assert (made.reason is None) == (made.executors == self.executors)
        self.reasons += [made.reason] if made.reason else []
        self.executors, self.state = made.executors, made.state
        return made

    def stay(self, active: int, minutes: int) -> int:
        for _ in range(minutes):
            self.pass_with(active)
        return self.executors


@given(bounds, activity, activity)
def test_more_active_topic_partitions_never_require_fewer_executors(
    allowed: ScalingBounds, one: int, more: int
) -> None:
    assert allowed.min <= required(one, allowed) <= required(one + more, allowed) <= allowed.max


@given(bounds, activity)
def test_the_required_executors_suffice_and_one_less_would_not(allowed: ScalingBounds, active: int) -> None:
    found = required(active, allowed)
    assert found == allowed.max or found * allowed.per_executor >= active
    assert found == allowed.min or (found - 1) * allowed.per_executor < active


@pytest.mark.parametrize("cores", [1, 2, 4, 8])
def test_each_number_from_1_to_8_is_reached_and_left_over_0_to_500_active_topic_partitions(cores: int) -> None:
    allowed = ScalingBounds(min=1, max=8, per_executor=8 * cores)
    sink, seen = Sink(0, allowed), set()
    for active in range(MAX_ACTIVE + 1):
        sink.pass_with(active)
        assert sink.executors == required(active, allowed)
        seen.add(sink.executors)
    assert seen == set(range(1, required(MAX_ACTIVE, allowed) + 1))
    for active in range(MAX_ACTIVE, -1, -1):
        sink.pass_with(active)
        assert sink.executors >= required(active, allowed)
    assert sink.stay(0, minutes=25) == 1


@given(bounds, activity, activity)
def test_the_number_follows_activity_up_at_once_and_down_after_the_period(
    allowed: ScalingBounds, low: int, more: int
) -> None:
    sink = Sink(low, allowed)
    at_first = sink.executors
    sink.pass_with(low + more)
    assert sink.executors == required(low + more, allowed)
    grown = sink.executors
    assert sink.stay(low, minutes=10) == grown
    sink.pass_with(low)
    assert sink.executors == min(grown, required(low + low // 4, allowed)) >= at_first


@given(bounds, st.lists(activity, min_size=1, max_size=60))
def test_the_number_is_never_below_what_is_required_nor_outside_of_its_bounds(
    allowed: ScalingBounds, seen: Sequence[int]
) -> None:
    sink = Sink(seen[0], allowed)
    for active in seen:
        sink.pass_with(active)
        assert required(active, allowed) <= sink.executors <= allowed.max


@given(bounds, st.integers(0, MAX_ACTIVE), st.lists(st.tuples(st.integers(80, 100), st.integers(1, 30)), max_size=60))
def test_activity_that_varies_by_a_fifth_never_makes_the_number_grow_again(
    allowed: ScalingBounds, most: int, parts: Sequence[tuple[int, int]]
) -> None:
    sink = Sink(0, allowed)
    sink.pass_with(most)
    sink.reasons.clear()
    for percent, minutes in parts:
        for _ in range(minutes):
            sink.pass_with(-(-most * percent // 100))
    assert not [reason for reason in sink.reasons if reason.startswith("grow")]


@given(bounds, activity, activity, st.lists(st.integers(1, 9), max_size=40))
def test_activity_that_returns_within_the_period_never_changes_the_number(
    allowed: ScalingBounds, low: int, more: int, pauses: Sequence[int]
) -> None:
    sink = Sink(0, allowed)
    sink.pass_with(low + more)
    sink.reasons.clear()
    for pause in pauses:
        sink.stay(low, minutes=pause)
        sink.pass_with(low + more)
    assert not sink.reasons


@given(bounds, st.lists(activity, min_size=1, max_size=200))
def test_the_number_shrinks_at_most_once_in_a_period(allowed: ScalingBounds, seen: Sequence[int]) -> None:
    sink, times = Sink(0, allowed), []
    for active in seen:
        before = sink.executors
        sink.pass_with(active)
        times += [sink.now] if sink.executors < before else []
    assert all(later - earlier >= PERIOD for earlier, later in itertools.pairwise(times))


def test_it_shrinks_to_the_most_that_sufficed_within_the_period() -> None:
    sink = Sink(128)
    assert sink.executors == 8
    sink.stay(10, minutes=5)
    sink.stay(40, minutes=3)
    assert sink.stay(10, minutes=3) == 4
    assert sink.stay(10, minutes=12) == 1


def test_it_never_shrinks_in_the_middle_of_a_resize_and_does_so_after_it() -> None:
    sink = Sink(128)
    for _ in range(30):
        sink.pass_with(0, may_shrink=False)
    assert sink.executors == 8
    sink.pass_with(0)
    assert sink.executors == 1


def test_it_grows_in_the_middle_of_a_resize() -> None:
    sink = Sink(0)
    sink.pass_with(40, may_shrink=False)
    assert sink.executors == 3


@given(bounds, bounds, activity)
def test_edited_bounds_apply_at_once(before: ScalingBounds, after: ScalingBounds, active: int) -> None:
    current = executor_count.start(active, before).executors
    made = executor_count.edited(active, after, current=current)
    assert made.executors == executor_count.start(active, after).executors
    assert (made.reason is None) == (made.executors == current)


def test_a_reason_names_the_numbers_and_the_activity() -> None:
    sink = Sink(0)
    sink.pass_with(40)
    sink.stay(1, minutes=11)
    assert sink.reasons == [
        "grow: 3 executors required, 1 before; 40 active topic-partitions, 16 for each executor",
        "shrink: 1 executor sufficient for 10m, 3 before; 1 active topic-partition, 16 for each executor",
    ]


@pytest.mark.parametrize("since", [NOW - PERIOD, NOW + 100 * PERIOD])
def test_a_state_with_a_number_that_is_not_lower_begins_a_new_period(since: int) -> None:
    made = plan(0, BY_SIXTEEN, ScalingState(low_since=since, low_most=3), current=3, now=NOW, shrink_after=PERIOD)
    assert (made.executors, made.state) == (3, ScalingState(low_since=NOW, low_most=1))


def test_a_time_in_the_future_counts_as_now() -> None:
    state = ScalingState(low_since=NOW + 100 * PERIOD, low_most=1)
    assert plan(0, BY_SIXTEEN, state, current=3, now=NOW, shrink_after=PERIOD).state.low_since == NOW


def test_only_auto_in_cluster_mode_has_bounds_which_count_the_tasks_of_an_executor() -> None:
    auto = ScalingSpec(mode=ScalingMode.AUTO, min_instances=2, max_instances=5, partitions_per_task=10)
    assert ScalingBounds.of(ExecutorSpec(cores=4, scaling=auto)) == ScalingBounds(min=2, max=5, per_executor=40)
    assert ScalingBounds.of(ExecutorSpec(mode=ExecutorMode.LOCAL, scaling=auto)) is None
    assert ScalingBounds.of(ExecutorSpec(instances=3)) is None
