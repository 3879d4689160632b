"""Reads of an object's rows: in chunks of any size, compressed or not; damage is reported."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.formats.compression import Compression, Gzip, Uncompressed
from sink_job.s3 import ChecksumMismatch, NotFound
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable


class Store:
    """A store with one object, streamed in chunks of `step` bytes; `fails` is raised after the last."""

    def __init__(self, content: bytes, fails: Exception | None = None) -> None:
        self.content = content
        self.fails = fails

    def stream(self, key: str, *, step: int) -> Iterator[bytes]:
        for start in range(0, len(self.content), step):
            yield self.content[start : start + step]
        if self.fails:
            raise self.fails


def reader_of(
    stored: bytes, compression: Compression, *, step: int = 7, fails: Exception | None = None
) -> ObjectReader:
    store: Any = Store(stored, fails)
    return ObjectReader(store, "key", compression, step=step)


PLAIN, GZIP = Uncompressed(), Gzip(2)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.integers(1, 60), st.booleans())
def test_rows_are_read_back_unchanged(members: list[bytes], step: int, compressed: bool) -> None:
    stored = b"".join(GZIP.compress(member) if compressed else member for member in members)
    reader = reader_of(stored, GZIP if compressed else PLAIN, step=step)
    rows = b"".join(members)
    half = len(rows) // 2
    assert reader.read(half) == rows[:half]
    assert reader.read(len(rows)) == rows[half:]
    assert reader.read(1) == b""


def test_damaged_gzip_is_reported() -> None:
    stored = bytearray(gzip.compress(b"abc" * 1000))
    stored[-5] ^= 255
    with pytest.raises(ObjectUnreadable, match="gzip"):
        reader_of(bytes(stored), GZIP).read(10_000)


def test_truncated_gzip_is_reported() -> None:
    with pytest.raises(ObjectUnreadable, match="gzip"):
        reader_of(gzip.compress(b"abc" * 1000)[:-9], GZIP).read(10_000)


def test_a_missing_object_is_reported() -> None:
    with pytest.raises(ObjectUnreadable, match="cannot be read"):
        reader_of(b"", PLAIN, fails=NotFound("no such object", "key", "NoSuchKey")).read(1)


def test_a_checksum_mismatch_is_reported_after_all_bytes_are_read() -> None:
    reader = reader_of(b"abcdef", PLAIN, fails=ChecksumMismatch("another checksum", "key"))
    assert reader.read(6) == b"abcdef"
    with pytest.raises(ObjectUnreadable, match="another checksum"):
        reader.read(1)
