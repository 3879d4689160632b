"""Connect's values as Avro data under the schema that `sink_job.avro.from_connect` makes of theirs.

Values have the form that sink_job.connect.json_encoder describes. A value that does not fit its type is an error that
names its field: a decimal with more digits than its precision, a fixed of another size, a symbol that an enum lacks,
a time that is not within a day, a date or a timestamp that is not within the years 1 to 9999. A null takes the default
of its schema only if the schema is not optional.
"""

from __future__ import annotations

from typing import Final

from sink_job.arrow.varints import encode_long
from sink_job.avro.from_connect import avro_type, enum_symbols, is_text_map, is_union, logical_name
from sink_job.avro.value_encoders import (
    ArrayEncoder,
    DecimalEncoder,
    DefaultEncoder,
    Encode,
    EntriesEncoder,
    EnumEncoder,
    FixedEncoder,
    IntegerEncoder,
    Join,
    KeyEncoder,
    MapEncoder,
    OptionalEncoder,
    RecordEncoder,
    RequiredEncoder,
    UnionEncoder,
    encode_boolean,
    encode_bytes,
    encode_double,
    encode_float,
    encode_null,
    encode_string,
    encode_uuid,
    join_block,
    join_limited,
    raise_missing,
)
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.output_settings import DatumSettings, check_parquet, fixed_size
from sink_job.connect.schema import INTEGER_BITS, Schema, SchemaType
from sink_job.connect.scopes import Later, Scope, child, enclosing
from sink_job.connect.visitor import all_types

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


def datum_encoder(schema: Schema, settings: DatumSettings, *, limited: bool = True) -> Encode:
    """A function that encodes a value under `schema` as a datum of `avro_schema(schema, settings)`.

    `limited`: it rejects values that are too large because of defaults. Raises InvalidSchema if the output cannot
    express the schema. An envelope is checked as a whole.
    """
    if settings.is_parquet and not settings.envelope:
        check_parquet(schema)
    avro_type(schema, settings)
    return value_encoder(schema, settings, limited=limited)


def value_encoder(schema: Schema, settings: DatumSettings, *, limited: bool = True) -> Encode:
    """The same for a value that is part of another one."""
    compiler = _AvroEncoderCompiler(settings, limited=limited)
    encode = compiler.encode(schema, {})
    compiler.check_defaults()
    return encode


class _AvroEncoderCompiler:
    def __init__(self, settings: DatumSettings, *, limited: bool) -> None:
        self._settings = settings
        self._limited = limited
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
            return (RequiredEncoder(of_value) if schema.default is None else DefaultEncoder(of_value, schema)).encode
        null, branch = (b"\x02", b"\x00") if schema.default is not None else (b"\x00", b"\x02")
        return OptionalEncoder(of_value, null, branch).encode

    def required(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        """The function for values that are not null."""
        match schema.type:
            case SchemaType.STRUCT:
                return self._struct(schema, scope)
            case SchemaType.ARRAY:
                return ArrayEncoder(self.encode(child(schema.values), scope), self._join(child(schema.values))).encode
            case SchemaType.MAP:
                return self._map(schema, scope)
            case SchemaType.REFERENCE:
                return enclosing(scope, schema)
        return _scalar(schema, self._settings)

    def _struct(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        later = Later[bytes]()
        inner = {**scope, schema.name or "": later}
        fields = [(field.name, self.encode(field.schema, inner)) for field in schema.fields]
        return later.set_to(RecordEncoder(schema.name, fields).encode)

    def _map(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        item, join = self.encode(child(schema.values), scope), self._join(child(schema.keys), child(schema.values))
        if is_text_map(schema):  # its keys are plain strings in Avro, also those that are symbols of an enum
            return MapEncoder(encode_string, item, join).encode
        key = self.encode(child(schema.keys), scope)
        if self._settings.is_parquet and child(schema.keys).optional:
            key = KeyEncoder(key).encode
        if child(schema.keys).type is SchemaType.STRING:
            return MapEncoder(key, item, join).encode
        return EntriesEncoder(key, item, join).encode

    def _union(self, schema: Schema, scope: Scope[bytes]) -> Encode:
        first = 1 if schema.optional else 0
        members = {
            field.name: (encode_long(first + position), self.required(field.schema, scope))
            for position, field in enumerate(schema.fields)
        }
        return UnionEncoder(members, encode_null if schema.optional else raise_missing).encode

    def _join(self, *items: Schema) -> Join:
        return join_limited if self._limited and any(map(can_take_defaults, items)) else join_block


def can_take_defaults(schema: Schema) -> bool:
    """Whether a value can have a default in it, so that its data are larger than the value."""
    return any(each.default is not None or each.type is SchemaType.REFERENCE for each in all_types(schema))


def _scalar(schema: Schema, settings: DatumSettings) -> Encode:
    if logical_types.is_decimal(schema):
        scale, size = logical_types.scale_of(schema), fixed_size(schema)
        return DecimalEncoder(settings.precision(schema), scale, size).encode
    match schema.type:
        case SchemaType.FLOAT32:
            return encode_float
        case SchemaType.FLOAT64:
            return encode_double
        case SchemaType.BOOLEAN:
            return encode_boolean
        case SchemaType.BYTES:
            return encode_bytes if (size := fixed_size(schema)) is None else FixedEncoder(size).encode
        case SchemaType.STRING:
            return _text(schema)
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
    return IntegerEncoder(lowest, highest, f"{name}{years}").encode


def _text(schema: Schema) -> Encode:
    if symbols := enum_symbols(schema):
        return EnumEncoder(symbols).encode
    if schema.logical == "uuid":
        return encode_uuid
    return encode_string
