"""The accepted rows of a batch: their groups, sums and neighbours, against loops over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow.arrays import Indices, Integers
from sink_job.records.batch import REJECTED, REJECTED_PATH, Rows
from sink_job.rotation.row_index import AcceptedRows, first_times, first_true
from sink_job.rotation.types import ObjectId

PATHS = ["a", "b", "c"]
SCHEMAS = ["s1", "s2"]


def rows_of(codes: list[int], *, schemas: list[int] | None = None, **columns: Any) -> Rows:
    """Rows at the offsets 100, 102, …; the size of the n-th is n + 1, its time 10 n."""
    count = np.arange(len(codes))
    return Rows(
        offsets=100 + 2 * count,
        codes=np.array(codes, np.int32),
        paths=PATHS,
        times=10 * count,
        sizes=1 + count,
        schemas=None if schemas is None else np.array(schemas, np.int32),
        schema_ids=SCHEMAS if schemas else [],
        **columns,
    )


codes = st.lists(st.sampled_from([REJECTED, REJECTED_PATH, 0, 1, 2]), min_size=1, max_size=20)


def test_rejected_rows_have_no_index() -> None:
    accepted = AcceptedRows(rows_of([0, REJECTED, 1, REJECTED_PATH, 0], schemas=[0, 0, 1, 0, -1]))
    assert len(accepted) == 3
    assert accepted.sizes is not None
    assert accepted.times is not None
    assert (accepted.offsets.tolist(), accepted.sizes.tolist(), accepted.times.tolist()) == (
        [100, 104, 108],
        [1, 3, 5],
        [0, 20, 40],
    )
    assert [accepted.target(n) for n in range(3)] == [ObjectId("a", "s1"), ObjectId("b", "s2"), ObjectId("a", None)]


def test_without_schemas_a_row_has_none() -> None:
    assert AcceptedRows(rows_of([2])).target(0) == ObjectId("c", None)


@pytest.mark.parametrize(
    ("separate", "switches"), [(False, [2, 4]), (True, [1, 2, 4])], ids=["by path", "by path and schema"]
)
def test_a_switch_is_a_row_with_another_code_than_the_previous_one(separate: bool, switches: list[int]) -> None:
    accepted = AcceptedRows(rows_of([0, 0, 1, 1, 0], schemas=[0, 1, 1, 1, 1]), separate=separate)
    assert (accepted.switches, accepted.path_switches) == (switches, [2, 4])


@pytest.mark.parametrize("separate", [False, True])
def test_open_objects_are_found_by_the_code_of_their_records(separate: bool) -> None:
    accepted = AcceptedRows(rows_of([0, 1, 2, 1], schemas=[0, 1, -1, 0]), separate=separate)
    slots = [accepted.target(n) if separate else ObjectId(accepted.path(n)) for n in range(4)]
    found = {slot: code for code, slot in accepted.codes_of([*slots, ObjectId("z"), ObjectId("a", "s9")])}
    assert found == {slot: int(accepted.codes[n]) for n, slot in enumerate(slots)}


def test_codes_of_paths_and_schemas_are_those_that_occur_if_there_are_many() -> None:
    paths = [f"p{n}" for n in range(40_000)]
    rows = Rows(
        offsets=np.arange(3),
        codes=np.array([39_999, 5, 39_999], np.int32),
        paths=paths,
        schemas=np.array([0, -1, 0], np.int32),
        schema_ids=["s1"],
    )
    accepted = AcceptedRows(rows, separate=True)
    assert accepted.code_count == 2
    slots = [ObjectId("p39999", "s1"), ObjectId("p5", None), ObjectId("p5", "s1"), ObjectId("p0", None)]
    assert {slot: code for code, slot in accepted.codes_of(slots)} == {
        ObjectId("p39999", "s1"): accepted.codes[0],
        ObjectId("p5", None): accepted.codes[1],
    }


@given(codes, st.data())
def test_groups_are_the_rows_of_a_segment_by_code_in_the_order_of_their_first(codes: list[int], data: Any) -> None:
    accepted = AcceptedRows(rows_of(codes))
    if not len(accepted):
        return
    start = data.draw(st.integers(0, len(accepted) - 1))
    end = data.draw(st.integers(start + 1, len(accepted)))
    expected: dict[int, list[int]] = {}
    for index in range(start, end):
        expected.setdefault(int(accepted.codes[index]), []).append(index)
    assert accepted.sizes is not None
    assert accepted.times is not None
    assert [
        (g.code, list(map(int, g.indices)), g.size, g.first, g.last, g.time, g.latest)
        for g in accepted.groups(start, end)
    ] == [
        (
            code,
            indices,
            sum(int(accepted.sizes[n]) for n in indices),
            int(accepted.offsets[indices[0]]),
            int(accepted.offsets[indices[-1]]),
            int(accepted.times[indices[0]]),
            max(int(accepted.times[n]) for n in indices),
        )
        for code, indices in expected.items()
    ]


@given(codes)
def test_sums_and_previous_rows_are_those_of_the_rows_with_the_same_code(codes: list[int]) -> None:
    accepted = AcceptedRows(rows_of(codes))
    assert accepted.sizes is not None
    sums: dict[int, int] = {}
    last: dict[int, int] = {}
    so_far, previous = [], []
    for index, code in enumerate(accepted.codes.tolist()):
        sums[code] = sums.get(code, 0) + int(accepted.sizes[index])
        so_far.append(sums[code])
        previous.append(last.get(code, -1))
        last[code] = index
    assert accepted.sizes_so_far().tolist() == so_far
    assert accepted.previous().tolist() == previous


@pytest.mark.parametrize(
    ("indices", "rows"),
    [(range(3), slice(0, 5)), (range(1, 3), slice(2, 5)), (range(1), slice(0, 1)), (range(2, 3), slice(4, 5))],
)
def test_an_append_names_rows_of_the_batch_and_not_indices(indices: range, rows: slice) -> None:
    """The rows 1 and 3 are rejected."""
    accepted = AcceptedRows(rows_of([0, REJECTED, 0, REJECTED, 0]))
    found = accepted.append(ObjectId("a"), indices).rows
    expected = [row for row in range(rows.start, rows.stop) if row not in (1, 3)]
    assert list(np.arange(5)[found]) == expected


@pytest.mark.parametrize(
    ("codes", "rows"), [([0, 0, 0], slice(1, 3)), ([REJECTED, 0, 0, 0], slice(2, 4))], ids=["all accepted", "a tail"]
)
def test_an_append_without_a_rejected_row_in_between_is_a_slice(codes: list[int], rows: slice) -> None:
    assert AcceptedRows(rows_of(codes)).append(ObjectId("a"), range(1, 3)).rows == rows


def test_projected_sizes_are_asked_for_rows_of_the_batch() -> None:
    asked: list[list[int]] = []

    def sizes(schema: str, rows: Indices) -> Integers:
        asked.append(rows.tolist())
        return rows

    accepted = AcceptedRows(rows_of([REJECTED, 0, REJECTED, 0], projected_sizes=sizes))
    accepted.projected_sizes("s1", np.array([0, 1]))
    assert (accepted.is_projected, asked) == (True, [[1, 3]])
    assert not AcceptedRows(rows_of([0])).is_projected


@given(codes)
def test_the_time_of_a_row_is_that_of_the_first_row_with_a_path_after_the_previous_accepted_one(
    codes: list[int],
) -> None:
    times, pending = [], None
    for n, code in enumerate(codes):
        if code != REJECTED and pending is None:
            pending = 10 * n
        if code >= 0:
            times.append(pending)
            pending = None
    found, behind = first_times(rows_of(codes))
    assert (found.tolist(), behind) == (times, pending)


@pytest.mark.parametrize("hit", [0, 1, 1023, 1024, 1025, 3071, 3072, 9_999, None])
def test_the_first_true_is_found_in_any_window(hit: int | None) -> None:
    mask = np.zeros(10_000, np.bool_)
    if hit is not None:
        mask[hit:] = True
    assert first_true(0, 10_000, lambda start, end: mask[start:end]) == (10_000 if hit is None else hit)


def test_a_search_tests_no_window_after_its_result() -> None:
    windows: list[tuple[int, int]] = []

    def test(start: int, end: int) -> Any:
        windows.append((start, end))
        return np.arange(start, end) >= 1_500

    assert first_true(10, 100_000, test) == 1_500
    assert windows == [(10, 1_034), (1_034, 3_082)]


def test_an_empty_search_tests_nothing() -> None:
    assert first_true(5, 5, lambda start, end: pytest.fail("tested")) == 5
