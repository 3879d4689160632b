"""Bytes: passes any value through unchanged."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.converters.base import BatchSource, Converted, no_fields, null_mask


class BytesConverter:
    """Accepts every value and extracts no fields."""

    def __init__(self, fields: tuple[str, ...] = ()) -> None:
        self._fields = fields

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        return Converted(
            arrow_columns.without_nulls(values), nulls=null_mask(values), fields=no_fields(self._fields, len(values))
        )

    def convert_rows(self, rows: pa.BinaryArray, source: BatchSource) -> Converted:
        """See `RowConverter.convert_rows`."""
        converted = self.convert(rows, source)
        return replace(converted, rows=converted.values)
