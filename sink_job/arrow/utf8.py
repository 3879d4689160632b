"""Whether values are UTF-8."""

from __future__ import annotations

import pyarrow as pa


def is_utf8(values: pa.BinaryArray, text: bytes) -> bool:
    """Whether all values are UTF-8. `text` is their concatenation."""
    if text.isascii():  # the common case, and three times as fast as the cast
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
