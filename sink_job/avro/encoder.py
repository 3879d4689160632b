"""Connect's values as Avro data under the schema that `sink_job.avro.from_connect` makes of theirs.

Values have the form that sink_job.connect.json_encoder describes. A value that does not fit its type is an error that
names its field: a decimal with more digits than its precision, a fixed of another size, a symbol that an enum lacks,
a time that is not within a day, a date or a timestamp that is not within the years 1 to 9999. A null takes the default
of its schema only if the schema is not optional.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

from sink_job.arrow.varints import encode_long
from sink_job.avro.from_connect import avro_type, enum_symbols, fixed_size, is_text_map, is_union, logical_name
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidFieldValue, InvalidSchema, InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.output_settings import DatumSettings, check_parquet
from sink_job.connect.schema import INTEGER_BITS, Schema, SchemaType
from sink_job.connect.scopes import Later, Scope, child, enclosing
from sink_job.connect.visitor import all_types

Encode = Callable[[Any], bytes]
"""Encodes a value. Raises InvalidFieldValue, InvalidValue and RecursionError."""

Join = Callable[[list[bytes], Iterable[bytes]], bytes]
"""The data of an array or a map from their count and the data of the items."""

MAX_REPEATED: Final = 64 * 1024**2
"""The maximum size in bytes of the data of an array or a map whose items can take a default. A default is in a schema,
not in the value: an item of a few bytes can be as large as the default, and the value too large for the memory."""
TOO_LARGE: Final = (
    f"its data are larger than {MAX_REPEATED >> 20} MiB: the defaults in its schema are repeated too often"
)

_DAY: Final = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
"""The units of a day, by the logical type of a time of the day."""
_DAYS: Final = (-719_162, 2_932_896)
"""The days of 0001-01-01 and 9999-12-31 since the epoch."""
_YEARS: Final = "the years 1 to 9999"


def _instants(per_day: int) -> tuple[int, int]:
    first, last = _DAYS
    return first * per_day, (last + 1) * per_day - 1


TIMESTAMP_MS: Final = _instants(_DAY["time-millis"])
"""The first and the last timestamp of the years 1 to 9999, in ms since the epoch. Those of Protobuf
(google.protobuf.Timestamp) and of Python end there, too. Other readers of Parquet and Avro overflow."""
RANGES: Final = {
    **{name: (0, units - 1) for name, units in _DAY.items()},
    "date": _DAYS,
    **dict.fromkeys(("timestamp-millis", "local-timestamp-millis"), TIMESTAMP_MS),
    **dict.fromkeys(("timestamp-micros", "local-timestamp-micros"), _instants(_DAY["time-micros"])),
}
"""The minimum and maximum of the values of a logical type. All nanoseconds of 64 bits are within the years."""
_DOUBLE: Final = struct.Struct("<d").pack
_FLOAT: Final = struct.Struct("<f").pack
is_uuid: Final = re.compile("[0-9A-Fa-f]{8}(-?)[0-9A-Fa-f]{4}(?:\\1[0-9A-Fa-f]{4}){2}\\1[0-9A-Fa-f]{12}").fullmatch
"""The text form of RFC 9562, section 4, and the same without hyphens. uuid.UUID accepts more, such as spaces."""


def datum_encoder(schema: Schema, settings: DatumSettings) -> Encode:
    """A function that encodes a value under `schema` as a datum of `avro_schema(schema, settings)`.

    Raises InvalidSchema if the output cannot express the schema. An envelope is checked as a whole.
    """
    if settings.is_parquet and not settings.envelope:
        check_parquet(schema)
    avro_type(schema, settings)
    return value_encoder(schema, settings)


def value_encoder(schema: Schema, settings: DatumSettings) -> Encode:
    """The same for a value that is part of another one."""
    compiler = _Compiler(settings)
    encode = compiler.encode(schema, {})
    compiler.check_defaults()
    return encode


class _Compiler:
    def __init__(self, settings: DatumSettings) -> None:
        self._settings = settings
        self._defaults: list[tuple[Schema, Encode]] = []

    def check_defaults(self) -> None:
        """Raises InvalidSchema for a default that its type cannot express: it would fail where a value takes it."""
        for schema, of_value in self._defaults:
            try:
                of_value(default_value(schema))
            except InvalidValue as error:
                raise InvalidSchema(f"the schema has a default that cannot be written: {error}") from None

    def encode(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        of_value = self._union(schema, scope) if is_union(schema) else self.required(schema, scope)
        if schema.default is not None:
            self._defaults.append((schema, of_value))
        if is_union(schema):
            return of_value
        if not schema.optional:
            return _required(schema, of_value)
        null, branch = (b"\x02", b"\x00") if schema.default is not None else (b"\x00", b"\x02")
        return lambda value: null if value is None else branch + of_value(value)

    def required(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        """The function for values that are not null."""
        match schema.type:
            case SchemaType.STRUCT:
                return self._struct(schema, scope)
            case SchemaType.ARRAY:
                return _array(self.encode(child(schema.values), scope), _join_of(child(schema.values)))
            case SchemaType.MAP:
                return self._map(schema, scope)
            case SchemaType.REFERENCE:
                return enclosing(scope, schema)
        return _scalar(schema, self._settings)

    def _struct(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        later = Later[bytes]()
        inner = {**scope, schema.name or "": later}
        fields = [(field.name, self.encode(field.schema, inner)) for field in schema.fields]
        return later.is_now(_record(fields))

    def _map(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        item, join = self.encode(child(schema.values), scope), _join_of(child(schema.keys), child(schema.values))
        if is_text_map(schema):  # its keys are plain strings in Avro, also those that are symbols of an enum
            return lambda value: _entries(list(value.items()), _string, item, join)
        key = self.encode(child(schema.keys), scope)
        if self._settings.is_parquet and child(schema.keys).optional:
            key = _key(key)
        if child(schema.keys).type is SchemaType.STRING:
            return lambda value: _entries(list(value.items()), key, item, join)
        return lambda value: _entries(value, key, item, join)

    def _union(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        first = 1 if schema.optional else 0
        members = {
            field.name: (encode_long(first + position), self.required(field.schema, scope))
            for position, field in enumerate(schema.fields)
        }
        null = (lambda _: b"\x00") if schema.optional else _missing
        return lambda value: _member(members, value, null)


def _required(schema: Schema, of_value: Encode) -> Encode:
    if schema.default is None:
        return lambda value: _missing(value) if value is None else of_value(value)
    null = functools.cache(lambda: of_value(default_value(schema)))
    return lambda value: null() if value is None else of_value(value)


def _missing(_: object) -> NoReturn:
    raise InvalidFieldValue("a required value is null or missing")


def _record(fields: Sequence[tuple[str, Encode]]) -> Encode:
    def encode(value: dict[str, object]) -> bytes:
        parts: list[bytes] = []
        name = ""
        try:
            for name, of_field in fields:
                parts.append(of_field(value.get(name)))
        except InvalidValue as error:
            raise InvalidFieldValue.of(error, name) from None
        return b"".join(parts)

    return encode


def _key(key: Encode) -> Encode:
    """For Parquet, whose maps have no null keys."""
    return lambda value: _no_key() if value is None else key(value)


def _no_key() -> NoReturn:
    raise InvalidFieldValue("the key of a map is null, which Parquet cannot express")


def _array(item: Encode, join: Join) -> Encode:
    def encode(value: list[object]) -> bytes:
        return join([encode_long(len(value))], map(item, value)) if value else b"\x00"

    return encode


def _entries(entries: list[tuple[object, object]], key: Encode, item: Encode, join: Join) -> bytes:
    if not entries:
        return b"\x00"
    return join([encode_long(len(entries))], (key(name) + item(value) for name, value in entries))


def _join_of(*items: Schema) -> Join:
    return _limited if any(map(can_take_defaults, items)) else _joined


def can_take_defaults(schema: Schema) -> bool:
    """Whether a value can have a default in it, so that its data are larger than the value."""
    return any(each.default is not None or each.type is SchemaType.REFERENCE for each in all_types(schema))


def _joined(first: list[bytes], items: Iterable[bytes]) -> bytes:
    """The data of an array or a map: one block, and the end."""
    return b"".join([*first, *items, b"\x00"])


def _limited(first: list[bytes], items: Iterable[bytes]) -> bytes:
    """The same. Raises InvalidFieldValue if the items are larger than MAX_REPEATED."""
    found, size = first, 0
    for item in items:
        size += len(item)
        if size > MAX_REPEATED:
            raise InvalidFieldValue(TOO_LARGE)
        found.append(item)
    return b"".join([*found, b"\x00"])


def _member(members: dict[str, tuple[bytes, Encode]], value: Any, null: Encode) -> bytes:
    for name, member in () if value is None else value.items():
        if member is not None:
            branch, encode = members[name]
            try:
                return branch + encode(member)
            except InvalidValue as error:
                raise InvalidFieldValue.of(error, name) from None
    return null(value)


def _scalar(schema: Schema, settings: DatumSettings) -> Encode:
    if logical_types.is_decimal(schema):
        return _decimal(schema, settings)
    match schema.type:
        case SchemaType.FLOAT32:
            return _float
        case SchemaType.FLOAT64:
            return _DOUBLE
        case SchemaType.BOOLEAN:
            return lambda value: b"\x01" if value else b"\x00"
        case SchemaType.BYTES:
            return _bytes if (size := fixed_size(schema)) is None else _fixed(size)
        case SchemaType.STRING:
            return _text(schema, settings)
    return _integer(schema)


def value_range(schema: Schema) -> tuple[int, int]:
    """The minimum and maximum of an integer."""
    if (found := RANGES.get(logical_name(schema) or "")) is not None:
        return found
    limit = 1 << INTEGER_BITS[schema.type] - 1
    return -limit, limit - 1


def _integer(schema: Schema) -> Encode:
    lowest, highest = value_range(schema)
    name = logical_name(schema) or schema.type
    years = f", {_YEARS}" if name in RANGES and name not in _DAY else ""

    def encode(value: int) -> bytes:
        if not lowest <= value <= highest:
            raise InvalidFieldValue(f"{value} is outside the range of {name}{years}")
        return encode_long(value)

    return encode


def _float(value: float) -> bytes:
    try:
        return _FLOAT(value)
    except OverflowError:  # infinity, as in Java
        return _FLOAT(math.copysign(math.inf, value))


def _bytes(value: bytes) -> bytes:
    return encode_long(len(value)) + value


def _fixed(size: int) -> Encode:
    def encode(value: bytes) -> bytes:
        if len(value) != size:
            raise InvalidFieldValue(f"it has {len(value)} bytes, but its type has {size}")
        return value

    return encode


def _text(schema: Schema, settings: DatumSettings) -> Encode:
    if symbols := enum_symbols(schema):
        return _enum(symbols)
    if settings.is_parquet and schema.logical == "uuid":
        return _uuid
    return _string


def _string(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise InvalidFieldValue("a string has a surrogate that is not part of a pair") from None
    return encode_long(len(data)) + data


def _uuid(value: str) -> bytes:
    if not is_uuid(value):
        raise InvalidFieldValue(f"{value[:100]!r} is not a UUID")
    return _string(value)


def _enum(symbols: Sequence[str]) -> Encode:
    indexes = {symbol: encode_long(index) for index, symbol in enumerate(symbols)}

    def encode(value: str) -> bytes:
        if value not in indexes:
            raise InvalidFieldValue(f"{value[:100]!r} is not a symbol of its enum")
        return indexes[value]

    return encode


def _decimal(schema: Schema, settings: DatumSettings) -> Encode:
    scale, precision, size = logical_types.scale_of(schema), settings.precision(schema), fixed_size(schema)
    limit = 10**precision

    def encode(value: Decimal) -> bytes:
        unscaled = logical_types.unscaled(value, scale)
        if not -limit < unscaled < limit:
            raise InvalidFieldValue(f"a decimal has more than {precision} digits")
        return _bytes(logical_types.integer_to_bytes(unscaled)) if size is None else _fixed_integer(unscaled, size)

    return encode


def _fixed_integer(value: int, size: int) -> bytes:
    try:
        return value.to_bytes(size, "big", signed=True)
    except OverflowError:
        raise InvalidFieldValue(f"a decimal does not fit into {size} bytes") from None
