"""Protobuf messages as values of Connect, as io.confluent.connect.protobuf.ProtobufData.toConnectData makes them.

- A field with presence that is not set is null; another scalar that is not set has its default.
- In the entry of a map nothing is null: what is not set has its default.
- A value of an enum that the schema lacks is `UNKNOWN_ENUM_VALUE_<enum>_<number>`, as in Java.

Methods are taken from the class of a message, because a field with the name of a method hides it.

Differences, on purpose: an unsigned integer of 2^63 or more is invalid, Connect has it as a negative one. A string that
is not UTF-8 is invalid, also in proto2. A google.type.Date is of the Gregorian calendar also before 1582.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import DecodeError

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidFieldValue, InvalidValue
from sink_job.connect.schema import SchemaType
from sink_job.connect.scopes import Later
from sink_job.protobuf.files import is_map, message_class, real_oneofs, union_name
from sink_job.protobuf.to_connect import LOGICAL, WRAPPERS, scalar_type


class MessageReader:
    """Reads messages of one type."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message_class(message)
        self._convert = converter(message)

    def read(self, data: bytes) -> object:
        """The value of a message in Connect's data model. Raises ValueError with the reason if it is not valid."""
        try:
            message = self._message.FromString(data)
        except DecodeError as error:
            raise ValueError(f"the value is not a valid Protobuf message: {_reason(error)}") from None
        if not self._message.IsInitialized(message):
            missing = ", ".join(self._message.FindInitializationErrors(message))
            raise ValueError(f"the value is a Protobuf message without required fields: {missing}")
        try:
            return self._convert(message)
        except ValueError as error:
            raise ValueError(f"the value is not a valid Protobuf message: {error}") from None


def _reason(error: DecodeError) -> str:
    """The reason without the name of the type."""
    return str(error).rpartition("': ")[2] or "it cannot be decoded"


Convert = Callable[[Any], object]
"""Turns a message, or the value of a field, into a value of Connect. Raises InvalidValue."""

_F: Final = FieldDescriptor
_MAX_INT64: Final = 2**63 - 1
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
SECONDS: Final = range(-62_135_596_800, 253_402_300_800)
"""The seconds of a valid google.protobuf.Timestamp: years 1 to 9999."""
NANOS: Final = range(1_000_000_000)
_MAX_SCALE: Final = 10_000


def converter(message: Descriptor) -> Convert:
    """A function that turns messages of a type into values of Connect."""
    if message.full_name in WRAPPERS:
        return _ProtobufRowCompiler().single(message.fields_by_name["value"])
    return _ProtobufRowCompiler().message(message)


class _ProtobufRowCompiler:
    def __init__(self) -> None:
        self._messages: dict[str, Later[object]] = {}

    def message(self, message: Descriptor) -> Convert:
        if message.full_name in self._messages:
            return self._messages[message.full_name]
        later = self._messages[message.full_name] = Later[object]()
        oneofs = real_oneofs(message)
        unions = [(union_name(oneof), self._union(oneof)) for oneof in oneofs]
        members = {field.name for oneof in oneofs for field in oneof.fields}
        fields = [(field.name, self._field(field)) for field in message.fields if field.name not in members]
        parts = unions + fields
        return later.set_to(_message(parts))

    def _union(self, oneof: OneofDescriptor) -> Convert:
        name, members = oneof.name, {field.name: self.single(field) for field in oneof.fields}

        member_of = message_class(oneof.containing_type).WhichOneof

        def read(message: Any) -> object:
            member = member_of(message, name)
            return None if member is None else {member: members[member](message)}

        return read

    def _field(self, field: FieldDescriptor) -> Convert:
        name = field.name
        if is_map(field):
            entries = self._map(field.message_type)
            return lambda message: entries(getattr(message, name))
        if field.is_repeated:
            item = self._value(field)
            return lambda message: [item(value) for value in getattr(message, name)]
        single = self.single(field)
        if field.has_presence and not field.is_required:
            has_field = message_class(field.containing_type).HasField
            return lambda message: single(message) if has_field(message, name) else None
        return single

    def single(self, field: FieldDescriptor) -> Convert:
        """Of a message: the value of a field that is not repeated, its default if it is not set."""
        name, value = field.name, self._value(field)
        return lambda message: value(getattr(message, name))

    def _map(self, entry: Descriptor) -> Convert:
        key, value = (self.single(field) for field in entry.fields)
        if entry.fields_by_name["key"].type in (_F.TYPE_STRING, _F.TYPE_ENUM):
            return lambda entries: {key(each): value(each) for each in entries}

        def pairs(entries: Any) -> object:
            found = {repr(name := key(each)): (name, value(each)) for each in entries}
            return list(found.values())

        return pairs

    def _value(self, field: FieldDescriptor) -> Convert:
        match field.type:
            case _F.TYPE_MESSAGE if field.message_type.full_name in LOGICAL:
                return _LOGICAL[field.message_type.full_name]
            case _F.TYPE_MESSAGE:
                return self.message(field.message_type)
            case _F.TYPE_ENUM:
                return _enum(field.enum_type)
            case _F.TYPE_UINT64 | _F.TYPE_FIXED64:
                return _unsigned
            case _F.TYPE_STRING:
                return _string
            case _F.TYPE_INT32 | _F.TYPE_SINT32 | _F.TYPE_SFIXED32:
                return _INTEGERS[scalar_type(field)]
        return _same


