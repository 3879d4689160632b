"""The compression codecs of each output format. The first one is the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sink_job.api.enums import CompressionCodec, OutputFormat

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


def default_compression(settings: Mapping[str, Any]) -> CompressionCodec:
    """The codec of `settings` without a codec: fields of spec.format by their Python names."""
    return COMPRESSIONS[settings.get("output", OutputFormat.JSON)][0]
