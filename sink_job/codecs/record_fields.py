"""The fields of records that paths and times need: of the value, the key, headers, topic and partition.

The converter of values extracts its fields itself. This module adds the others to its result. The key of a record is
read only if a path or time needs it, and not for a record that is rejected already, or has no value and is not
written.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.sections.record_fields import FieldReference, FieldSource
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Mask
from sink_job.codecs.converters import converter_for
from sink_job.connect.schema import RegisteredSchema, key_schema_id
from sink_job.converters.base import (
    BatchSource,
    Converted,
    PrefetchingTable,
    SchemaConverter,
    SchemaTable,
    ValueConverter,
)
from sink_job.converters.registered import RegisteredConverter, SchemaSettings
from sink_job.engine.types import payload
from sink_job.records.fields import MISSING


@dataclass(frozen=True, slots=True)
class KeySchemas:
    """The schemas of keys in `table`. Their ids have the prefix `key-` there: a version counts in the subject of the
    key, so the same schema of a value has another copy."""

    table: SchemaTable

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """See `SchemaTable.find`."""
        return self.table.find(topic, key_schema_id(schema_id))

    def prefetch(self, topic: str, schema_ids: Collection[str]) -> None:
        """See `PrefetchingTable.prefetch`."""
        if isinstance(self.table, PrefetchingTable):
            self.table.prefetch(topic, [key_schema_id(each) for each in schema_ids])


class KeyReader:
    """Reads the keys of batches. `fields` are those of the key; `needs_headers`: schema ids can be in headers."""

    def __init__(self, converter: ValueConverter, fields: tuple[FieldReference, ...], *, needs_headers: bool) -> None:
        self._converter = converter
        self._fields = fields
        self.needs_headers = needs_headers

    @classmethod
    def of(
        cls, object_settings: ObjectSettings, fields: tuple[FieldReference, ...], table: SchemaTable | None
    ) -> KeyReader | None:
        """The reader of a sink; None if it needs no converted keys. Raises ValueError without a converter."""
        choice = object_settings.format.key_converter
        if not fields and (choice is None or not object_settings.format.envelope):
            return None
        if choice is None:
            raise ValueError("fields of the key need format.keyConverter")
        schemas = SchemaSettings.of_keys(object_settings, None if table is None else KeySchemas(table))
        names = tuple(each.name for each in fields)
        converter = converter_for(choice, names, output=object_settings.format.key_output, schemas=schemas)
        return cls(converter, fields, needs_headers=schemas is not None and schemas.needs_headers)

    def with_table(self, table: SchemaTable) -> Self:
        """The same reader with the schemas of `table`."""
        if not isinstance(self._converter, RegisteredConverter):
            return self
        changed = copy.copy(self)
        changed._converter = self._converter.with_table(KeySchemas(table))
        return changed

    def read(self, keys: pa.BinaryArray, source: BatchSource) -> Converted:
        """The fields of `keys`, by the text of their reference; None for a record without a key. The reasons for
        rejections name the key, unresolved ids have the prefix of keys."""
        found = self._converter.convert(keys, source)
        return replace(
            found,
            rejected=[(row, _of_key(reason)) for row, reason in found.rejected],
            fields={each.text: _nullable(found.fields[each.name], found.nulls) for each in self._fields},
            unresolved=[(row, key_schema_id(each)) for row, each in found.unresolved],
        )

    def unresolved(self, keys: pa.BinaryArray, source: BatchSource) -> tuple[str, ...]:
        """The distinct schema ids of `keys` that the driver has not resolved yet, with the prefix of keys."""
        if not isinstance(self._converter, SchemaConverter):
            return ()
        return tuple(map(key_schema_id, self._converter.unresolved(keys, source)))


class RecordFields:
    """Adds fields from outside of the value to converted batches."""

    def __init__(
        self, fields: tuple[FieldReference, ...], key: KeyReader | None, *, writes_nulls: bool = False
    ) -> None:
        """`writes_nulls`: the keys of records without a value are needed, too."""
        self._fields = fields
        self._writes_nulls = writes_nulls
        self._headers = [each for each in fields if each.source is FieldSource.HEADER]
        self._only_values = all(each.source is FieldSource.VALUE and each.name == each.text for each in fields)
        self._key = key

    @classmethod
    def of(
        cls, object_settings: ObjectSettings, fields: Sequence[FieldReference], table: SchemaTable | None
    ) -> RecordFields:
        """Raises ValueError for settings that the spec should have rejected."""
        of_key = tuple(each for each in fields if each.source is FieldSource.KEY)
        writes_nulls = object_settings.null_values is not None
        return cls(tuple(fields), KeyReader.of(object_settings, of_key, table), writes_nulls=writes_nulls)

    @property
    def of_value(self) -> tuple[str, ...]:
        """The fields that the converter of values has to extract."""
        return tuple(dict.fromkeys(each.name for each in self._fields if each.source is FieldSource.VALUE))

    @property
    def needs_key(self) -> bool:
        """Whether batches need the column `key`."""
        return self._key is not None

    @property
    def needs_headers(self) -> bool:
        """Whether batches need the column `headers`."""
        return bool(self._headers) or (self._key is not None and self._key.needs_headers)

    def with_table(self, table: SchemaTable) -> RecordFields:
        """The same fields with the schemas of `table`."""
        if self._key is None:
            return self
        return RecordFields(self._fields, self._key.with_table(table), writes_nulls=self._writes_nulls)

    def add(self, converted: Converted, batch: pa.RecordBatch, tp: TopicPartition) -> Converted:
        """The converted values of `batch` with all fields, by the text of their reference, and with the rejections and
        schema ids of keys."""
        if self._only_values and self._key is None:
            return converted
        fields = dict(converted.fields)
        for each in self._fields:
            match each.source:
                case FieldSource.VALUE:
                    fields[each.text] = converted.fields[each.name]
                case FieldSource.HEADER:
                    fields[each.text] = header_values(batch.column("headers"), each.name)
                case FieldSource.TOPIC:
                    fields[each.text] = [tp.topic] * len(batch)
                case FieldSource.PARTITION:
                    fields[each.text] = [tp.partition] * len(batch)
        return self._with_keys(replace(converted, fields=fields), batch, tp)

    def unresolved(self, batch: pa.RecordBatch, tp: TopicPartition) -> tuple[str, ...]:
        """The distinct schema ids of keys in a batch that the driver has not resolved yet."""
        if self._key is None:
            return ()
        keys = batch.column("key")
        if not self._writes_nulls:
            keys = _without(keys, arrow_columns.truths(payload(batch).is_null()))
        return self._key.unresolved(keys, self._source(batch, tp))

    def _with_keys(self, converted: Converted, batch: pa.RecordBatch, tp: TopicPartition) -> Converted:
        if self._key is None:
            return converted
        nulls = None if self._writes_nulls else converted.nulls
        keys = _without(batch.column("key"), _unneeded(converted, nulls, len(batch)))
        found = self._key.read(keys, self._source(batch, tp))
        return replace(
            converted,
            fields=converted.fields | found.fields,
            rejected=sorted([*converted.rejected, *found.rejected]),
            unresolved=sorted([*converted.unresolved, *found.unresolved]),
            unknown=sorted([*converted.unknown, *found.unknown]),
            keys=found,
        )

    def _source(self, batch: pa.RecordBatch, tp: TopicPartition) -> BatchSource:
        needs_headers = self._key is not None and self._key.needs_headers
        return BatchSource(tp.topic, batch.column("headers") if needs_headers else None)


def header_values(headers: pa.ListArray, name: str) -> list[object]:
    """The text of the last header `name` of each record, as `Headers.lastHeader` of Kafka. MISSING without one, None
    for a null, and the bytes themselves if they are not UTF-8: paths and times reject bytes."""
    values: list[object] = [MISSING] * len(headers)
    rows = arrow_columns.numbers(pc.list_parent_indices(headers))
    pairs = headers.flatten()
    found = arrow_columns.truths(pc.fill_null(pc.equal(pairs.field("key"), name), False))
    for at in np.flatnonzero(found).tolist():
        values[rows[at]] = _text(pairs.field("value")[at].as_py())
    return values


def _text(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _unneeded(converted: Converted, nulls: Mask | None, n: int) -> Mask:
    """A mask of the rows whose key is not needed: those of `nulls`, rejected ones, and all after the first unresolved
    schema id."""
    mask = np.zeros(n, np.bool_) if nulls is None else nulls.copy()
    if converted.filtered is not None:
        mask |= converted.filtered
    mask[[row for row, _ in converted.rejected]] = True
    if converted.unresolved:
        mask[converted.unresolved[0][0] :] = True
    return mask


def _without(keys: pa.BinaryArray, unneeded: Mask) -> pa.BinaryArray:
    return pc.if_else(arrow_columns.booleans(unneeded), _NULL, keys) if unneeded.any() else keys


_NULL: Final = arrow_columns.binaries([None])[0]


def _nullable(values: list[object], nulls: Mask | None) -> list[object]:
    """The values of a field of keys. It is null where the key is."""
    if nulls is None:
        return values
    return [None if is_null else value for value, is_null in zip(values, nulls.tolist(), strict=True)]


def _of_key(reason: str) -> str:
    """The reason against a key, in the words for values."""
    start = "the value "
    return f"the key {reason.removeprefix(start)}" if reason.startswith(start) else f"key: {reason}"
