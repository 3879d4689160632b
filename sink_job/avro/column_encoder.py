"""Avro data of columns: each column as the elements of its rows, and rows as the concatenation of their elements.

The data are those that `sink_job.avro.encoder` makes of values row-wise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Bytes, Integers, Mask
from sink_job.arrow.columnar import UnusualValues
from sink_job.arrow.varints import encode_longs


class Short(NamedTuple):
    """At most a few bytes for each row: row r has the bytes of `data[r]` that `used[r]` marks."""

    data: Bytes
    used: Mask


Parts = list[Any]
"""The parts of each row, each a `Short` or a binary column. A row is the concatenation of its parts."""

MAX_BYTES: Final = 1 << 30
"""The maximum of the bytes of a column: well below the limit of Arrow's offsets."""


def longs(values: Integers) -> Short:
    """Longs, of 1 to 10 bytes each."""
    return Short(*encode_longs(values))


def constant(value: bytes, rows: int) -> Short:
    """The same bytes in each row."""
    data = np.broadcast_to(np.frombuffer(value, np.uint8), (rows, len(value)))
    return Short(data, np.ones((rows, len(value)), np.bool_))


def booleans(values: Mask) -> Short:
    return _bytes(values.astype(np.uint8))


def doubles(values: npt.NDArray[np.float64]) -> Short:
    return _fixed(values.astype("<f8", copy=False))


def floats(values: npt.NDArray[np.float64]) -> Short:
    """Numbers of 32 bits. One that is too large is infinite, as in Java."""
    with np.errstate(over="ignore"):
        return _fixed(values.astype("<f4"))


def _fixed(values: npt.NDArray[np.floating[npt.NBitBase]]) -> Short:
    data = values.view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return Short(data, np.ones(data.shape, np.bool_))


def _bytes(values: Bytes) -> Short:
    return Short(values[:, None], np.ones((len(values), 1), np.bool_))


def binaries(values: pa.BinaryArray) -> Parts:
    """Byte strings, each after its length."""
    return [longs(np.diff(arrow_columns.bounds(values)).astype(np.int64)), values]


def texts(values: Sequence[str]) -> Parts:
    r"""Strings in UTF-8. Raises UnicodeEncodeError.

    >>> joined(texts(["a", "", "bc"]), 3).to_pylist()
    [b'\x02a', b'\x00', b'\x04bc']
    """
    joined = "".join(values)
    _check_size(len(joined))
    data = joined.encode()
    # as many bytes as characters: all are ASCII, so the lengths of the strings are those of the data
    encoded: Iterable[str | bytes] = values if len(data) == len(joined) else map(str.encode, values)
    lengths = np.fromiter(map(len, encoded), np.int64, len(values))
    return [longs(lengths), _column(np.concatenate(([0], np.cumsum(lengths))), data)]


def lists(counts: Integers, items: pa.BinaryArray) -> Parts:
    r"""Arrays and maps of `counts` items: the data of all items, in order.

    >>> items = joined([longs(np.array([1, 2, 3]))], 3)  # of [1, 2], [] and [3]
    >>> joined(lists(np.array([2, 0, 1]), items), 3).to_pylist()
    [b'\x04\x02\x04\x00', b'\x00', b'\x02\x06\x00']
    """
    ends = np.concatenate(([0], np.cumsum(counts)))
    content = _column(arrow_columns.bounds(items).astype(np.int64)[ends], items.buffers()[2])
    # an empty array is the count 0 alone; the others end with the count 0 of a further block
    return [longs(counts), content, Short(np.zeros((len(counts), 1), np.uint8), (counts > 0)[:, None])]


def spread(parts: Parts, present: Mask) -> Parts:
    r"""Parts of the rows `present`, for all rows: the others have no bytes.

    >>> present = np.array([True, False, True])
    >>> some = [longs(np.array([1, 3]))]
    >>> joined([branches(present, 0, 1), *spread(some, present)], 3).to_pylist()
    [b'\x02\x02', b'\x00', b'\x02\x06']
    """
    return [_spread_short(part, present) if isinstance(part, Short) else _spread(part, present) for part in parts]


def _spread_short(part: Short, present: Mask) -> Short:
    data = np.zeros((len(present), part.data.shape[1]), np.uint8)
    used = np.zeros(data.shape, np.bool_)
    data[present], used[present] = part
    return Short(data, used)


def _spread(part: pa.BinaryArray, present: Mask) -> pa.BinaryArray:
    bounds = arrow_columns.bounds(part)
    return _column(bounds[np.concatenate(([0], np.cumsum(present)))], part.buffers()[2])


def branches(present: Mask, null: int, value: int) -> Short:
    """The index of the member of a union with null: `value` for the rows `present`, else `null`."""
    return longs(np.where(present, value, null))


def joined(parts: Parts, rows: int) -> pa.BinaryArray:
    r"""The concatenation of the parts of each row. Raises UnusualValues if it is too large for a column.

    >>> joined([constant(b"<", 3), *texts(["a", "", "bc"]), constant(b">", 3)], 3).to_pylist()
    [b'<\x02a>', b'<\x00>', b'<\x04bc>']
    """
    columns: list[pa.BinaryArray] = []
    # a run of short parts becomes one column in one pass of NumPy
    for is_short, group in groupby(parts, lambda part: isinstance(part, Short)):
        adjacent: list[Any] = list(group)
        columns += [_short_column(adjacent)] if is_short else adjacent
    if not columns:
        return _column(np.zeros(rows + 1, np.int64), b"")
    _check_size(sum(int(np.ptp(arrow_columns.bounds(column)[[0, -1]])) for column in columns))
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, arrow_columns.binaries([b""])[0])


def _short_column(parts: list[Short]) -> pa.BinaryArray:
    data, used = (np.hstack(each) if len(parts) > 1 else each[0] for each in zip(*parts, strict=True))
    ends = np.concatenate(([0], np.cumsum(np.count_nonzero(used, axis=1))))
    return _column(ends, data[used].tobytes())


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise UnusualValues("the values are too large to be encoded column-wise")


def _column(bounds: npt.NDArray[Any], content: bytes | pa.Buffer | None) -> pa.BinaryArray:
    buffer = content if isinstance(content, pa.Buffer) else pa.py_buffer(content or b"")
    return pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds.astype(np.int32, copy=False)), buffer]
    )
