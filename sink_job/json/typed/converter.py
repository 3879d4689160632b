"""Bare JSON under a schema of the sink, for the outputs Avro and Parquet: `spec.format.schema` with the
converter Json, or the schema that was inferred from the first values of a topic.

The schema is an Avro schema, a JSON Schema or a field list. An inferred schema is a field list. A topic has none before
the first record that is a JSON object (`docs/schemas.md`). Records before that one are rejected, or null, with any
schema.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers
from sink_job.connect.errors import InvalidSchema, UnknownSchema
from sink_job.connect.json_decoder import decode_json, decode_reason
from sink_job.connect.limits import is_text_too_deep
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema, SchemaType
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import Decoded, Decoder, SchemaSettings
from sink_job.converters.wire_format import InWireFormat
from sink_job.json.converter import JsonConverter
from sink_job.json.json_schema.converter import JsonDatumDecoder, JsonLinesConverter, texts_of
from sink_job.json.typed.decoder import TextReading
from sink_job.json.typed.schema_source import value_schema

_UNRESOLVED: Final = RegisteredSchema(INFERRED_ID, "UNRESOLVED", "")
_SPACE: Final = b" \t\r\n"


class JsonValuesConverter(JsonLinesConverter):
    """Converts bare JSON to Avro data. Infers no schema: see `sink_job.writer.schema_sample`."""

    def __init__(self, fields: tuple[str, ...], settings: SchemaSettings, datums: DatumSettings) -> None:
        json = JsonConverter(fields)

        def reading(registered: RegisteredSchema) -> TextReading:
            return TextReading(_schema(registered, datums), settings.unknown, is_bare_json=True)

        def decoder_for(registered: RegisteredSchema) -> Decoder:
            if registered == _UNRESOLVED:
                return _DecoderWithoutSchema(json)
            return JsonDatumDecoder(registered, json, datums, fields, reading)

        super().__init__(fields, settings, decoder_for)

    def _find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        return super()._find(topic, schema_id) or _UNRESOLVED

    def _unresolved(self, in_wire_format: InWireFormat, rows: Integers, source: BatchSource) -> list[tuple[int, str]]:
        """The first row that needs a schema, which the driver has not resolved yet."""
        for schema_id in in_wire_format.ids:
            try:
                if super()._find(source.topic, schema_id) is not None:
                    continue
            except UnknownSchema:
                continue
            first = 0 if schema_id != INFERRED_ID else _first_object(in_wire_format.payload)
            return [] if first is None else [(int(rows[first]), schema_id)]
        return []


class _DecoderWithoutSchema:
    """Decodes the values before the first JSON object of a topic without a schema yet: it rejects them."""

    schema: Final = Schema(SchemaType.STRUCT, "s3sink.Unresolved")

    def __init__(self, json: JsonConverter) -> None:
        self._json = json

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        found = texts_of(self._json, payload)
        known = {row for row, _ in found.rejected}
        if found.nulls is not None:
            known |= set(np.flatnonzero(found.nulls).tolist())
        others = [(row, _reason(payload[row].as_py())) for row in range(len(payload)) if row not in known]
        empty = arrow_columns.binaries([b""] * len(payload))
        return Decoded(empty, found.nulls, sorted([*found.rejected, *others]), found.fields)


def json_object(text: bytes) -> dict[str, object] | None:
    """The JSON object in `text`, as `decode_json` returns it; None if there is none, or it is nested too deeply."""
    if not text.lstrip(_SPACE).startswith(b"{"):
        return None
    try:
        found = decode_json(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) and not is_text_too_deep(text) else None


def _first_object(values: pa.BinaryArray) -> int | None:
    """The first of `values`, none of which is null, that is a JSON object."""
    return next((row for row, value in enumerate(values) if json_object(value.as_py()) is not None), None)


def _reason(text: bytes) -> str:
    try:
        decode_json(text)
    except msgspec.DecodeError as error:
        return f"the value cannot be read: {decode_reason(error, text)}"
    except RecursionError:
        return "the value is nested too deeply"
    return "a JSON value must be an object"


def _schema(registered: RegisteredSchema, datums: DatumSettings) -> Schema:
    """Raises InvalidSchema with the id."""
    try:
        return value_schema(registered, datums)
    except InvalidSchema as error:
        raise InvalidSchema(f"{registered.label} cannot be used: {error}") from None
