"""JSON values as Connect's, the reverse of sink_job.connect.json_encoder: defaults of schemas, and payloads in
JsonConverter's envelope.

The rules are those of org.apache.kafka.connect.json.JsonConverter.convertToConnect, but a JSON value of another type
than the schema's is rejected. JsonConverter reads it as 0, false or null. A number that is too large for its float is
rejected, too. JsonConverter reads it as an infinity.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidFieldValue, InvalidValue
from sink_job.connect.schema import INTEGER_BITS, Schema, SchemaType
from sink_job.connect.scopes import Later, Scope, child, enclosing

Read = Callable[[Any], object]

_SPECIAL: Final = {"NaN", "Infinity", "-Infinity"}
_SINGLE: Final = struct.Struct("<f").pack


def parse_number(text: str) -> Decimal:
    """A number with a fraction or an exponent. Raises ValueError, which msgspec turns into DecodeError, for an exponent
    that Decimal does not support."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("the exponent of a number is out of range") from None


MAX_FIELDS: Final = 8 << 20
"""The maximum number of fields of all structs in a value. A struct of two bytes can lack thousands of fields, and each
one takes memory."""

decode_json: Final = msgspec.json.Decoder(float_hook=parse_number).decode
"""Parses a JSON text. A number with a fraction or an exponent is a Decimal, so that decimals are exact."""

_has_lone_surrogate: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?=[^\\]|\\[^u]|\\u(?![dD][c-fC-F])[0-9a-fA-F]{4})"
).search
"""Finds the first half of a surrogate pair without the second one, which is not at the end of the text."""


def decode_reason(error: msgspec.DecodeError, text: bytes) -> str:
    """Why `text` cannot be decoded. msgspec calls a text truncated that ends shortly after half of a surrogate pair."""
    reason = str(error).removeprefix("JSON is malformed: ")
    if reason == "Input data was truncated" and _has_lone_surrogate(text):
        return "a string has a surrogate that is not part of a pair"
    return reason


def default_value(schema: Schema) -> object:
    """The default of `schema`, None if it has none. Raises InvalidValue if it does not conform to the schema."""
    return None if schema.default is None else value_reader(schema)(decode_json(schema.default.json))


def value_reader(schema: Schema) -> Read:
    """A function that turns the result of `decode_json` into a value under `schema`.

    It raises InvalidValue if the JSON value does not conform to the schema, and RecursionError.
    """
    return JsonReader().whole(schema)


def _null(schema: Schema) -> Callable[[], object]:
    if schema.default is not None:
        return functools.cache(lambda: default_value(schema))
    return _nothing if schema.optional else functools.partial(_missing, schema)


def _nothing() -> None:
    return None


def _missing(schema: Schema) -> object:
    raise InvalidValue(f"a required value of type {schema.type} is null or missing")


class JsonReader:
    """Compiles schemas to functions that read values in JSON. `scope` has those of the enclosing structs."""

    def __init__(self) -> None:
        self.fields = 0
        """The number of fields so far in the value that is being read, with those that are missing."""

    def whole(self, schema: Schema) -> Read:
        """The function for a value that is not part of another one."""
        read = self.read(schema, {})

        def of_value(value: object) -> object:
            self.fields = 0
            return read(value)

        return of_value

    def read(self, schema: Schema, scope: Scope[object]) -> Read:
        of_value = self.of_value(schema, scope)
        null = _null(schema)
        return lambda value: null() if value is None else of_value(value)

    def of_value(self, schema: Schema, scope: Scope[object]) -> Read:
        """The function for values that are not null."""
        match schema.type:
            case SchemaType.STRUCT:
                return self.struct(schema, scope)
            case SchemaType.MAP:
                return self.map(schema, scope)
            case SchemaType.ARRAY:
                element = self.read(child(schema.values), scope)
                return lambda value: [element(item) for item in expect(list, value, "an array")]
            case SchemaType.REFERENCE:
                return enclosing(scope, schema)
        return self.scalar(schema)

    def struct(self, schema: Schema, scope: Scope[object]) -> Read:
        function = Later[object]()
        inner = {**scope, schema.name or "": function}
        read = _object([(field.name, self.read(field.schema, inner)) for field in schema.fields])

        def counted(value: object) -> object:
            self.fields += len(schema.fields)
            if self.fields > MAX_FIELDS:
                raise InvalidValue(f"its structs have more than {MAX_FIELDS:,} fields, with those that are missing")
            return read(value)

        return function.set_to(counted)

    def map(self, schema: Schema, scope: Scope[object]) -> Read:
        keys, values = child(schema.keys), child(schema.values)
        of_key, of_item = self.read(keys, scope), self.read(values, scope)
        if keys.type is SchemaType.STRING:
            return lambda value: {key: of_item(item) for key, item in expect(dict, value, "an object").items()}
        return lambda value: [(of_key(key), of_item(item)) for key, item in map(_pair, expect(list, value, "an array"))]

    def scalar(self, schema: Schema) -> Read:
        return _scalar(schema)


