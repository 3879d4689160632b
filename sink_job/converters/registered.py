"""Values whose schemas are in a registry: groups the rows of a batch by schema id, and decodes each group.

The language of the schemas (Avro, Protobuf, JSON Schema) is the work of a `Decoder`. A worker asks no registry: it
reports ids that the driver has not resolved yet.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from sink_job.api.enums import ConverterType, OutputFormat, UnknownFields
from sink_job.api.spec import ObjectSettings
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers, Mask
from sink_job.connect.errors import InvalidSchema, UnknownSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, JsonOptions
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.connect.schema_cache import cached_by_size, compiled_size
from sink_job.converters.base import BatchSource, Converted, PrefetchingTable, SchemaColumn, SchemaTable, null_mask
from sink_job.converters.projection import ProjectingDecoder
from sink_job.converters.wire_format import InWireFormat, WireFormat
from sink_job.records.fields import MISSING, Rejections


@dataclass(frozen=True, slots=True)
class SchemaSettings:
    """Where the schemas of values are, and the form of values in objects.

    `wire_format` is that of the values; None if all values have the schema `bare_values`. `message` is the full name of
    their message in it, for Protobuf; None is the first one. `table` has the schemas. `datums` are the settings of the
    outputs Avro and Parquet, whose values are Avro data. `unknown` is the handling of properties of JSON values that
    their schema lacks."""

    table: SchemaTable | None = None
    wire_format: WireFormat | None = None
    bare_values: str | None = None
    message: str | None = None
    output: OutputFormat = OutputFormat.JSON
    options: JsonOptions = DEFAULT_OPTIONS
    datums: DatumSettings | None = None
    unknown: UnknownFields = UnknownFields.FAIL

    @classmethod
    def of(cls, object_settings: ObjectSettings, table: SchemaTable | None) -> SchemaSettings | None:
        """The settings of a sink; None if its records have no schemas. `table` is that of a registry."""
        if not object_settings.has_schemas:
            return None
        wire_format, bare_values = (
            None if object_settings.bare_values else object_settings.wire_format,
            object_settings.bare_values,
        )
        chooses_message = object_settings.format.converter is ConverterType.PROTOBUF
        return cls(
            table=table,
            wire_format=None if wire_format is None else WireFormat.of(wire_format, chooses_message=chooses_message),
            bare_values=None if bare_values is None else bare_values.id,
            message=None if bare_values is None else bare_values.message,
            output=object_settings.format.output,
            options=JsonOptions(object_settings.format.decimals, object_settings.format.timestamps),
            datums=DatumSettings.of(object_settings.format),
            unknown=object_settings.format.unknown_fields,
        )

    @classmethod
    def of_keys(cls, object_settings: ObjectSettings, table: SchemaTable | None) -> SchemaSettings | None:
        """The settings for the keys of a sink; None if they have no schemas."""
        converter, wire_format, settings = (
            object_settings.format.key_converter,
            object_settings.wire_format,
            object_settings.format,
        )
        if converter is None or not converter.has_schemas:
            return None
        chooses_message = converter is ConverterType.PROTOBUF
        return cls(
            table=table,
            wire_format=None
            if wire_format is None
            else WireFormat.of(wire_format, is_key=True, chooses_message=chooses_message),
            output=settings.key_output,
            options=JsonOptions(settings.decimals, settings.timestamps) if settings.envelope else DEFAULT_OPTIONS,
            datums=DatumSettings.of(settings) if settings.envelope else None,
        )

    @property
    def needs_headers(self) -> bool:
        """Whether schema ids can be in the records' headers."""
        return self.wire_format is not None and self.wire_format.needs_headers