def _message(parts: Sequence[tuple[str, Convert]]) -> Convert:
    def convert(message: object) -> object:
        found: dict[str, object] = {}
        name = ""
        try:
            for name, of_field in parts:
                found[name] = of_field(message)
        except InvalidValue as error:
            raise InvalidFieldValue.of(error, name) from None
        return found

    return convert


def _same(value: object) -> object:
    return value


_INTEGERS: Final[dict[SchemaType, Convert]] = {
    SchemaType.INT32: _same,
    SchemaType.INT16: lambda value: (value + 0x8000 & 0xFFFF) - 0x8000,
    SchemaType.INT8: lambda value: (value + 0x80 & 0xFF) - 0x80,
}
"""As Java's Number.shortValue and Number.byteValue."""


def _unsigned(value: int) -> int:
    if value > _MAX_INT64:
        raise InvalidValue(f"{value} is outside the range of int64")
    return value


def _string(value: object) -> object:
    if not isinstance(value, str):
        raise InvalidValue("a string is not UTF-8")
    return value


def enum_names(enum: EnumDescriptor) -> dict[int, str]:
    """The name of each number; the first of several names."""
    return {value.number: value.name for value in reversed(list(enum.values))}


def _enum(enum: EnumDescriptor) -> Convert:
    names = enum_names(enum)
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    return lambda number: names.get(number) or f"{unknown}{number}"


def _timestamp(value: Any) -> object:
    if value.seconds not in SECONDS or value.nanos not in NANOS:
        raise InvalidValue(f"a google.protobuf.Timestamp of {value.seconds} s and {value.nanos} ns is not valid")
    return value.seconds * 1000 + value.nanos // 1_000_000


def _date(value: Any) -> object:
    try:
        return datetime.date(value.year, value.month, value.day).toordinal() - _EPOCH
    except (ValueError, OverflowError):
        text = f"{value.year}-{value.month}-{value.day}"
        raise InvalidValue(f"a google.type.Date is {text}, which is not a complete, valid date") from None


def _time(value: Any) -> object:
    if value.nanos not in NANOS:
        raise InvalidValue(f"a google.type.TimeOfDay has {value.nanos} ns")
    if value.hours not in range(24) or value.minutes not in range(60) or value.seconds not in range(60):
        text = f"{value.hours}:{value.minutes}:{value.seconds}"
        raise InvalidValue(f"a google.type.TimeOfDay is {text}, which is not a time of the day")
    return ((value.hours * 60 + value.minutes) * 60 + value.seconds) * 1000 + value.nanos // 1_000_000


def _decimal(value: Any) -> object:
    return decimal_value(value.value, value.precision, value.scale)


def decimal_value(unscaled: bytes, precision: int, scale: int) -> decimal.Decimal:
    """The value of a confluent.type.Decimal. Raises InvalidValue."""
    if abs(scale) > _MAX_SCALE:
        raise InvalidValue(f"a confluent.type.Decimal has the scale {scale}, which is too large")
    found = logical_types.decimal_from_bytes(unscaled, scale)
    if not 0 < precision < len(found.as_tuple().digits):
        return found
    return decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_UP).plus(found)


_LOGICAL: Final[dict[str, Convert]] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
    "confluent.type.Decimal": _decimal,
}
