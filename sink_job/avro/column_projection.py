"""Writes Avro data under another schema than its own, column-wise where the projection allows it.

Column-wise a record's fields are dropped, reordered and added, and int becomes long. A field that is projected in
another way, such as a record within the record with other fields, is projected row by row."""

from __future__ import annotations

import pyarrow as pa

from sink_job.arrow import json_columns
from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.arrow.json_columns import ProjectedField, Texts
from sink_job.avro.column_decoder import AvroColumnDecoder, TypeCompiler
from sink_job.avro.schema import AvroType
from sink_job.connect.json_encoder import JsonOptions, json_text
from sink_job.connect.schema import Field, Schema, SchemaType

_INTEGERS = (SchemaType.INT32, SchemaType.INT64)


class ColumnProjector:
    """Writes data of one type under another schema column-wise."""

    def __init__(self, avro: AvroType, source: Schema, target: Schema, options: JsonOptions) -> None:
        """`source` is the schema of `avro` and can be projected to `target`. Raises NotColumnar."""
        self._decoder = AvroColumnDecoder(avro, source, (), options)
        self._texts = _texts(avro.nullable or avro, source, target, options)

    def project(self, payload: pa.BinaryArray) -> pa.BinaryArray:
        """See `ProjectingDecoder.project`. Raises UnusualValues if the data must be read row by row."""
        column = self._decoder.read(payload)
        if column.null_count:
            raise UnusualValues("a value is null")
        return self._texts(column)


def _texts(avro: AvroType, source: Schema, target: Schema, options: JsonOptions) -> Texts:
    positions = {field.name: position for position, field in enumerate(source.fields)}
    if avro.kind != "record" or positions.keys().isdisjoint(field.name for field in target.fields):
        raise NotColumnar("the value is not a record with a field of the target")
    parts = [_part(avro, source, positions.get(field.name), field, options) for field in target.fields]
    return json_columns.projected_structs(parts)


def _part(avro: AvroType, source: Schema, position: int | None, field: Field, options: JsonOptions) -> ProjectedField:
    if position is None:
        return ProjectedField(field.name, None, constant=json_text(field.schema, None, options))
    if not _is_same_form(source.fields[position].schema, field.schema):
        raise NotColumnar(f"the field {field.name} is not projected column-wise")
    texts = TypeCompiler(options).texts(avro.fields[position].type, field.schema, 1)
    return ProjectedField(field.name, position, texts)


def _is_same_form(source: Schema, target: Schema) -> bool:
    """Whether the texts of values under `source` differ from those under `target` at most in nulls."""
    if source.type is not target.type:
        return source.type in _INTEGERS and target.type in _INTEGERS
    if [field.name for field in source.fields] != [field.name for field in target.fields]:
        return False
    pairs = [(one.schema, other.schema) for one, other in zip(source.fields, target.fields, strict=True)]
    inner = ((source.keys, target.keys), (source.values, target.values))
    pairs += [(one, other) for one, other in inner if one is not None and other is not None]
    return all(_is_same_form(one, other) for one, other in pairs)