@dataclass(frozen=True, slots=True)
class Decoded:
    """The decoded values of a group of rows with one schema.

    `texts`: the JSON text of each row, or its Avro datum for the outputs Avro and Parquet; none of them is null. A null
    or rejected row has an undefined text. `nulls`: a mask of the rows whose value is null; None if there are none.
    `rejected`: (row, reason), ascending. `fields`: for each requested field one value per row, MISSING where the schema
    lacks it. `dropped_properties`: the number of the properties that the schema lacks and that are dropped.
    """

    texts: pa.BinaryArray
    nulls: Mask | None = None
    rejected: Rejections = field(default_factory=list)
    fields: dict[str, list[object]] = field(default_factory=dict)
    dropped_properties: int = 0


class Decoder(Protocol):
    """Decodes the values of one schema."""

    @property
    def schema(self) -> Schema:
        """The schema in Connect's data model."""
        ...

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """Decodes `payload`, none of which is null."""
        ...


class DecoderRows(NamedTuple):
    """Rows of a payload with one decoder: their indexes, ascending, and the bytes that it decodes."""

    rows: Integers
    decoder: Decoder
    payload: pa.BinaryArray


class _Group(NamedTuple):
    rows: Integers
    decoder: Decoder
    decoded: Decoded


class RegisteredConverter:
    """Converts values with a schema. `decoder_for` compiles a schema, and raises InvalidSchema."""

    def __init__(
        self, fields: tuple[str, ...], settings: SchemaSettings, decoder_for: Callable[[RegisteredSchema], Decoder]
    ) -> None:
        self._fields = fields
        self._settings = settings
        self._compiled = cached_by_size(partial(_compiled, decoder_for), _size)

    def _decoder_for(self, schema: RegisteredSchema) -> Decoder:
        """Raises InvalidSchema."""
        found = self._compiled(schema)
        if isinstance(found, str):
            raise InvalidSchema(found)
        return found

    def reason_against(self, schema: RegisteredSchema) -> str | None:
        """Why values with this schema cannot be converted; None if they can."""
        try:
            self._decoder_for(schema)
        except InvalidSchema as error:
            return str(error)
        return None

    def schema_of(self, schema: RegisteredSchema) -> Schema | None:
        """The schema of its values in Connect's data model; None if they cannot be converted."""
        try:
            return self._decoder_for(schema).schema
        except InvalidSchema:
            return None

    def decoder_of_bare(self, topic: str) -> Decoder | None:
        """The decoder of bare values in the records of `topic`; None if values are not bare, or their schema is not
        resolved, not known or cannot be used."""
        if self._settings.wire_format is not None or self._settings.bare_values is None:
            return None
        try:
            schema = self._find(topic, self._settings.bare_values)
            return None if schema is None else self._decoder_for(schema)
        except (UnknownSchema, InvalidSchema):
            return None

    def with_table(self, table: SchemaTable) -> Self:
        """The same converter with the schemas of `table`. Compiled schemas are shared."""
        changed = copy.copy(self)
        changed._settings = replace(self._settings, table=table)
        return changed

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        tombstones = null_mask(values)
        rows = np.arange(len(values)) if tombstones is None else np.flatnonzero(~tombstones)
        in_wire_format = self._in_wire_format(values, rows, tombstones, source)
        batch = _RegisteredBatch(len(values), self._fields)
        unresolved = self._unresolved(in_wire_format, rows, source)
        end = unresolved[0][0] if unresolved else len(values)
        batch.reject((int(rows[row]), reason) for row, reason in in_wire_format.rejected)
        for code, schema_id in enumerate(in_wire_format.ids):
            chosen = np.flatnonzero(in_wire_format.codes == code)
            chosen = chosen[rows[chosen] < end]
            if len(chosen):
                self._decode(batch, schema_id, source, in_wire_format.payload, rows, chosen)
        is_as_it_came = self._settings.output is OutputFormat.BYTES
        texts = arrow_columns.without_nulls(values) if is_as_it_came else batch.texts()
        return batch.converted(texts, tombstones, unresolved)

    def project(self, values: pa.BinaryArray, source: BatchSource, target: Schema) -> pa.BinaryArray:
        """See `ProjectingConverter.project`. Raises TypeError if the values of the language cannot be projected."""
        in_wire_format = self._in_wire_format(values, np.arange(len(values)), None, source)
        parts: list[pa.BinaryArray] = []
        rows: list[Integers] = []
        for code, schema_id in enumerate(in_wire_format.ids):
            of_schema = np.flatnonzero(in_wire_format.codes == code)
            schema = self._find(source.topic, schema_id)
            assert schema is not None, "converted values have resolved schemas"
            for chosen in self._decoders(schema, in_wire_format.payload.take(arrow_columns.integers(of_schema)))[0]:
                if not isinstance(chosen.decoder, ProjectingDecoder):
                    raise TypeError(f"values with the schema {schema_id} cannot be projected")
                rows.append(of_schema[chosen.rows])
                parts.append(chosen.decoder.project(chosen.payload, target))
        return pa.concat_arrays(parts).take(arrow_columns.integers(np.argsort(np.concatenate(rows))))

    def unresolved(self, values: pa.BinaryArray, source: BatchSource) -> tuple[str, ...]:
        """See `SchemaConverter.unresolved`; in the order of their first records."""
        tombstones = null_mask(values)
        rows = np.arange(len(values)) if tombstones is None else np.flatnonzero(~tombstones)
        found = self._unresolved(self._in_wire_format(values, rows, tombstones, source), rows, source)
        return tuple(schema_id for _, schema_id in found)

    def _in_wire_format(
        self, values: pa.BinaryArray, rows: Integers, tombstones: Mask | None, source: BatchSource
    ) -> InWireFormat:
        headers = source.headers
        if tombstones is not None:
            present = arrow_columns.booleans(~tombstones)
            values = values.filter(present)
            headers = None if headers is None else headers.filter(present)
        if self._settings.wire_format is None:
            assert self._settings.bare_values is not None, "bare values have one schema"
            ids = [self._settings.bare_values] if len(rows) else []
            return InWireFormat(np.zeros(len(rows), np.int32), ids, values, [])
        return self._settings.wire_format.parse(values, headers)

    def _unresolved(self, in_wire_format: InWireFormat, rows: Integers, source: BatchSource) -> list[tuple[int, str]]:
        if isinstance(self._settings.table, PrefetchingTable):
            self._settings.table.prefetch(source.topic, in_wire_format.ids)
        found = []
        for code, schema_id in enumerate(in_wire_format.ids):
            try:
                schema = self._find(source.topic, schema_id)
            except UnknownSchema:
                continue
            if schema is None:
                found.append((int(rows[np.argmax(in_wire_format.codes == code)]), schema_id))
        return sorted(found)

    def _find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """Raises UnknownSchema."""
        assert self._settings.table is not None, "a task sets the table of its round"
        return self._settings.table.find(topic, schema_id)

    def _decode(
        self,
        batch: _RegisteredBatch,
        schema_id: str,
        source: BatchSource,
        payload: pa.BinaryArray,
        rows: Integers,
        chosen: Integers,
    ) -> None:
        if len(chosen) < len(payload):
            payload = payload.take(arrow_columns.integers(chosen))
        try:
            schema = self._find(source.topic, schema_id)
            assert schema is not None, "unresolved rows are not decoded"
            parts, rejected = self._decoders(schema, payload)
        except UnknownSchema as error:
            batch.unknown += rows[chosen].tolist()
            batch.reject((int(rows[row]), str(error)) for row in chosen)
            return
        except InvalidSchema as error:
            batch.reject((int(rows[row]), str(error)) for row in chosen)
            return
        batch.reject((int(rows[chosen[row]]), reason) for row, reason in rejected)
        for part in parts:
            decoded = part.decoder.decode(part.payload)
            if self._settings.wire_format is not None:  # else there is one schema, that of the manifest
                decoded = replace(decoded, rejected=[(row, schema.reject(each)) for row, each in decoded.rejected])
            batch.add(_Group(rows[chosen[part.rows]], part.decoder, decoded))

    def _decoders(self, schema: RegisteredSchema, payload: pa.BinaryArray) -> tuple[list[DecoderRows], Rejections]:
        """The decoders for the rows of a payload with one schema, and the rejected rows. Raises InvalidSchema."""
        return [DecoderRows(np.arange(len(payload)), self._decoder_for(schema), payload)], []


