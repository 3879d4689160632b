"""The sentences of docs/semantics.md, sections 3, 7 and 9 about schemas that the rotator has to keep, one example
each."""

from __future__ import annotations

import dataclasses

import numpy as np

from sink_job.arrow.arrays import Indices, Integers
from sink_job.partitioning.time_zones import HOUR, zone
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.schedule import Schedule
from sink_job.rotation.types import ObjectId, RotationState
from tests.unit.rotation.oracle import CheckedPolicy, OneRecord
from tests.unit.rotation.replay import Replay, Round, naive, naive_cut, rows_of

HOURLY = Schedule(zone("UTC"), HOUR)

Objects = list[tuple[str, str | None, list[int]]]


def record(offset: int, schema: str | None = "s1", path: str = "a", time: int | None = None) -> OneRecord:
    return OneRecord(offset, path, time, 1, schema=schema)


def run(settings: RotationPolicy, *rounds: tuple[int, list[OneRecord]]) -> Replay:
    """Runs (clock, records) and compares the rotator with the oracle."""
    replay, end, done = Replay(settings), 0, []
    for now, records in rounds:
        end = records[-1].offset + 1 if records else end
        done.append(Round(now, [records] if records else [], end))
        replay.round(done[-1])
    expected = naive(settings, done)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    assert replay.open == [naive_cut(o) for o in expected.open]
    return replay


def closed(replay: Replay) -> list[Objects]:
    return [[(path, schema, offsets) for path, offsets, *_, schema in group] for group in replay.closed]


def still_open(replay: Replay) -> Objects:
    return [(path, schema, offsets) for path, offsets, *_, schema in replay.open]


# -- rule 1: presence -------------------------------------------------------------------------------------------------


def test_a_record_without_a_schema_closes_all_objects_if_the_open_object_of_its_path_has_one() -> None:
    replay = run(RotationPolicy(), (0, [record(0), record(1, path="b"), record(2, None)]))
    assert closed(replay) == [[("a", "s1", [0]), ("b", "s1", [1])]]
    assert still_open(replay) == [("a", None, [2])]


def test_a_record_with_a_schema_closes_all_objects_if_the_open_object_of_its_path_has_none() -> None:
    replay = run(RotationPolicy(), (0, [record(0, None)]), (1, [record(1)]))
    assert closed(replay) == [[("a", None, [0])]]


def test_a_record_without_a_schema_closes_nothing_at_another_path() -> None:
    assert closed(run(RotationPolicy(), (0, [record(0), record(1, None, "b")]))) == []


def test_presence_closes_objects_with_separate_too() -> None:
    replay = run(
        RotationPolicy(separate=True), (0, [record(0), record(1, "s2"), record(2, "s1", "b"), record(3, None)])
    )
    assert closed(replay) == [[("a", "s1", [0]), ("a", "s2", [1]), ("b", "s1", [2])]]


def test_a_close_for_presence_leaves_the_schedule_so_that_the_next_record_closes_a_small_object() -> None:
    settings = RotationPolicy(schedule=HOURLY)
    replay = run(settings, (0, [record(0)]), (HOUR, [record(1, None), record(2, None)]))
    assert closed(replay) == [[("a", "s1", [0])], [("a", None, [1])]]


# -- rule 3: change ---------------------------------------------------------------------------------------------------


def test_with_none_another_schema_closes_all_objects() -> None:
    replay = run(RotationPolicy(), (0, [record(0), record(1, path="b"), record(2), record(3, "s2")]))
    assert closed(replay) == [[("a", "s1", [0, 2]), ("b", "s1", [1])]]
    assert still_open(replay) == [("a", "s2", [3])]


def test_the_schema_is_that_of_the_open_object_of_the_records_path() -> None:
    assert closed(run(RotationPolicy(), (0, [record(0), record(1, "s2", "b"), record(2), record(3, "s2", "b")]))) == []


