"""Output formats: encode records as the rows of an object, and assemble rows into blocks and parts.

Runs in Spark's Python workers, and in `s3sink simulate`.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Final

import pyarrow as pa

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.format_section import BytesSpec, FormatSpec
from sink_job.api.spec import ObjectSettings
from sink_job.formats.base import RowEncoder
from sink_job.formats.compression import compression_of
from sink_job.formats.datum_rows import DatumRows
from sink_job.json.lines import JsonLines
from sink_job.plain.delimited import DelimitedBytes


def row_encoder(settings: FormatSpec) -> RowEncoder:
    """The encoder of the output format in `settings`."""
    if settings.output is OutputFormat.JSON:
        return JsonLines(settings.converter)
    if settings.output is OutputFormat.BYTES:
        return DelimitedBytes((settings.bytes or BytesSpec()).separator)
    return DatumRows()


def with_library(settings: ObjectSettings) -> ObjectSettings:
    """`settings` with the library that determines the bytes of objects in this process, and those that select their
    records, as a claim contains them (P8). Raises ValueError for an unsupported output or compression."""
    return settings.model_copy(update={"library": _library(settings.format), "rules": selecting_libraries(settings)})


def selecting_libraries(settings: ObjectSettings) -> tuple[str, ...]:
    """The libraries of this process, with their versions, that decide which values are accepted and what their paths
    are: of the converters, and of time zones and locales for paths with time."""
    converters = {settings.format.converter, settings.format.key_converter}
    names = {"msgspec", "numpy", "pyarrow"}.union(*(_LIBRARIES.get(each, ()) for each in converters if each))
    if settings.partitioner.type.uses_time:
        names |= {"babel", "tzdata"}
    return tuple(f"{name} {_version(name)}" for name in sorted(names))


_LIBRARIES: Final[dict[ConverterType, tuple[str, ...]]] = {
    ConverterType.AVRO: ("pyruhvro",),
    ConverterType.PROTOBUF: ("protobuf", "ptars"),
    ConverterType.CBOR: ("cbor2",),
    ConverterType.MESSAGE_PACK: ("msgpack",),
    ConverterType.JSON_SCHEMA: ("referencing",),
}


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _library(settings: FormatSpec) -> str | None:
    if settings.output is OutputFormat.PARQUET:
        return f"pyarrow {pa.__version__}"
    if settings.output is OutputFormat.AVRO:
        from sink_job.avro.container import avro_codec

        return avro_codec(settings).library
    return compression_of(settings).library
