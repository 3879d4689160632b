"""Columns of enums as indexes of their symbols (Arrow's dictionary arrays), for the writer of Parquet.

As texts, symbols of 1,000 characters would take 1,000 times the memory of their data.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sink_job.converters.typed_columns import column_types
from sink_job.schemas.avro_types import AvroType


def with_dictionaries(avro: AvroType, schema: pa.Schema) -> pa.Schema:
    """The columns `schema` of whole values of the type `avro`, with dictionaries for enums."""
    return pa.schema(_fields(column_types(avro), list(schema)))


def _fields(types: Sequence[AvroType], fields: Sequence[pa.Field]) -> list[pa.Field]:
    return [_field(avro, field) for avro, field in zip(types, fields, strict=True)]


def _field(avro: AvroType, field: pa.Field) -> pa.Field:
    return field.with_type(_type(avro.nullable or avro, field.type))


def _type(avro: AvroType, kind: pa.DataType) -> pa.DataType:
    match avro.kind:
        case "enum":
            return pa.dictionary(_index_type(len(avro.symbols)), kind)
        case "record":
            return pa.struct(_fields([field.type for field in avro.fields], list(kind)))
        case "union":
            return pa.struct(_fields([each for each in avro.members if each.kind != "null"], list(kind)))
        case "array" if pa.types.is_map(kind):
            types = {field.name: field.type for field in avro.items.fields}
            return pa.map_(_field(types["key"], kind.key_field), _field(types["value"], kind.item_field))
        case "array":
            return pa.list_(_field(avro.items, kind.value_field))
        case "map":
            return pa.map_(kind.key_field, _field(avro.items, kind.item_field))
    return kind


def _index_type(symbols: int) -> pa.DataType:
    """The smallest type of indexes: an index takes one or two bytes in the data, too."""
    return pa.int8() if symbols <= 1 << 7 else pa.int16() if symbols <= 1 << 15 else pa.int32()


def symbols_size(avro: AvroType) -> int:
    """The size of the symbols of the largest enum in a type, in bytes, each with its length."""
    if avro.kind == "enum":
        return sum(4 + len(symbol) for symbol in avro.symbols)
    inner = [*(field.type for field in avro.fields), *avro.members, *([avro.items] if avro.element else [])]
    return max(map(symbols_size, inner), default=0)
