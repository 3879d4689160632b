"""Reads of an object's rows: in chunks of any size, compressed or not; damage is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.formats.compression import Compression, Gzip, Uncompressed, Zstd, zstd
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


PLAIN, GZIP, ZSTD = Uncompressed(), Gzip(2), Zstd(3)


@given(
    st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=6),
    st.integers(1, 60),
    st.sampled_from([PLAIN, GZIP, ZSTD]),
)
def test_rows_are_read_back_unchanged(members: list[bytes], step: int, compression: Compression) -> None:
    reader = reader_of(b"".join(map(compression.compress, members)), compression, step=step)
    rows = b"".join(members)
    half = len(rows) // 2
    assert reader.read(half) == rows[:half]
    assert reader.read(len(rows)) == rows[half:]
    assert reader.read(1) == b""


CODECS = pytest.mark.parametrize(("compression", "name"), [(GZIP, "gzip"), (ZSTD, "zstd")], ids=["gzip", "zstd"])


@CODECS
def test_damaged_content_is_reported(compression: Compression, name: str) -> None:
    stored = bytearray(compression.compress(b"abc" * 1000))
    stored[-5 if name == "gzip" else -1] ^= 255  # in the checksum
    with pytest.raises(ObjectUnreadable, match=f"not valid {name}"):
        reader_of(bytes(stored), compression).read(10_000)


@CODECS
@pytest.mark.parametrize("frames", [1, 2])
def test_truncated_content_is_reported(compression: Compression, name: str, frames: int) -> None:
    with pytest.raises(ObjectUnreadable, match=f"not valid {name}"):
        reader_of((compression.compress(b"abc" * 1000) * frames)[:-9], compression).read(10_000)


@CODECS
def test_content_without_compression_is_reported(compression: Compression, name: str) -> None:
    with pytest.raises(ObjectUnreadable, match=f"not valid {name}"):
        reader_of(b'{"n": 1}\n' * 100, compression).read(10_000)


def test_an_empty_object_is_not_valid_zstd() -> None:
    with pytest.raises(ObjectUnreadable, match="not valid zstd"):
        reader_of(b"", ZSTD).read(1)


@pytest.mark.parametrize("level", [1, 19])
def test_a_frame_with_a_row_beyond_the_largest_window_is_read(level: int) -> None:
    row = b"abcde" * 2_000_000
    reader = reader_of(Zstd(level).compress(row), ZSTD, step=1 << 20)
    assert reader.read(len(row) + 1) == row


def test_a_frame_that_needs_a_larger_window_than_the_sinks_is_reported() -> None:
    parameters = zstd.CompressionParameter
    options = {parameters.window_log: 27, parameters.content_size_flag: 0}
    stored = zstd.compress(b"abc" * 100_000_000, options={int(key): value for key, value in options.items()})
    with pytest.raises(ObjectUnreadable, match="not valid zstd"):
        reader_of(stored, ZSTD, step=1 << 20).read(10_000)


def test_a_missing_object_is_reported() -> None:
    with pytest.raises(ObjectUnreadable, match="cannot be read"):
        reader_of(b"", PLAIN, fails=NotFound("no such object", "key", "NoSuchKey")).read(1)


def test_a_checksum_mismatch_is_reported_after_all_bytes_are_read() -> None:
    reader = reader_of(b"abcdef", PLAIN, fails=ChecksumMismatch("another checksum", "key"))
    assert reader.read(6) == b"abcdef"
    with pytest.raises(ObjectUnreadable, match="another checksum"):
        reader.read(1)
