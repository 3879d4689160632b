"""Which records belong to which object, from the members that the ledger keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.state import SourceRange
from sink_job.records.batch import NO_SCHEMA, REJECTED, Rows
from sink_job.rotation.types import ObjectId
from sink_job.writer.row_selection import clock_ranges, group_by_id, select_rows, sources_within


class Thing(NamedTuple):
    path: str
    sources: tuple[SourceRange, ...]
    schema: str | None = None

    @property
    def id(self) -> ObjectId:
        return ObjectId(self.path, self.schema)


def rows(first: int, codes: list[int], schemas: list[int] | None = None) -> Rows:
    offsets = np.arange(first, first + len(codes), dtype=np.int64)
    schema_codes = None if schemas is None else np.array(schemas, dtype=np.int32)
    return Rows(
        offsets=offsets,
        codes=np.array(codes, dtype=np.int32),
        paths=["a", "b"],
        schemas=schema_codes,
        schema_ids=["s1", "s2"],
    )


def chosen(objects: list[Thing], batch: Rows, clock: int) -> dict[Thing, list[int]]:
    found: dict[Thing, list[int]] = {}
    for o, indices in select_rows(group_by_id(objects), batch, clock):
        found[o] = batch.offsets[indices].tolist()
    return found


@st.composite
def sources(draw: st.DrawFn) -> tuple[SourceRange, ...]:
    """Ranges in offset order under clocks that never go back, as the rounds of one object have them."""
    bounds = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=8)))
    clocks = sorted(draw(st.lists(st.integers(0, 3), min_size=len(bounds), max_size=len(bounds))))
    pairs = list(zip(bounds, bounds[1:], clocks, strict=False))
    return tuple(SourceRange(start, end, clock) for start, end, clock in pairs if draw(st.booleans()))


def test_an_object_gets_the_records_of_its_path_in_its_source_ranges() -> None:
    a = Thing("a", (SourceRange(10, 12, 0), SourceRange(14, 16, 0)))
    b = Thing("b", (SourceRange(10, 20, 0),))
    assert chosen([a, b], rows(10, [0, 0, 0, 1, 0, 0, 0]), 0) == {a: [10, 11, 14, 15], b: [13]}


def test_an_object_gets_only_the_records_with_its_schema() -> None:
    first, second, without = (Thing("a", (SourceRange(0, 9, 0),), schema) for schema in ("s1", "s2", None))
    batch = rows(0, [0, 0, 0, 1, 0, REJECTED], [0, 1, NO_SCHEMA, 0, 0, 0])
    assert chosen([first, second, without], batch, 0) == {first: [0, 4], second: [1], without: [2]}


def test_rejected_records_belong_to_nothing() -> None:
    a = Thing("a", (SourceRange(0, 9, 0),))
    assert chosen([a], rows(0, [REJECTED, 0, -2]), 0) == {a: [1]}


def test_a_source_range_applies_to_its_own_clock() -> None:
    a = Thing("a", (SourceRange(0, 2, 1000), SourceRange(2, 4, 2000)))
    assert chosen([a], rows(0, [0, 0, 0, 0]), 1000) == {a: [0, 1]}
    assert chosen([a], rows(0, [0, 0, 0, 0]), 2000) == {a: [2, 3]}


def test_objects_of_one_path_that_follow_each_other_share_nothing() -> None:
    first, second = Thing("a", (SourceRange(0, 2, 0),)), Thing("a", (SourceRange(2, 9, 0),))
    assert chosen([first, second], rows(0, [0, 0, 0]), 0) == {first: [0, 1], second: [2]}


@given(sources(), st.integers(0, 45), st.integers(0, 45))
def test_the_source_ranges_within_offsets_are_those_that_contain_one_of_them(
    ranges: tuple[SourceRange, ...], first: int, length: int
) -> None:
    last = first + length
    expected = tuple(source for source in ranges if source.start <= last and source.end > first)
    assert sources_within(Thing("a", ranges), first, last) == expected


def test_an_object_with_many_source_ranges_is_not_searched_from_its_start_for_each_batch() -> None:
    class NotIterable(tuple[SourceRange, ...]):
        def __iter__(self) -> Iterator[SourceRange]:
            pytest.fail("all source ranges are read")

    a = Thing("a", NotIterable(SourceRange(2 * n, 2 * n + 1, 0) for n in range(1000)))
    assert clock_ranges([a], 600, 609) == {0: (600, 609)}
    batch = rows(600, [0] * 10)
    ((_, indices),) = select_rows({a.id: [a]}, batch, 0)
    assert batch.offsets[indices].tolist() == [600, 602, 604, 606, 608]


def test_clock_ranges_cover_only_source_ranges_of_the_clock() -> None:
    a = Thing("a", (SourceRange(0, 5, 1), SourceRange(5, 50, 2)))
    b = Thing("b", (SourceRange(3, 8, 1), SourceRange(60, 70, 3)))
    assert clock_ranges([a, b], 2, 20) == {1: (2, 8), 2: (5, 21)}


@given(st.lists(st.integers(-2, 1), min_size=1, max_size=40), st.data())
def test_each_record_is_selected_once_by_source_ranges_that_divide_the_offsets(
    codes: list[int], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(codes)), max_size=5)))
    bounds = list(zip([0, *cuts], [*cuts, len(codes)], strict=True))
    objects = [Thing(path, (SourceRange(start, end, 0),)) for start, end in bounds if start < end for path in "ab"]
    times = np.zeros(len(codes), dtype=np.int64)
    for _, indices in select_rows(group_by_id(objects), rows(0, codes), 0):
        times[indices] += 1
    assert times.tolist() == [1 if code >= 0 else 0 for code in codes]


@given(
    st.lists(
        st.builds(Thing, st.sampled_from("abc"), sources(), st.sampled_from([None, "s1", "s2", "s3"])),
        max_size=5,
        unique=True,
    ),
    st.lists(st.integers(-2, 1), min_size=1, max_size=40),
    st.integers(0, 10),
)
def test_the_selected_rows_are_those_in_a_range_of_the_clock_whose_path_and_schema_are_the_objects(
    objects: list[Thing], codes: list[int], first: int
) -> None:
    batch = rows(first, codes, [(first + n) % 3 - 1 for n in range(len(codes))])
    for clock in range(4):
        expected = {
            o: [
                first + n
                for n, code in enumerate(codes)
                if code >= 0
                and batch.paths[code] == o.path
                and [None, "s1", "s2"][(first + n) % 3] == o.schema
                and any(s.clock == clock and s.start <= first + n < s.end for s in o.sources)
            ]
            for o in objects
        }
        assert chosen(objects, batch, clock) == {o: offsets for o, offsets in expected.items() if offsets}


@given(st.lists(st.builds(Thing, st.sampled_from("ab"), sources()), max_size=5), st.integers(0, 40), st.integers(0, 9))
def test_clock_ranges_ascend_by_clock_and_cover_every_source_in_the_batch(
    objects: list[Thing], first: int, length: int
) -> None:
    last = first + length
    ranges = clock_ranges(objects, first, last)
    assert list(ranges) == sorted(ranges)
    covered = {(s.clock, n) for o in objects for s in o.sources for n in range(s.start, s.end) if first <= n <= last}
    assert covered <= {(clock, n) for clock, (start, end) in ranges.items() for n in range(start, end)}
    assert all(first <= start < end <= last + 1 for start, end in ranges.values())
