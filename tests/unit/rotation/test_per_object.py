"""Scope Object: every sentence of docs/semantics.md, section 9, about it, one example each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.time_zones import HOUR, zone
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.schedule import Schedule
from tests.unit.rotation.examples import closed, each, record, run, still_open
from tests.unit.rotation.oracle import OneRecord
from tests.unit.rotation.replay import Replay, Round, naive, naive_cut

HOURLY = Schedule(zone("UTC"), HOUR)


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


def test_an_object_that_is_opened_again_is_last_in_the_order_of_opening() -> None:
    records = [record(0, "a"), record(1, "b"), record(2, "a"), record(3, "a")]
    assert [path for path, _ in still_open(run(each(RotationPolicy(flush_size=2)), (0, records)))] == ["b", "a"]


def test_an_object_with_its_own_flush_size_closes_and_the_next_of_its_path_opens_in_one_batch() -> None:
    replay = run(each(RotationPolicy(flush_size=2)), (0, [record(n, "ab"[n % 2]) for n in range(9)]))
    assert closed(replay) == [[("a", [0, 2])], [("b", [1, 3])], [("a", [4, 6])], [("b", [5, 7])]]
    assert still_open(replay) == [("a", [8])]


def test_the_schedule_is_due_once_before_the_first_record_of_a_round() -> None:
    settings = each(RotationPolicy(flush_size=9, schedule=HOURLY))
    replay = run(settings, (0, [record(0, "a"), record(1, "b")]), (HOUR, [record(2, "a"), record(3, "a")]))
    assert closed(replay) == [[("a", [0]), ("b", [1])]]
    assert still_open(replay) == [("a", [2, 3])]


def schemas(*records: tuple[str, str | None]) -> list[OneRecord]:
    """Records with these paths and schemas."""
    return [OneRecord(offset, path, None, 1, schema=schema) for offset, (path, schema) in enumerate(records)]


def test_another_schema_closes_the_object_of_its_path_alone() -> None:
    replay = run(each(RotationPolicy(flush_size=9)), (0, schemas(("a", "s1"), ("b", "s1"), ("a", "s2"), ("b", "s1"))))
    assert closed(replay) == [[("a", [0])]]
    assert still_open(replay) == [("b", [1, 3]), ("a", [2])]


def test_with_separate_a_record_without_a_schema_closes_all_objects_of_its_path_alone() -> None:
    settings = each(RotationPolicy(flush_size=9, separate=True))
    replay = run(settings, (0, schemas(("a", "s1"), ("a", "s2"), ("b", "s1"), ("a", None), ("b", "s1"))))
    assert closed(replay) == [[("a", [0]), ("a", [1])]]
    assert still_open(replay) == [("b", [2, 4]), ("a", [3])]


def test_more_paths_than_the_cap_in_one_batch_close_all_objects_each_time() -> None:
    settings = each(RotationPolicy(flush_size=99, max_open_objects=2))
    replay = run(settings, (0, [record(n, f"p{n}") for n in range(5)]))
    assert closed(replay) == [[("p0", [0]), ("p1", [1])], [("p2", [2]), ("p3", [3])]]
    assert still_open(replay) == [("p4", [4])]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.integers(0, 9)), max_size=60),
    st.none() | st.integers(1, 3),
)
def test_all_rules_together_give_the_objects_of_the_rules_record_by_record(
    records: list[tuple[str, int, int]], cap: int | None
) -> None:
    settings = each(RotationPolicy(flush_size=7, interval=20, max_open_objects=cap, max_bytes=25, schedule=HOURLY))
    given = [record(offset, path, time, size) for offset, (path, time, size) in enumerate(records)]
    played = [Round(0, [given[:30]], min(30, len(given))), Round(HOUR, [given[30:]], len(given))]
    replay = Replay(settings)
    for one in played:
        replay.round(one)
    expected = naive(settings, played)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    assert replay.open == [naive_cut(o) for o in expected.open]
