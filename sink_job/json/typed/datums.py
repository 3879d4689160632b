"""JSON texts as Avro data, column-wise where that is certain, and else row-wise. Both give the same data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Mask
from sink_job.arrow.columnar import UnusualValues, columnar_or_row_wise, if_columnar
from sink_job.avro.encoder import datum_encoder
from sink_job.connect.errors import VALUE_ERRORS
from sink_job.connect.limits import deeper
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.connect.visitor import is_recursive
from sink_job.json.typed.column_encoder import JsonDatumColumns, ReaderOf
from sink_job.records.fields import Rejections

MIN_ROWS = 8
"""Fewer rows are read faster row-wise."""
MAX_ROWS_BYTES: Final = 2 << 20
"""The maximum of the bytes that are read together, unless a single row has more."""
_PARTS: Final = 8
"""The number of parts of rows with an unusual one, which are read separately."""

_Encode = Callable[[pa.BinaryArray], pa.BinaryArray]
TextReaderOf = Callable[[Schema], Callable[[bytes], object]]


class JsonDatums:
    """Encodes texts under one schema."""

    def __init__(
        self,
        schema: Schema,
        settings: DatumSettings,
        text_reader_of: TextReaderOf,
        reader_of: ReaderOf,
        reads_any: Callable[[Schema], bool] = lambda schema: False,
    ) -> None:
        """`text_reader_of` makes the function that reads a text under a schema, `reader_of` the one that reads a JSON
        value. `reads_any`: values of a type are converted by `reader_of` only, which has rules of its own for
        them. Raises InvalidSchema if the output cannot express the schema."""
        self._read = text_reader_of(schema)
        self._encode = datum_encoder(schema, settings)
        self._columns = if_columnar(lambda: JsonDatumColumns(schema, settings, reader_of, reads_any))
        self._is_recursive = is_recursive(schema)

    def of_valid(self, texts: pa.BinaryArray) -> pa.BinaryArray | None:
        """The data of `texts`, none of which is null; None if they must be checked first, because they are few, or one
        may be no JSON text, null, nested too deeply, or not a value of the schema."""
        return self._of_valid(texts, None if self._columns is None else self._columns.encode)

    def of_valid_lines(self, lines: pa.BinaryArray) -> pa.BinaryArray | None:
        """As `of_valid`, for texts that a newline follows."""
        return self._of_valid(lines, None if self._columns is None else self._columns.encode_lines)

    def _of_valid(self, texts: pa.BinaryArray, encode: _Encode | None) -> pa.BinaryArray | None:
        columnar = None if encode is None or self._is_recursive else partial(_encoded, encode)
        return columnar_or_row_wise(texts, columnar, lambda _: None, min_rows=MIN_ROWS)

    def of_texts(self, texts: pa.BinaryArray, skip: Mask) -> tuple[pa.BinaryArray, Rejections]:
        """The data of valid texts, empty for the rows of the mask `skip` and for the rejected ones; and the rejected
        rows."""
        rejected: Rejections = []
        found: list[pa.BinaryArray] = []
        rows = np.flatnonzero(~skip)
        with deeper():
            for part in _by_size(texts.take(arrow_columns.integers(rows)) if skip.any() else texts):
                first = sum(map(len, found))
                found += self._part(part, first, rejected)
        data = _concatenated(found)
        if skip.any():
            data = _at(rows, data, len(skip))
        return data, [(int(rows[row]), reason) for row, reason in rejected]

    def _part(self, texts: pa.BinaryArray, first: int, rejected: Rejections) -> list[pa.BinaryArray]:
        """The data of texts whose first row is `first`. Adds the rejected ones."""
        if self._columns is None or len(texts) < MIN_ROWS:
            return [self._one_by_one(texts, first, rejected)]
        try:
            return [self._columns.encode(texts)]
        except UnusualValues:
            size = -(-len(texts) // _PARTS)
            parts = [(start, texts.slice(start, size)) for start in range(0, len(texts), size)]
            return [data for start, part in parts for data in self._part(part, first + start, rejected)]

    def _one_by_one(self, texts: pa.BinaryArray, first: int, rejected: Rejections) -> pa.BinaryArray:
        data: list[bytes] = []
        for row, text in enumerate(texts.to_pylist(), first):
            try:
                data.append(self._encode(self._read(text)))
            except VALUE_ERRORS as error:
                data.append(b"")
                rejected.append((row, str(error) or "the value cannot be computed"))
        return arrow_columns.binaries(data)


def _encoded(encode: _Encode, texts: pa.BinaryArray) -> pa.BinaryArray:
    """Raises UnusualValues."""
    with deeper():
        return _concatenated([encode(part) for part in _by_size(texts)])


def _by_size(texts: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
    """Consecutive texts, at most MAX_ROWS_BYTES of them or one."""
    bounds = arrow_columns.bounds(texts)
    start = 0
    while start < len(texts):
        end = int(np.searchsorted(bounds, int(bounds[start]) + MAX_ROWS_BYTES, side="right")) - 1
        end = max(start + 1, min(end, len(texts)))
        yield texts.slice(start, end - start)
        start = end


def _concatenated(parts: list[pa.BinaryArray]) -> pa.BinaryArray:
    """Raises ColumnTooLarge."""
    arrow_columns.check_bytes(sum(int(np.ptp(arrow_columns.bounds(part)[[0, -1]])) for part in parts))
    return parts[0] if len(parts) == 1 else pa.concat_arrays([arrow_columns.binaries([]), *parts])


def _at(rows: np.ndarray[tuple[int], np.dtype[np.int64]], data: pa.BinaryArray, size: int) -> pa.BinaryArray:
    """`data` in the rows `rows` of `size` rows; the others are empty."""
    source = np.zeros(size, np.int64)
    source[rows] = 1 + np.arange(len(rows))
    return pa.concat_arrays([arrow_columns.binaries([b""]), data]).take(arrow_columns.integers(source))
