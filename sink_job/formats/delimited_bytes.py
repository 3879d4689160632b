"""Bytes with a separator: a record is its value and the separator behind it, which may be empty."""

from __future__ import annotations

import pyarrow as pa

from sink_job.partitioning import arrow_columns


class DelimitedBytes:
    """Rows of bytes as they came."""

    def __init__(self, separator: str) -> None:
        self._separator = separator.encode()

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of `values`."""
        return arrow_columns.joined(values, after=self._separator) if self._separator else values
