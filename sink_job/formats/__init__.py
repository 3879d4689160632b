"""Bytes out: how records become rows of an object, and rows become blocks and parts of it."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.api.job_sections import FormatSpec
from sink_job.formats.delimited_bytes import DelimitedBytes
from sink_job.formats.json_lines import JsonLines


class RowEncoder(Protocol):
    """Makes an object's rows: their concatenation is its body before compression."""

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of `values`, as the sink's converter gives them; no value is null."""
        ...


def row_encoder(settings: FormatSpec) -> RowEncoder:
    """The format that the spec names. Raises ValueError for one that is not built."""
    if settings.output is OutputFormat.JSON:
        return JsonLines(settings.converter)
    if settings.output is OutputFormat.BYTES:
        return DelimitedBytes(settings.bytes_separator)
    raise ValueError(f"output {settings.output} is not built yet")
