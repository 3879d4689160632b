"""Every sentence of docs/semantics.md, sections 2, 3 and 9 that the rotator has to keep, one example each."""

from __future__ import annotations

import dataclasses

import pytest

from sink_job.partitioning.time_zones import HOUR, zone
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.schedule import Schedule
from sink_job.rotation.types import RotationState
from tests.unit.rotation.oracle import TOMBSTONE, OneRecord
from tests.unit.rotation.replay import Replay, Round, naive, naive_cut

HOURLY = Schedule(zone("UTC"), HOUR)

Objects = list[tuple[str, list[int]]]


def record(offset: int, path: str | None = "a", time: int | None = None, size: int = 1) -> OneRecord:
    return OneRecord(offset, path, time, size)


def rejected(offset: int) -> OneRecord:
    """Rejected by the converter or the null policy."""
    return OneRecord(offset, None)


def rejected_path(offset: int, time: int) -> OneRecord:
    return OneRecord(offset, None, time, path_rejected=True)


def run(settings: RotationPolicy, *rounds: tuple[int, list[OneRecord]]) -> Replay:
    """Plays (clock, records) and holds the real rotator against the oracle on the way."""
    replay, end, played = Replay(settings), 0, []
    for now, records in rounds:
        end = records[-1].offset + 1 if records else end
        played.append(Round(now, [records] if records else [], end))
        replay.round(played[-1])
    expected = naive(settings, played)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    return replay


def closed(replay: Replay) -> list[Objects]:
    return [[(path, offsets) for path, offsets, *_ in group] for group in replay.closed]


def still_open(replay: Replay) -> Objects:
    return [(path, offsets) for path, offsets, *_ in replay.open]


def test_flush_size_closes_with_the_record_that_fulfils_it() -> None:
    replay = run(RotationPolicy(flush_size=2), (0, [record(0), record(1), record(2)]))
    assert closed(replay) == [[("a", [0, 1])]]
    assert still_open(replay) == [("a", [2])]


def test_flush_size_counts_over_all_paths_of_the_partition_and_closes_all_of_them() -> None:
    replay = run(RotationPolicy(flush_size=3), (0, [record(0, "b"), record(1, "a"), record(2, "b"), record(3, "a")]))
    assert closed(replay) == [[("b", [0, 2]), ("a", [1])]]


def test_objects_are_closed_in_the_order_in_which_they_were_opened() -> None:
    replay = run(RotationPolicy(flush_size=4), (0, [record(0, "c"), record(1, "a"), record(2, "b"), record(3, "a")]))
    assert [path for path, _ in closed(replay)[0]] == ["c", "a", "b"]


def test_a_flush_size_of_one_makes_an_object_of_every_record() -> None:
    replay = run(RotationPolicy(flush_size=1), (0, [record(0), record(1), record(4)]))
    assert closed(replay) == [[("a", [0])], [("a", [1])], [("a", [4])]]


def test_counts_continue_over_rounds() -> None:
    replay = run(RotationPolicy(flush_size=3), (0, [record(0), record(1)]), (5, []), (9, [record(2)]))
    assert closed(replay) == [[("a", [0, 1, 2])]]


def test_the_interval_closes_before_the_record_that_reaches_it() -> None:
    settings = RotationPolicy(interval=10)
    replay = run(settings, (0, [record(0, time=100), record(1, time=109), record(2, time=110), record(3, time=119)]))
    assert closed(replay) == [[("a", [0, 1])]]
    assert still_open(replay) == [("a", [2, 3])]


def test_the_record_that_closes_sets_the_next_base() -> None:
    settings = RotationPolicy(interval=10)
    replay = run(settings, (0, [record(0, time=100), record(1, time=115), record(2, time=124), record(3, time=125)]))
    assert closed(replay) == [[("a", [0])], [("a", [1, 2])]]


def test_a_late_record_closes_nothing_by_its_time() -> None:
    replay = run(RotationPolicy(interval=10), (0, [record(0, time=100), record(1, time=5), record(2, time=109)]))
    assert closed(replay) == []


def test_with_an_interval_another_path_closes_too() -> None:
    replay = run(RotationPolicy(interval=1000), (0, [record(0, "a", 1), record(1, "b", 2), record(2, "a", 3)]))
    assert closed(replay) == [[("a", [0])], [("b", [1])]]


