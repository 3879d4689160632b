"""Text: values that have to be UTF-8."""

from __future__ import annotations

import pyarrow as pa

from sink_job.converters.base import Converted, no_fields, null_mask
from sink_job.partitioning import arrow_columns
from sink_job.partitioning.field_values import Rejections


class TextConverter:
    """Takes every value that is UTF-8; finds no fields."""

    def __init__(self, fields: tuple[str, ...] = ()) -> None:
        self._fields = fields

    def convert(self, values: pa.BinaryArray) -> Converted:
        whole = arrow_columns.without_nulls(values)
        refused = [] if is_utf8(whole, arrow_columns.text(whole)) else _not_utf8(whole)
        if refused:
            rows = whole.to_pylist()
            for row, _ in refused:
                rows[row] = b""
            whole = arrow_columns.binaries(rows)
        return Converted(whole, nulls=null_mask(values), rejected=refused, fields=no_fields(self._fields, len(values)))


def is_utf8(values: pa.BinaryArray, text: bytes) -> bool:
    """Whether all of the values are UTF-8; `text` is what they are, one behind the other."""
    if text.isascii():  # three times as quick, and the common case
        return True
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def utf8_complaint(value: bytes) -> str | None:
    """What is wrong with a value that has to be UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError as wrong:
        return f"the value is not UTF-8 (byte {wrong.start})"
    return None


def _not_utf8(values: pa.BinaryArray) -> Rejections:
    complaints = ((row, utf8_complaint(value)) for row, value in enumerate(values.to_pylist()))
    return [(row, complaint) for row, complaint in complaints if complaint]
