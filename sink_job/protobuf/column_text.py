"""JSON texts and field values of the columns that ptars makes of Protobuf messages.

The texts are those of `sink_job.protobuf.row_decoder` and `json_values`, value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from sink_job.api.enums import TimestampFormat
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow import json_columns
from sink_job.arrow.arrays import Integers
from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.arrow.json_columns import Texts
from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_encoder import JsonOptions, json_encoder, json_text
from sink_job.connect.schema import Schema, SchemaType
from sink_job.protobuf.column_types import columns_of
from sink_job.protobuf.files import is_map, message_class, real_oneofs, union_name
from sink_job.protobuf.row_decoder import NANOS, SECONDS, converter, decimal_value, enum_names
from sink_job.protobuf.to_connect import DECIMAL, LOGICAL
from sink_job.records.fields import MISSING

_F: Final = FieldDescriptor
_MAX_INT64: Final = 2**63 - 1
_UNSIGNED: Final = (_F.TYPE_UINT64, _F.TYPE_FIXED64)

Pick = Callable[[list[pa.Array]], pa.Array]
"""Selects a column from those of a message."""


def message_texts(message: Descriptor, schema: Schema, options: JsonOptions) -> Texts:
    """Raises NotColumnar."""
    return _ColumnTextCompiler(options).message(message, schema)


class _ColumnTextCompiler:
    def __init__(self, options: JsonOptions) -> None:
        self._options = options

    def message(self, message: Descriptor, schema: Schema) -> Texts:
        parts = parts_of(message)
        by_name = {field.name: field for field in message.fields}
        texts: list[tuple[str, Texts]] = []
        for (name, members, _), field in zip(parts, schema.fields, strict=True):
            if members is None:
                texts.append((name, self._field(by_name[name], field.schema)))
            else:
                inner = [(each.name, self._single(by_name[each.name], each.schema)) for each in field.schema.fields]
                texts.append((name, json_columns.nullable(json_columns.structs(inner), b"null")))
        write = json_columns.structs(texts)
        picks = [pick for _, _, pick in parts]
        names = [str(position) for position in range(len(picks))]

        def of_messages(column: pa.StructArray) -> pa.BinaryArray:
            children = column.flatten()
            return write(pa.StructArray.from_arrays([pick(children) for pick in picks], names))

        return of_messages

    def _field(self, field: FieldDescriptor, schema: Schema) -> Texts:
        if is_map(field):
            return self._map(field.message_type, schema)
        if not field.is_repeated:
            return self._single(field, schema)
        assert schema.values is not None, "an array has items"
        return json_columns.lists(self._value(field, schema.values))

    def _single(self, field: FieldDescriptor, schema: Schema) -> Texts:
        texts = self._value(field, schema)
        return json_columns.nullable(texts, b"null") if field.has_presence else texts

    def _map(self, entry: Descriptor, schema: Schema) -> Texts:
        assert schema.keys is not None, "a map has keys"
        assert schema.values is not None, "a map has values"
        key, value = entry.fields
        keys, values = self._value(key, schema.keys), self._value(value, schema.values)
        if value.message_type is not None:
            values = json_columns.nullable(values, self._unset(value, schema.values))
        if schema.keys.type is SchemaType.STRING and key.type == _F.TYPE_STRING:
            return _text_keys(json_columns.maps(values))
        if key.message_type is not None or key.type == _F.TYPE_ENUM:
            raise NotColumnar("such keys of a map are not read column-wise")
        return _pairs(keys, values)

    def _unset(self, field: FieldDescriptor, schema: Schema) -> bytes:
        """The text of a message that is not set in the entry of a map."""
        message = field.message_type
        if message.full_name in LOGICAL:
            raise NotColumnar("a logical type in a map is not read column-wise")
        try:
            return json_text(schema, converter(message)(message_class(message)()), self._options)
        except InvalidValue as error:  # such as a date within it, which is not valid when it is not set
            raise NotColumnar(f"a message that is not set is not valid: {error}") from None

    def _value(self, field: FieldDescriptor, schema: Schema) -> Texts:
        message = field.message_type
        if message is not None and message.full_name in LOGICAL:
            return self._logical(message, schema)
        if message is not None:
            return self.message(message, schema)
        if field.type == _F.TYPE_ENUM:
            return _symbols(field.enum_type)
        if field.type in _UNSIGNED:
            return _unsigned
        if schema.type not in _SCALARS:
            raise NotColumnar(f"{schema.type} is not read column-wise")
        return _SCALARS[schema.type]

    def _logical(self, message: Descriptor, schema: Schema) -> Texts:
        encode = json_columns.converted(json_encoder(schema, self._options))
        if message.full_name == DECIMAL:
            return lambda column: encode(_Decimals(_children(message, column)))
        numbers = READERS[message.full_name]
        if self._options.timestamps is TimestampFormat.ISO:
            return lambda column: encode(numbers(_children(message, column)))
        return lambda column: json_columns.integers(numbers(_children(message, column)))


class _Decimals:
    """The values of a column of decimals."""

    def __init__(self, columns: dict[str, pa.Array]) -> None:
        self._columns = [columns[name].to_pylist() for name in ("value", "precision", "scale")]

    def to_pylist(self) -> list[Any]:
        try:
            return [decimal_value(*parts) for parts in zip(*self._columns, strict=True)]
        except ValueError as error:
            raise UnusualValues(str(error)) from None


def _children(message: Descriptor, column: pa.StructArray) -> dict[str, pa.Array]:
    return {field.name: each for field, each in zip(columns_of(message), column.flatten(), strict=True)}


def parts_of(message: Descriptor) -> list[tuple[str, list[int] | None, Pick]]:
    """The fields of the struct that is a message: the name, for a oneof the positions of its members in the message,
    and the function for the column."""
    position = {field.name: at for at, field in enumerate(columns_of(message))}
    oneofs = real_oneofs(message)
    members = {field.name for oneof in oneofs for field in oneof.fields}
    parts: list[tuple[str, list[int] | None, Pick]] = []
    for oneof in oneofs:
        positions = [position[field.name] for field in oneof.fields]
        parts.append((union_name(oneof), positions, _union(positions)))
    names = [field.name for field in message.fields if field.name not in members]
    return parts + [(name, None, _at(position[name])) for name in names]


def _at(position: int) -> Pick:
    return lambda columns: columns[position]


def _union(positions: Sequence[int]) -> Pick:
    names = [str(position) for position in positions]

    def union(columns: list[pa.Array]) -> pa.Array:
        members = [columns[position] for position in positions]
        count = np.sum([arrow_columns.truths(member.is_valid()) for member in members], axis=0)
        if len(count) and count.max() > 1:
            raise UnusualValues("a oneof has several members")
        return pa.StructArray.from_arrays(members, names, mask=arrow_columns.booleans(count == 0))

    return union


def _symbols(enum: EnumDescriptor) -> Texts:
    names = enum_names(enum)
    numbers = np.array(sorted(names), np.int64)
    texts = json_columns.symbols([names[number] for number in numbers.tolist()])

    def of_numbers(column: pa.Array) -> pa.BinaryArray:
        given = arrow_columns.numbers(column.cast(pa.int64()))
        at = np.minimum(np.searchsorted(numbers, given), len(numbers) - 1)
        if (numbers[at] != given).any():
            raise UnusualValues("an enum lacks a value")
        return texts(arrow_columns.integers(at))

    return of_numbers


def _unsigned(column: pa.Array) -> pa.BinaryArray:
    if len(column) and pc.max(column).as_py() > _MAX_INT64:
        raise UnusualValues("an integer is outside its range")
    return json_columns.integers(column)


def _text_keys(write: Texts) -> Texts:
    """Of a list of entries with text keys."""

    def of_entries(column: pa.ListArray) -> pa.BinaryArray:
        keys, items = column.flatten().flatten()
        offsets = pc.subtract(column.offsets, column.offsets[0])
        return write(pa.MapArray.from_arrays(offsets, keys, items))

    return of_entries


def _pairs(keys: Texts, values: Texts) -> Texts:
    """Of a list of entries whose keys are no texts. Raises UnusualValues if a map has a key twice."""

    def of_entries(column: pa.ListArray) -> pa.BinaryArray:
        of_keys, of_values = column.flatten().flatten()
        texts = keys(of_keys)
        json_columns.check_keys(texts, np.diff(arrow_columns.numbers(column.offsets.cast(pa.int64()))))
        entries = pc.binary_join_element_wise(texts, values(of_values), json_columns.one(b","))
        pairs = arrow_columns.joined(entries, before=b"[", after=b"]")
        return json_columns.bracketed(b"[", pairs, column.offsets, b"]")

    return of_entries


_SCALARS: Final[dict[SchemaType, Texts]] = {
    SchemaType.INT32: json_columns.integers,
    SchemaType.INT64: json_columns.integers,
    SchemaType.FLOAT32: json_columns.floats,
    SchemaType.FLOAT64: json_columns.doubles,
    SchemaType.BOOLEAN: json_columns.booleans,
    SchemaType.STRING: json_columns.strings,
    SchemaType.BYTES: json_columns.base64_texts,
}

ReadField = Callable[[pa.Array], list[object]]


def field_values(message: Descriptor, path: list[str]) -> ReadField:
    """The function for the values of a field. Raises NotColumnar."""
    if not path:
        raise NotColumnar("a whole message is not read as a field column-wise")
    by_name = {field.name: field for field in message.fields}
    for name, members, pick in parts_of(message):
        if name != path[0]:
            continue
        if members is None:
            return _picked(pick, _inner_values(by_name[name], path[1:]))
        if len(path) == 1:
            raise NotColumnar("a field that is a oneof is not read column-wise")
        columns = columns_of(message)
        fields = [columns[position] for position in members]
        found = [(at, field) for at, field in enumerate(fields) if field.name == path[1]]
        if not found:
            return _missing
        (at, field) = found[0]
        return _picked(pick, _picked(_at(at), _inner_values(field, path[2:])))
    return _missing


def _picked(pick: Pick, read: ReadField) -> ReadField:
    return lambda column: read(pick(column.flatten()))


def _missing(column: pa.Array) -> list[object]:
    return [MISSING] * len(column)


def _inner_values(field: FieldDescriptor, path: list[str]) -> ReadField:
    if field.is_repeated:
        raise NotColumnar("a field that is repeated is not read column-wise")
    if path and field.message_type is not None and field.message_type.full_name not in LOGICAL:
        return field_values(field.message_type, path)
    if path:
        return _missing
    if field.type == _F.TYPE_ENUM:
        return _enum_values(field.enum_type)
    if field.message_type is not None and field.message_type.full_name in READERS:
        return _time_values(field.message_type)
    if field.type not in _LEAVES:
        raise NotColumnar("such a field is not read column-wise")
    return _LEAVES[field.type]


def _time_values(message: Descriptor) -> ReadField:
    numbers = READERS[message.full_name]

    def read(column: pa.Array) -> list[object]:
        present = iter(numbers(_children(message, column.drop_null())).to_pylist())
        return [next(present) if valid else None for valid in column.is_valid().to_pylist()]

    return read


def _enum_values(enum: EnumDescriptor) -> ReadField:
    names: dict[Any, str | None] = {None: None, **enum_names(enum)}
    return lambda column: [names[number] for number in column.to_pylist()]


def _plain(column: pa.Array) -> list[object]:
    found: list[object] = column.to_pylist()
    return found


def _strings(column: pa.Array) -> list[object]:
    return _plain(column.cast(pa.string()))


_LEAVES: Final[dict[int, ReadField]] = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32, _F.TYPE_UINT32, _F.TYPE_FIXED32), _plain),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64, *_UNSIGNED), _plain),
    **dict.fromkeys((_F.TYPE_BOOL, _F.TYPE_FLOAT, _F.TYPE_DOUBLE), _plain),
    _F.TYPE_STRING: _strings,
}


Columns = dict[str, pa.Array]


def _ints(columns: Columns, name: str, allowed: range) -> Integers:
    found = arrow_columns.numbers(columns[name].cast(pa.int64()))
    if len(found) and not (int(found.min()) in allowed and int(found.max()) in allowed):
        raise UnusualValues(f"{name} is outside its range")
    return found


def _timestamps(columns: Columns) -> pa.Array:
    return arrow_columns.integers(_ints(columns, "seconds", SECONDS) * 1000 + _ints(columns, "nanos", NANOS) // 10**6)


def _times(columns: Columns) -> pa.Array:
    minutes = _ints(columns, "hours", range(24)) * 60 + _ints(columns, "minutes", range(60))
    seconds = minutes * 60 + _ints(columns, "seconds", range(60))
    return arrow_columns.integers(seconds * 1000 + _ints(columns, "nanos", NANOS) // 10**6)


def _dates(columns: Columns) -> pa.Array:
    years = _ints(columns, "year", range(1, 10_000))
    months = ((years - 1970) * 12 + _ints(columns, "month", range(1, 13)) - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (_ints(columns, "day", range(1, 32)) - 1).astype("m8[D]")
    if (days.astype("M8[M]") != months).any():
        raise UnusualValues("a day is outside its month")
    return arrow_columns.integers(days.astype(np.int64))


READERS: Final[dict[str, Callable[[Columns], pa.Array]]] = {
    "google.protobuf.Timestamp": _timestamps,
    "google.type.TimeOfDay": _times,
    "google.type.Date": _dates,
}
"""By the full name of the message."""
