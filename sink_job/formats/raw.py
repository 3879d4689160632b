"""Bytes with a separator: a record is its value and the separator behind it, which may be empty."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


class RawBytes:
    """Rows of bytes as they came."""

    def __init__(self, separator: str) -> None:
        self._separator = separator.encode()

    def frame(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of `values`."""
        return pc.binary_join_element_wise(values, b"", self._separator) if self._separator else values
