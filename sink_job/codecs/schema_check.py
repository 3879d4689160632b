"""Whether an output can have JSON values under a schema of the sink."""

from __future__ import annotations

from sink_job.api.sections.format_section import FormatSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema
from sink_job.envelope.schema import KEY_BYTES, check_envelope, envelope_schema
from sink_job.json.typed.decoder import TextReading
from sink_job.json.typed.schema_source import value_schema


def check_values(registered: RegisteredSchema, settings: FormatSpec) -> None:
    """Raises InvalidSchema if the output of the sink cannot have JSON values under this schema."""
    datums = DatumSettings.of(settings)
    assert datums is not None, "a manifest with another output is rejected"
    reading = TextReading(value_schema(registered, datums), settings.unknown_fields, is_bare_json=True)
    datum_encoder(reading.schema, datums)
    if settings.envelope:
        check_envelope(envelope_schema(reading.schema, KEY_BYTES), datums)
