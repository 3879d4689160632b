"""JSON with Connect's envelope: `{"schema": …, "payload": …}`, as JsonConverter writes with `schemas.enable=true`.

Each record has its own schema. With the schema null, a record has none, and its payload is written as it is, like JSON
without a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.utf8 import utf8_error
from sink_job.avro.encoder import datum_encoder
from sink_job.connect.errors import VALUE_ERRORS, InvalidSchema, rejecting
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, JsonOptions, json_encoder
from sink_job.connect.json_size import TextLimit
from sink_job.connect.limits import TEXT_TOO_DEEP, is_text_too_deep
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.projection import projector
from sink_job.connect.schema import Schema
from sink_job.connect.schema_cache import cached_by_size, compiled_size
from sink_job.converters import schema_fields
from sink_job.converters.base import BatchSource, Converted, SchemaColumn
from sink_job.json.connect_envelope import envelope_schema, parse_envelope, payload_reader
from sink_job.json.field_extraction import Extraction
from sink_job.records.fields import MISSING, Rejections

_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True, slots=True)
class _ConnectJsonReader:
    """Reads payloads of one schema. `size` is that of its compiled form in bytes. `read` returns the value of a
    payload and `write` its row; both raise ValueError. A null has no text. `columns` extracts the requested
    fields of values."""

    schema: Schema | None
    size: int
    read: Callable[[bytes], object]
    write: Callable[[bytes, object], bytes]
    columns: Callable[[Sequence[object]], dict[str, list[object]]]


class ConnectJsonConverter:
    """Converts JSON with Connect's envelope."""

    _what = "the envelope"
    """The values, for messages."""

    def __init__(
        self,
        fields: tuple[str, ...] = (),
        output: OutputFormat = OutputFormat.JSON,
        options: JsonOptions = DEFAULT_OPTIONS,
        datums: DatumSettings | None = None,
    ) -> None:
        """`datums` are the settings of the outputs Avro and Parquet."""
        self._fields = fields
        self._is_as_it_came = output is OutputFormat.BYTES
        self._options = options
        self._datums = datums
        self._reader = cached_by_size(self._reader_for, lambda _, reader: reader.size)

    def convert(self, values: pa.BinaryArray, source: BatchSource | None = None) -> Converted:
        batch = _ConnectJsonBatch(len(values), self._fields)
        for row, value in enumerate(values.to_pylist()):
            if value is None:
                batch.nulls[row] = True
                continue
            try:
                self._read(batch, row, value)
            except VALUE_ERRORS as error:
                batch.rejected.append((row, str(error) or "the value cannot be computed"))
            except RecursionError:
                batch.rejected.append((row, TEXT_TOO_DEEP))
        as_it_came = self._is_as_it_came
        return batch.converted(
            arrow_columns.without_nulls(values) if as_it_came else arrow_columns.binaries(batch.texts)
        )

    def project(self, values: pa.BinaryArray, source: BatchSource, target: Schema) -> pa.BinaryArray:
        """See `ProjectingConverter.project`."""
        readers: dict[bytes, _ReadRow] = {}
        return arrow_columns.binaries([self._projected(value, target, readers) for value in values.to_pylist()])

    def _projected(self, value: bytes, target: Schema, readers: dict[bytes, _ReadRow]) -> bytes:
        """The row of a value under `target`; `readers` are those of the schemas so far, by their texts."""
        envelope = parse_envelope(value)
        text = bytes(envelope.schema)
        if text not in readers:
            readers[text] = _projecting(self._reader(text), target, self._write(target))
        return readers[text](bytes(envelope.payload))

    def _write(self, schema: Schema) -> Callable[[object, int], bytes]:
        """The form of values in the object. Raises InvalidSchema."""
        if self._datums is not None:
            encode = datum_encoder(schema, self._datums)
            return lambda value, _: encode(value)
        to_json, text = json_encoder(schema, self._options), TextLimit(schema).encode
        return lambda value, size: text(to_json(value), size)

    def _read(self, batch: _ConnectJsonBatch, row: int, value: bytes) -> None:
        """Raises ValueError with the reason if the value is rejected."""
        error = utf8_error(value)
        if error:
            raise ValueError(error)
        envelope = parse_envelope(value)
        if is_text_too_deep(value):
            raise ValueError(TEXT_TOO_DEEP)
        payload = bytes(envelope.payload)
        reader = self._reader(bytes(envelope.schema))
        found = reader.read(payload)
        batch.add(row, reader, found, b"" if found is None else reader.write(payload, found))

    def _reader_for(self, text: bytes) -> _ConnectJsonReader:
        """Raises InvalidSchema."""
        with rejecting(f"the schema of {self._what}"):
            return self._compiled(text)

    def _schema(self, text: bytes) -> Schema | None:
        """The schema with the text `text`; None for a value without one. Raises InvalidSchema."""
        return envelope_schema(text)

    def _compiled(self, text: bytes) -> _ConnectJsonReader:
        schema = self._schema(text)
        if schema is None and self._datums is not None:
            raise InvalidSchema(f"{self._what} has no schema, which the output {self._datums.output} requires")
        if schema is None:
            extraction = Extraction(self._fields)
            return _ConnectJsonReader(
                None, 1, lambda payload: _without_schema(extraction, payload), _as_it_is, extraction.columns
            )
        write = self._write(schema)
        schema_fields.columns([], schema, self._fields)  # an invalid default is a property of the schema
        return _ConnectJsonReader(
            schema,
            size=len(text) + compiled_size(schema),
            read=payload_reader(schema),
            write=lambda payload, value: write(value, len(payload)),
            columns=lambda records: schema_fields.columns(records, schema, self._fields),
        )


