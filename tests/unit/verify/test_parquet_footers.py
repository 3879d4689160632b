"""The footers of Parquet objects against the ledger."""

from __future__ import annotations

import io
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.s3 import NotFound, S3Client
from sink_job.verify.parquet_footers import footer_difference
from sink_job.verify.parquet_statistics import statistics_difference

KEY = "topics/t/partition=0/t+0+0000000000.snappy.parquet"


class OneObject:
    """A store with one object."""

    def __init__(self, body: bytes | None) -> None:
        self.body = body

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        if self.body is None:
            raise NotFound("no such object", key, "NoSuchKey")
        return self.body[offset : offset + length]


def body_of(rows: int = 3, columns: int = 1) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({f"column {n}": list(range(rows)) for n in range(columns)}), file, row_group_size=2)
    return file.getvalue()


def difference(
    body: bytes | None, count: int = 3, *, first: int = 0, last: int = 2, offset_column: str | None = None
) -> str | None:
    part: Any = ()
    o = ClosedObject(KEY, "t", 0, "p", first, last, len(body or b""), 0, "u", part, (), OffsetChecksum(count, 0), 1)
    return footer_difference(cast("S3Client", OneObject(body)), o, offset_column)


def test_a_footer_with_the_records_of_the_ledger_is_no_difference() -> None:
    assert difference(body_of()) is None


def test_a_large_footer_is_read_as_well() -> None:
    body = body_of(columns=2_000)
    assert int.from_bytes(body[-8:-4], "little") > 64 << 10
    assert difference(body) is None


def test_another_number_of_records_is_a_difference() -> None:
    assert difference(body_of(rows=4)) == (
        "its Parquet footer counts 4 records, 4 of them in row groups, and the ledger 3"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "it is not a Parquet file: it is too short"),
        (b'{"a": 1}\n' * 9, "it is not a Parquet file: it does not end with a footer"),
        (b"PAR1" + b"\xff" * 20 + b"\x14\0\0\0PAR1", "its Parquet footer cannot be read: "),
    ],
    ids=["empty", "other content", "damaged footer"],
)
def test_an_object_without_a_footer_is_a_difference(body: bytes, message: str) -> None:
    found = difference(body)
    assert found is not None
    assert found.startswith(message)


def test_an_object_that_was_deleted_meanwhile_is_no_difference() -> None:
    assert difference(None) is None


# -- statistics --------------------------------------------------------------------------------------------------------


def with_offsets(*offsets: int, **given: Any) -> bytes:
    """An object with these offsets, two in each row group."""
    file = io.BytesIO()
    pq.write_table(pa.table({"a": ["x"] * len(offsets), "offset": offsets}), file, row_group_size=2, **given)
    return file.getvalue()


@pytest.mark.parametrize("offsets", [(7, 8, 9), (3, 8, 20), (5, 6)])
def test_offsets_of_the_ledger_are_no_difference(offsets: tuple[int, ...]) -> None:
    body, count = with_offsets(*offsets), len(offsets)
    assert difference(body, count, first=offsets[0], last=offsets[-1], offset_column="offset") is None


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
    assert difference(with_offsets(8, 9), 2, first=7, last=9, offset_column="offset") == (
        "its Parquet footer has the offsets 8 to 9, and the ledger 7 to 9"
    )


def test_offsets_without_statistics_are_no_difference() -> None:
    body = with_offsets(70, 80, 90, write_statistics=["a"])
    assert difference(body, first=7, last=9, offset_column="offset") is None


def test_a_column_of_the_value_with_the_name_offset_is_not_compared() -> None:
    assert difference(with_offsets(70, 80, 90), first=7, last=9) is None


@given(values=st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), min_size=1, max_size=9))
def test_nulls_and_lists_are_no_difference(values: list[list[int | None] | None]) -> None:
    file = io.BytesIO()
    columns = {"lists": values, "numbers": [None if each is None else len(each) for each in values]}
    pq.write_table(pa.table(columns | {"s": [{"x": each} for each in values]}), file, row_group_size=2)
    assert difference(file.getvalue(), len(values)) is None


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
    metadata = pq.read_metadata(io.BytesIO(with_offsets(1, 2)))
    chunk = metadata.row_group(0).column(0)
    statistics = Damaged(chunk.statistics, null_count=changed.get("nulls", 0))
    chunk = Damaged(chunk, statistics=statistics, num_values=changed.get("values", 2))
    group = Damaged(metadata.row_group(0), column=lambda n: chunk)
    part: Any = ()
    o = ClosedObject(KEY, "t", 0, "p", 1, 2, 0, 0, "u", part, (), OffsetChecksum(2, 0), 1)
    found = statistics_difference(cast("pq.FileMetaData", Damaged(metadata, row_group=lambda n: group)), o)
    assert found == f"row group 0 of its Parquet footer {message}"
