"""Text: accepts values in UTF-8."""

from __future__ import annotations

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.utf8 import is_utf8, utf8_error
from sink_job.converters.base import BatchSource, Converted, no_fields, null_mask
from sink_job.records.fields import Rejections


class TextConverter:
    """Accepts values in UTF-8, and rejects others. They have no fields; the empty name is the whole value."""

    def __init__(self, fields: tuple[str, ...] = ()) -> None:
        self._fields = fields

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        dense = arrow_columns.without_nulls(values)
        rejected = [] if is_utf8(dense) else _not_utf8(dense)
        if rejected:
            rows = dense.to_pylist()
            for row, _ in rejected:
                rows[row] = b""
            dense = arrow_columns.binaries(rows)
        fields = no_fields(self._fields, len(values))
        if "" in fields:
            fields[""] = list(dense.cast(pa.string()).to_pylist())
        return Converted(dense, nulls=null_mask(values), rejected=rejected, fields=fields)


def _not_utf8(values: pa.BinaryArray) -> Rejections:
    errors = ((row, utf8_error(value)) for row, value in enumerate(values.to_pylist()))
    return [(row, error) for row, error in errors if error]
