"""Defaults of spec.format that depend on the output: the compression codecs of each one, and the unit of times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sink_job.api.enums import CompressionCodec, OutputFormat, TimeUnit

_ROWS: Final = (CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.ZSTD)

COMPRESSIONS: Final[Mapping[OutputFormat, tuple[CompressionCodec, ...]]] = {
    OutputFormat.JSON: _ROWS,
    OutputFormat.BYTES: _ROWS,
    OutputFormat.AVRO: (
        CompressionCodec.NONE,
        CompressionCodec.DEFLATE,
        CompressionCodec.SNAPPY,
        CompressionCodec.ZSTD,
        CompressionCodec.BZIP2,
    ),
    OutputFormat.PARQUET: (
        CompressionCodec.SNAPPY,
        CompressionCodec.NONE,
        CompressionCodec.GZIP,
        CompressionCodec.ZSTD,
        CompressionCodec.LZ4,
        CompressionCodec.BROTLI,
    ),
}
"""The codecs of each output. The first one is the default."""


def default_compression(settings: Mapping[str, Any]) -> CompressionCodec:
    """The codec of `settings` without a codec: fields of spec.format by their Python names."""
    return COMPRESSIONS[settings.get("output", OutputFormat.JSON)][0]


def default_time_unit(settings: Mapping[str, Any]) -> TimeUnit | None:
    """The unit of times of `settings` without one, as in `default_compression`: None for another output than
    Parquet."""
    return TimeUnit.MICROS if settings.get("output") is OutputFormat.PARQUET else None
