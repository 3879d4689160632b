"""JSON without a schema: every value must be one JSON text in UTF-8, and becomes one line.

The values of a batch are joined by newlines and parsed in one pass. This is as strict as parsing each value separately:

- A value that starts and ends with a character of a complete JSON value cannot leave the parser inside an array, an
  object or a string: there, a newline between an end and a start is a syntax error.
- So each value consists of complete JSON texts. If the number of texts equals the number of values, each value is one
  text.

Values that start or end with another character (white space), contain line breaks, or are invalid are parsed
separately.

Values pass through byte for byte. A value with line breaks is written compactly, because a record is one line.
The JSON text `null` is no value, as in the Kafka Connect sink.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Bytes, Indices, Mask
from sink_job.arrow.utf8 import is_utf8, utf8_error
from sink_job.converters.base import BatchSource, Converted, null_mask
from sink_job.json.field_extraction import Extraction
from sink_job.records.fields import MISSING, Rejections

_SPACE: Final = b" \t\r\n"


def _table(characters: bytes) -> Mask:
    table = np.zeros(256, np.bool_)
    table[list(characters)] = True
    return table


_STARTS: Final = _table(b'{["-0123456789tfn')
_ENDS: Final = _table(b'}]"0123456789el')
"""The bytes that a JSON text can start and end with."""


class JsonConverter:
    """Converts JSON without a schema."""

    def __init__(self, fields: tuple[str, ...] = ()) -> None:
        self._extraction = Extraction(fields)

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        nulls = null_mask(values)
        if nulls is None:
            return self._dense(values)
        return _spread(self._dense(values.drop_null()), nulls)

    def convert_rows(self, rows: pa.BinaryArray, source: BatchSource) -> Converted:
        """As `convert`, for values that a newline follows. They are the rows of the output if none is changed."""
        if plain := self._plain_rows(rows):
            return plain
        values = pc.binary_slice(rows, 0, -1)
        converted = self.convert(values, source)
        return replace(converted, rows=rows) if converted.values is values else converted

    def _plain_rows(self, rows: pa.BinaryArray) -> Converted | None:
        """The rows, if none is null or unusual and all are JSON."""
        if rows.null_count or not len(rows):
            return None
        data, bounds = arrow_columns.content(rows), arrow_columns.bounds(rows)
        firsts, lasts = data[bounds[:-1]], data[bounds[1:] - 2]  # of an empty value the first byte is its newline
        are_objects = bool((firsts == ord("{")).all())
        if not (are_objects or _STARTS[firsts].all()) or not _ENDS[lasts].all() or not _are_lines(rows):
            return None
        records = self._extraction.read_lines(rows, are_objects=are_objects)
        if records is None:
            return None
        nulls = None if are_objects else firsts == ord("n")
        fields = self._extraction.columns(records)
        return Converted(rows, nulls=nulls if nulls is not None and nulls.any() else None, fields=fields, rows=rows)

    def _dense(self, values: pa.BinaryArray) -> Converted:
        """Converts `values`, none of which is null."""
        if not len(values):
            return Converted(values, fields=self._extraction.columns([]))
        unusual = _unusual(values, arrow_columns.text(values))
        plain = values if unusual is None else values.filter(arrow_columns.booleans(~unusual))
        lines = arrow_columns.joined(plain, after=b"\n")
        are_objects = bool((_first_bytes(lines) == ord("{")).all())
        is_text = len(plain) and is_utf8(plain)
        records = self._extraction.read_lines(lines, are_objects=are_objects) if is_text else None
        if unusual is None and records is not None:
            nulls = _first_bytes(values) == ord("n")
            fields = self._extraction.columns(records)
            return Converted(values, nulls=nulls if nulls.any() else None, fields=fields, lines=lines)
        return self._one_by_one(values, unusual, records)

    def _one_by_one(self, values: pa.BinaryArray, unusual: Mask | None, plain: list[object] | None) -> Converted:
        """Parses the `unusual` values row-wise. `plain` are the records of the other values, in order; with None all
        values are parsed row-wise."""
        separate = np.ones(len(values), np.bool_) if plain is None or unusual is None else unusual
        nulls = np.zeros(len(values), np.bool_)
        records: list[object] = [MISSING] * len(values)
        others = np.flatnonzero(~separate)
        nulls[others] = _first_bytes(values, others) == ord("n")
        if self._extraction.has_fields:
            for row, record in zip(others.tolist(), plain or (), strict=True):
                records[row] = record
        rejected: Rejections = []
        changed: dict[int, bytes] = {}
        for row in np.flatnonzero(separate).tolist():
            value: bytes = values[row].as_py()
            try:
                one = self._one(value)
            except ValueError as error:
                rejected.append((row, str(error)))
                continue
            nulls[row], records[row] = one.is_null, one.record
            if one.value is not value:
                changed[row] = one.value
        fields = self._extraction.columns(records)
        return Converted(_replaced(values, changed), nulls if nulls.any() else None, rejected, fields)

    def _one(self, value: bytes) -> _ConvertedValue:
        """Converts one value. Raises ValueError with the reason if it is invalid."""
        error = "the value is empty" if not value.strip(_SPACE) else utf8_error(value)
        if error:
            raise ValueError(error)
        record = self._extraction.read(value)
        if b"\n" in value or b"\r" in value:
            value = msgspec.json.format(value, indent=-1)
        return _ConvertedValue(value, is_null=value.strip(_SPACE) == b"null", record=record)


class _ConvertedValue(NamedTuple):
    value: bytes
    is_null: bool
    record: object


def _are_lines(rows: pa.BinaryArray) -> bool:
    """Whether all rows are UTF-8, and the newlines after the values are the only line breaks."""
    data, bounds = arrow_columns.content(rows), arrow_columns.bounds(rows)
    within = data[bounds[0] : bounds[-1]]
    # as int8 the bytes of other characters than ASCII are negative, so one comparison finds these and the line breaks
    if np.count_nonzero(within.view(np.int8) <= ord("\r")) == len(rows):
        return True
    text = arrow_columns.text(rows)
    if np.count_nonzero(within <= ord("\r")) != len(rows) and (text.count(b"\n") != len(rows) or b"\r" in text):
        return False
    return is_utf8(rows)


def _first_bytes(values: pa.BinaryArray, rows: Indices | slice = slice(None)) -> Bytes:
    """The first byte of each value in these rows, none of which may be empty."""
    return arrow_columns.content(values)[arrow_columns.bounds(values)[:-1][rows]]


def _replaced(values: pa.BinaryArray, changed: Mapping[int, bytes]) -> pa.BinaryArray:
    """The values with others in the rows of `changed`, which are ascending."""
    if not changed:
        return values
    mask = np.zeros(len(values), np.bool_)
    mask[list(changed)] = True
    return pc.replace_with_mask(values, arrow_columns.booleans(mask), arrow_columns.binaries([*changed.values()]))


def _unusual(values: pa.BinaryArray, text: bytes) -> Mask | None:
    """A mask of the values that must be parsed separately; None if there are none.

    These are values that are empty, contain a line break, or do not start and end like a JSON text. `text` is the
    concatenation of `values`.
    """
    data, bounds = arrow_columns.content(values), arrow_columns.bounds(values)
    unusual = bounds[1:] == bounds[:-1]
    if unusual.any():
        full = np.flatnonzero(~unusual)
        unusual[full] = ~(_STARTS[data[bounds[:-1][full]]] & _ENDS[data[bounds[1:][full] - 1]])
    else:
        unusual = ~(_STARTS[data[bounds[:-1]]] & _ENDS[data[bounds[1:] - 1]])
    if b"\n" in text or b"\r" in text:
        within = data[bounds[0] : bounds[-1]]
        breaks = np.flatnonzero((within == ord("\r")) | (within == ord("\n"))) + bounds[0]
        unusual[np.searchsorted(bounds, breaks, side="right") - 1] = True
    return unusual if unusual.any() else None


def _spread(dense: Converted, nulls: Mask) -> Converted:
    """Expands the result for the non-null rows to all rows."""
    positions = np.flatnonzero(~nulls)
    index = np.zeros(len(nulls), np.int64)
    index[positions] = np.arange(len(positions))
    values = arrow_columns.without_nulls(dense.values.take(arrow_columns.integers(index, nulls)))
    no_value = nulls.copy()
    if dense.nulls is not None:
        no_value[positions] = dense.nulls
    fields: dict[str, list[object]] = {}
    for name, found in dense.fields.items():
        column = np.full(len(nulls), MISSING, object)
        column[positions] = np.fromiter(found, object, len(found))
        fields[name] = column.tolist()
    return Converted(values, no_value, [(int(positions[row]), reason) for row, reason in dense.rejected], fields)
