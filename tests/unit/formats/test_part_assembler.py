"""Parts depend on the records alone, and not on batches, spilling or the bytes staged between rounds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools.bucket_listing import decompressed
from sink_job.formats.compression import Compression, Gzip, Uncompressed, Zstd
from sink_job.formats.datum_rows import ConcatenatedBlocks
from sink_job.formats.part_assembler import LARGE_CHUNK, MAX_JOINED, PartAssembler, PartBody
from sink_job.formats.pending import NOTHING, StagedPrefix
from sink_job.formats.remainder import Remainder
from sink_job.formats.spill_buffer import SpillPool


class SmallGzip(Gzip):
    """Gzip with members of 40 uncompressed bytes, so that a few rows fill several members."""

    block_size = 40


ROWS = st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=40)


class SmallZstd(Zstd):
    """Zstd with frames of 40 uncompressed bytes."""

    block_size = 40


COMPRESSIONS = st.sampled_from([Uncompressed(), SmallGzip(2), SmallZstd(3)])


def append(assembler: PartAssembler, rows: list[bytes]) -> list[bytes]:
    ends = np.cumsum([len(r) for r in rows], dtype=np.int64)
    return list(map(bytes, assembler.append(memoryview(b"".join(rows)), ends)))


def staged(chunks: list[bytes]) -> StagedPrefix:
    return StagedPrefix(sum(map(len, chunks)), lambda: b"".join(chunks))


def in_one_batch(
    rows: list[bytes], compression: Compression, part_size: int, *, equal_parts: bool = False
) -> list[bytes]:
    with SpillPool(1 << 30) as pool:
        assembler = PartAssembler(
            part_size=part_size, equal_parts=equal_parts, encoder=ConcatenatedBlocks(compression), spool=pool
        )
        parts = append(assembler, rows)
        return [*parts, *map(bytes, assembler.finish())]


@given(
    ROWS,
    COMPRESSIONS,
    st.integers(5, 200),
    st.booleans(),
    st.integers(0, 60),
    st.lists(st.integers(0, 40), max_size=6),
    st.data(),
)
def test_parts_do_not_depend_on_batches_rounds_or_memory(
    rows: list[bytes],
    compression: Compression,
    part_size: int,
    equal_parts: bool,
    limit: int,
    cuts: list[int],
    data: st.DataObject,
) -> None:
    parts: list[bytes] = []
    before: Remainder[list[bytes]] = Remainder([], [], [])
    bounds = sorted({0, len(rows), *(c for c in cuts if c < len(rows))})
    for start, end in pairwise(bounds):
        with SpillPool(limit) as pool:
            assembler = PartAssembler(
                part_size=part_size,
                equal_parts=equal_parts,
                encoder=ConcatenatedBlocks(compression),
                spool=pool,
                position=sum(map(len, parts)),
                staged=before.map(staged),
            )
            middle = data.draw(st.integers(start, end))
            for batch in (rows[start:middle], rows[middle:end]):
                if batch:
                    parts += append(assembler, batch)
            if end == len(rows):
                parts += map(bytes, assembler.finish())
                break
            if data.draw(st.booleans()):
                assembler.compact()
            before = assembler.take_remainder().combine(
                before, lambda new, chunks: [*(chunks if new.keeps_staged else []), new.data]
            )
    assert parts == in_one_batch(rows, compression, part_size, equal_parts=equal_parts)


@given(ROWS, COMPRESSIONS, st.integers(5, 200))
def test_with_equal_parts_each_part_but_the_last_has_exactly_the_part_size(
    rows: list[bytes], compression: Compression, part_size: int
) -> None:
    parts = in_one_batch(rows, compression, part_size, equal_parts=True)
    assert {len(part) for part in parts[:-1]} <= {part_size}
    assert 0 < len(parts[-1]) <= part_size


@given(ROWS, COMPRESSIONS, st.integers(5, 200))
def test_an_object_has_the_same_bytes_with_equal_parts(
    rows: list[bytes], compression: Compression, part_size: int
) -> None:
    equal, other = (in_one_batch(rows, compression, part_size, equal_parts=each) for each in (True, False))
    assert b"".join(equal) == b"".join(other)


@given(ROWS, COMPRESSIONS, st.integers(20, 200))
def test_each_part_but_the_last_reaches_the_part_size_without_an_extra_block(
    rows: list[bytes], compression: Compression, part_size: int
) -> None:
    parts = in_one_batch(rows, compression, part_size)
    assert all(len(part) >= part_size for part in parts[:-1])
    if isinstance(compression, Uncompressed):
        longest = max(len(r) for r in rows)
        assert all(len(part) < part_size + longest for part in parts)


@given(ROWS, COMPRESSIONS, st.integers(20, 200))
def test_the_parts_of_an_object_decompress_to_its_rows(
    rows: list[bytes], compression: Compression, part_size: int
) -> None:
    content = b"".join(in_one_batch(rows, compression, part_size))
    assert decompressed(content, f"key{compression.extension}") == b"".join(rows)


def test_staged_bytes_of_earlier_rounds_are_not_read_before_a_part_needs_them() -> None:
    def never() -> bytes:
        raise AssertionError("read too early")

    with SpillPool(1 << 20) as pool:
        staged_bytes = Remainder(StagedPrefix(50, never), NOTHING, NOTHING)
        encoder = ConcatenatedBlocks(Uncompressed())
        assembler = PartAssembler(part_size=100, encoder=encoder, spool=pool, staged=staged_bytes)
        assert append(assembler, [b"x" * 49]) == []
        with pytest.raises(AssertionError, match="too early"):
            append(assembler, [b"x"])


def test_beyond_its_limit_a_spill_pool_keeps_bytes_on_disk_and_returns_them_in_order() -> None:
    with SpillPool(100) as pool:
        first, second = pool.hold(), pool.hold()
        for n in range(50):
            first.add(b"a%02d" % n)
            second.add(b"b%02d" % n)
        assert pool.spilled > 0
        assert pool.used <= 100
        assert b"".join(first.take()) == b"".join(b"a%02d" % n for n in range(50))
        assert b"".join(second.take()) == b"".join(b"b%02d" % n for n in range(50))
        assert pool.used == 0


CHUNKS = st.lists(st.sampled_from([0, 1, 100, LARGE_CHUNK - 1, LARGE_CHUNK, LARGE_CHUNK + 1]), max_size=40)


@given(CHUNKS)
def test_a_body_has_the_bytes_of_its_chunks_and_joins_small_ones_only(sizes: list[int]) -> None:
    chunks = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    body = PartBody.of(chunks)
    assert (bytes(body), body.size) == (b"".join(chunks), sum(sizes))
    kept = [chunk for chunk in body if any(chunk is each for each in chunks)]
    assert len([chunk for chunk in kept if len(chunk) >= LARGE_CHUNK]) == len([s for s in sizes if s >= LARGE_CHUNK])
    assert all(len(chunk) < MAX_JOINED + LARGE_CHUNK for chunk in body)
    assert not any(len(a) < LARGE_CHUNK and len(b) < LARGE_CHUNK for a, b in pairwise(body) if len(a) < MAX_JOINED)
