"""Conversion between Arrow columns and Python or NumPy values, through Arrow's buffers.

`pyarrow.array` and `to_numpy` import pandas. That import takes longer than a whole run of the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow.arrays import Bounds, Bytes, Integers, Mask


def integers(values: Integers, nulls: Mask | None = None) -> pa.Int64Array:
    """A column of 64-bit integers. The rows of the mask `nulls` are null.

    >>> integers(np.array([1, 2, 3]), np.array([False, True, False])).to_pylist()
    [1, None, 3]
    """
    valid = validity(None if nulls is None else ~nulls)
    return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(values.astype(np.int64, copy=False))])


def booleans(values: Mask) -> pa.BooleanArray:
    """A column of booleans, such as a mask for `filter`."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


MAX_BYTES: Final = 2**31 - 1
"""The maximum length of all values of a column of byte strings: its offsets have 32 bits."""


class ColumnTooLarge(RuntimeError):
    """The values of a batch have more than MAX_BYTES bytes in all."""


def check_bytes(size: int) -> None:
    """Raises ColumnTooLarge if `size` bytes are too many for a column."""
    if size > MAX_BYTES:
        raise ColumnTooLarge(
            f"the values of a batch have {size:,} bytes; the maximum is {MAX_BYTES:,}. Reduce spec.rounds.maxRecords."
        )


def binaries(values: Sequence[bytes | None]) -> pa.BinaryArray:
    """A column of byte strings. None is null. Raises ColumnTooLarge."""
    content = [value or b"" for value in values]
    ends = np.cumsum(np.fromiter(map(len, content), np.int64, len(content)))
    check_bytes(int(ends[-1]) if len(ends) else 0)
    offsets = pa.py_buffer(np.concatenate(([0], ends)).astype(np.int32))
    valid = _validity(values) if None in values else None
    return pa.Array.from_buffers(pa.binary(), len(content), [valid, offsets, pa.py_buffer(b"".join(content))])


def _validity(values: Sequence[object]) -> pa.Buffer:
    return _bits(np.fromiter((value is not None for value in values), np.bool_, len(values)))


def texts(values: Sequence[str]) -> pa.StringArray:
    """A column of strings without nulls. Raises UnicodeEncodeError for a string that UTF-8 cannot encode."""
    return binaries([value.encode() for value in values]).cast(pa.string())


def validity(present: Mask | None) -> pa.Buffer | None:
    """The buffer of a column for which rows have a value; None if all have one."""
    return None if present is None else _bits(present)


def _bits(values: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def joined(column: pa.BinaryArray, *, before: bytes = b"", after: bytes = b"") -> pa.BinaryArray:
    """The column's values, each between `before` and `after`. No value may be null.

    >>> joined(binaries([b"a", b"", b"bc"]), before=b"<", after=b">").to_pylist()
    [b'<a>', b'<>', b'<bc>']
    """
    if not before:  # faster: use `after` as the separator
        return pc.binary_join_element_wise(column, _one(b""), _one(after))
    return pc.binary_join_element_wise(_one(before), column, _one(after), _one(b""))


def without_nulls(column: pa.BinaryArray) -> pa.BinaryArray:
    """The column with an empty value in place of each null."""
    return pc.fill_null(column, _one(b"")) if column.null_count else column


def _one(value: bytes) -> pa.BinaryScalar:
    return binaries([value])[0]


def numbers(column: pa.Int64Array) -> Integers:
    """The values of a column without nulls, not copied."""
    return np.frombuffer(column.buffers()[1] or b"", np.int64, len(column), 8 * column.offset)


def truths(column: pa.BooleanArray) -> Mask:
    """The values of a column without nulls."""
    bits = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    return np.unpackbits(bits, count=column.offset + len(column), bitorder="little")[column.offset :].astype(np.bool_)


def content(column: pa.BinaryArray) -> Bytes:
    """The data buffer of the column, not copied. It may contain more than the column's values; see `bounds`."""
    return np.frombuffer(column.buffers()[2] or b"", np.uint8)


def text(column: pa.BinaryArray) -> bytes:
    """The concatenation of the column's values, copied. Python searches bytes faster than NumPy."""
    ends, buffer = bounds(column), column.buffers()[2]
    if buffer is None:
        return b""
    return bytes(memoryview(buffer)[ends[0] : ends[-1]])


def bounds(column: pa.BinaryArray) -> Bounds:
    """The start of each value in `content`, followed by the end of the last one; not copied.

    >>> values = binaries([b"a", None, b"bcd"])
    >>> bounds(values).tolist(), bytes(content(values))
    ([0, 1, 1, 4], b'abcd')
    >>> bounds(values.slice(2)).tolist()
    [1, 4]
    """
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
