"""Slices of a prepared batch: for each selection of rows their bytes, row ends and offset checksum.

A batch may go to thousands of objects, a few rows to each. Bytes are gathered and offsets are hashed once for the whole
batch; the work per object is a slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sink_job.arrow.arrays import Indices, Integers
from sink_job.ledger.offset_checksum import hash_offsets
from sink_job.ledger.state import OffsetChecksum
from sink_job.writer.record_pipeline import PreparedBatch


class RowSelection(NamedTuple):
    """Rows of a batch for one object: the id of the object's schema, and a slice or ascending row numbers."""

    schema: str | None
    rows: slice | Indices


class RowSlice(NamedTuple):
    """Rows for one object: their concatenated bytes, the end of each row in them, their offsets and checksum.
    `prefix_bytes`: see `RowEncoder`."""

    data: memoryview
    ends: Integers
    offsets: Integers
    checksum: OffsetChecksum
    prefix_bytes: int = 0

    @property
    def size(self) -> int:
        """The bytes of the rows, with their prefixes."""
        return len(self.data) + self.prefix_bytes * len(self.ends)


def row_slices(prepared: PreparedBatch, choices: Sequence[RowSelection]) -> Iterator[RowSlice]:
    """The rows of each selection, encoded under the schema of its object.

    A selection that is most of its batch is a view of it. A smaller one is a copy, which keeps no batch in memory.
    """
    encoded = prepared.encoded
    if prepared.projection is not None:
        encoded = prepared.projection.replace(encoded, choices)
    prefix = prepared.prefix_bytes
    whole = _BatchRows(encoded, prepared.rows.offsets, prefix)
    scattered = [rows for _, rows in choices if not isinstance(rows, slice)]
    together = np.concatenate(scattered) if scattered else np.zeros(0, np.intp)
    gathered = whole
    if scattered:
        gathered = _BatchRows(encoded.take(pa.array(together)), prepared.rows.offsets[together], prefix)
    at = 0
    for _, rows in choices:
        if isinstance(rows, slice):
            start, end, _ = rows.indices(len(encoded))
            yield whole.row_slice(start, end)
        else:
            yield gathered.row_slice(at, at + len(rows))
            at += len(rows)


class _BatchRows:
    """Adjacent rows."""

    def __init__(self, encoded: pa.BinaryArray, offsets: Integers, prefix_bytes: int) -> None:
        _, bounds, data = encoded.buffers()
        self._bounds = np.frombuffer(bounds, np.int32, len(encoded) + 1, 4 * encoded.offset).astype(np.int64)
        self._prefix_bytes = prefix_bytes
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
            self._prefix_bytes,
        )
