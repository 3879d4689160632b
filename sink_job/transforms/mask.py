"""Mask: replaces the values of fields (org.apache.kafka.connect.transforms.MaskField).

Null stays null, and a field that the object lacks becomes null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from sink_job.connect.errors import InvalidValue
from sink_job.connect.logical_types import AVRO_ENUM, DATE, TIME, TIMESTAMP, is_decimal
from sink_job.connect.schema import INTEGER_BITS, Field, Schema, SchemaType
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.java_numbers import parse_decimal, wrapped
from sink_job.transforms.json_values import checked_integer, kind_of, object_of, opened
from sink_job.transforms.typed_values import SchemaChange, TypedValue, struct

_EMPTY: Final[dict[SchemaType, object]] = {
    **dict.fromkeys(INTEGER_BITS, 0),
    SchemaType.FLOAT32: 0.0,
    SchemaType.FLOAT64: 0.0,
    SchemaType.BOOLEAN: False,
    SchemaType.STRING: "",
}


class Mask:
    """`replacement`: None for an empty value of the same type. A tombstone is rejected."""

    def __init__(self, fields: Sequence[str], replacement: str | None) -> None:
        self._fields = tuple(fields)
        self._replacement = replacement
        self._schema = SchemaChange(self._changed)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        found = object_of(value)
        return {**found, **{name: self._masked(name, opened(found.get(name))) for name in self._fields}}

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            raise InvalidValue("the value is null, not a struct")
        changed = {
            each.name: self._masked_typed(each, given.value.get(each.name))
            for each in struct(given.schema).fields
            if each.name in self._fields
        }
        return TypedValue(self._schema(given.schema), {**given.value, **changed})

    def _changed(self, schema: Schema) -> Schema:
        fields = tuple(
            Field(each.name, _plain(each.schema)) if each.name in self._fields else each for each in schema.fields
        )
        return schema if fields == schema.fields else msgspec.structs.replace(schema, fields=fields)

    def _masked_typed(self, field: Field, value: object) -> object:
        if value is None:
            return None
        kind, name = field.schema.type, field.name
        if self._replacement is None:
            if kind in _EMPTY and not is_decimal(field.schema):
                return _EMPTY[kind]
            if kind in (SchemaType.ARRAY, SchemaType.MAP):
                return type(value)()
        elif kind is SchemaType.STRING:
            return self._replacement
        elif kind in INTEGER_BITS and field.schema.name not in (DATE, TIME, TIMESTAMP):
            return wrapped(int(_number(name, 0, self._replacement)), INTEGER_BITS[kind])
        elif kind in (SchemaType.FLOAT32, SchemaType.FLOAT64):
            return float(_number(name, 0.0, self._replacement))
        raise InvalidValue(f"the field {name} has the type {kind}, which cannot be masked so")

    def _masked(self, name: str, value: object) -> object:
        value = checked_integer(value, f"the field {name}")
        if value is None:
            return None
        if self._replacement is None:
            return type(value)()
        match value:
            case str():
                return self._replacement
            case int() | float() if not isinstance(value, bool):
                return _number(name, value, self._replacement)
        raise InvalidValue(f"the field {name} is {kind_of(value)}, which no replacement is for")


def _plain(schema: Schema) -> Schema:
    """The schema of a masked field. A masked text is neither a symbol of its enum nor a UUID: in objects of Avro and
    Parquet it is a plain text."""
    if schema.type is not SchemaType.STRING:
        return schema
    parameters = tuple(
        each for each in schema.parameters if each[0] != AVRO_ENUM and not each[0].startswith(f"{AVRO_ENUM}.")
    )
    return msgspec.structs.replace(schema, parameters=parameters, logical=None, symbols=())


def _number(name: str, value: int | float, replacement: str) -> int | float:
    try:
        number = parse_decimal(replacement)
    except ValueError:
        raise InvalidValue(f"the field {name} is a number, and the replacement is not") from None
    return wrapped(int(number), 64) if isinstance(value, int) else float(number)