def _compiled(decoder_for: Callable[[RegisteredSchema], Decoder], schema: RegisteredSchema) -> Decoder | str:
    """The decoder, or the reason why the schema cannot be used: that can take seconds to find out, too."""
    try:
        return decoder_for(schema)
    except InvalidSchema as error:
        return str(error)


def _size(registered: RegisteredSchema, found: Decoder | str) -> int:
    """The size of a decoder, or of a reason, with its schema's texts in bytes, estimated."""
    return len(found) + text_size(registered) if isinstance(found, str) else decoder_size(registered, found)


def decoder_size(registered: RegisteredSchema, decoder: Decoder) -> int:
    """The size of a decoder with its schema's texts in bytes, estimated."""
    return text_size(registered) + compiled_size(decoder.schema)


def text_size(registered: RegisteredSchema) -> int:
    """The length of a schema's texts."""
    return len(registered.text) + sum(len(reference.text) for reference in registered.references)


class _RegisteredBatch:
    """Collects the results of the groups of a batch with `size` rows."""

    def __init__(self, size: int, fields: tuple[str, ...]) -> None:
        self._size = size
        self._fields = fields
        self._groups: list[_Group] = []
        self._rejected: Rejections = []
        self.unknown: list[int] = []

    def reject(self, rejections: Iterator[tuple[int, str]]) -> None:
        self._rejected.extend(rejections)

    def add(self, group: _Group) -> None:
        self._groups.append(group)
        self.reject((int(group.rows[row]), reason) for row, reason in group.decoded.rejected)

    def converted(
        self, values: pa.BinaryArray, tombstones: Mask | None, unresolved: list[tuple[int, str]]
    ) -> Converted:
        return Converted(
            values=values,
            nulls=self._nulls(tombstones),
            rejected=sorted(self._rejected),
            fields={name: self._field(name) for name in self._fields},
            schemas=self._schemas(),
            unresolved=unresolved,
            unknown=sorted(self.unknown),
            dropped_properties=sum(group.decoded.dropped_properties for group in self._groups),
        )

    def texts(self) -> pa.BinaryArray:
        """The texts of all rows; empty for a row in no group."""
        parts = [group.decoded.texts for group in self._groups]
        if len(parts) == 1 and len(parts[0]) == self._size:
            return parts[0]
        source = np.zeros(self._size, np.int64)
        at = 1
        for group in self._groups:
            source[group.rows] = at + np.arange(len(group.rows))
            at += len(group.rows)
        return pa.concat_arrays([arrow_columns.binaries([b""]), *parts]).take(arrow_columns.integers(source))

    def _nulls(self, tombstones: Mask | None) -> Mask | None:
        nulls = np.zeros(self._size, np.bool_) if tombstones is None else tombstones.copy()
        for group in self._groups:
            if group.decoded.nulls is not None:
                nulls[group.rows] = group.decoded.nulls
        return nulls if nulls.any() else None

    def _field(self, name: str) -> list[object]:
        found: list[object] = [MISSING] * self._size
        for group in self._groups:
            for row, value in zip(group.rows.tolist(), group.decoded.fields[name], strict=True):
                found[row] = value
        return found

    def _schemas(self) -> SchemaColumn:
        """The schemas of the rows. A row in no group, such as a tombstone, has none."""
        codes = np.full(self._size, -1, np.int32)
        index: dict[Schema, int] = {}
        for group in self._groups:
            codes[group.rows] = index.setdefault(group.decoder.schema, len(index))
        return SchemaColumn(codes, list(index))
