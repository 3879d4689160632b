"""The Kafka columns that the settings of a sink need."""

from __future__ import annotations

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.format_section import BytesSpec
from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.api.spec import ObjectSettings
from sink_job.codecs.record_fields import RecordFields
from sink_job.converters.registered import SchemaSettings
from sink_job.engine.types import Columns
from sink_job.partitioning.partitioner import PathPartitioner
from sink_job.transforms.transform_list import needs_headers, needs_timestamp


def required_columns(settings: ObjectSettings) -> Columns:
    """The columns that `RecordPipeline.prepare` needs beside offset and value. Raises ValueError for settings that the
    spec should have rejected."""
    partitioner = PathPartitioner.of(settings)
    fields = RecordFields.of(settings, partitioner.fields, None)
    schemas, envelope = SchemaSettings.of(settings, None), settings.format.envelope
    whole = envelope or settings.dead_letters is not None
    return Columns(
        timestamp=partitioner.needs_timestamp or whole or needs_timestamp(settings.transforms),
        key=fields.needs_key or whole,
        headers=(schemas is not None and schemas.needs_headers)
        or fields.needs_headers
        or whole
        or needs_headers(settings.transforms),
        timestamp_type=envelope,
    )


def task_columns(settings: ObjectSettings) -> Columns:
    """The columns for the tasks that write objects: `required_columns`, and rows in place of values where a row of the
    output is the value and a separator, or where JSON values are read as lines."""
    return required_columns(settings)._replace(separator=_separator(settings))


def _separator(settings: ObjectSettings) -> bytes:
    shape = settings.format
    if shape.envelope or settings.transforms:
        return b""
    if shape.converter is ConverterType.JSON and shape.output is OutputFormat.JSON:
        return b"\n"
    if _has_json_lines(settings):
        return b"\n"
    if shape.converter is ConverterType.BYTES and shape.output is OutputFormat.BYTES:
        return (shape.bytes or BytesSpec()).separator.encode()
    return b""


def _has_json_lines(settings: ObjectSettings) -> bool:
    """Whether JSON values under the schema of the manifest become datums."""
    schema, shape = settings.bare_values, settings.format
    is_json = shape.converter in (ConverterType.JSON, ConverterType.JSON_SCHEMA)
    has_nulls = settings.null_values is not None
    return shape.output.has_datums and is_json and schema is not None and schema.id != INFERRED_ID and not has_nulls