_ReadRow = Callable[[bytes], bytes]
"""From a payload to the row of the object."""


def _projecting(reader: _ConnectJsonReader, target: Schema, write: Callable[[object, int], bytes]) -> _ReadRow:
    """Projected rows have no limit: they are written after rejections."""
    assert reader.schema is not None, "a value without a schema is not projected"
    project = projector(reader.schema, target)
    return lambda payload: write(project(reader.read(payload)), 0)


def _without_schema(extraction: Extraction, payload: bytes) -> object:
    found = extraction.read(payload)
    return None if payload == b"null" else found


def _as_it_is(payload: bytes, _: object) -> bytes:
    return msgspec.json.format(payload, indent=-1) if b"\n" in payload or b"\r" in payload else payload


class _ConnectJsonBatch:
    """Collects the rows of a batch with `size` rows."""

    def __init__(self, size: int, fields: tuple[str, ...]) -> None:
        self.texts = [b""] * size
        self.nulls = np.zeros(size, np.bool_)
        self.rejected: Rejections = []
        self._fields = fields
        self._groups: dict[int, tuple[_ConnectJsonReader, list[int], list[object]]] = {}
        """The readers of the batch by their id, and the rows and values of each."""

    def add(self, row: int, reader: _ConnectJsonReader, value: object, text: bytes) -> None:
        self.texts[row] = text
        self.nulls[row] = value is None
        _, rows, values = self._groups.setdefault(id(reader), (reader, [], []))
        rows.append(row)
        if self._fields:  # otherwise the value is released
            values.append(value)

    def converted(self, values: pa.BinaryArray) -> Converted:
        return Converted(
            values=values,
            nulls=self.nulls if self.nulls.any() else None,
            rejected=self.rejected,
            fields=self._columns(),
            schemas=self._schemas(),
        )

    def _columns(self) -> dict[str, list[object]]:
        columns: dict[str, list[object]] = {name: [MISSING] * len(self.texts) for name in self._fields}
        for reader, rows, values in self._groups.values():
            for name, found in (reader.columns(values) if self._fields else {}).items():
                for row, value in zip(rows, found, strict=True):
                    columns[name][row] = value
        return columns

    def _schemas(self) -> SchemaColumn:
        codes = np.full(len(self.texts), -1, np.int32)
        index: dict[Schema, int] = {}
        for reader, rows, _ in self._groups.values():
            if reader.schema is not None:
                codes[rows] = index.setdefault(reader.schema, len(index))
        return SchemaColumn(codes, list(index))
