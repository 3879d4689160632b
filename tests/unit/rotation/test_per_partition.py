"""Scope Partition: every sentence of docs/semantics.md, section 3, one example each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.time_zones import HOUR, zone
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.schedule import Schedule
from tests.unit.rotation.examples import closed, record, rejected, rejected_path, run, still_open
from tests.unit.rotation.oracle import TOMBSTONE, OneRecord
from tests.unit.rotation.replay import Replay, Round, naive, naive_cut

HOURLY = Schedule(zone("UTC"), HOUR)


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
    replay = run(RotationPolicy(interval=1000, tombstone_path=TOMBSTONE), (0, records))
    assert closed(replay) == []
    assert still_open(replay) == [("a", [0, 2]), (TOMBSTONE, [1, 3]), ("b", [4])]


def test_without_a_tombstone_path_its_name_is_any_path() -> None:
    replay = run(RotationPolicy(interval=1000), (0, [record(0, "a", 1), record(1, TOMBSTONE, 1)]))
    assert closed(replay) == [[("a", [0])]]


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


# -- schemas ---------------------------------------------------------------------------------------------------------


def schemas(*ids: str | None, path: str = "a") -> list[OneRecord]:
    """Records at the offsets from 0 on, with these schemas."""
    return [OneRecord(offset, path, None, 1, schema=schema) for offset, schema in enumerate(ids)]


def test_another_schema_closes_all_objects_of_the_partition_before_the_record() -> None:
    others = [OneRecord(0, "b", None, 1, schema="s1"), *(OneRecord(n, "a", None, 1, schema=f"s{n}") for n in (1, 2))]
    replay = run(RotationPolicy(flush_size=9), (0, others))
    assert closed(replay) == [[("b", [0]), ("a", [1])]]
    assert still_open(replay) == [("a", [2])]


@pytest.mark.parametrize("separate", [False, True])
def test_a_record_without_a_schema_closes_an_object_with_one_and_the_reverse(separate: bool) -> None:
    settings = RotationPolicy(flush_size=9, separate=separate)
    assert closed(run(settings, (0, schemas("s1", None, None, "s1")))) == [[("a", [0])], [("a", [1, 2])]]


def test_with_separate_another_schema_has_an_object_of_its_own_and_counts_for_flush_size() -> None:
    replay = run(RotationPolicy(flush_size=3, separate=True), (0, schemas("s1", "s2", "s1", "s2")))
    assert closed(replay) == [[("a", [0, 2]), ("a", [1])]]
    assert still_open(replay) == [("a", [3])]


def test_the_time_rule_comes_before_the_schema_rule() -> None:
    """The schedule is set again by rule 2 alone."""
    settings = RotationPolicy(flush_size=9, schedule=HOURLY)
    one, two = schemas("s1", "s2")
    replay = run(settings, (0, [one]), (HOUR, [two]))
    assert closed(replay) == [[("a", [0])]]
    assert replay.state.next_schedule == 2 * HOUR


# -- several rules at once -------------------------------------------------------------------------------------------


def test_the_first_record_of_all_closes_nothing() -> None:
    settings = RotationPolicy(flush_size=9, interval=1, max_open_objects=1)
    assert closed(run(settings, (0, [record(0, "a", 5)]))) == []


def test_the_record_that_closes_by_the_cap_can_reach_flush_size_itself() -> None:
    settings = RotationPolicy(flush_size=1, max_open_objects=1)
    assert closed(run(settings, (0, [record(0, "a"), record(1, "b")]))) == [[("a", [0])], [("b", [1])]]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(0, 9)), max_size=40))
def test_all_rules_together_give_the_objects_of_the_rules_record_by_record(records: list[tuple[str, int, int]]) -> None:
    settings = RotationPolicy(flush_size=7, interval=20, max_open_objects=2, max_bytes=25, schedule=HOURLY)
    given = [record(offset, path, time, size) for offset, (path, time, size) in enumerate(records)]
    played = [Round(0, [given[:20]], min(20, len(given))), Round(HOUR, [given[20:]], len(given))]
    replay = Replay(settings)
    for one in played:
        replay.round(one)
    expected = naive(settings, played)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    assert replay.open == [naive_cut(o) for o in expected.open]
