"""Avro with a schema registry, or bare with one schema.

A record is decoded column-wise where a sound library does it (`sink_job.avro.column_decoder`), and else row-wise
(`sink_job.avro.row_decoder`). Both give the same texts. A record that is invalid is rejected alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.columnar import UnusualValues, columnar_or_row_wise, if_columnar
from sink_job.avro.column_decoder import AvroColumnDecoder
from sink_job.avro.column_projection import ColumnProjector
from sink_job.avro.connect_values import normaliser
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.passthrough import has_limits, passes, projected_datums
from sink_job.avro.row_decoder import DatumReader
from sink_job.avro.schema import AvroType
from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect.errors import VALUE_ERRORS, InvalidSchema, InvalidValue, rejecting
from sink_job.connect.json_encoder import JsonOptions, json_encoder
from sink_job.connect.json_size import TextLimit
from sink_job.connect.limits import VALUE_TOO_DEEP, is_value_too_deep
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Extension, RegisteredSchema, Schema, of_subject
from sink_job.connect.visitor import is_recursive
from sink_job.converters import schema_fields
from sink_job.converters.batch_split import halved, is_large
from sink_job.converters.projection import projected_texts
from sink_job.converters.registered import Decoded, RegisteredConverter, SchemaSettings
from sink_job.records.fields import MISSING, Rejections


class AvroConverter(RegisteredConverter):
    """Converts Avro data."""

    def __init__(self, fields: tuple[str, ...], settings: SchemaSettings) -> None:
        options, datums = settings.options, settings.datums
        super().__init__(fields, settings, lambda schema: AvroDecoder(schema, fields, options, datums))


class AvroDecoder:
    """Decodes data of one schema."""

    def __init__(
        self,
        registered: RegisteredSchema,
        fields: tuple[str, ...],
        options: JsonOptions,
        datums: DatumSettings | None = None,
    ) -> None:
        """`datums` are the settings of the outputs Avro and Parquet. Raises InvalidSchema."""
        if registered.language != "AVRO":
            raise InvalidSchema(f"{registered.label} is {registered.language}, but format.converter is Avro")
        self._options = options
        self._datums = datums
        self._projector = lru_cache(maxsize=100)(self._projector_to)
        try:
            with rejecting("the Avro schema"):
                self._avro = avro = parse_registered(registered)
                extension = Extension.NONE if datums is None else datums.extension
                self.schema = of_subject(connect_schema(avro, registered.version, extension), registered)
                self._rows = AvroRowDecoder(avro, self.schema, fields, options, datums)
                self._columns = _column_decoder(avro, self.schema, fields, options, datums)
                self._limit = TextLimit(self.schema, is_avro=True) if datums is None else None
        except InvalidSchema as error:
            raise InvalidSchema(f"{registered.label} cannot be used: {error}") from None

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        if self._limit is not None and is_large(payload, self._limit):
            return halved(payload, self.decode)
        columnar = None if self._columns is None else self._columns.decode
        return columnar_or_row_wise(payload, columnar, self._rows.decode)

    def project(self, payload: pa.BinaryArray, target: Schema) -> pa.BinaryArray:
        """See `ProjectingDecoder.project`."""
        if self._datums is not None:
            return projected_datums(self._rows.values(payload), self.schema, target, self._datums)
        return columnar_or_row_wise(
            payload, partial(self._projected_columns, target), partial(self._projected_rows, target)
        )

    def _projected_columns(self, target: Schema, payload: pa.BinaryArray) -> pa.BinaryArray:
        projector = self._projector(target)  # compiled only for enough rows
        if projector is None:
            raise UnusualValues("the projection has no columnar form")
        return projector.project(payload)

    def _projected_rows(self, target: Schema, payload: pa.BinaryArray) -> pa.BinaryArray:
        return projected_texts(self._rows.values(payload), self.schema, target, self._options)

    def _projector_to(self, target: Schema) -> ColumnProjector | None:
        return if_columnar(lambda: ColumnProjector(self._avro, self.schema, target, self._options))


def _column_decoder(
    avro: AvroType, schema: Schema, fields: tuple[str, ...], options: JsonOptions, datums: DatumSettings | None
) -> AvroColumnDecoder | None:
    if datums is not None and not passes(avro, schema, datums):
        return None
    return if_columnar(lambda: AvroColumnDecoder(avro, schema, fields, options, datums))


_Write = Callable[[bytes, object], bytes]
"""From a datum and its value to the bytes of the row."""


def _write(avro: AvroType, schema: Schema, options: JsonOptions, datums: DatumSettings | None) -> _Write:
    """The form of values in the object. Raises InvalidSchema."""
    if datums is None:
        to_json, text = json_encoder(schema, options), TextLimit(schema, is_avro=True).encode
        return lambda datum, value: text(None if value is None else to_json(value), len(datum))
    encode = datum_encoder(schema, datums)
    if not passes(avro, schema, datums):
        return lambda _, value: encode(value)
    if not has_limits(avro, datums):
        return lambda datum, _: datum

    def checked(datum: bytes, value: object) -> bytes:
        encode(value)
        return datum

    return checked


class AvroRowDecoder:
    """Decodes data row-wise."""

    def __init__(
        self,
        avro: AvroType,
        schema: Schema,
        fields: tuple[str, ...],
        options: JsonOptions,
        datums: DatumSettings | None = None,
    ) -> None:
        self._schema = schema
        self._fields = fields
        self._read = DatumReader(avro).read
        self._is_recursive = is_recursive(schema)
        self._normalise = normaliser(avro)
        self._write = _write(avro, schema, options, datums)
        schema_fields.columns([], schema, fields)  # an invalid default is a property of the schema

    def values(self, payload: pa.BinaryArray) -> Iterator[object]:
        """The values of valid data, in Connect's data model. Raises RecursionError."""
        return (self._normalise(self._read(data)) for data in payload.to_pylist())

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        texts: list[bytes] = []
        values: list[Any] = []
        rejected: Rejections = []
        for row, data in enumerate(payload.to_pylist()):
            try:
                value = self._normalise(self._checked(self._read(data)))
                text = self._write(data, value)
            except VALUE_ERRORS as error:
                value, text = MISSING, b""
                rejected.append((row, str(error) or "the value cannot be computed"))
            except RecursionError:
                value, text = MISSING, b""
                rejected.append((row, VALUE_TOO_DEEP))
            values.append(value)
            texts.append(text)
        nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
        fields = schema_fields.columns(values, self._schema, self._fields)
        return Decoded(arrow_columns.binaries(texts), nulls if nulls.any() else None, rejected, fields)

    def _checked(self, value: object) -> object:
        """The value. Raises InvalidValue if it is nested too deeply: only a recursive schema allows that."""
        if self._is_recursive and is_value_too_deep(value):
            raise InvalidValue(VALUE_TOO_DEEP)
        return value