def test_on_path_change_can_be_switched_off() -> None:
    settings = RotationPolicy(interval=1000, on_path_change=False)
    replay = run(settings, (0, [record(0, "a", 1), record(1, "b", 2), record(2, "a", 3)]))
    assert closed(replay) == []
    assert still_open(replay) == [("a", [0, 2]), ("b", [1])]


def test_without_an_interval_another_path_closes_nothing() -> None:
    replay = run(RotationPolicy(flush_size=100), (0, [record(0, "a", 1), record(1, "b", 2)]))
    assert closed(replay) == []


def test_a_path_change_is_seen_across_rounds() -> None:
    replay = run(RotationPolicy(interval=1000), (0, [record(0, "a", 1)]), (0, [record(1, "b", 2)]))
    assert closed(replay) == [[("a", [0])]]


def test_after_a_close_the_first_record_may_be_of_another_path() -> None:
    settings = RotationPolicy(interval=1000, flush_size=2)
    replay = run(settings, (0, [record(0, "a", 1), record(1, "a", 2), record(2, "b", 3), record(3, "b", 4)]))
    assert closed(replay) == [[("a", [0, 1])], [("b", [2, 3])]]


def test_a_change_to_the_tombstone_path_does_not_count_and_neither_does_one_back() -> None:
    paths = ["a", TOMBSTONE, "a", TOMBSTONE, "b"]
    records = [record(offset, path, 1) for offset, path in enumerate(paths)]
    replay = run(RotationPolicy(interval=1000), (0, records))
    assert closed(replay) == []
    assert still_open(replay) == [("a", [0, 2]), (TOMBSTONE, [1, 3]), ("b", [4])]


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


def test_the_cap_closes_before_the_record_that_would_open_one_too_many() -> None:
    settings = RotationPolicy(max_open_objects=2)
    records = [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "c"), record(4, "a")]
    replay = run(settings, (0, records))
    assert closed(replay) == [[("a", [0, 2]), ("b", [1])]]
    assert still_open(replay) == [("c", [3]), ("a", [4])]


def test_a_path_that_is_open_does_not_hit_the_cap() -> None:
    replay = run(RotationPolicy(max_open_objects=1), (0, [record(0, "a"), record(1, "a")]), (0, [record(2, "a")]))
    assert closed(replay) == []


def test_a_close_by_max_open_objects_resets_the_interval_start() -> None:
    settings = RotationPolicy(max_open_objects=1, interval=10, on_path_change=False)
    replay = run(settings, (0, [record(0, "a", 0), record(1, "b", 9), record(2, "b", 18), record(3, "b", 19)]))
    assert closed(replay) == [[("a", [0])], [("b", [1, 2])]]


def test_max_bytes_closes_with_the_record_that_takes_an_object_to_it() -> None:
    settings = RotationPolicy(max_bytes=10)
    replay = run(settings, (0, [record(0, size=4), record(1, size=5), record(2, size=1), record(3, size=30)]))
    assert closed(replay) == [[("a", [0, 1, 2])], [("a", [3])]]


def test_max_bytes_is_the_size_of_one_object_but_closes_all() -> None:
    records = [record(0, "a", size=9), record(1, "b", size=9), record(2, "a", size=1)]
    replay = run(RotationPolicy(max_bytes=10), (0, records))
    assert closed(replay) == [[("a", [0, 2]), ("b", [1])]]


def test_max_bytes_counts_over_rounds_and_starts_again_after_a_close() -> None:
    settings = RotationPolicy(max_bytes=10, flush_size=3)
    first = [record(0, "a", size=8), record(1, "b", size=1)]
    second = [record(2, "b", size=1), record(3, "a", size=8), record(4, "a", size=2)]
    replay = run(settings, (0, first), (0, second))
    assert closed(replay) == [[("a", [0]), ("b", [1, 2])], [("a", [3, 4])]]


def test_a_rejected_record_triggers_no_rule_and_does_not_count() -> None:
    settings = RotationPolicy(flush_size=2, schedule=HOURLY)
    replay = run(settings, (0, [record(0), rejected(1), rejected(2)]), (1, [record(3)]))
    assert closed(replay) == [[("a", [0, 3])]]


