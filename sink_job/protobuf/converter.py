"""Protobuf with a schema registry, or bare with one schema and message.

A schema has several messages. A selector in front of each value chooses one
(`sink_job.converters.protobuf_message_index`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from msgspec import structs

from sink_job.api.recursion import recursion_limit
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.columnar import columnar_or_row_wise, if_columnar
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.passthrough import projected_datums
from sink_job.connect.errors import InvalidSchema, InvalidValue, rejecting
from sink_job.connect.json_encoder import JsonOptions, json_encoder
from sink_job.connect.json_size import TextLimit
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.connect.schema_cache import cached_by_size
from sink_job.converters import protobuf_message_index, schema_fields
from sink_job.converters.batch_split import halved, is_large
from sink_job.converters.projection import projected_texts
from sink_job.converters.protobuf_message_index import FIRST, ReadSelector, Selector, read_indexes
from sink_job.converters.registered import (
    Decoded,
    Decoder,
    DecoderRows,
    RegisteredConverter,
    SchemaSettings,
    decoder_size,
    text_size,
)
from sink_job.converters.wire_format import Layout
from sink_job.protobuf.column_decoder import ProtobufColumnDecoder
from sink_job.protobuf.compiler import compile_schema
from sink_job.protobuf.files import ProtobufFiles
from sink_job.protobuf.row_decoder import MessageReader
from sink_job.protobuf.to_connect import connect_schema
from sink_job.records.fields import MISSING, Rejections

DecoderOfMessage = Callable[[Descriptor, RegisteredSchema], Decoder]
"""The decoder for messages of one type of a schema. Raises InvalidSchema."""


class ProtobufConverter(RegisteredConverter):
    """Converts Protobuf messages."""

    def __init__(
        self, fields: tuple[str, ...], settings: SchemaSettings, decoder: DecoderOfMessage | None = None
    ) -> None:
        """`decoder` makes that of a message; None for one that writes values."""
        decoder = decoder or partial(_writing, fields, settings.options, settings.datums)
        super().__init__(fields, settings, partial(_named, settings.message, decoder))
        self._decoder_at = cached_by_size(partial(_decoder_at, decoder), _decoder_size)

    def reason_against(self, schema: RegisteredSchema) -> str | None:
        """See `RegisteredConverter.reason_against`. Each record chooses a message of the schema, so none is checked."""
        if self._settings.wire_format is None:
            return super().reason_against(schema)
        try:
            compiled(schema)
        except InvalidSchema as error:
            return str(error)
        return None

    def schema_of(self, schema: RegisteredSchema) -> Schema | None:
        """See `RegisteredConverter.schema_of`; that of the first message."""
        if self._settings.wire_format is None:
            return super().schema_of(schema)
        try:
            return self._decoder_at((schema, FIRST)).schema
        except (InvalidSchema, InvalidValue):
            return None

    def _decoders(self, schema: RegisteredSchema, payload: pa.BinaryArray) -> tuple[list[DecoderRows], Rejections]:
        if self._settings.wire_format is None:
            return super()._decoders(schema, payload)
        selected, rejected = protobuf_message_index.split(payload, _READERS[self._settings.wire_format.layout])
        found = []
        for each in selected:
            try:
                found.append(DecoderRows(each.rows, self._decoder_at((schema, each.selector)), each.messages))
            except InvalidSchema as error:
                rejected += [(row, str(error)) for row in each.rows.tolist()]
            except InvalidValue as error:
                rejected += [(row, schema.reject(str(error))) for row in each.rows.tolist()]
        return found, rejected


_READERS: Final[dict[Layout, ReadSelector]] = {
    Layout.CONFLUENT: read_indexes,
    Layout.GLUE: protobuf_message_index.read_position,
    Layout.APICURIO: protobuf_message_index.read_name,
}


def decoder_of(
    schema: RegisteredSchema,
    message: str | None,
    fields: tuple[str, ...],
    options: JsonOptions,
    datums: DatumSettings | None = None,
) -> ProtobufDecoder:
    """The decoder for bare values. `message` is the full name of their message, such as `example.Flight`;
    None is the first message of the schema.

    Raises InvalidSchema if the schema is not valid, or has no such message.
    """
    return _named(message, partial(_writing, fields, options, datums), schema)


_D = TypeVar("_D", bound=Decoder)


def _named(message: str | None, decoder: Callable[[Descriptor, RegisteredSchema], _D], schema: RegisteredSchema) -> _D:
    files = compiled(schema)
    with _usable(schema):
        return decoder(files.at(FIRST) if message is None else files.named(message), schema)


def _writing(
    fields: tuple[str, ...],
    options: JsonOptions,
    datums: DatumSettings | None,
    message: Descriptor,
    schema: RegisteredSchema,
) -> ProtobufDecoder:
    return ProtobufDecoder(message, schema.version, fields, options, datums, subject=schema.subject)


_Message = tuple[RegisteredSchema, Selector]


def _decoder_at(decoder: DecoderOfMessage, chosen: _Message) -> Decoder:
    """Raises InvalidSchema, and InvalidValue if the schema has no such message."""
    schema, selector = chosen
    message = compiled(schema).selected(selector)
    with _usable(schema):
        return decoder(message, schema)


def _decoder_size(chosen: _Message, decoder: Decoder) -> int:
    return decoder_size(chosen[0], decoder)


def compiled(schema: RegisteredSchema) -> ProtobufFiles:
    """The messages of a schema. Raises InvalidSchema, and OSError if the compiler was killed from outside."""
    found = _compiled(schema)
    if isinstance(found, str):
        raise InvalidSchema(found)
    return found


def _uncached(schema: RegisteredSchema) -> ProtobufFiles | str:
    """The messages of a schema, or the reason why it cannot be used."""
    if schema.language != "PROTOBUF":
        return f"{schema.label} is {schema.language}, but format.converter is Protobuf"
    try:
        with _usable(schema):
            return ProtobufFiles(compile_schema(schema))
    except InvalidSchema as error:
        return str(error)


_compiled: Final = cached_by_size(_uncached, lambda schema, found: text_size(schema) + _files_size(found))
"""Neither messages nor a reason is computed twice in a process, as long as they are kept."""


def _files_size(found: ProtobufFiles | str) -> int:
    return len(found) if isinstance(found, str) else found.size


@contextmanager
def _usable(schema: RegisteredSchema) -> Iterator[None]:
    """Names the schema in an InvalidSchema."""
    try:
        with deep_calls(), rejecting("the Protobuf schema"):
            yield
    except InvalidSchema as error:
        raise InvalidSchema(f"{schema.label} cannot be used: {error}") from None


class ProtobufDecoder:
    """Decodes messages of one type. See `Decoder`."""

    def __init__(
        self,
        message: Descriptor,
        version: int | None,
        fields: tuple[str, ...],
        options: JsonOptions,
        datums: DatumSettings | None = None,
        *,
        subject: str | None = None,
    ) -> None:
        """`version` is that of the schema in `subject`. `datums` are the settings of the outputs Avro and Parquet:
        for them messages are decoded row-wise. Raises InvalidSchema."""
        self.schema: Schema = structs.replace(connect_schema(message, version), subject=subject)
        self._options = options
        self._datums = datums
        self._rows = ProtobufRowDecoder(message, self.schema, fields, options, datums)
        columnar = partial(ProtobufColumnDecoder, message, self.schema, fields, options)
        self._columns = if_columnar(columnar) if datums is None else None
        self._limit = TextLimit(self.schema) if datums is None else None

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        if self._limit is not None and is_large(payload, self._limit):
            return halved(payload, self.decode)
        columnar = None if self._columns is None else self._columns.decode
        return columnar_or_row_wise(payload, columnar, self._rows.decode)

    def project(self, payload: pa.BinaryArray, target: Schema) -> pa.BinaryArray:
        """See `ProjectingDecoder.project`."""
        with deep_calls():
            if self._datums is not None:
                return projected_datums(self._rows.values(payload), self.schema, target, self._datums)
            return projected_texts(self._rows.values(payload), self.schema, target, self._options)


_Write = Callable[[object, int], bytes]
"""From a value, and the size of its message in bytes, to the bytes of the row."""


def _write(schema: Schema, options: JsonOptions, datums: DatumSettings | None) -> _Write:
    """The form of values in the object. Raises InvalidSchema."""
    if datums is not None:
        encode = datum_encoder(schema, datums)
        return lambda value, _: encode(value)
    to_json, text = json_encoder(schema, options), TextLimit(schema).encode
    return lambda value, size: text(to_json(value), size)


class ProtobufRowDecoder:
    """Decodes messages row-wise."""

    def __init__(
        self,
        message: Descriptor,
        schema: Schema,
        fields: tuple[str, ...],
        options: JsonOptions,
        datums: DatumSettings | None = None,
    ) -> None:
        self._schema = schema
        self._fields = fields
        self._read = MessageReader(message).read
        self._write = _write(schema, options, datums)

    def values(self, payload: pa.BinaryArray) -> Iterator[object]:
        """The values of valid messages, in Connect's data model."""
        with deep_calls():
            return iter([self._read(data) for data in payload.to_pylist()])

    def _values(self, payload: pa.BinaryArray) -> tuple[list[Any], Rejections]:
        """The value of each row in Connect's data model, MISSING for a rejected row; and the rejected rows."""
        values: list[Any] = []
        rejected: Rejections = []
        for row, data in enumerate(payload.to_pylist()):
            try:
                values.append(self._read(data))
            except ValueError as error:
                values.append(MISSING)
                rejected.append((row, str(error)))
        return values, rejected

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        with deep_calls():
            return self._decode(payload)

    def _decode(self, payload: pa.BinaryArray) -> Decoded:
        values, rejected = self._values(payload)
        texts: list[bytes] = []
        sizes = np.diff(arrow_columns.bounds(payload)).tolist()
        for row, (value, size) in enumerate(zip(values, sizes, strict=True)):
            try:
                texts.append(b"" if value is MISSING else self._write(value, size))
            except (ValueError, ArithmeticError) as error:
                values[row] = MISSING
                texts.append(b"")
                rejected.append((row, f"the value cannot be written: {error}"))
        fields = schema_fields.columns(values, self._schema, self._fields)
        return Decoded(arrow_columns.binaries(texts), None, sorted(rejected), fields)


def deep_calls() -> AbstractContextManager[None]:
    """Allows the calls for a message of the maximum depth, 100: whether it is valid must not depend on the caller."""
    return recursion_limit(_MAX_CALLS)


_MAX_CALLS: Final = 5_000
