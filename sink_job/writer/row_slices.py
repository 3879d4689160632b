"""A prepared batch taken apart: for each choice of its rows their bytes, where each row ends, and the tally of offsets.

A batch may go to thousands of objects, a few rows to each, so what can be done for the whole batch is done once: one
gathering of bytes, one hashing of offsets. What is left per object is a slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.ledger.offset_checksum import hash_offsets
from sink_job.ledger.state import OffsetChecksum
from sink_job.writer.record_pipeline import PreparedBatch

Chosen = slice | npt.NDArray[np.intp]
Ints = npt.NDArray[np.int64]


class RowSlice(NamedTuple):
    """Rows for one object: their bytes one behind the other, where each ends in them, their offsets and their tally."""

    data: memoryview
    ends: Ints
    offsets: Ints
    tally: OffsetChecksum


def row_slices(prepared: PreparedBatch, choices: Sequence[Chosen]) -> Iterator[RowSlice]:
    """The rows of each choice: a stretch of the batch, or ascending row numbers.

    A piece that is most of its batch is a view of it; smaller ones are copied, so that they don't keep it in memory.
    """
    whole = _Rows(prepared.encoded, prepared.rows.offsets)
    scattered = [chosen for chosen in choices if not isinstance(chosen, slice)]
    together = np.concatenate(scattered) if scattered else np.zeros(0, np.intp)
    gathered = _Rows(prepared.encoded.take(pa.array(together)), prepared.rows.offsets[together]) if scattered else whole
    at = 0
    for chosen in choices:
        if isinstance(chosen, slice):
            start, end, _ = chosen.indices(len(prepared.encoded))
            yield whole.row_slice(start, end)
        else:
            yield gathered.row_slice(at, at + len(chosen))
            at += len(chosen)


class _Rows:
    """Rows that lie one behind the other."""

    def __init__(self, framed: pa.BinaryArray, offsets: Ints) -> None:
        _, bounds, data = framed.buffers()
        self._bounds = np.frombuffer(bounds, np.int32, len(framed) + 1, 4 * framed.offset).astype(np.int64)
        self._data = memoryview(data if data is not None else b"")
        self._offsets = offsets
        self._sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(hash_offsets(offsets), dtype=np.uint64)))

    def row_slice(self, start: int, end: int) -> RowSlice:
        first, last = int(self._bounds[start]), int(self._bounds[end])
        data = self._data[first:last]
        if 2 * len(data) < len(self._data):
            data = memoryview(bytes(data))
        hashed = (int(self._sums[end]) - int(self._sums[start])) & 0xFFFF_FFFF_FFFF_FFFF
        return RowSlice(
            data,
            self._bounds[start + 1 : end + 1] - first,
            self._offsets[start:end],
            OffsetChecksum(end - start, hashed),
        )
