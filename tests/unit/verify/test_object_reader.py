"""Reading an object's rows back: in whatever pieces they come, compressed or not, and damage is told."""

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
    """An S3 with one object, streamed in pieces of `step` bytes; `fails` is raised behind the last."""

    def __init__(self, body: bytes, fails: Exception | None = None) -> None:
        self.body = body
        self.fails = fails

    def stream(self, key: str, *, step: int) -> Iterator[bytes]:
        for start in range(0, len(self.body), step):
            yield self.body[start : start + step]
        if self.fails:
            raise self.fails


def body(stored: bytes, compression: Compression, *, step: int = 7, fails: Exception | None = None) -> ObjectReader:
    store: Any = Store(stored, fails)
    return ObjectReader(store, "key", compression, step=step)


PLAIN, GZIP = Uncompressed(), Gzip(2)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.integers(1, 60), st.booleans())
def test_rows_come_back_as_they_were(members: list[bytes], step: int, packed: bool) -> None:
    stored = b"".join(GZIP.compress(member) if packed else member for member in members)
    reader = body(stored, GZIP if packed else PLAIN, step=step)
    rows = b"".join(members)
    half = len(rows) // 2
    assert reader.read(half) == rows[:half]
    assert reader.read(len(rows)) == rows[half:]
    assert reader.read(1) == b""


def test_damaged_gzip_is_told() -> None:
    stored = bytearray(gzip.compress(b"abc" * 1000))
    stored[-5] ^= 255
    with pytest.raises(ObjectUnreadable, match="gzip"):
        body(bytes(stored), GZIP).read(10_000)


def test_gzip_that_ends_too_early_is_told() -> None:
    with pytest.raises(ObjectUnreadable, match="gzip"):
        body(gzip.compress(b"abc" * 1000)[:-9], GZIP).read(10_000)


def test_a_body_that_is_gone_is_told() -> None:
    with pytest.raises(ObjectUnreadable, match="cannot be read"):
        body(b"", PLAIN, fails=NotFound("no such object", "key", "NoSuchKey")).read(1)


def test_a_checksum_that_does_not_fit_is_told_when_all_bytes_are_read() -> None:
    reader = body(b"abcdef", PLAIN, fails=ChecksumMismatch("another checksum", "key"))
    assert reader.read(6) == b"abcdef"
    with pytest.raises(ObjectUnreadable, match="another checksum"):
        reader.read(1)