def test_a_schema_of_an_earlier_round_closes_the_object() -> None:
    replay = run(RotationPolicy(), (0, [record(0)]), (1, [record(1, "s2")]), (2, [record(2)]))
    assert closed(replay) == [[("a", "s1", [0])], [("a", "s2", [1])]]


def test_a_close_by_time_at_the_same_record_comes_first_and_renews_the_schedule() -> None:
    settings = RotationPolicy(schedule=HOURLY)
    replay = run(settings, (0, [record(0)]), (HOUR, [record(1, "s2"), record(2, "s2")]))
    assert closed(replay) == [[("a", "s1", [0])]]


def test_the_record_that_closes_for_its_schema_starts_the_interval() -> None:
    settings = RotationPolicy(interval=100)
    times = [record(0, time=0), record(1, "s2", time=90), record(2, "s2", time=150)]
    assert closed(run(settings, (0, times))) == [[("a", "s1", [0])]]


def test_a_function_decides_about_another_schema() -> None:
    settings = CheckedPolicy(closes=lambda of_object, of_record: (of_object, of_record) == ("s1", "s2"))
    replay = run(settings, (0, [record(0), record(1, "s2"), record(2), record(3, "s3")]))
    assert closed(replay) == [[("a", "s1", [0])]]
    assert still_open(replay) == [("a", "s2", [1, 2, 3])]


def test_the_function_compares_with_the_schema_of_the_object_not_of_the_previous_record() -> None:
    settings = CheckedPolicy(closes=lambda of_object, of_record: (of_object, of_record) == ("s2", "s3"))
    assert still_open(run(settings, (0, [record(0), record(1, "s2"), record(2, "s3")]))) == [("a", "s1", [0, 1, 2])]


def test_the_function_is_asked_once_for_each_pair_of_schemas() -> None:
    asked: list[tuple[str, str]] = []

    def closes(of_object: str, of_record: str) -> bool:
        asked.append((of_object, of_record))
        return False

    replay = Replay(CheckedPolicy(closes=closes))
    replay.round(Round(0, [[record(offset, "s2" if offset % 2 else "s1") for offset in range(10_000)]], 10_000))
    assert asked == [("s1", "s2")]


def test_projected_records_count_for_max_bytes_with_their_size_under_the_schema_of_the_object() -> None:
    settings = CheckedPolicy(closes=lambda of_object, of_record: False, max_bytes=12)
    replay = run(settings, (0, [record(0, "s2"), record(1, "s1"), record(2, "s2"), record(3, "s2")]))
    assert closed(replay) == [[("a", "s2", [0, 1])]]  # 1 byte, and 1 + 10 bytes as s2


def test_with_scope_object_projected_records_count_for_max_bytes_too() -> None:
    settings = CheckedPolicy(closes=lambda of_object, of_record: False, max_bytes=12, per_object=True)
    records = [record(0, "s2"), record(1, "s1", "b"), record(2, "s1"), record(3, "s1", "b")]
    replay = run(settings, (0, records))
    assert closed(replay) == [[("a", "s2", [0, 2])]]
    assert still_open(replay) == [("b", "s1", [1, 3])]


def test_the_size_under_another_schema_is_computed_only_for_records_that_are_projected() -> None:
    asked: list[tuple[str, list[int]]] = []

    def sizes(schema: str, rows: Indices) -> Integers:
        asked.append((schema, rows.tolist()))
        return np.ones(len(rows), np.int64)

    settings = CheckedPolicy(closes=lambda of_object, of_record: of_record == "s3", max_bytes=100)
    records = [record(0), record(1, "s2"), record(2), record(3, "s3"), record(4, "s2")]
    rows = rows_of(records, settings.closes)
    Rotator(settings, RotationState.start(0), [], 0).add(dataclasses.replace(rows, projected_sizes=sizes))
    assert asked == [("s1", [1]), ("s3", [4])]


# -- Separate ---------------------------------------------------------------------------------------------------------


