"""Records with key, headers, timestamp and origin beside the value (`format.envelope`).

`heads` computes what each record has before its value, `rows` puts values after it. A projected value gets the same
head as the value as it came.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol

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
from sink_job.envelope.columns import (
    Origin,
    data_heads,
    joined,
    json_heads,
    key_texts,
    optional_bytes,
    with_branch,
    with_null_member,
)
from sink_job.envelope.null_records import NULL_RECORD, EnvelopeSchemas, WrittenNulls
from sink_job.envelope.schema import (
    KEY_BYTES,
    KEY_TEXT,
    check_envelope,
    envelope_schema,
    gets_null_member,
    key_branches,
    key_field,
    nullable_envelope_schema,
    value_branches,
    value_schema,
)
from sink_job.formats.datum_rows import DatumRows
from sink_job.json.lines import JsonLines
from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA, NullRecords
from sink_job.records.fields import Rejections

MAX_SCHEMAS: Final = 100
"""Maximum number of schemas of envelopes that a process keeps."""


class Envelopes(Protocol):
    """The envelope of a sink's records."""

    def heads(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> pa.BinaryArray:
        """What the rows of `batch` have before their values. A rejected record, and one without a value if these are
        not written, has an undefined head. Raises ColumnTooLarge if the rows would be too long for a column."""
        ...

    def values(self, converted: Converted) -> pa.BinaryArray:
        """What the rows have as the values. A record without a value has what belongs to its own schema."""
        ...

    def projected_values(self, values: pa.BinaryArray, without: Mask | None, target: Schema) -> pa.BinaryArray:
        """`values` that are encoded under `of_value(target)`, with null in the rows of the mask `without`, for which
        `values` has none."""
        ...

    def rows(self, heads: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of an object."""
        ...

    def schemas(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask) -> EnvelopeSchemas:
        """The schemas of the records of a batch of `tp`, and the rejected rows without those of the mask `skip`."""
        ...

    def of_value(self, schema: Schema) -> Schema | None:
        """The schema of the values in an object with the schema `schema`; None if no record has a value."""
        ...


def envelopes(settings: FormatSpec, nulls: WrittenNulls | None = None) -> Envelopes | None:
    """The envelope of a sink; None if its objects contain values alone. `nulls`: None if records without a value are
    not written."""
    if not settings.envelope:
        return None
    datums = DatumSettings.of(settings)
    return JsonEnvelopes(settings, nulls) if datums is None else DatumEnvelopes(datums, settings.key_converter, nulls)


class JsonEnvelopes:
    """One JSON object for each record. The schema of a record is that of its value, as without an envelope: an object
    contains no schema, so that of a key closes none."""

    def __init__(self, settings: FormatSpec, nulls: WrittenNulls | None = None) -> None:
        converter = settings.key_converter
        self._keys = None if converter is None else JsonLines(converter)
        self._values = JsonLines(settings.converter)
        self._timestamps = settings.timestamps
        self._nulls = nulls

    def heads(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> pa.BinaryArray:
        origin, keys = Origin.of(batch, tp), batch.column("key")
        origin.check_size(keys, converted.values)
        tombstones = None if self._nulls is None else _tombstones(batch)
        if self._keys is None:
            return json_heads(origin, key_texts(keys), self._timestamps, tombstones)
        assert converted.keys is not None, "a converter of keys has read them"
        texts = json_columns.nullable(self._keys.texts, b"null")(_nullable(converted.keys))
        return json_heads(origin, texts, self._timestamps, tombstones)

    def values(self, converted: Converted) -> pa.BinaryArray:
        texts = self._values.texts(converted.values)
        return texts if self._nulls is None else _with_nulls(texts, converted.nulls, b"null")

    def projected_values(self, values: pa.BinaryArray, without: Mask | None, target: Schema) -> pa.BinaryArray:
        return _spread(values, without, b"null")

    def rows(self, heads: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
        return joined(heads, values, json_columns.one(b"}\n"))

    def schemas(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask) -> EnvelopeSchemas:
        found, without = converted.schemas, converted.nulls
        if found is None or self._nulls is None:
            return EnvelopeSchemas(found, [])
        if self._nulls.follow:
            codes = found.codes if without is None else np.where(without, np.int32(ANY_SCHEMA), found.codes)
            return EnvelopeSchemas(SchemaColumn(codes, found.schemas), [], NullRecords(NO_SCHEMA, 0), without)
        if without is None:
            return EnvelopeSchemas(found, [])
        codes = np.where(without, np.int32(len(found.schemas)), found.codes)
        return EnvelopeSchemas(SchemaColumn(codes, [*found.schemas, NULL_RECORD]), [], without_value=without)

    def of_value(self, schema: Schema) -> Schema | None:
        return schema


class DatumEnvelopes:
    """One datum for each record, for the outputs Avro and Parquet. The schema of a record is that of its envelope, with
    those of its key and its value."""

    def __init__(
        self, settings: DatumSettings, key_converter: ConverterType | None, nulls: WrittenNulls | None = None
    ) -> None:
        self._settings = settings
        self._without_schema = KEY_TEXT if key_converter is ConverterType.TEXT else KEY_BYTES
        self._rows = DatumRows()
        self._nulls = nulls

    def heads(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> pa.BinaryArray:
        origin, keys = Origin.of(batch, tp), batch.column("key")
        origin.check_size(keys, converted.values)
        tombstones = None if self._nulls is None else _tombstones(batch)
        of_keys = optional_bytes(keys) if converted.keys is None else self._keys(converted.keys)
        return data_heads(origin, of_keys, tombstones)

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

    def values(self, converted: Converted) -> pa.BinaryArray:
        values, schemas = converted.values, converted.schemas
        if self._nulls is None or schemas is None:
            return values
        for code, schema in enumerate(schemas.schemas):
            of_schema = schemas.codes == code
            data = with_null_member(converted.values) if gets_null_member(schema) else converted.values
            data = with_branch(data, value_branches(schema)[0])
            values = data if of_schema.all() else pc.if_else(arrow_columns.booleans(of_schema), data, values)
        return _with_nulls(values, converted.nulls, b"")

    def projected_values(self, values: pa.BinaryArray, without: Mask | None, target: Schema) -> pa.BinaryArray:
        of_value = value_schema(target)
        return _spread(values, without, b"" if of_value is None else value_branches(of_value)[1])

    def rows(self, heads: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
        return self._rows.encode(joined(heads, values))

    def schemas(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask) -> EnvelopeSchemas:
        values = converted.schemas
        if values is None:
            return EnvelopeSchemas(None, [])
        known: list[Schema | None] = [*values.schemas]
        codes, without = values.codes, None if self._nulls is None else converted.nulls
        if self._nulls is not None:
            known.append(None)
            codes = codes if without is None else np.where(without, np.int32(len(known) - 1), codes)
        found, rejected = self._of_pairs(
            SchemaPairs(codes, known, *self._schemas_of_keys(converted.keys)), batch, tp, skip
        )
        if self._nulls is None or not self._nulls.follow:
            return EnvelopeSchemas(found, rejected, without_value=without)
        of_nulls = _envelope_schema(None, self._without_schema, self._settings, nullable=True)
        assert isinstance(of_nulls, Schema), "both outputs have the types of an envelope"
        distinct = found.schemas if of_nulls in found.schemas else [*found.schemas, of_nulls]
        if without is not None:
            found = SchemaColumn(np.where(without, np.int32(ANY_SCHEMA), found.codes), distinct)
        nulls = NullRecords(distinct.index(of_nulls), 1)  # the branch of null in the field `value`
        return EnvelopeSchemas(SchemaColumn(found.codes, distinct), rejected, nulls, without)

    def _of_pairs(
        self, given: SchemaPairs, batch: pa.RecordBatch, tp: TopicPartition, skip: Mask
    ) -> tuple[SchemaColumn, Rejections]:
        """The schemas of envelopes around values and keys, and the rejected rows without those of the mask `skip`."""
        outside = Origin.of(batch, tp).outside_years(skip | (given.values == NO_SCHEMA))
        skip = skip.copy()
        skip[[row for row, _ in outside]] = True
        pairs = given.values.astype(np.int64) * len(given.of_keys) + given.keys
        pairs[(given.values == NO_SCHEMA) | skip] = -1
        codes, distinct, rejected = np.full(len(pairs), NO_SCHEMA, np.int32), dict[Schema, int](), outside
        for pair in np.unique(pairs[pairs >= 0]).tolist():
            of_value, of_key = divmod(pair, len(given.of_keys))
            schema = _envelope_schema(
                given.of_values[of_value], given.of_keys[of_key], self._settings, nullable=self._nulls is not None
            )
            rows = np.flatnonzero(pairs == pair)
            if isinstance(schema, str):
                rejected += [(row, schema) for row in rows.tolist()]
            else:
                codes[rows] = distinct.setdefault(schema, len(distinct))
        return SchemaColumn(codes, list(distinct)), rejected

    def of_value(self, schema: Schema) -> Schema | None:
        return value_schema(schema)


class SchemaPairs(NamedTuple):
    """The schemas of values and keys by their codes, of which `values` may be NO_SCHEMA; None in `of_values` is that of
    a record without a value."""

    values: Codes
    of_values: list[Schema | None]
    keys: Codes
    of_keys: list[Schema]


@lru_cache(maxsize=MAX_SCHEMAS)
def _envelope_schema(value: Schema | None, key: Schema, settings: DatumSettings, *, nullable: bool) -> Schema | str:
    """The schema of an envelope, or the reason why the output cannot express it. `nullable`: records without a value
    are written; only then `value` may be None."""
    try:
        if nullable:
            schema = nullable_envelope_schema(value, key)
        else:
            assert value is not None, "records without a value are not written"
            schema = envelope_schema(value, key)
        check_envelope(schema, settings)
        return schema
    except InvalidSchema as error:
        return str(error)


def _tombstones(batch: pa.RecordBatch) -> Mask:
    return arrow_columns.truths(batch.column("value").is_null())


def _with_nulls(values: pa.BinaryArray, nulls: Mask | None, null: bytes) -> pa.BinaryArray:
    """The values, `null` in the rows of the mask `nulls`."""
    if nulls is None or not nulls.any():
        return values
    return pc.if_else(arrow_columns.booleans(nulls), json_columns.one(null), values)


def _spread(values: pa.BinaryArray, without: Mask | None, null: bytes) -> pa.BinaryArray:
    """The values in the rows outside of the mask `without`, and `null` in the others."""
    if without is None or not without.any():
        return values
    index = np.where(without, 0, np.cumsum(~without))
    all_values = pa.concat_arrays([arrow_columns.binaries([null]), values])
    return all_values.take(arrow_columns.integers(index))


def _nullable(converted: Converted) -> pa.BinaryArray:
    """The values, null where there is none."""
    if converted.nulls is None:
        return converted.values
    return pc.if_else(arrow_columns.booleans(converted.nulls), _NULL, converted.values)


_NULL: Final = arrow_columns.binaries([None])[0]
