"""The footers of Parquet objects against the ledger."""

from __future__ import annotations

import io
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.s3 import NotFound, S3Client
from sink_job.verify.parquet_footers import footer_difference

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


@pytest.mark.parametrize(("column", "differs"), [("offset", True), (None, False)])
def test_offsets_are_compared_only_if_the_records_contain_them(column: str | None, differs: bool) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"offset": [70, 80, 90]}), file)
    assert (difference(file.getvalue(), first=7, last=9, offset_column=column) is not None) is differs
