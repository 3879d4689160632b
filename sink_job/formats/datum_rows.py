"""The frame of an object around its blocks: a header, blocks that are encoded once, and a footer.

The object encoder decides the bytes of each block from its rows and its position in the object, so they depend on
records and settings alone (P3). `ConcatenatedBlocks` frames nothing: an object is its compressed blocks. A *container*
(`AvroContainer`, `ParquetContainer`) has a header, and maybe a footer; its rows are datums: each is the Avro datum of a
record, without wire format. It is staged after its length as 4 bytes, little endian. So staged rows can be separated
again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers
from sink_job.formats.base import Block
from sink_job.formats.block_rows import DATUM_BATCH, LENGTH, BlockRows, lengths_of
from sink_job.formats.compression import Compression


class ConcatenatedBlocks:
    """An object that is the concatenation of its compressed blocks."""

    is_container = False

    def __init__(self, compression: Compression) -> None:
        self.block_size = compression.block_size
        self._compression = compression

    def header(self) -> bytes:
        return b""

    def block(self, rows: BlockRows, position: int) -> Block:
        return Block(self._compression.compress(rows.take()))

    def footer(self, indexes: Sequence[bytes]) -> bytes:
        return b""


class DatumRows:
    """The row encoder of containers: a row is a datum, which counts and is staged with its length."""

    prefix_bytes = LENGTH.size

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """See `RowEncoder.encode`."""
        return values


def with_lengths(values: pa.BinaryArray) -> pa.BinaryArray:
    r"""Datums, each after its length.

    >>> with_lengths(arrow_columns.binaries([b"a", b"", b"bc"])).to_pylist()
    [b'\x01\x00\x00\x00a', b'\x00\x00\x00\x00', b'\x02\x00\x00\x00bc']
    """
    ends = pa.py_buffer(np.arange(0, LENGTH.size * len(values) + 1, LENGTH.size, dtype=np.int32))
    lengths = pa.py_buffer(lengths_of(arrow_columns.bounds(values)))
    prefixes = pa.Array.from_buffers(pa.binary(), len(values), [None, ends, lengths])
    return pc.binary_join_element_wise(prefixes, values, arrow_columns.binaries([b""])[0])


def datums(rows: bytes) -> Iterator[pa.BinaryArray]:
    """The datums of staged rows, in batches of about DATUM_BATCH.

    >>> rows = with_lengths(arrow_columns.binaries([b"a", b"", b"bc"])).to_pylist()
    >>> [batch.to_pylist() for batch in datums(b"".join(rows))]
    [[b'a', b'', b'bc']]
    """
    start, prefix, unpack = 0, LENGTH.size, LENGTH.unpack_from
    while start < len(rows):
        at, ends = start, array("q", [start])  # a list of integers would be larger than short rows
        stop = min(start + DATUM_BATCH, len(rows))
        while at < stop:
            at += prefix + unpack(rows, at)[0]
            ends.append(at)
        yield _without_lengths(memoryview(rows)[start:at], np.frombuffer(ends, np.int64) - start)
        start = at


def _without_lengths(rows: memoryview, ends: Integers) -> pa.BinaryArray:
    """The datums of rows that end at `ends`; the first of these is 0."""
    bounds = np.empty(2 * len(ends) - 1, np.int32)
    bounds[::2], bounds[1::2] = ends, ends[:-1] + LENGTH.size  # length, datum, length, datum, …
    both = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(rows)])
    return both.take(arrow_columns.integers(np.arange(1, len(both), 2)))


def with_length(index: bytes) -> bytes:
    """An index as it is kept until the footer is written: after its length. Empty for an empty one."""
    return LENGTH.pack(len(index)) + index if index else b""


def split_indexes(concatenated: bytes) -> list[bytes]:
    """The indexes in the concatenation of such ones."""
    return [index for batch in datums(concatenated) for index in batch.to_pylist()]
