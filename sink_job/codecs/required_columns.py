"""The Kafka columns that the settings of a sink need."""

from __future__ import annotations

from sink_job.api.spec import ObjectSettings
from sink_job.codecs.record_fields import RecordFields
from sink_job.converters.registered import SchemaSettings
from sink_job.engine.types import Columns
from sink_job.partitioning.partitioner import PathPartitioner


def required_columns(settings: ObjectSettings) -> Columns:
    """The columns that `RecordPipeline.prepare` needs beside offset and value. Raises ValueError for settings that the
    spec should have rejected."""
    partitioner = PathPartitioner.of(settings)
    fields = RecordFields.of(settings, partitioner.fields, None)
    schemas, envelope = SchemaSettings.of(settings, None), settings.format.envelope
    return Columns(
        timestamp=partitioner.needs_timestamp or envelope,
        key=fields.needs_key or envelope,
        headers=(schemas is not None and schemas.needs_headers) or fields.needs_headers or envelope,
        timestamp_type=envelope,
    )
