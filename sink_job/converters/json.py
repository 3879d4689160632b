"""JSON without a schema: every value must be one JSON text in UTF-8, and becomes one line.

The values of a batch are read in one pass, joined by newlines. What keeps that as strict as reading each by itself: a
value that begins like a JSON value and ends like one cannot leave the parser inside of anything, because within an
array, an object or a text a newline between an end and a beginning is an error. So each value is made of whole JSON
texts, and when as many texts are found as there are values, each is one. Values that begin or end otherwise (white
space), hold line breaks or are wrong are read by themselves.

Values pass through byte for byte, but those with line breaks in them are written compactly: a record is a line.
The value `null` is no value, as with the connector.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.converters.base import Converted, Mask, null_mask
from sink_job.converters.json_fields import Extraction
from sink_job.converters.text import is_utf8, utf8_complaint
from sink_job.partitioning import arrow_columns
from sink_job.partitioning.field_values import MISSING, Rejections

_SPACE: Final = b" \t\r\n"


def _table(characters: bytes) -> Mask:
    table = np.zeros(256, np.bool_)
    table[list(characters)] = True
    return table


_BEGINS: Final = _table(b'{["-0123456789tfn')
_ENDS: Final = _table(b'}]"0123456789el')


class JsonConverter:
    """Reads JSON without a schema."""

    def __init__(self, fields: tuple[str, ...] = ()) -> None:
        self._extraction = Extraction(fields)

    def convert(self, values: pa.BinaryArray) -> Converted:
        nulls = null_mask(values)
        if nulls is None:
            return self._dense(values)
        return _spread(self._dense(values.drop_null()), nulls)

    def _dense(self, values: pa.BinaryArray) -> Converted:
        """Converts values among which there is no null."""
        if not len(values):
            return Converted(values, fields=self._extraction.columns([]))
        text = arrow_columns.text(values)
        odd = _odd(values, text)
        plain, text = (values, text) if odd is None else _without(values, odd)
        lines = arrow_columns.joined(plain, after=b"\n")
        records = self._extraction.read_lines(lines) if len(plain) and is_utf8(plain, text) else None
        if odd is None and records is not None:
            nulls = _first_bytes(values) == ord("n")
            fields = self._extraction.columns(records)
            return Converted(values, nulls=nulls if nulls.any() else None, fields=fields, lines=lines)
        return self._one_by_one(values, odd, records)

    def _one_by_one(self, values: pa.BinaryArray, odd: Mask | None, plain: list[object] | None) -> Converted:
        """Converts values of which some, `odd`, need a look of their own; `plain` are the others as read, in order, or
        None when they need it as well."""
        read = iter(plain or ())
        alone = np.ones(len(values), np.bool_) if plain is None or odd is None else odd
        rows: list[bytes] = values.to_pylist()
        nulls = np.zeros(len(rows), np.bool_)
        refused: Rejections = []
        records: list[object] = []
        for row, is_alone in enumerate(alone.tolist()):
            if not is_alone:
                nulls[row] = rows[row] == b"null"
                records.append(next(read))
                continue
            try:
                one = self._one(rows[row])
            except ValueError as wrong:
                refused.append((row, str(wrong)))
                one = _One(b"", is_null=False, record=MISSING)
            rows[row], nulls[row] = one.value, one.is_null
            records.append(one.record)
        fields = self._extraction.columns(records)
        return Converted(arrow_columns.binaries(rows), nulls if nulls.any() else None, refused, fields)

    def _one(self, value: bytes) -> _One:
        """Converts one value. Raises ValueError with what is wrong about it."""
        complaint = "the value is empty" if not value.strip(_SPACE) else utf8_complaint(value)
        if complaint:
            raise ValueError(complaint)
        record = self._extraction.read(value)
        if b"\n" in value or b"\r" in value:
            value = msgspec.json.format(value, indent=-1)
        return _One(value, is_null=value.strip(_SPACE) == b"null", record=record)


class _One(NamedTuple):
    value: bytes
    is_null: bool
    record: object


def _first_bytes(values: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """The first byte of each value; none may be empty."""
    return arrow_columns.content(values)[arrow_columns.bounds(values)[:-1]]


def _without(values: pa.BinaryArray, odd: Mask) -> tuple[pa.BinaryArray, bytes]:
    """The other values, and what they are, one behind the other."""
    plain = values.filter(arrow_columns.booleans(~odd))
    return plain, arrow_columns.text(plain)


def _odd(values: pa.BinaryArray, text: bytes) -> Mask | None:
    """The values that cannot be read together with others: empty, not beginning and ending as JSON does, or with line
    breaks in them. None when there are none. `text` is what the values are, one behind the other."""
    data, bounds = arrow_columns.content(values), arrow_columns.bounds(values)
    odd = bounds[1:] == bounds[:-1]
    if odd.any():
        full = np.flatnonzero(~odd)
        odd[full] = ~(_BEGINS[data[bounds[:-1][full]]] & _ENDS[data[bounds[1:][full] - 1]])
    else:
        odd = ~(_BEGINS[data[bounds[:-1]]] & _ENDS[data[bounds[1:] - 1]])
    if b"\n" in text or b"\r" in text:
        within = data[bounds[0] : bounds[-1]]
        breaks = np.flatnonzero((within == ord("\r")) | (within == ord("\n"))) + bounds[0]
        odd[np.searchsorted(bounds, breaks, side="right") - 1] = True
    return odd if odd.any() else None


def _spread(dense: Converted, nulls: Mask) -> Converted:
    """What was found for the rows that are not null, in the places of all rows."""
    places = np.flatnonzero(~nulls)
    index = np.zeros(len(nulls), np.int64)
    index[places] = np.arange(len(places))
    values = arrow_columns.without_nulls(dense.values.take(arrow_columns.integers(index, nulls)))
    no_value = nulls.copy()
    if dense.nulls is not None:
        no_value[places] = dense.nulls
    fields: dict[str, list[object]] = {}
    for name, found in dense.fields.items():
        column = np.full(len(nulls), MISSING, object)
        column[places] = np.fromiter(found, object, len(found))
        fields[name] = column.tolist()
    return Converted(values, no_value, [(int(places[row]), why) for row, why in dense.rejected], fields)
