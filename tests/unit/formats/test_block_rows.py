"""The rows of a block in memory: their content in chunks, and the lengths of datums."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sink_job.formats import block_rows
from sink_job.formats.block_rows import LENGTH, BlockRows

VALUES = st.lists(st.binary(max_size=30), max_size=40)


def lengths(values: list[bytes]) -> bytes:
    return b"".join(LENGTH.pack(len(value)) for value in values)


def batches(values: list[bytes], size: int) -> list[list[bytes]]:
    """The batches as the documentation describes them, row by row."""
    found: list[list[bytes]] = []
    room = 0
    for value in values:
        if room <= 0:
            found.append([])
            room = size
        found[-1].append(value)
        room -= LENGTH.size + len(value)
    return found


@given(VALUES, st.lists(st.integers(0, 400), max_size=8), st.integers(1, 200))
def test_batches_end_with_the_row_that_reaches_their_size_whatever_the_chunks(
    values: list[bytes], cuts: list[int], size: int
) -> None:
    content = b"".join(values)
    bounds = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    chunks = [memoryview(content)[start:end] for start, end in pairwise(bounds)]
    with patch.object(block_rows, "DATUM_BATCH", size):
        found = [batch.to_pylist() for batch in BlockRows(chunks, lengths(values)).take_batches()]
    assert found == batches(values, size)


@given(VALUES)
def test_rows_of_a_column_have_its_values(values: list[bytes]) -> None:
    rows = BlockRows.of(pa.array([b"before", *values, b"after"], pa.binary())[1:-1])
    assert (rows.count, rows.size) == (len(values), sum(map(len, values)) + LENGTH.size * len(values))
    assert rows.take() == b"".join(values)


def test_a_batch_that_was_taken_is_not_kept_in_memory() -> None:
    rows = BlockRows([b"a", b"b"], LENGTH.pack(1) * 2)
    with patch.object(block_rows, "DATUM_BATCH", 1):
        next(rows.take_batches())
    assert rows.take_chunks() == [b"b"]