def _object(fields: Sequence[tuple[str, Read]]) -> Read:
    def read(value: object) -> object:
        given = expect(dict, value, "an object")
        found: dict[str, object] = {}
        name = ""
        try:
            for name, of_field in fields:
                found[name] = of_field(given.get(name))
        except InvalidValue as error:
            raise InvalidFieldValue.of(error, name) from None
        return found

    return read


def _pair(entry: object) -> list[object]:
    if not isinstance(entry, list) or len(entry) != 2:
        raise InvalidValue("an entry of a map without text keys must be an array of a key and a value")
    return entry


def _scalar(schema: Schema) -> Read:
    if logical_types.is_decimal(schema):
        scale = logical_types.scale_of(schema)
        return lambda value: _decimal(value, scale)
    if schema.type in INTEGER_BITS:
        bits = INTEGER_BITS[schema.type]
        return lambda value: _integer(value, bits)
    return {
        SchemaType.FLOAT32: _float32,
        SchemaType.FLOAT64: _float64,
        SchemaType.BOOLEAN: lambda value: expect(bool, value, "a boolean"),
        SchemaType.STRING: lambda value: expect(str, value, "a text"),
    }.get(schema.type, _bytes)


def expect(kind: type[Any], value: object, name: str) -> Any:
    """The value. Raises InvalidValue if it is not one of `kind`."""
    if not isinstance(value, kind):
        raise InvalidValue(f"a JSON value must be {name}")
    return value


def _integer(value: object, bits: int) -> int:
    whole = _whole(value)
    if not -(1 << bits - 1) <= whole < 1 << bits - 1:
        raise InvalidValue(f"the number {whole} does not fit into {bits} bits")
    return whole


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidValue("a JSON value must be an integer")


def _float32(value: object) -> float:
    found = _float64(value)
    try:
        _SINGLE(found)
    except OverflowError:
        raise InvalidValue("a number does not fit into 32 bits") from None
    return found


def _float64(value: object) -> float:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _finite(value)
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    raise InvalidValue("a JSON value must be a number")


def _finite(value: int | float | Decimal) -> float:
    """A number of JSON is no infinity: one that is too large must not become one."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found):
        raise InvalidValue("a number does not fit into 64 bits")
    return found


def _bytes(value: object) -> bytes:
    text = expect(str, value, "a base64 text")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidValue(f"a text is not base64: {error}") from None


def _decimal(value: object, scale: int) -> Decimal:
    if isinstance(value, str):
        return logical_types.decimal_from_bytes(_bytes(value), scale)
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return logical_types.checked_length(_exact(value), scale)
    raise InvalidValue("a decimal must be a number or a base64 text")


def _exact(value: int | float | Decimal) -> Decimal:
    try:
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except (InvalidOperation, ValueError):
        raise InvalidValue("a decimal is not a number") from None
