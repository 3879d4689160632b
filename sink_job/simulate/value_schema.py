"""JSON values of a simulation under `spec.format.schema`: others are data errors, as in the job."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from sink_job.api.enums import ConverterType
from sink_job.api.spec import ObjectSettings
from sink_job.codecs.converters import converter_for
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted, ValueConverter
from sink_job.converters.registered import SchemaSettings
from sink_job.writer.record_pipeline import RecordPipeline

_CHECKED = (ConverterType.JSON, ConverterType.JSON_SCHEMA)
"""The converters whose simulated values are what the job reads."""


def with_value_schema(
    pipeline: RecordPipeline, object_settings: ObjectSettings, schema: RegisteredSchema | None
) -> RecordPipeline:
    """The pipeline, which also rejects JSON values that do not conform to `schema`, if objects contain it: with the
    outputs Avro and Parquet. `object_settings` are the settings of the sink."""
    if (
        schema is None
        or object_settings.transforms_registered  # they change the values, which have the schema before
        or object_settings.format.converter not in _CHECKED
        or not object_settings.format.output.has_datums
    ):
        return pipeline
    settings = SchemaSettings.of(object_settings, _OneSchema(schema))
    check = converter_for(object_settings.format.converter, (), output=object_settings.format.output, schemas=settings)
    return replace(pipeline, converter=_Checked(pipeline.converter, check))


@dataclass(frozen=True, slots=True)
class _OneSchema:
    schema: RegisteredSchema

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        return self.schema


@dataclass(frozen=True, slots=True)
class _Checked:
    """What `converter` returns, without the values that only `check` rejects."""

    converter: ValueConverter
    check: ValueConverter

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        found = self.converter.convert(values, source)
        rejected = dict(self.check.convert(values, source).rejected) | dict(found.rejected)
        return replace(found, rejected=sorted(rejected.items()))
