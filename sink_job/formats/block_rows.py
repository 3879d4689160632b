"""The rows of a block in memory.

Rows of a container are datums, whose lengths are apart from their content: no row is searched for, and a content that
is written as it came is copied once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Bounds, Integers

LENGTH: Final = struct.Struct("<I")
"""The length in bytes of a datum. A row of a container counts with it, and is staged after it."""
DATUM_BATCH: Final = 4 << 20
"""Bytes of rows, with their lengths, that are decoded together. The bytes of Parquet objects depend on it."""
_STEP: Final = 1 << 15
"""Rows whose sizes are added up together: a batch has up to a million."""


class BlockRows:
    """The rows of a block, which can be taken once. `size` are their bytes with the lengths of datums, `count` is the
    number of datums."""

    def __init__(self, content: Iterable[bytes | memoryview], lengths: bytes = b"") -> None:
        """`content`: chunks whose concatenation is that of the rows. `lengths`: a `LENGTH` for each datum."""
        self._chunks = [*content][::-1]
        self._lengths = lengths
        self.size = sum(map(len, self._chunks)) + len(lengths)
        self.count = len(lengths) // LENGTH.size

    @classmethod
    def of(cls, values: pa.BinaryArray) -> Self:
        """The rows of datums."""
        return cls([arrow_columns.text(values)], lengths_of(arrow_columns.bounds(values)))

    def take_chunks(self) -> list[bytes | memoryview]:
        """The content of all rows, in chunks."""
        chunks, self._chunks = self._chunks[::-1], []
        return chunks

    def take(self) -> bytes:
        """The content of all rows."""
        return b"".join(self.take_chunks())

    def take_batches(self) -> Iterator[pa.BinaryArray]:
        """The datums, in batches: each ends with the first row at which its rows reach DATUM_BATCH. A batch that was
        taken is not kept in memory.

        >>> rows = BlockRows([b"ab", b"c"], LENGTH.pack(1) + LENGTH.pack(0) + LENGTH.pack(2))
        >>> [batch.to_pylist() for batch in rows.take_batches()]
        [[b'a', b'', b'bc']]
        """
        lengths = np.frombuffer(self._lengths, "<u4")
        while len(lengths):
            count = _rows_of_batch(lengths)
            bounds = np.zeros(count + 1, np.int32)
            np.cumsum(lengths[:count], out=bounds[1:])
            content = self._take(int(bounds[-1]))
            yield pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(content)])
            lengths = lengths[count:]

    def _take(self, size: int) -> bytes | memoryview:
        """The next `size` bytes of the content."""
        taken: list[bytes | memoryview] = []
        while size:
            chunk = memoryview(self._chunks.pop())
            if len(chunk) > size:
                self._chunks.append(chunk[size:])
                chunk = chunk[:size]
            taken.append(chunk)
            size -= len(chunk)
        return taken[0] if len(taken) == 1 else b"".join(taken)


def _rows_of_batch(lengths: npt.NDArray[np.uint32]) -> int:
    """The number of rows that reach DATUM_BATCH, or of all."""
    count, missing = 0, DATUM_BATCH
    while count < len(lengths) and missing > 0:
        ends = np.cumsum(lengths[count : count + _STEP] + np.int64(LENGTH.size))
        rows = min(int(np.searchsorted(ends, missing)) + 1, len(ends))
        count, missing = count + rows, missing - int(ends[rows - 1])
    return count


def lengths_of(bounds: Integers | Bounds) -> bytes:
    """A `LENGTH` for each value between two adjacent bounds.

    >>> lengths_of(np.array([5, 6, 6])).hex(" ", 4)
    '01000000 00000000'
    """
    return np.diff(bounds).astype("<u4").tobytes()
