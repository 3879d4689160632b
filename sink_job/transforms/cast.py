"""Cast: changes the types of fields, or of the whole value (org.apache.kafka.connect.transforms.Cast).

A number loses its fraction and wraps at the size of an integer, as a conversion of Java does. Null stays null, and a
field that the object lacks becomes null.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from sink_job.api.enums import CastType
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.json_encoder import with_default
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.java_numbers import float_text, parse_float, parse_integer, to_float32, truncated, wrapped
from sink_job.transforms.json_values import checked_integer, is_null, kind_of, object_of, opened
from sink_job.transforms.typed_values import SchemaChange, TypedValue, optional, struct, with_fields

_BITS: Final = {CastType.INT8: 8, CastType.INT16: 16, CastType.INT32: 32, CastType.INT64: 64}

_SCHEMA_TYPES: Final = {
    CastType.INT8: SchemaType.INT8,
    CastType.INT16: SchemaType.INT16,
    CastType.INT32: SchemaType.INT32,
    CastType.INT64: SchemaType.INT64,
    CastType.FLOAT32: SchemaType.FLOAT32,
    CastType.FLOAT64: SchemaType.FLOAT64,
    CastType.BOOLEAN: SchemaType.BOOLEAN,
    CastType.TEXT: SchemaType.STRING,
}
_DAY: Final = 86_400_000
_UNITS: Final[dict[str | None, int]] = {
    logical_types.DATE: _DAY,
    logical_types.TIME: 1,
    logical_types.TIMESTAMP: 1,
}
"""The milliseconds of one unit of a time."""

_LOGICAL: Final = frozenset((logical_types.DECIMAL, *_UNITS))

Simple = bool | int | float | str


class CastFields:
    """Changes the types of fields. A tombstone stays one."""

    def __init__(self, types: Mapping[str, CastType]) -> None:
        self._casts = {name: cast_to(kind) for name, kind in types.items()}
        self._types = dict(types)
        self._schema = SchemaChange(self._changed)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        found = dict(object_of(value))
        for name, cast in self._casts.items():
            found[name] = _cast(opened(found.get(name)), cast, f"the field {name}")
        return found

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            return given
        schema, found = self._schema(given.schema), dict(given.value)
        for each in given.schema.fields:
            if each.name in self._casts:
                cast = self._casts[each.name]
                found[each.name] = _cast_typed(each.schema, found.get(each.name), cast, f"the field {each.name}")
        return TypedValue(schema, found)

    def _changed(self, schema: Schema) -> Schema:
        return optional(with_fields(schema, map(self._field, struct(schema).fields)), like=schema)

    def _field(self, field: Field) -> Field:
        if field.name not in self._types:
            return field
        kind, what = self._types[field.name], f"the default of the field {field.name}"
        schema = Schema(_SCHEMA_TYPES[kind], optional=field.schema.optional)
        return Field(field.name, _with_default(field.schema, schema, self._casts[field.name], what))


class CastValue:
    """Changes the type of the whole value. A tombstone stays one.

    A value of a logical type is rejected: Kafka's class changes its type and keeps the name of its schema, which no
    converter of Kafka Connect accepts.
    """

    def __init__(self, kind: CastType) -> None:
        self._cast = cast_to(kind)
        self._kind = _SCHEMA_TYPES[kind]
        self._schema = SchemaChange(self._changed)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return value if is_null(value) else _cast(opened(value), self._cast, "the value")

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            return given
        if given.schema.name in _LOGICAL:
            what = f"the value has the type {given.schema.name}"
            raise InvalidValue(
                f"{what}, which Cast of the whole value keeps as its name: cast a field, or use Timestamp"
            )
        value = _cast_typed(given.schema, given.value, self._cast, "the value")
        return TypedValue(self._schema(given.schema), value)

    def _changed(self, schema: Schema) -> Schema:
        kept = Schema(
            self._kind,
            name=schema.name,
            optional=schema.optional,
            version=schema.version,
            doc=schema.doc,
            parameters=schema.parameters,
            subject=schema.subject,
        )
        return _with_default(schema, kept, self._cast, "the default of the value")


def cast_to(kind: CastType) -> Callable[[Simple], Simple]:
    """The conversion to a type. It raises ValueError for a text that is no value of the type."""
    match kind:
        case CastType.TEXT:
            return _text
        case CastType.BOOLEAN:
            return _boolean
        case CastType.FLOAT32:
            return lambda value: to_float32(_float(value))
        case CastType.FLOAT64:
            return _float
    bits = _BITS[kind]
    return lambda value: _integer(value, bits)


def _cast(value: object, cast: Callable[[Simple], Simple], what: str) -> object:
    if value is None:
        return None
    if not isinstance(value, bool | int | float | str):
        raise InvalidValue(f"{what} is {kind_of(value)}, which cannot be cast")
    checked_integer(value, what)
    try:
        return cast(value)
    except ValueError:
        raise InvalidValue(f"{what} is a text that is no value of the type") from None


def _cast_typed(schema: Schema, value: object, cast: Callable[[Simple], Simple], what: str) -> object:
    """The value of a field with a schema. To text, times are ISO 8601 and bytes base64."""
    is_text = cast is _text
    match value:
        case None:
            return None
        case bytes() if is_text:
            return base64.b64encode(value).decode()
        case Decimal():
            return str(value) if is_text else _cast_decimal(value, cast)
        case int() if is_text and schema.name in _UNITS:
            return _time_text(value * _UNITS[schema.name])
        case float() if schema.type is SchemaType.FLOAT32:
            return _cast(to_float32(value), cast, what)
    if schema.type in (SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP, SchemaType.BYTES):
        raise InvalidValue(f"{what} has the type {schema.type}, which cannot be cast")
    return _cast(value, cast, what)


def _time_text(time: int) -> str:
    """As org.apache.kafka.connect.data.Values chooses the form: by the number of milliseconds, not by the type."""
    if time < _DAY:
        return f"{logical_types.iso_time(time % _DAY)}Z"
    return logical_types.iso_timestamp(time) if time % _DAY else logical_types.iso_date(time // _DAY)


def _cast_decimal(value: Decimal, cast: Callable[[Simple], Simple]) -> Simple:
    """As a number of Java: the integers and booleans have its whole part, with its low 64 bits."""
    whole = cast(wrapped(int(value), 64))
    return cast(float(value)) if isinstance(whole, float) else whole


def _with_default(given: Schema, changed: Schema, cast: Callable[[Simple], Simple], what: str) -> Schema:
    default = default_value(given)
    return changed if default is None else with_default(changed, _cast_typed(given, default, cast, what))


def _integer(value: Simple, bits: int) -> int:
    if isinstance(value, str):
        return parse_integer(value, bits)
    return truncated(value, bits) if isinstance(value, float) else wrapped(int(value), bits)


def _float(value: Simple) -> float:
    return parse_float(value) if isinstance(value, str) else float(value)


def _boolean(value: Simple) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    return truncated(value, 64) != 0 if isinstance(value, float) else bool(value)


def _text(value: Simple) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)
