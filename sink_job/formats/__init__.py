"""Output formats: encode records as the rows of an object, and assemble rows into blocks and parts.

Runs in Spark's Python workers, and in `s3sink simulate`.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.api.job_sections import FormatSpec
from sink_job.formats.delimited_bytes import DelimitedBytes
from sink_job.formats.json_lines import JsonLines


class RowEncoder(Protocol):
    """Encodes the rows of an object. Their concatenation is the object's content before compression."""

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of `values`, the result of the sink's converter. No value may be null."""
        ...


def row_encoder(settings: FormatSpec) -> RowEncoder:
    """The encoder of the output format in `settings`. Raises ValueError for an unsupported one."""
    if settings.output is OutputFormat.JSON:
        return JsonLines(settings.converter)
    if settings.output is OutputFormat.BYTES:
        return DelimitedBytes(settings.bytes_separator)
    raise ValueError(f"output {settings.output} is not supported")
