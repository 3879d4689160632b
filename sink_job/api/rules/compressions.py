"""The compression codecs of each output, and their levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

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
"""The codecs of each output. The first one is the default."""


class Levels(NamedTuple):
    """The levels of a codec, `lowest` and `highest` inclusive."""

    lowest: int
    highest: int
    default: int


_ISAL: Final = Levels(0, 3, 2)

LEVELS: Final[Mapping[CompressionCodec, Levels]] = {
    CompressionCodec.GZIP: _ISAL,
    CompressionCodec.DEFLATE: _ISAL,
    CompressionCodec.ZSTD: Levels(1, 19, 3),
}
"""The codecs with levels. Gzip in Parquet has a fixed one: Arrow writes it with zlib."""


def has_levels(output: OutputFormat, codec: CompressionCodec) -> bool:
    """Whether the level of the codec can be chosen in this output."""
    return codec in LEVELS and (output, codec) != (OutputFormat.PARQUET, CompressionCodec.GZIP)
