"""Random Protobuf messages with data: fields in any order, several times, packed or not, and unknown ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from hypothesis import strategies as st

from sink_job.protobuf.compiler import compile_schema
from sink_job.protobuf.files import ProtobufFiles
from tests.unit.protobuf.protobuf_data import proto3

Draw = Callable[..., Any]
_F = FieldDescriptorProto
KNOWN = {
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
    "confluent.type.Decimal": "confluent/type/decimal.proto",
    "google.protobuf.StringValue": "google/protobuf/wrappers.proto",
}
_VARINTS = [_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_SINT32, _F.TYPE_SINT64, _F.TYPE_BOOL]
_FIXED = {
    _F.TYPE_FIXED32: "<I",
    _F.TYPE_SFIXED32: "<i",
    _F.TYPE_FLOAT: "<f",
    _F.TYPE_FIXED64: "<Q",
    _F.TYPE_SFIXED64: "<q",
    _F.TYPE_DOUBLE: "<d",
}
_FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "<I": st.integers(0, 2**32 - 1),
    "<i": st.integers(-(2**31), 2**31 - 1),
    "<Q": st.integers(0, 2**63 + 5),
    "<q": st.integers(-(2**63), 2**63 - 1),
    "<f": st.floats(width=32),
    "<d": st.floats(),
}
_SMALL = st.integers(0, 100)
_MIXED = st.one_of(_SMALL, st.integers(0, 2**64 - 1), st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63]))
_TEXT = st.text(st.characters(codec="utf-8"), max_size=5).map(str.encode)


@cache
def known_files() -> tuple[FileDescriptorProto, ...]:
    """The files with the well-known messages."""
    found = FileDescriptorSet.FromString(compile_schema(proto3("message M {}", *KNOWN.values())))
    return tuple(found.file)[:-1]


class _Builder:
    """Draws a file whose messages are M0 (the first), M1, and so on. A message contains only later ones, or itself."""

    def __init__(self, draw: Draw, *, proto2: bool, recursive: bool) -> None:
        self.draw = draw
        self.recursive = recursive
        self.file = FileDescriptorProto(name="root.proto", syntax="proto2" if proto2 else "proto3")
        self.file.dependency.extend(KNOWN.values())
        self.proto2 = proto2
        self.count = 0

    def message(self, depth: int) -> str:
        name = f"M{self.count}"
        self.count += 1
        added = DescriptorProto(name=name)
        at = len(self.file.message_type)
        numbers = self.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5, unique=True))
        members = self.draw(st.sampled_from([0, 0, len(numbers) // 2]))
        if members:
            added.oneof_decl.add(name="kind")
        for position, number in enumerate(numbers):
            self._field(added, f"f{position}", number, depth, is_member=position < members)
        self._synthetic_oneofs(added)
        self.file.message_type.insert(at, added)
        return f".{name}"

    def _field(self, message: DescriptorProto, name: str, number: int, depth: int, *, is_member: bool) -> None:
        field = message.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL)
        kinds = [*_VARINTS, *_FIXED, _F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_ENUM, *KNOWN]
        field_kind = self.draw(st.sampled_from([*kinds, *(["message", "map"] * 6 if depth else [])]))
        if field_kind == "map" and not is_member:
            return self._map(message, field, depth)
        self._type(message, field, _F.TYPE_INT64 if field_kind == "map" else field_kind, depth)
        label = self.draw(st.sampled_from(["plain", "plain", "optional", "repeated"]))
        if is_member:
            field.oneof_index = 0
        elif label == "repeated":
            field.label = _F.LABEL_REPEATED
        elif label == "optional" and not self.proto2:
            field.proto3_optional = True
        elif label == "optional" and self.draw(st.booleans()):
            field.label = _F.LABEL_REQUIRED
        return None

    def _type(self, message: DescriptorProto, field: FieldDescriptorProto, kind: Any, depth: int) -> None:
        if kind == "message" and self.recursive and self.draw(st.booleans()):
            field.type, field.type_name = _F.TYPE_MESSAGE, f".{message.name}"
        elif kind == "message":
            field.type, field.type_name = _F.TYPE_MESSAGE, self.message(depth - 1)
        elif kind in KNOWN:
            field.type, field.type_name = _F.TYPE_MESSAGE, f".{kind}"
        else:
            field.type = kind
        if kind == _F.TYPE_ENUM:
            field.type_name = self._enum()

    def _enum(self) -> str:
        name = f"E{len(self.file.enum_type)}"
        added = self.file.enum_type.add(name=name)
        first = self.draw(st.sampled_from([0, 3])) if self.proto2 else 0
        for number in [
            first,
            *self.draw(st.lists(st.integers(1, 9).filter(lambda n: n != first), max_size=3, unique=True)),
        ]:
            added.value.add(name=f"{name}_{number}", number=number)
        return f".{name}"

    def _map(self, message: DescriptorProto, field: FieldDescriptorProto, depth: int) -> None:
        entry = message.nested_type.add(name=f"{field.name.upper()}Entry")
        entry.options.map_entry = True
        keys = [_F.TYPE_STRING, _F.TYPE_STRING, _F.TYPE_INT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_SFIXED64]
        entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL, type=self.draw(st.sampled_from(keys)))
        value = entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL)
        kinds = [*_VARINTS, _F.TYPE_DOUBLE, _F.TYPE_STRING, _F.TYPE_ENUM, "google.protobuf.Timestamp", "message"]
        kind = self.draw(st.sampled_from(kinds))
        self._type(message, value, kind, depth)
        field.label, field.type = _F.LABEL_REPEATED, _F.TYPE_MESSAGE
        field.type_name = f".{message.name}.{entry.name}"

    def _synthetic_oneofs(self, message: DescriptorProto) -> None:
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")


@st.composite
def schemas(draw: Draw, *, recursive: bool = False) -> ProtobufFiles:
    builder = _Builder(draw, proto2=draw(st.booleans()), recursive=recursive)
    builder.message(2)
    return ProtobufFiles(FileDescriptorSet(file=[*known_files(), builder.file]).SerializeToString())


def varint(value: int) -> bytes:
    head = b""
    while value >= 0x80:
        head, value = head + bytes([value & 0x7F | 0x80]), value >> 7
    return head + bytes([value])


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def data_of(draw: Draw, message: Any, depth: int = 4) -> bytes:
    """Data of a message."""
    out = b""
    for field in draw(st.lists(st.sampled_from(list(message.fields)), max_size=6)) if message.fields else ():
        out += _field(draw, field, depth)
    if draw(st.integers(0, 9)) == 0:
        out += draw(st.sampled_from([b"\xf8\7\1", b"\xfa\7\1x", b"\xfb\7\x08\1\xfc\7", b"\xfd\7abcd"]))
    if not depth:
        return out
    required = [field for field in message.fields if field.is_required]
    return out + b"".join(_field(draw, field, depth - 1) for field in required)


def _field(draw: Draw, field: Any, depth: int) -> bytes:
    tag = field.number << 3
    if field.type == _F.TYPE_MESSAGE:
        return varint(tag | 2) + sized(_known(draw, field.message_type) or _nested(draw, field.message_type, depth))
    if field.type in (_F.TYPE_STRING, _F.TYPE_BYTES):
        return varint(tag | 2) + sized(draw(_TEXT))
    one = _scalar(draw, field)
    if field.is_repeated and draw(st.booleans()):
        return varint(tag | 2) + sized(one + _scalar(draw, field))
    wire = 0 if field.type not in _FIXED else 5 if len(one) == 4 else 1
    return varint(tag | wire) + one


def _nested(draw: Draw, message: Any, depth: int) -> bytes:
    return data_of(draw, message, depth - 1) if depth else b""


def _scalar(draw: Draw, field: Any) -> bytes:
    if field.type in _FIXED:
        form = _FIXED[field.type]
        return struct.pack(form, draw(_FORMATS[form]))
    if field.type == _F.TYPE_ENUM:
        known = [value.number for value in field.enum_type.values]
        return varint(draw(st.sampled_from([*known * 4, 2**32 - 1, 9])))
    return varint(draw(_MIXED))


def _known(draw: Draw, message: Any) -> bytes:
    """Mostly valid data of a well-known type; empty for another one."""
    match message.full_name:
        case "google.protobuf.Timestamp":
            seconds, nanos = draw(st.integers(-(10**11), 2 * 10**11)), draw(st.integers(0, 10**9 - 1))
            return b"\x08" + varint(seconds % 2**64) + b"\x10" + varint(nanos)
        case "google.type.Date":
            day = draw(st.dates())
            return b"\x08" + varint(day.year) + b"\x10" + varint(day.month) + b"\x18" + varint(day.day)
        case "confluent.type.Decimal":
            return b"\x0a" + sized(draw(st.binary(min_size=1, max_size=6))) + b"\x10" + varint(draw(st.integers(0, 20)))
    return b""


@st.composite
def samples(draw: Draw, *, recursive: bool = False, max_size: int = 5) -> tuple[Any, list[bytes]]:
    """A message's descriptor, and data of it, most of which is valid."""
    message = draw(schemas(recursive=recursive)).at((0,))
    return message, [data_of(draw, message) for _ in range(draw(st.integers(1, max_size)))]


@st.composite
def damaged(draw: Draw) -> tuple[Any, list[bytes]]:
    """A message's descriptor, and data of it in which bytes were replaced, inserted, removed or cut off."""
    message, data = draw(samples())
    changed = [bytearray(each) for each in data]
    for _ in range(draw(st.integers(1, 3))):
        each = draw(st.sampled_from(changed))
        at = draw(st.integers(0, len(each)))
        each[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=10))
    return message, [bytes(each) for each in changed]
