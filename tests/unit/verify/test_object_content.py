"""The content of an object against its expected rows: which row differs first, and what remains at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.formats.compression import Uncompressed
from sink_job.ledger.state import OffsetChecksum
from sink_job.verify.object_content import SMALL, Difference, RowContent, difference_of, first_difference
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from sink_job.writer.row_slices import RowSlice
from tests.support.memory_s3 import MemoryS3


def rows_of(*rows: bytes) -> RowSlice:
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return RowSlice(memoryview(b"".join(rows)), ends, np.arange(len(rows)), OffsetChecksum())


def content(body: bytes | None) -> RowContent:
    s3: Any = MemoryS3()
    if body is not None:
        s3.put("key", body)
    return RowContent(ObjectReader(s3, "key", Uncompressed(), step=7))


@pytest.mark.parametrize(
    ("expected", "stored", "index"),
    [
        (b"", b"", None),
        (b"abc", b"abc", None),
        (b"abc", b"abd", 2),
        (b"abc", b"xbc", 0),
        (b"abc", b"ab", 2),
        (b"abc", b"", 0),
    ],
)
def test_the_first_different_byte_is_located(expected: bytes, stored: bytes, index: int | None) -> None:
    assert first_difference(memoryview(expected), stored) == index


@given(st.binary(max_size=9), st.binary(max_size=9), st.booleans())
def test_a_large_content_is_compared_as_a_small_one(expected: bytes, stored: bytes, is_large: bool) -> None:
    head = bytes(SMALL if is_large else 0)
    size = min(len(expected), len(stored))
    index = next((n for n in range(size) if expected[n] != stored[n]), size)
    found = first_difference(memoryview(head + expected), head + stored)
    assert found == (None if expected == stored else len(head) + index)


@pytest.mark.parametrize(
    ("stored", "difference"),
    [
        (b"aabbcc", None),
        (b"xabbcc", Difference(0, False)),
        (b"axbbcc", Difference(0, False)),
        (b"aaxbcc", Difference(1, False)),
        (b"aabbcx", Difference(2, False)),
        (b"aabbc", Difference(2, True)),
        (b"aabb", Difference(2, True)),
        (b"aab", Difference(1, True)),
        (b"", Difference(0, True)),
        (b"aabbccdd", Difference(2, False)),
    ],
)
def test_the_row_of_the_first_different_byte_is_named(stored: bytes, difference: Difference | None) -> None:
    assert difference_of(rows_of(b"aa", b"bb", b"cc"), stored) == difference


def test_an_empty_row_is_not_named_for_the_byte_after_it() -> None:
    assert difference_of(rows_of(b"aa", b"", b"cc"), b"aaxc") == Difference(2, False)


def test_rows_are_compared_one_slice_after_the_other_up_to_the_end() -> None:
    found = content(b"aabbcc")
    assert [found.compare(rows_of(b"aa", b"bb")), found.compare(rows_of(b"cc")), found.remaining()] == [None] * 3


def test_an_object_with_more_than_its_records_is_reported_at_its_end() -> None:
    found = content(b"aabb")
    assert found.compare(rows_of(b"aa")) is None
    assert found.remaining() == "the object has more content after its last record"


def test_an_object_that_ends_early_lacks_the_row() -> None:
    found = content(b"aab")
    assert found.compare(rows_of(b"aa")) is None
    assert found.compare(rows_of(b"bb", b"cc")) == Difference(0, True)


def test_a_deleted_object_cannot_be_read() -> None:
    with pytest.raises(ObjectUnreadable):
        content(None).compare(rows_of(b"aa"))