def test_a_round_of_rejected_records_closes_by_the_schedule_only_at_its_end() -> None:
    replay = run(RotationPolicy(schedule=HOURLY), (0, [record(0)]), (HOUR, [rejected(1)]))
    assert closed(replay) == [[("a", [0])]]
    assert replay.state.committable == 2


def test_a_rejected_path_can_set_the_base() -> None:
    records = [rejected_path(0, time=0), record(1, time=5), record(2, time=10)]
    assert closed(run(RotationPolicy(interval=10), (0, records))) == [[("a", [1])]]


def test_a_rejected_path_moves_the_last_time_and_closes_nothing() -> None:
    replay = run(RotationPolicy(interval=10), (0, [record(0, time=0), rejected_path(1, time=99)]))
    assert replay.state.last_time == 99
    assert closed(replay) == []


def test_a_record_rejected_by_its_converter_does_not_set_the_base() -> None:
    records = [OneRecord(0, None, time=0), record(1, time=5), record(2, time=10)]
    replay = run(RotationPolicy(interval=10), (0, records))
    assert closed(replay) == []
    assert replay.state.interval_start == 5


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


def each(settings: RotationPolicy) -> RotationPolicy:
    return dataclasses.replace(settings, per_object=True)


def test_flush_size_can_count_for_each_object_alone() -> None:
    records = [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "b")]
    replay = run(each(RotationPolicy(flush_size=2)), (0, records[:3]))
    assert closed(replay) == [[("a", [0, 2])]]
    assert still_open(replay) == [("b", [1])]


def test_max_bytes_can_close_one_object_alone() -> None:
    records = [record(0, "a", size=9), record(1, "b", size=9), record(2, "a", size=1)]
    assert closed(run(each(RotationPolicy(max_bytes=10)), (0, records))) == [[("a", [0, 2])]]


def test_the_interval_can_count_from_the_first_record_of_each_object() -> None:
    records = [record(0, "a", 0), record(1, "b", 8), record(2, "a", 10), record(3, "b", 17), record(4, "b", 18)]
    replay = run(each(RotationPolicy(interval=10)), (0, records))
    assert closed(replay) == [[("a", [0])], [("b", [1, 3])]]
    assert still_open(replay) == [("a", [2]), ("b", [4])]


def test_with_scope_object_a_path_change_closes_nothing() -> None:
    records = [record(0, "a", 0), record(1, "b", 1), record(2, "a", 2)]
    assert closed(run(each(RotationPolicy(interval=10)), (0, records))) == []


def test_with_scope_object_the_schedule_closes_all() -> None:
    replay = run(each(RotationPolicy(schedule=HOURLY)), (0, [record(0, "a"), record(1, "b")]), (HOUR, [record(2, "c")]))
    assert closed(replay) == [[("a", [0]), ("b", [1])]]


def test_with_scope_object_the_cap_closes_all() -> None:
    settings = each(RotationPolicy(max_open_objects=2, flush_size=9))
    replay = run(settings, (0, [record(0, "a"), record(1, "b"), record(2, "c")]))
    assert closed(replay) == [[("a", [0]), ("b", [1])]]
    assert still_open(replay) == [("c", [2])]


def test_with_scope_object_an_object_that_closed_makes_room_under_the_cap() -> None:
    settings = each(RotationPolicy(max_open_objects=2, flush_size=2))
    records = [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "c"), record(4, "d")]
    replay = run(settings, (0, records))
    assert closed(replay) == [[("a", [0, 2])], [("b", [1]), ("c", [3])]]


def test_with_scope_object_only_what_was_open_too_long_is_closed() -> None:
    settings = each(RotationPolicy(max_open_time=100))
    replay = run(settings, (0, [record(0, "a")]), (50, [record(1, "b")]), (100, []))
    assert closed(replay) == [[("a", [0])]]


def test_with_scope_object_the_smallest_open_offset_is_committable() -> None:
    replay = run(
        each(RotationPolicy(flush_size=2)), (0, [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "a")])
    )
    assert replay.state.committable == 1


def test_an_object_that_is_opened_again_is_last_in_the_order_of_opening() -> None:
    records = [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "a")]
    assert [path for path, _ in still_open(run(each(RotationPolicy(flush_size=2)), (0, records)))] == ["b", "a"]


def test_a_new_partition_starts_at_the_given_offset() -> None:
    assert RotationState.start(17) == RotationState(next=17, committable=17)
