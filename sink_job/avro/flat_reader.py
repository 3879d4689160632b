"""Reads Avro data without arrays and maps column-wise with NumPy: a field of all rows at a time.

The data are not copied before they are read, and no Python object is made for a row. The column is the one that
pyruhvro makes of the data (`sink_job.avro.column_decoder`), which is faster for short values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Bytes, Indices, Integers, Mask
from sink_job.arrow.columnar import MAX_DEPTH, NotColumnar, UnusualValues
from sink_job.avro.schema import AvroType
from sink_job.avro.visitor import all_types

MIN_TYPE_BYTES = 128 << 10
"""Data with fewer bytes for each type in a schema are read faster by pyruhvro: a type costs the same number of calls of
NumPy for a few rows as for many."""

Read = Callable[["_Rows", Mask | None], pa.Array]
"""Reads the next field of the rows that the mask marks (None: of all); the others are null."""

_FIXED: Final[dict[str, tuple[np.dtype[Any], pa.DataType]]] = {
    "float": (np.dtype("<f4"), pa.float32()),
    "double": (np.dtype("<f8"), pa.float64()),
}
_STRINGS: Final = {"string", "bytes"}
_LONGS: Final = {"int", "long", "enum"}


class FlatReader:
    """Reads data of one type."""

    def __init__(self, avro: AvroType) -> None:
        """Raises NotColumnar for a type with arrays or maps, or that pyruhvro does not read."""
        self._read = _reader(avro, 0)
        self._types = len(list(all_types(avro)))

    def is_faster(self, payload: pa.BinaryArray) -> bool:
        """Whether this takes less time than pyruhvro."""
        bounds = arrow_columns.bounds(payload)
        return int(bounds[-1] - bounds[0]) >= max(1, MIN_TYPE_BYTES * self._types)

    def read(self, payload: pa.BinaryArray) -> pa.Array:
        """The values as a column. Raises UnusualValues if the data must be read row-wise: they may be invalid."""
        rows = _Rows(payload)
        column = self._read(rows, None)
        rows.check_end()
        return column


class _Rows:
    """Data of rows, each with the position up to which it was read."""

    def __init__(self, payload: pa.BinaryArray) -> None:
        bounds = arrow_columns.bounds(payload).astype(np.int64)
        self._buffer: pa.Buffer = payload.buffers()[2]
        self._data: Bytes = arrow_columns.content(payload)
        self._at: Integers = bounds[:-1].copy()
        self._ends: Integers = bounds[1:]

    def __len__(self) -> int:
        return len(self._at)

    def check_end(self) -> None:
        """Raises UnusualValues if a datum is longer than its type."""
        if (self._at != self._ends).any():
            raise UnusualValues("a datum is longer than its type")

    def longs(self, present: Mask | None) -> Integers:
        """The next integer of each row, 0 for absent rows."""
        if present is None:
            values, self._at = self._read_longs(self._at, self._ends)
            return values
        rows = np.flatnonzero(present)
        found = np.zeros(len(self), np.int64)
        found[rows], self._at[rows] = self._read_longs(self._at[rows], self._ends[rows])
        return found

    def _read_longs(self, at: Integers, ends: Integers) -> tuple[Integers, Integers]:
        """The integers at positions, and the positions after them."""
        byte = self._bytes_at(at, ends)
        value = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        more: Indices = np.flatnonzero(byte >= 0x80)
        shift = 7
        while len(more):
            byte = self._bytes_at(at[more], ends[more])
            if shift == _LAST_SHIFT and (byte > 1).any():
                raise UnusualValues("an integer has more than 64 bits")
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            more = more[byte >= 0x80]
            shift += 7
        return ((value >> np.uint64(1)) ^ (~(value & np.uint64(1)) + np.uint64(1))).view(np.int64), at

    def _bytes_at(self, at: Integers, ends: Integers) -> Bytes:
        if (at >= ends).any():
            raise UnusualValues("a datum is shorter than its type")
        return self._data[at]

    def fixed(self, present: Mask | None, kind: np.dtype[Any]) -> npt.NDArray[np.generic]:
        """The next number of each row, 0 for absent rows."""
        rows: Indices | slice = slice(None) if present is None else np.flatnonzero(present)
        at = self._at[rows]
        if (at + kind.itemsize > self._ends[rows]).any():
            raise UnusualValues("a datum is shorter than its type")
        found = np.zeros(len(self), kind)
        found[rows] = self._data[at[:, None] + np.arange(kind.itemsize)].view(kind).ravel()
        self._at[rows] = at + kind.itemsize
        return found

    def booleans(self, present: Mask | None) -> Mask:
        """The next boolean of each row, false for absent rows."""
        rows: Indices | slice = slice(None) if present is None else np.flatnonzero(present)
        byte = self._bytes_at(self._at[rows], self._ends[rows])
        if (byte > 1).any():
            raise UnusualValues("a boolean is neither 0 nor 1")
        found = np.zeros(len(self), np.bool_)
        found[rows] = byte.view(np.bool_)
        self._at[rows] += 1
        return found

    def strings(self, present: Mask | None) -> pa.BinaryArray:
        """The next string of each row after its length, empty for absent rows."""
        lengths = self.longs(present)
        if ((lengths < 0) | (lengths > self._ends - self._at)).any():
            raise UnusualValues("a string is longer than its datum")
        bounds = np.empty(2 * len(self), np.int32)  # a string, what is before the next one, a string, …
        bounds[::2], self._at = self._at, self._at + lengths
        bounds[1::2] = self._at
        both = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), self._buffer])
        return both.take(arrow_columns.integers(np.arange(0, len(bounds), 2)))


_LAST_SHIFT: Final = 63


def _reader(avro: AvroType, depth: int, *, nullable: bool = False) -> Read:
    """`nullable`: the type is below one that can be null."""
    if depth > MAX_DEPTH:
        raise NotColumnar("a type is deep or recursive")
    if avro.kind == "union" and avro.nullable is not None:
        null = next(number for number, member in enumerate(avro.members) if member.kind == "null")
        return _nullable(null, _reader(avro.nullable, depth + 1, nullable=True))
    if avro.kind == "record" and avro.fields:
        fields = [_reader(field.type, depth + 1, nullable=nullable) for field in avro.fields]
        return _record(fields, [nullable or field.type.nullable is not None for field in avro.fields])
    if avro.kind in _LONGS:
        return lambda rows, present: _numbers(pa.int64(), rows.longs(present), present)
    if avro.kind in _FIXED:
        kind, target = _FIXED[avro.kind]
        return lambda rows, present: _numbers(target, rows.fixed(present, kind), present)
    if avro.kind in _STRINGS:
        return _strings
    if avro.kind == "boolean":
        return _booleans
    raise NotColumnar(f"{avro.kind} is not flat")


def _nullable(null: int, read: Read) -> Read:
    def reading(rows: _Rows, present: Mask | None) -> pa.Array:
        branches = rows.longs(present)
        if ((branches < 0) | (branches > 1)).any():
            raise UnusualValues("a union has no such member")
        with_value = branches != null
        if present is not None:
            with_value &= present
        return read(rows, None if with_value.all() else with_value)

    return reading


def _record(fields: list[Read], can_be_null: list[bool]) -> Read:
    def reading(rows: _Rows, present: Mask | None) -> pa.Array:
        columns = [read(rows, present) for read in fields]
        named = enumerate(zip(columns, can_be_null, strict=True))
        kind = pa.struct([pa.field(f"f{number}", each.type, nullable=null) for number, (each, null) in named])
        return pa.Array.from_buffers(kind, len(rows), [arrow_columns.validity(present)], children=columns)

    return reading


def _numbers(kind: pa.DataType, values: npt.NDArray[np.generic], present: Mask | None) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [arrow_columns.validity(present), pa.py_buffer(values)])


def _booleans(rows: _Rows, present: Mask | None) -> pa.Array:
    values = arrow_columns.booleans(rows.booleans(present))
    return pa.Array.from_buffers(pa.bool_(), len(rows), [arrow_columns.validity(present), values.buffers()[1]])


def _strings(rows: _Rows, present: Mask | None) -> pa.Array:
    _, bounds, data = rows.strings(present).buffers()
    return pa.Array.from_buffers(pa.string(), len(rows), [arrow_columns.validity(present), bounds, data])
