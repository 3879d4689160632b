"""Every sentence of docs/semantics.md, sections 2, 3 and 9, about rounds, the schedule and the committable offset, one
example each."""

from __future__ import annotations

import pytest

from sink_job.partitioning.time_zones import HOUR, zone
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.schedule import Schedule
from sink_job.rotation.types import RotationState
from tests.unit.rotation.examples import closed, each, record, rejected, run, still_open
from tests.unit.rotation.replay import Replay, Round

HOURLY = Schedule(zone("UTC"), HOUR)


def test_counts_continue_over_rounds() -> None:
    replay = run(RotationPolicy(flush_size=3), (0, [record(0), record(1)]), (5, []), (9, [record(2)]))
    assert closed(replay) == [[("a", [0, 1, 2])]]


def test_the_schedule_closes_before_the_next_record() -> None:
    replay = run(RotationPolicy(schedule=HOURLY), (0, [record(0)]), (HOUR, [record(1)]))
    assert closed(replay) == [[("a", [0])]]
    assert still_open(replay) == [("a", [1])]


def test_the_schedule_closes_at_the_end_of_a_round_without_records() -> None:
    replay = run(RotationPolicy(schedule=HOURLY), (0, [record(0)]), (HOUR - 1, []), (HOUR, []))
    assert closed(replay) == [[("a", [0])]]
    assert replay.state.next_schedule == 2 * HOUR


def test_the_schedule_closes_once_and_not_before_every_record() -> None:
    replay = run(
        RotationPolicy(schedule=HOURLY), (0, [record(0)]), (HOUR, [record(1), record(2)]), (HOUR + 1, [record(3)])
    )
    assert closed(replay) == [[("a", [0])]]
    assert still_open(replay) == [("a", [1, 2, 3])]


def test_the_first_round_sets_the_next_point_of_the_schedule() -> None:
    assert run(RotationPolicy(schedule=HOURLY), (HOUR + 5, [])).state.next_schedule == 2 * HOUR


def test_an_idle_spell_does_not_cut_the_next_object_short() -> None:
    settings = RotationPolicy(schedule=HOURLY)
    replay = run(settings, (0, []), (10 * HOUR + 5, [record(0)]), (11 * HOUR - 1, [record(1)]))
    assert closed(replay) == []
    assert still_open(replay) == [("a", [0, 1])]


def test_a_close_by_flush_size_leaves_the_schedule_alone() -> None:
    replay = run(RotationPolicy(schedule=HOURLY, flush_size=2), (0, [record(0), record(1)]), (HOUR - 1, [record(2)]))
    assert replay.state.next_schedule == HOUR
    replay = run(
        RotationPolicy(schedule=HOURLY, flush_size=2),
        (0, [record(0), record(1), record(2)]),
        (HOUR, [record(3), record(4)]),
    )
    assert closed(replay) == [[("a", [0, 1])], [("a", [2])], [("a", [3, 4])]]


def test_the_interval_closes_nothing_at_the_end_of_a_round() -> None:
    replay = run(RotationPolicy(interval=10), (0, [record(0, time=0)]), (10**9, []))
    assert closed(replay) == []


def test_by_wallclock_an_idle_partition_is_not_closed_by_its_interval() -> None:
    replay = run(RotationPolicy(interval=10), (0, [record(0, time=0)]), (50, []), (60, [record(1, time=60)]))
    assert closed(replay) == [[("a", [0])]]
    assert still_open(replay) == [("a", [1])]


def test_a_round_of_rejected_records_closes_by_the_schedule_only_at_its_end() -> None:
    replay = run(RotationPolicy(schedule=HOURLY), (0, [record(0)]), (HOUR, [rejected(1)]))
    assert closed(replay) == [[("a", [0])]]
    assert replay.state.committable == 2


def test_an_object_that_was_open_too_long_is_closed_at_the_start_of_a_round() -> None:
    settings = RotationPolicy(max_open_time=100)
    replay = run(settings, (0, [record(0)]), (99, []), (100, [record(1)]))
    assert closed(replay) == [[("a", [0])]]
    assert still_open(replay) == [("a", [1])]


def test_max_open_time_closes_all_objects_of_the_partition() -> None:
    replay = run(RotationPolicy(max_open_time=100), (0, [record(0, "a")]), (50, [record(1, "b")]), (100, []))
    assert closed(replay) == [[("a", [0]), ("b", [1])]]


def test_after_max_open_time_has_closed_all_the_schedule_counts_as_idle() -> None:
    settings = RotationPolicy(max_open_time=100, schedule=HOURLY)
    replay = run(settings, (HOUR - 50, [record(0)]), (HOUR + 60, [record(1)]))
    assert closed(replay) == [[("a", [0])]]
    assert replay.state.next_schedule == 2 * HOUR


@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_closing_all_closes_what_is_open(scope: str) -> None:
    replay = run(RotationPolicy(flush_size=9, per_object=scope == "Object"), (0, [record(0), record(1, "b")]))
    rotator = Rotator(replay.settings, replay.state, replay.objects, 0)
    assert [[cut.path for cut in close.objects] for close in rotator.close_all()] == [["a", "b"]]
    assert rotator.close_all() == []
    assert rotator.committable == 2


# -- the committable offset


def test_nothing_is_committable_before_the_first_close() -> None:
    assert run(RotationPolicy(flush_size=3), (0, [record(0), record(1)])).state.committable == 0


def test_a_close_moves_the_committable_offset_behind_the_last_written_record() -> None:
    replay = run(RotationPolicy(flush_size=2), (0, [record(0), record(3), record(7)]))
    assert replay.state.committable == 4


def test_with_nothing_open_the_committable_offset_is_the_next_one_to_read() -> None:
    replay = Replay(RotationPolicy(flush_size=2))
    replay.round(Round(0, [[record(0), record(1), rejected(2)]], 10))
    assert replay.state.committable == 10


def test_offsets_rejected_behind_a_close_are_not_committable_while_something_is_open() -> None:
    replay = run(RotationPolicy(flush_size=2), (0, [record(0), record(1), rejected(2), record(3)]))
    assert replay.state.committable == 2


def test_a_round_that_stops_before_its_end_closes_nothing() -> None:
    replay = run(RotationPolicy(schedule=HOURLY), (0, [record(0)]))
    rotator = Rotator(replay.settings, replay.state, replay.objects, HOUR)
    rotator.open_round()
    rotator.stop_at(1)
    assert (rotator.state.next, rotator.state.open_records, rotator.committable) == (1, 1, 0)


# -- scope Object


def test_with_scope_object_only_what_was_open_too_long_is_closed() -> None:
    settings = each(RotationPolicy(max_open_time=100))
    replay = run(settings, (0, [record(0, "a")]), (50, [record(1, "b")]), (100, []))
    assert closed(replay) == [[("a", [0])]]


def test_with_scope_object_the_smallest_open_offset_is_committable() -> None:
    replay = run(
        each(RotationPolicy(flush_size=2)), (0, [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "a")])
    )
    assert replay.state.committable == 1


def test_a_new_partition_starts_at_the_given_offset() -> None:
    assert RotationState.start(17) == RotationState(next=17, committable=17)
