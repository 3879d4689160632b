"""Values as JSON, as JsonConverter writes them with `schemas.enable=false`.

This is the exact, slow form. It works value by value, for all converters.

Values are Connect's: None, bool, int, float, str, bytes, list, dict for a struct and for a map with text keys, a list
of (key, value) pairs for any other map, `decimal.Decimal`, and int for dates and times
(sink_job.connect.logical_types). A struct without a field is equal to one with null in it.

The rules are those of org.apache.kafka.connect.json.JsonConverter.convertToJson:

- Bytes are base64. NaN and the infinities are the texts "NaN", "Infinity" and "-Infinity".
- A null takes the default of its schema. Every field of a struct is written, null or not.
- A map with text keys is an object, any other an array of pairs. A union is a struct with a field per member.
- Numbers are equal to those of JsonConverter. Their texts may differ: 1e10 and 1.0E10.
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import INTEGER_BITS, Default, Schema, SchemaType
from sink_job.connect.scopes import Later, Scope, child, enclosing

Encode = Callable[[Any], object]
"""Turns a value into one that msgspec encodes."""

_Scope = Scope[object]


class JsonOptions(msgspec.Struct, frozen=True):
    """The forms of values that have more than one."""

    decimals: DecimalFormat = DecimalFormat.BASE64
    timestamps: TimestampFormat = TimestampFormat.NUMBER


DEFAULT_OPTIONS: Final = JsonOptions()

_ISO: Final[dict[str | None, Encode]] = {
    logical_types.DATE: logical_types.iso_date,
    logical_types.TIME: logical_types.iso_time,
    logical_types.TIMESTAMP: logical_types.iso_timestamp,
}
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


def json_text(schema: Schema, value: object, options: JsonOptions = DEFAULT_OPTIONS) -> bytes:
    """The JSON text of `value`, without a newline.

    Raises InvalidValue if the value does not conform to its schema, and InvalidSchema.
    """
    try:
        return _ENCODER.encode(json_encoder(schema, options)(value))
    except RecursionError:
        raise InvalidValue("the value is nested too deeply") from None


def with_default(schema: Schema, value: object) -> Schema:
    """The schema with the default `value`; without one for None. Raises InvalidValue if it does not conform."""
    if value is None:
        return schema
    text = msgspec.json.encode(json_encoder(schema)(value), order="sorted").decode()
    return msgspec.structs.replace(schema, default=Default(text))


def json_encoder(schema: Schema, options: JsonOptions = DEFAULT_OPTIONS) -> Encode:
    """A function that turns a value under `schema` into one whose JSON text msgspec writes (numbers as numbers).

    The function raises InvalidValue if the value does not conform to its schema, and RecursionError.
    """
    return _JsonEncoderCompiler(options).encode(schema, {})


class _JsonEncoderCompiler:
    """Compiles schemas. `scope` has the function of each enclosing struct by the struct's name."""

    def __init__(self, options: JsonOptions) -> None:
        self.options = options

    def encode(self, schema: Schema, scope: _Scope) -> Encode:
        of_value = self._of_value(schema, scope)
        null = _null(schema, of_value)
        return lambda value: null() if value is None else of_value(value)

    def _of_value(self, schema: Schema, scope: _Scope) -> Encode:
        match schema.type:
            case SchemaType.STRUCT:
                return self._struct(schema, scope)
            case SchemaType.MAP:
                return self._map(schema, scope)
            case SchemaType.ARRAY:
                element = self.encode(child(schema.values), scope)
                return lambda value: [element(item) for item in value]
            case SchemaType.REFERENCE:
                return enclosing(scope, schema)
        return _scalar(schema, self.options)

    def _struct(self, schema: Schema, scope: _Scope) -> Encode:
        function = Later[object]()
        inner = {**scope, schema.name or "": function}
        fields = [(field.name, self.encode(field.schema, inner)) for field in schema.fields]
        return function.set_to(lambda value: {name: encode(value.get(name)) for name, encode in fields})

    def _map(self, schema: Schema, scope: _Scope) -> Encode:
        keys, values = child(schema.keys), child(schema.values)
        of_key, of_item = self.encode(keys, scope), self.encode(values, scope)
        if keys.type is SchemaType.STRING:
            return lambda value: {_name(of_key(key)): of_item(item) for key, item in value.items()}
        return lambda value: [[of_key(key), of_item(item)] for key, item in value]


def _null(schema: Schema, of_value: Encode) -> Callable[[], object]:
    if schema.default is not None:
        return functools.cache(lambda: of_value(default_value(schema)))
    return _nothing if schema.optional else _missing


def _name(key: object) -> str:
    return "null" if key is None else str(key)


def _nothing() -> None:
    return None


def _missing() -> object:
    raise InvalidValue("a required value without default is null")


def _scalar(schema: Schema, options: JsonOptions) -> Encode:
    if logical_types.is_decimal(schema):
        return _decimal(logical_types.scale_of(schema), options)
    if options.timestamps is TimestampFormat.ISO and schema.name in _ISO and schema.type in INTEGER_BITS:
        return _ISO[schema.name]
    match schema.type:
        case SchemaType.FLOAT64:
            return _float64
        case SchemaType.FLOAT32:
            return _float32
        case SchemaType.BYTES:
            return _base64
    return _same


def _decimal(scale: int, options: JsonOptions) -> Encode:
    if options.decimals is DecimalFormat.NUMERIC:
        return _same
    return lambda value: _base64(logical_types.decimal_to_bytes(value, scale))


def _same(value: object) -> object:
    return value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _float64(value: float) -> float | str:
    return value if math.isfinite(value) else _not_finite(value)


def _float32(value: float) -> float | str:
    """The shortest number that is `value` when it is read as float32: 0.1 rather than 0.10000000149011612."""
    with np.errstate(over="ignore"):  # Infinity, as in Java
        rounded = np.float32(value)
    return float(str(rounded)) if np.isfinite(rounded) else _not_finite(float(rounded))


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
