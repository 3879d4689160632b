"""Pending bytes and rows: what was staged comes first, and rows of containers are staged after their lengths."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow import columns as arrow_columns
from sink_job.formats.block_rows import BlockRows
from sink_job.formats.datum_rows import with_lengths
from sink_job.formats.pending import NOTHING, PendingBytes, PendingDatums, StagedPrefix
from sink_job.formats.spill_buffer import SpillPool

VALUES = st.lists(st.binary(max_size=30), max_size=20)


def as_staged(values: list[bytes]) -> bytes:
    return arrow_columns.text(with_lengths(pa.array(values, pa.binary())))


def prefix(staged: bytes) -> StagedPrefix:
    return StagedPrefix(len(staged), lambda: staged)


def add(pending: PendingDatums, values: list[bytes]) -> None:
    start = 7  # rows of an array begin at a position in a larger one
    pending.add(memoryview(b"".join(values)), start + np.cumsum([*map(len, values)], dtype=np.int64), start)


def datums(rows: BlockRows) -> list[bytes]:
    return [value for batch in rows.take_batches() for value in batch.to_pylist()]


@given(VALUES, VALUES, VALUES, st.integers(0, 200), st.booleans())
def test_datums_are_taken_in_their_order(
    staged: list[bytes], first: list[bytes], second: list[bytes], limit: int, loads: bool
) -> None:
    with SpillPool(limit) as pool:
        pending = PendingDatums(pool, prefix(as_staged(staged)))
        add(pending, first)
        if loads:
            pending.load()
        add(pending, second)
        assert pending.size == len(as_staged([*staged, *first, *second]))
        assert datums(pending.take()) == [*staged, *first, *second]
        assert (pending.size, pool.used) == (0, 0)


@given(VALUES, VALUES, st.booleans())
def test_new_datums_are_staged_after_their_lengths(staged: list[bytes], new: list[bytes], loads: bool) -> None:
    with SpillPool(1 << 20) as pool:
        pending = PendingDatums(pool, prefix(as_staged(staged)))
        add(pending, new)
        if loads:
            pending.load()
        assert pending.take_new() == as_staged([*(staged if loads else []), *new])


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_bytes_are_taken_and_staged_as_they_came(staged: bytes, new: bytes) -> None:
    with SpillPool(1 << 20) as pool:
        one, other = (PendingBytes(pool, prefix(staged)) for _ in range(2))
        one.add(memoryview(new), np.array([len(new)]), 0)
        other.buffer.add(new)
        assert one.size == len(staged + new)
        assert one.take_new() == new
        assert b"".join(other.take_chunks()) == staged + new


def test_staged_bytes_are_not_read_before_they_are_needed() -> None:
    def never() -> bytes:
        raise AssertionError("read too early")

    with SpillPool(1 << 20) as pool:
        pending = PendingDatums(pool, StagedPrefix(5, never))
        add(pending, [b"a"])
        assert (pending.size, pending.take_new()) == (10, as_staged([b"a"]))
        with pytest.raises(AssertionError, match="too early"):
            pending.take()
        assert PendingBytes(pool, NOTHING).size == 0
