"""Columns of Avro data as those of Parquet's types (`sink_job.parquet.types`).

The columns are those that pyruhvro makes of a reading schema (`sink_job.avro.column_decoder`), or those of values
that were read row-wise (`raw_type`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.columnar import UnusualValues
from sink_job.avro.schema import AvroType
from sink_job.avro.to_connect import logical_type
from sink_job.avro.visitor import all_types

Convert = Callable[[pa.Array], pa.Array]

_RAW: Final = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.dictionary(pa.int32(), pa.string()),
}
_DIGITS: Final = 32
"""The hexadecimal digits of a UUID."""


def raw_type(avro: AvroType) -> pa.DataType:
    """The Arrow type of values as `sink_job.avro.row_decoder` reads them."""
    match avro.kind:
        case "union" if avro.nullable is not None:
            return raw_type(avro.nullable)
        case "union":
            return pa.struct([(each.member_name, raw_type(each)) for each in _members(avro)])
        case "record":
            return pa.struct([(each.name, raw_type(each.type)) for each in avro.fields])
        case "array":
            return pa.list_(raw_type(avro.items))
        case "map":
            return pa.map_(pa.string(), raw_type(avro.items))
        case "fixed":
            return pa.binary(avro.size)
    return _RAW[avro.kind]


def typed(avro: AvroType, field: pa.Field) -> Convert:
    """A function that turns a column of the type `avro` into one of `field`. It raises UnusualValues for a map that has
    a key twice."""
    convert = _converter(avro.nullable or avro, field.type)
    return convert if field.nullable else lambda column: _required(convert(column))


def column_types(avro: AvroType) -> list[AvroType]:
    """The types of the columns of a whole value: of the fields of a record, or of the members of a union, which is a
    group with an optional field for each of them."""
    return _members(avro) if avro.kind == "union" else [field.type for field in avro.fields]


def _members(avro: AvroType) -> list[AvroType]:
    return [member for member in avro.members if member.kind != "null"]


def _converter(avro: AvroType, target: pa.DataType) -> Convert:
    match avro.kind:
        case "record":
            return _struct([each.type for each in avro.fields], target)
        case "union":
            return _struct(_members(avro), target)
        case "array" if pa.types.is_map(target):
            return _entries(avro.items, target)
        case "array":
            return _list(typed(avro.items, target.value_field), target)
        case "map":
            return _map(typed(avro.items, target.item_field), target)
        case "enum":
            return _symbols(avro.symbols, target)
    return _scalar(avro, target)


def _validity(column: pa.Array) -> pa.Buffer | None:
    return column.buffers()[0] if column.null_count else None


def _required(column: pa.Array) -> pa.Array:
    """The column with any value in place of each null: they are below a null struct, so no reader sees them."""
    if not column.null_count:
        return column
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(column.type, _required(column.storage))
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(pc.fill_null(column.indices, 0), column.dictionary)
    buffers, children = column.buffers(), _children(column)
    return pa.Array.from_buffers(
        column.type, len(column), [None, *buffers[1 : column.type.num_buffers]], 0, 0, children
    )


def _children(column: pa.Array) -> list[pa.Array] | None:
    if isinstance(column, pa.StructArray):
        return [column.field(number) for number in range(column.type.num_fields)]
    if isinstance(column, pa.MapArray):
        return [_entry_column(column.type, column.keys, column.items)]
    return [column.values] if isinstance(column, pa.ListArray) else None


def _struct(avro: Sequence[AvroType], target: pa.StructType) -> Convert:
    converts = [typed(each, target.field(number)) for number, each in enumerate(avro)]

    def convert(column: pa.StructArray) -> pa.Array:
        children = [of_field(column.field(number)) for number, of_field in enumerate(converts)]
        return pa.Array.from_buffers(target, len(column), [_validity(column)], children=children)

    return convert


def _list(item: Convert, target: pa.ListType) -> Convert:
    def convert(column: pa.ListArray) -> pa.Array:
        buffers = [_validity(column), column.buffers()[1]]
        return pa.Array.from_buffers(target, len(column), buffers, children=[item(column.values)])

    return convert


def _map(item: Convert, target: pa.MapType) -> Convert:
    def convert(column: pa.MapArray) -> pa.Array:
        return _map_column(target, column, column.keys, item(column.items))

    return convert


def _entries(entry: AvroType, target: pa.MapType) -> Convert:
    """For a map that is an array of entries."""
    types = {field.name: field.type for field in entry.fields}
    at = {field.name: number for number, field in enumerate(entry.fields)}
    key, item = typed(types["key"], target.key_field), typed(types["value"], target.item_field)

    def convert(column: pa.ListArray) -> pa.Array:
        entries = column.values
        return _map_column(target, column, key(entries.field(at["key"])), item(entries.field(at["value"])))

    return convert


def _map_column(target: pa.MapType, column: Any, keys: pa.Array, items: pa.Array) -> pa.Array:
    _check_keys(column, keys)
    buffers = [_validity(column), column.buffers()[1]]
    return pa.Array.from_buffers(target, len(column), buffers, children=[_entry_column(target, keys, items)])


def _entry_column(target: pa.MapType, keys: pa.Array, items: pa.Array) -> pa.Array:
    entries = pa.struct([target.key_field, target.item_field])
    return pa.Array.from_buffers(entries, len(keys), [None], children=[keys, items])


def _check_keys(column: Any, keys: pa.Array) -> None:
    """Raises UnusualValues if a map has a key twice. Keys that are structs, arrays or maps are not compared."""
    if pa.types.is_nested(keys.type) or not len(keys):
        return
    counts = np.diff(np.frombuffer(column.buffers()[1], np.int32, len(column) + 1)).astype(np.int64)
    storage = keys.storage if isinstance(keys, pa.ExtensionArray) else keys
    codes = storage.dictionary_encode()
    indices = np.frombuffer(codes.indices.cast(pa.int32()).buffers()[1], np.int32, len(keys))
    pairs = np.repeat(np.arange(len(counts)), counts) * len(codes.dictionary) + indices
    if len(np.unique(pairs)) < len(pairs):
        raise UnusualValues("a map has a key twice")


def _symbols(symbols: Sequence[str], target: pa.DataType) -> Convert:
    texts = arrow_columns.texts(symbols)
    if not pa.types.is_dictionary(target):
        return lambda column: texts.take(_codes(column, texts))
    return lambda column: pa.DictionaryArray.from_arrays(_codes(column, texts).cast(target.index_type), texts)


def _codes(column: pa.Array, symbols: pa.StringArray) -> pa.Array:
    """The indexes in `symbols` of a column of indexes, or of texts that were read row-wise."""
    if not isinstance(column, pa.DictionaryArray):
        return column
    if not len(column.dictionary):  # all are null, or below a null struct
        return pa.nulls(len(column), pa.int32())
    return pc.index_in(column.dictionary, symbols).take(column.indices)


def _scalar(avro: AvroType, target: pa.DataType) -> Convert:
    if pa.types.is_decimal(target):
        return lambda column: _decimals(column, target)
    if isinstance(target, pa.UuidType):
        return _uuids
    if pa.types.is_int32(target) or pa.types.is_date32(target) or pa.types.is_time32(target):
        return lambda column: column.cast(pa.int32()).view(target)
    if logical_type(avro).endswith("-millis") and pa.types.is_temporal(target) and target.unit == "us":
        return lambda column: _micros(column).view(target)
    return lambda column: column if column.type == target else column.view(target)


def _micros(column: pa.Array) -> pa.Array:
    """Milliseconds as microseconds. Converters accept the years 1 to 9999 and times within a day, whose microseconds
    fit in 64 bits."""
    return pc.multiply(column.cast(pa.int64()), 1_000)


def _decimals(column: pa.Array, target: pa.DataType) -> pa.Array:
    r"""Decimals of big-endian integers. What is before the last 16 bytes of a longer one repeats its sign.

    >>> integers = arrow_columns.binaries([b"\x01", b"\xff", b"\xff" * 20 + b"\x7f"])
    >>> [str(each) for each in _decimals(integers, pa.decimal128(5, 2)).to_pylist()]
    ['0.01', '-0.01', '-1.29']
    """
    values = column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column.view(pa.binary())
    if not len(values) or not len(content := arrow_columns.content(values)):
        return pa.nulls(len(values), target)
    bounds = arrow_columns.bounds(values).astype(np.int64)
    starts, ends = bounds[:-1], bounds[1:]
    place = np.arange(16)  # of a byte of a decimal of Arrow, which is little-endian
    is_own = place < (ends - starts)[:, None]
    own = content[np.where(is_own, ends[:, None] - 1 - place, 0)]
    is_negative = (content[np.minimum(starts, len(content) - 1)] >= 0x80) & (ends > starts)
    # a shorter integer is filled up with its sign: 0xff for a negative one
    digits = np.where(is_own, own, np.where(is_negative, 0xFF, 0).astype(np.uint8)[:, None])
    return pa.Array.from_buffers(target, len(values), [_validity(values), pa.py_buffer(digits.tobytes())])


def _uuids(column: pa.Array) -> pa.Array:
    storage = column if pa.types.is_fixed_size_binary(column.type) else _uuid_bytes(column)
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _uuid_bytes(column: pa.StringArray) -> pa.Array:
    """A text below a null struct is null or empty."""
    digits = pc.replace_substring(column, "-", "").view(pa.binary())
    if len(digits) and (np.diff(arrow_columns.bounds(digits)) == _DIGITS).all():
        data = bytes.fromhex(arrow_columns.text(digits).decode())
        return pa.Array.from_buffers(pa.binary(16), len(column), [None, pa.py_buffer(data)])
    return pa.array([uuid.UUID(text).bytes if text else None for text in column.to_pylist()], pa.binary(16))


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
    return max(sum(4 + len(symbol) for symbol in each.symbols) for each in all_types(avro))
