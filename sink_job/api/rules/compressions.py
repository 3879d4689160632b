"""The compression codecs of each output, their levels, and the rules for them in a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.field_errors import FieldError, Path

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

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


_OUTPUT: Final[Path] = ("spec", "format", "output")
_COMPRESSION: Final[Path] = ("spec", "format", "compression")


def compression_errors(spec: Spec) -> Iterator[FieldError]:
    """Rejects a codec that the output does not have, and a level that the codec does not have."""
    output, codec = spec.format.output, spec.format.compression.codec
    path, level_path = (*_COMPRESSION, "codec"), (*_COMPRESSION, "level")
    if codec not in COMPRESSIONS[output]:
        message = f"{codec} cannot be used with the output {output}: it has {', '.join(COMPRESSIONS[output])}"
        yield FieldError(path, message, (_OUTPUT,))
        return
    level = spec.format.compression.level
    if level is None or "level" not in spec.format.compression.model_fields_set:
        return
    if not has_levels(output, codec):
        having = [each for each in COMPRESSIONS[output] if has_levels(output, each)]
        message = (
            f"{level} has no effect: with the output {output}, {codec} has no levels, and {' and '.join(having)} "
            f"{'has' if len(having) == 1 else 'have'}; remove it"
        )
        yield FieldError(level_path, message, (_OUTPUT, path))
    elif not LEVELS[codec].lowest <= level <= LEVELS[codec].highest:
        message = f"{level} is not a level of {codec}: use {LEVELS[codec].lowest} to {LEVELS[codec].highest}"
        yield FieldError(level_path, message, (path,))
