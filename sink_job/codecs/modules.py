"""The modules that the tasks of a sink need beside those of every sink. The Python workers are forked after their
import, so that no task imports anything (`sink_job.spark.daemon`)."""

from __future__ import annotations

from typing import Final

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.connect.output_settings import DatumSettings

_CONVERTERS: Final = {
    ConverterType.JSON: "sink_job.json.converter",
    ConverterType.TEXT: "sink_job.plain.text",
    ConverterType.BYTES: "sink_job.plain.bytes",
    ConverterType.AVRO: "sink_job.avro.converter",
    ConverterType.CBOR: "sink_job.plain.cbor",
    ConverterType.MESSAGE_PACK: "sink_job.plain.message_pack",
    ConverterType.CONNECT_JSON: "sink_job.json.connect_json",
    ConverterType.JSON_SCHEMA: "sink_job.json.json_schema.converter",
    ConverterType.PROTOBUF: "sink_job.protobuf.converter",
}
_WHOLE_VALUES: Final = {
    ConverterType.AVRO: "sink_job.transforms.decoded.avro_values",
    ConverterType.JSON_SCHEMA: "sink_job.transforms.decoded.json_schema_values",
    ConverterType.PROTOBUF: "sink_job.transforms.decoded.protobuf_values",
}
_TRANSFORMED: Final = "sink_job.json.transformed"
_JSON_WITH_SCHEMA: Final = "sink_job.json.typed.converter"
_CONTAINERS: Final = {
    OutputFormat.AVRO: ("sink_job.avro.container", "sink_job.avro.from_connect"),
    OutputFormat.PARQUET: ("sink_job.parquet.container", "sink_job.parquet.table_reader"),
}


def task_modules(settings: FormatSpec, *, transforms_registered: bool = False) -> tuple[str, ...]:
    """The names of the modules, sorted: converters, the container, and the envelope. `transforms_registered`: as of
    `ObjectSettings`."""
    names = {_CONVERTERS[each] for each in (settings.converter, settings.key_converter) if each is not None}
    if DatumSettings.of(settings) is not None and settings.converter is ConverterType.JSON:
        names.add(_JSON_WITH_SCHEMA)
    if transforms_registered:
        names |= {_WHOLE_VALUES[settings.converter], _TRANSFORMED}
    names.update(_CONTAINERS.get(settings.output, ()))
    if settings.envelope:
        names.add("sink_job.envelope.envelope")
    return tuple(sorted(names))