def test_with_separate_a_path_has_one_open_object_for_each_schema() -> None:
    replay = run(RotationPolicy(separate=True), (0, [record(0), record(1, "s2"), record(2), record(3, "s2")]))
    assert closed(replay) == []
    assert still_open(replay) == [("a", "s1", [0, 2]), ("a", "s2", [1, 3])]


def test_with_separate_the_flush_size_counts_over_all_objects_of_the_partition() -> None:
    replay = run(RotationPolicy(separate=True, flush_size=3), (0, [record(0), record(1, "s2"), record(2)]))
    assert closed(replay) == [[("a", "s1", [0, 2]), ("a", "s2", [1])]]


def test_with_separate_the_cap_counts_paths_and_schemas() -> None:
    settings = RotationPolicy(separate=True, max_open_objects=2)
    replay = run(settings, (0, [record(0), record(1, "s2"), record(2, "s2"), record(3, "s3")]))
    assert closed(replay) == [[("a", "s1", [0]), ("a", "s2", [1, 2])]]


def test_with_separate_another_schema_is_no_path_change() -> None:
    settings = RotationPolicy(separate=True, interval=100)
    assert closed(run(settings, (0, [record(0, time=0), record(1, "s2", time=1)]))) == []


def test_with_separate_the_size_of_each_object_counts_alone() -> None:
    settings = RotationPolicy(separate=True, max_bytes=3)
    replay = run(settings, (0, [record(0), record(1, "s2")]), (1, [record(2), record(3, "s2"), record(4)]))
    assert closed(replay) == [[("a", "s1", [0, 2, 4]), ("a", "s2", [1, 3])]]


def test_with_separate_two_alternating_schemas_make_as_many_objects_as_two_paths() -> None:
    settings = RotationPolicy(separate=True, flush_size=1000)
    by_schema, by_path = Replay(settings), Replay(settings)
    by_schema.round(Round(0, [[record(offset, "s2" if offset % 2 else "s1") for offset in range(9_999)]], 9_999))
    by_path.round(Round(0, [[record(offset, "s1", "ab"[offset % 2]) for offset in range(9_999)]], 9_999))
    assert [len(group) for group in by_schema.closed] == [len(group) for group in by_path.closed] == [2] * 9


# -- scope Object -----------------------------------------------------------------------------------------------------


def test_with_scope_object_another_schema_closes_the_object_of_its_path_alone() -> None:
    settings = RotationPolicy(per_object=True)
    replay = run(settings, (0, [record(0), record(1, path="b"), record(2, "s2"), record(3, path="b")]))
    assert closed(replay) == [[("a", "s1", [0])]]
    assert still_open(replay) == [("b", "s1", [1, 3]), ("a", "s2", [2])]


def test_with_scope_object_and_separate_the_limits_apply_to_each_path_and_schema() -> None:
    settings = RotationPolicy(per_object=True, separate=True, flush_size=2)
    replay = run(settings, (0, [record(0), record(1, "s2"), record(2), record(3, "s2"), record(4)]))
    assert closed(replay) == [[("a", "s1", [0, 2])], [("a", "s2", [1, 3])]]


def test_with_scope_object_and_separate_presence_closes_the_objects_of_the_path_alone() -> None:
    settings = RotationPolicy(per_object=True, separate=True)
    replay = run(settings, (0, [record(0), record(1, "s2"), record(2, path="b"), record(3, None), record(4)]))
    assert closed(replay) == [[("a", "s1", [0]), ("a", "s2", [1])], [("a", None, [3])]]
    assert still_open(replay) == [("b", "s1", [2]), ("a", "s1", [4])]


def test_open_objects_are_listed_by_path_and_schema() -> None:
    rotator = Rotator(RotationPolicy(), Replay(RotationPolicy()).state, [], 0)
    rotator.add(rows_of([record(0), record(1, "s2", "b")]))
    assert list(rotator.open) == [ObjectId("a", "s1"), ObjectId("b", "s2")]
