"""The compression codecs of each output format. The first one is the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.field_errors import FieldError

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


def default_compression(settings: Mapping[str, Any]) -> CompressionCodec:
    """The codec of `settings` without a codec: fields of spec.format by their Python names."""
    return COMPRESSIONS[settings.get("output", OutputFormat.JSON)][0]


def check_compression(spec: Spec) -> Iterator[FieldError]:
    """Rejects a codec that the output does not have."""
    output, codec = spec.format.output, spec.format.compression
    if codec not in COMPRESSIONS[output]:
        message = f"{codec} cannot be used with the output {output}: it has {', '.join(COMPRESSIONS[output])}"
        yield FieldError(("spec", "format", "compression"), message, (("spec", "format", "output"),))
