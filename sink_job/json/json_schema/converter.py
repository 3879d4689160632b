"""JSON with a schema of a registry: the wire format, then one JSON text.

The text is written as the JSON converter writes it. As with Confluent's deserializer (`json.fail.invalid.schema` is
false by default), it is not validated against its schema. The schema decides when objects close.

For the outputs Avro and Parquet a text is read under its schema (`sink_job.json.json_schema.decoder`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.enums import UnknownFields
from sink_job.arrow import columns as arrow_columns
from sink_job.avro.passthrough import projected_datums
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import MAX_TEXT_DEPTH, TEXT_TOO_DEEP, is_text_too_deep
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.converters.base import BatchSource, Converted, SchemaColumn
from sink_job.converters.registered import Decoded, Decoder, RegisteredConverter, SchemaSettings
from sink_job.json.converter import JsonConverter
from sink_job.json.json_schema.projection import text_projector
from sink_job.json.json_schema.to_connect import json_connect_schema
from sink_job.json.typed.datums import JsonDatums
from sink_job.json.typed.decoder import TextReading
from sink_job.records.fields import Rejections

_SOURCE: Final = BatchSource("")
"""The JSON converter does not use the source."""


class JsonLinesConverter(RegisteredConverter):
    """Converts JSON values with schemas. Values of one schema can be lines."""

    def convert_rows(self, rows: pa.BinaryArray, source: BatchSource) -> Converted:
        """As `convert`, for values that a newline follows. See `RowConverter`."""
        decoder = self.decoder_of_bare(source.topic)
        decoded = decoder.decode_lines(rows) if isinstance(decoder, JsonDatumDecoder) else None
        if decoder is None or decoded is None:
            return self.convert(pc.binary_slice(rows, 0, -1), source)
        schemas = SchemaColumn(np.zeros(len(rows), np.int32), [decoder.schema])
        return Converted(decoded.texts, schemas=schemas)


class JsonSchemaConverter(JsonLinesConverter):
    """Converts JSON with a schema of a registry."""

    def __init__(self, fields: tuple[str, ...], settings: SchemaSettings) -> None:
        json, datums = JsonConverter(fields), settings.datums

        def decoder_for(schema: RegisteredSchema) -> Decoder:
            if datums is None:
                return JsonSchemaDecoder(schema, json)
            return JsonDatumDecoder(schema, json, datums, fields, partial(_reading, unknown=settings.unknown))

        super().__init__(fields, settings, decoder_for)


class JsonSchemaDecoder:
    """Decodes values of one schema. See `Decoder`."""

    def __init__(self, registered: RegisteredSchema, json: JsonConverter) -> None:
        """Raises InvalidSchema."""
        self.schema = registered_connect_schema(registered, optional_properties=False)
        self._json = json

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        return texts_of(self._json, payload)

    def project(self, payload: pa.BinaryArray, target: Schema) -> pa.BinaryArray:
        """See `ProjectingDecoder.project`."""
        return arrow_columns.binaries(list(map(text_projector(self.schema, target), payload.to_pylist())))


class JsonDatumDecoder:
    """Decodes values of one schema to Avro data. See `Decoder`.

    A property that is not required is optional.
    """

    def __init__(
        self,
        registered: RegisteredSchema,
        json: JsonConverter,
        datums: DatumSettings,
        fields: tuple[str, ...],
        reading: Callable[[RegisteredSchema], TextReading],
    ) -> None:
        """`fields` are those that `json` extracts, `reading` compiles the schema. Raises InvalidSchema."""
        self._json = json
        self._has_fields = bool(fields)
        self._datums = datums
        self._reading = reading(registered)
        self.schema = self._reading.schema
        try:
            self._data = JsonDatums(
                self.schema, datums, lambda _: self._reading.read, self._reading.reader_of, self._reading.reads_any
            )
        except InvalidSchema as error:
            raise InvalidSchema(f"{registered.label} cannot be used: {error}") from None

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        if not self._has_fields and (data := self._data.of_valid(payload)) is not None:
            return Decoded(data)
        found, dropped = texts_of(self._json, payload), self._reading.dropped
        skip = np.zeros(len(payload), np.bool_) if found.nulls is None else found.nulls.copy()
        skip[[row for row, _ in found.rejected]] = True
        data, rejected = self._data.of_texts(found.texts, skip)
        return replace(
            found,
            texts=data,
            rejected=sorted([*found.rejected, *rejected]),
            dropped_properties=self._reading.dropped - dropped,
        )

    def decode_lines(self, lines: pa.BinaryArray) -> Decoded | None:
        """As `decode`, for values that a newline follows; None if they must be decoded without it."""
        data = None if self._has_fields or lines.null_count else self._data.of_valid_lines(lines)
        return None if data is None else Decoded(data)

    def project(self, payload: pa.BinaryArray, target: Schema) -> pa.BinaryArray:
        """See `ProjectingDecoder.project`."""
        return projected_datums(map(self._reading.read, payload.to_pylist()), self.schema, target, self._datums)


def _reading(registered: RegisteredSchema, unknown: UnknownFields) -> TextReading:
    return TextReading(registered_connect_schema(registered, optional_properties=True), unknown)


def registered_connect_schema(registered: RegisteredSchema, *, optional_properties: bool) -> Schema:
    """The schema of values in Connect's data model. Raises InvalidSchema."""
    if registered.language != "JSON":
        raise InvalidSchema(f"{registered.label} is {registered.language}, but format.converter is JsonSchema")
    try:
        return json_connect_schema(registered, optional_properties=optional_properties)
    except InvalidSchema as error:
        raise InvalidSchema(f"{registered.label} cannot be used: {error}") from None


def texts_of(json: JsonConverter, payload: pa.BinaryArray) -> Decoded:
    """The JSON texts of `payload`, without those that are invalid or nested too deeply."""
    found = json.convert(payload, _SOURCE)
    return Decoded(found.values, found.nulls, _with_too_deep(found.values, found.rejected), found.fields)


def _with_too_deep(texts: pa.BinaryArray, rejected: Rejections) -> Rejections:
    """`rejected` with the rows whose text is nested too deeply."""
    known = {row for row, _ in rejected}
    long = np.flatnonzero(np.diff(arrow_columns.bounds(texts)) > 2 * MAX_TEXT_DEPTH).tolist()
    deep = [row for row in long if row not in known and is_text_too_deep(texts[row].as_py())]
    return sorted([*rejected, *((row, TEXT_TOO_DEEP) for row in deep)]) if deep else rejected
