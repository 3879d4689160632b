"""Delimited bytes: a row is the record's value followed by a separator, which may be empty."""

from __future__ import annotations

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns


class DelimitedBytes:
    """Encodes values without a change to their bytes."""

    prefix_bytes = 0

    def __init__(self, separator: str) -> None:
        self._separator = separator.encode()

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """See `RowEncoder.encode`."""
        return arrow_columns.joined(values, after=self._separator) if self._separator else values
