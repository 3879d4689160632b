"""Whether values are UTF-8."""

from __future__ import annotations

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns


def is_utf8(values: pa.BinaryArray) -> bool:
    """Whether all values are UTF-8."""
    bounds = arrow_columns.bounds(values)
    data = arrow_columns.content(values)[bounds[0] : bounds[-1]]
    if not len(data) or data.max() < 0x80:  # the common case is ASCII, which is four times as fast as the cast
        return True
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def utf8_error(value: bytes) -> str | None:
    """The reason why `value` is not UTF-8; None if it is."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"the value is not UTF-8 (byte {error.start})"
    return None
