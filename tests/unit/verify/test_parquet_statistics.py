"""The statistics in the footers of Parquet objects against the ledger and each other."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.verify.parquet_statistics import statistics_difference


def metadata_of(table: pa.Table, **given: Any) -> pq.FileMetaData:
    """The footer of an object with two records in each row group."""
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2, **given)
    return pq.read_metadata(file)


def with_offsets(*offsets: int, **given: Any) -> pq.FileMetaData:
    return metadata_of(pa.table({"a": ["x"] * len(offsets), "offset": offsets}), **given)


def difference(metadata: Any, *, first: int = 0, last: int = 2, offset_column: str | None = None) -> str | None:
    o = ClosedObject("k", "t", 0, "p", first, last, 0, 0, "u", (), (), OffsetChecksum(), 1)
    return statistics_difference(metadata, o, offset_column)


@pytest.mark.parametrize("offsets", [(7, 8, 9), (3, 8, 20), (5, 6)])
def test_offsets_of_the_ledger_are_no_difference(offsets: tuple[int, ...]) -> None:
    assert difference(with_offsets(*offsets), first=offsets[0], last=offsets[-1], offset_column="offset") is None


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (
            (6, 8, 9),
            "0 of its Parquet footer has 2 records with the offsets 6 to 8, and in the ledger 7 to 9",
        ),
        ((7, 8, 10), "1 of its Parquet footer has 1 records with the offsets 10 to 10"),
        (
            (7, 9, 8),
            "1 of its Parquet footer has 1 records with the offsets 8 to 8, and in the ledger 10 to 9",
        ),
        ((7, 7, 9), "0 of its Parquet footer has 2 records with the offsets 7 to 7"),
        ((8, 8, 9), "0 of its Parquet footer has 2 records with the offsets 8 to 8"),
        (
            (7, 8, 8),
            "1 of its Parquet footer has 1 records with the offsets 8 to 8, and in the ledger 9 to 9",
        ),
    ],
)
def test_other_offsets_are_a_difference(offsets: tuple[int, ...], message: str) -> None:
    found = difference(with_offsets(*offsets), first=7, last=9, offset_column="offset")
    assert found is not None
    assert found.startswith(f"row group {message}")


def test_missing_offsets_at_an_end_are_a_difference() -> None:
    assert difference(with_offsets(8, 9), first=7, last=9, offset_column="offset") == (
        "its Parquet footer has the offsets 8 to 9, and the ledger 7 to 9"
    )


def test_offsets_without_statistics_are_no_difference() -> None:
    metadata = with_offsets(70, 80, 90, write_statistics=["a"])
    assert difference(metadata, first=7, last=9, offset_column="offset") is None


def test_a_column_of_the_value_with_the_name_offset_is_not_compared() -> None:
    assert difference(with_offsets(70, 80, 90), first=7, last=9) is None


@given(values=st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), min_size=1, max_size=9))
def test_nulls_and_lists_are_no_difference(values: list[list[int | None] | None]) -> None:
    columns = {"lists": values, "numbers": [None if each is None else len(each) for each in values]}
    assert difference(metadata_of(pa.table(columns | {"s": [{"x": each} for each in values]}))) is None


class Damaged:
    """Metadata of which a test changes a number."""

    def __init__(self, found: Any, **changed: Any) -> None:
        self._found = found
        self._changed = changed

    def __getattr__(self, name: str) -> Any:
        return self._changed.get(name, getattr(self._found, name))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nulls": 3}, "has 3 nulls among 2 values of the column a"),
        ({"values": 5}, "has 2 records and 5 values of the column a"),
    ],
)
def test_numbers_that_no_values_have_are_a_difference(changed: dict[str, int], message: str) -> None:
    metadata = with_offsets(1, 2)
    chunk = metadata.row_group(0).column(0)
    statistics = Damaged(chunk.statistics, null_count=changed.get("nulls", 0))
    chunk = Damaged(chunk, statistics=statistics, num_values=changed.get("values", 2))
    group = Damaged(metadata.row_group(0), column=lambda n: chunk)
    found = difference(Damaged(metadata, row_group=lambda n: group))
    assert found == f"row group 0 of its Parquet footer {message}"


def test_a_row_group_without_bounds_is_passed_over() -> None:
    metadata = with_offsets(7, 8, 20, 21, 30)
    without = Damaged(metadata.row_group(1).column(1), is_stats_set=False)
    group = Damaged(metadata.row_group(1), column=lambda n: without)
    some = Damaged(metadata, row_group=lambda n: group if n == 1 else metadata.row_group(n))
    assert difference(some, first=7, last=30, offset_column="offset") is None
    assert difference(some, first=6, last=31, offset_column="offset") is None, "the ends are not known"
    found = difference(some, first=7, last=29, offset_column="offset")
    assert found is not None
    assert found.endswith("has 1 records with the offsets 30 to 30, and in the ledger 9 to 29 remain for it")


def test_an_object_without_the_column_of_offsets_is_not_compared() -> None:
    assert difference(metadata_of(pa.table({"a": [1, 2, 3]})), offset_column="offset") is None


def test_nulls_in_a_required_column_are_a_difference() -> None:
    table = pa.table({"a": [1, 2]}, schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    metadata = metadata_of(table)
    chunk = Damaged(
        metadata.row_group(0).column(0), statistics=Damaged(metadata.row_group(0).column(0).statistics, null_count=1)
    )
    group = Damaged(metadata.row_group(0), column=lambda n: chunk)
    assert difference(Damaged(metadata, row_group=lambda n: group)) == (
        "row group 0 of its Parquet footer has 1 nulls among 2 values of the column a"
    )
