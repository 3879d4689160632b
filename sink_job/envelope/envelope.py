"""Records with key, headers, timestamp and origin beside the value (`format.envelope`).

`heads` computes what each record has before its value, `rows` puts values after it. A projected value gets the same
head as the value as it came.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.enums import ConverterType
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow import json_columns
from sink_job.arrow.arrays import Codes, Mask
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.converters.base import Converted, SchemaColumn
from sink_job.envelope.columns import Origin, data_heads, joined, json_heads, key_texts, optional_bytes, with_branch
from sink_job.envelope.schema import (
    KEY_BYTES,
    KEY_TEXT,
    check_envelope,
    envelope_schema,
    key_branches,
    key_field,
    value_schema,
)
from sink_job.formats.datum_rows import LengthPrefixed
from sink_job.json.lines import JsonLines
from sink_job.records.batch import NO_SCHEMA
from sink_job.records.fields import Rejections

MAX_SCHEMAS: Final = 100
"""Maximum number of schemas of envelopes that a process keeps."""


class Envelopes(Protocol):
    """The envelope of a sink's records."""

    def heads(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> pa.BinaryArray:
        """What the rows of `batch` have before their values. A null or rejected record has an undefined head. Raises
        ColumnTooLarge if the rows would be too long for a column."""
        ...

    def rows(self, heads: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of an object; `values` are those of the sink's converter."""
        ...

    def schemas(
        self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask
    ) -> tuple[SchemaColumn | None, Rejections]:
        """The schemas of the records of a batch of `tp`, and the rejected rows without those of the mask `skip`."""
        ...

    def of_value(self, schema: Schema) -> Schema:
        """The schema of the values in an object with the schema `schema`."""
        ...


def envelopes(settings: FormatSpec) -> Envelopes | None:
    """The envelope of a sink; None if its objects contain values alone."""
    if not settings.envelope:
        return None
    datums = DatumSettings.of(settings)
    return JsonEnvelopes(settings) if datums is None else DatumEnvelopes(datums, settings.key_converter)


class JsonEnvelopes:
    """One JSON object for each record. The schema of a record is that of its value, as without an envelope: an object
    contains no schema, so that of a key closes none."""

    def __init__(self, settings: FormatSpec) -> None:
        converter = settings.key_converter
        self._keys = None if converter is None else JsonLines(converter)
        self._values = JsonLines(settings.converter)
        self._timestamps = settings.timestamps

    def heads(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> pa.BinaryArray:
        origin, keys = Origin.of(batch, tp), batch.column("key")
        origin.check_size(keys, converted.values)
        if self._keys is None:
            return json_heads(origin, key_texts(keys), self._timestamps)
        assert converted.keys is not None, "a converter of keys has read them"
        texts = json_columns.nullable(self._keys.texts, b"null")(_nullable(converted.keys))
        return json_heads(origin, texts, self._timestamps)

    def rows(self, heads: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
        return joined(heads, self._values.texts(values), json_columns.one(b"}\n"))

    def schemas(
        self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask
    ) -> tuple[SchemaColumn | None, Rejections]:
        return converted.schemas, []

    def of_value(self, schema: Schema) -> Schema:
        return schema


class DatumEnvelopes:
    """One datum for each record, for the outputs Avro and Parquet. The schema of a record is that of its envelope, with
    those of its key and its value."""

    def __init__(self, settings: DatumSettings, key_converter: ConverterType | None) -> None:
        self._settings = settings
        self._without_schema = KEY_TEXT if key_converter is ConverterType.TEXT else KEY_BYTES
        self._rows = LengthPrefixed()

    def heads(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> pa.BinaryArray:
        origin, keys = Origin.of(batch, tp), batch.column("key")
        origin.check_size(keys, converted.values)
        return data_heads(origin, optional_bytes(keys) if converted.keys is None else self._keys(converted.keys))

    def _keys(self, keys: Converted) -> pa.BinaryArray:
        """The data of the field `key`."""
        codes, schemas = self._schemas_of_keys(keys)
        found = optional_bytes(_nullable(keys)) if (codes == 0).any() else keys.values
        for code, schema in enumerate(schemas[1:], 1):
            branch, null = key_branches(schema)
            data = json_columns.nullable(partial(with_branch, branch=branch), null)(_nullable(keys))
            chosen = codes == code
            found = data if chosen.all() else pc.if_else(arrow_columns.booleans(chosen), data, found)
        return found

    def _schemas_of_keys(self, keys: Converted | None) -> tuple[Codes, list[Schema]]:
        """The schema of each key as its index in the list, whose first one is that of a key without a schema. A null
        that its own schema does not allow has none."""
        if keys is None or keys.schemas is None:
            return np.zeros(1, np.int32), [self._without_schema]
        codes, schemas = keys.schemas.codes + 1, [self._without_schema, *keys.schemas.schemas]
        if keys.nulls is not None:
            required = [code for code, each in enumerate(schemas) if not key_field(each).optional]
            codes[keys.nulls & np.isin(codes, required)] = 0
        return codes, schemas

    def rows(self, heads: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
        return self._rows.encode(joined(heads, values))

    def schemas(
        self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask
    ) -> tuple[SchemaColumn | None, Rejections]:
        values = converted.schemas
        if values is None:
            return None, []
        outside = Origin.of(batch, tp).outside_years(skip | (values.codes == NO_SCHEMA))
        skip = skip.copy()
        skip[[row for row, _ in outside]] = True
        keys, of_keys = self._schemas_of_keys(converted.keys)
        pairs = np.where((values.codes == NO_SCHEMA) | skip, -1, values.codes.astype(np.int64) * len(of_keys) + keys)
        codes, distinct, rejected = np.full(len(pairs), NO_SCHEMA, np.int32), dict[Schema, int](), outside
        for pair in np.unique(pairs[pairs >= 0]).tolist():
            of_value, of_key = divmod(pair, len(of_keys))
            schema = _envelope_schema(values.schemas[of_value], of_keys[of_key], self._settings)
            rows = np.flatnonzero(pairs == pair)
            if isinstance(schema, str):
                rejected += [(row, schema) for row in rows.tolist()]
            else:
                codes[rows] = distinct.setdefault(schema, len(distinct))
        return SchemaColumn(codes, list(distinct)), rejected

    def of_value(self, schema: Schema) -> Schema:
        return value_schema(schema)


@lru_cache(maxsize=MAX_SCHEMAS)
def _envelope_schema(value: Schema, key: Schema, settings: DatumSettings) -> Schema | str:
    """The schema of an envelope, or the reason why the output cannot express it."""
    try:
        schema = envelope_schema(value, key)
        check_envelope(schema, settings)
        return schema
    except InvalidSchema as error:
        return str(error)


def _nullable(converted: Converted) -> pa.BinaryArray:
    """The values, null where there is none."""
    if converted.nulls is None:
        return converted.values
    return pc.if_else(arrow_columns.booleans(converted.nulls), _NULL, converted.values)


_NULL: Final = arrow_columns.binaries([None])[0]
