"""Protobuf schemas and messages."""

from __future__ import annotations

from random import Random
from typing import Final

from devtools.fuzz.avro import zigzag
from devtools.fuzz.case import Case
from devtools.fuzz.mutation import mutated_bytes, some_mutated
from devtools.fuzz.wire_format import in_wire_format

_VARINTS: Final = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "E")
_SIZES: Final = {"fixed32": 4, "sfixed32": 4, "float": 4, "fixed64": 8, "sfixed64": 8, "double": 8}
_TYPES: Final = (*_VARINTS, *_SIZES, "string", "bytes", "M", "N")
_LABELS: Final = ("", "", "optional ", "repeated ")
_MAPS: Final = ("map<string, N>", "map<int32, string>", "map<bool, M>")
_WORDS: Final = (
    *("message", "repeated ", "{", "}", ";", "0", "19000", "map<", "oneof o {", "M", "string", 'import "x";'),
    "option map_entry = true;",
)
_LAYOUTS: Final = ("Confluent", "Confluent", "Apicurio", "Glue", "")
_SELECTORS: Final = {
    "Confluent": (*(b"\0",) * 20, b"\2\2", b"\2\0", b"\2\x08", b"\4\0\0"),
    "Apicurio": (*(b"\3\x0a\1M",) * 20, b"\3\x0a\1N", b"\3\x0a\1X", b"\2\x0a\0", b"\3\x0a\2MM", b"\0"),
    "Glue": (*(b"\0",) * 20, b"\1", b"\2", b"\x80\0", b"\xff\xff\xff\xff\xff\1"),
    "": (b"",),
}
"""By layout, what chooses the message, mostly M."""

Fields = list[tuple[str, str]]
"""The label and the type of each field, whose number is its position from 1 on."""


def protobuf_case(random: Random) -> Case:
    messages = {name: _fields(random) for name in "MN"}
    writer = Writer(messages, random)
    payloads = some_mutated([writer.message("M", 0) for _ in range(random.choice((3, 20)))], random)
    text = _text(messages)
    if random.random() < 0.3:
        text = _mutated(text, random)
    layout = random.choice(_LAYOUTS)
    return Case(
        "Protobuf",
        in_wire_format([random.choice(_SELECTORS[layout]) + payload for payload in payloads], layout, random),
        (text, 'syntax = "proto3"; message A { string a = 1; }'),
        random.choice(((), ("f1",), ("f1.f2", "f2"))),
        layout,
        timestamps=random.choice(("Number", "Iso")),
        message=None if layout else "M",
    )


def _fields(random: Random) -> Fields:
    found = [(random.choice(_LABELS), random.choice(_TYPES)) for _ in range(random.randint(0, 5))]
    return [("", random.choice(_MAPS)) if random.random() < 0.15 else field for field in found]


def _text(messages: dict[str, Fields]) -> str:
    lines = ['syntax = "proto3";', "enum E { Z = 0; A = 1; B = -1; }"]
    for name, fields in messages.items():
        content = " ".join(f"{label}{kind} f{n} = {n};" for n, (label, kind) in enumerate(fields, 1))
        lines.append(f"message {name} {{ {content} }}")
    return "\n".join(lines)


def _mutated(text: str, random: Random) -> str:
    if random.random() < 0.5:
        at = random.randrange(len(text))
        return text[:at] + random.choice(_WORDS) + text[at + random.randint(0, 8) :]
    return mutated_bytes(text.encode(), random).decode(errors="replace")


class Writer:
    """Writes random messages."""

    def __init__(self, messages: dict[str, Fields], random: Random) -> None:
        self.messages = messages
        self.random = random

    def message(self, name: str, depth: int) -> bytes:
        fields = [(n, *field) for n, field in enumerate(self.messages[name], 1) if self.random.random() < 0.7]
        if self.random.random() < 0.1:
            self.random.shuffle(fields)
        return b"".join(self.field(number, label, kind, depth) for number, label, kind in fields)

    def field(self, number: int, label: str, kind: str, depth: int) -> bytes:
        count = self.random.randint(0, 3) if label.startswith("repeated") else 1
        return b"".join(self.one(number, kind, depth) for _ in range(count))

    def one(self, number: int, kind: str, depth: int) -> bytes:
        if kind in _VARINTS:
            return _varint(number << 3) + zigzag(self.random.choice((0, 1, -1, 2, 2**31, 2**62, -(2**63))))
        if kind in _SIZES:
            size = _SIZES[kind]
            return _varint(number << 3 | (5 if size == 4 else 1)) + self.random.randbytes(size)
        content = self.content(kind, depth)
        return _varint(number << 3 | 2) + _varint(len(content)) + content

    def content(self, kind: str, depth: int) -> bytes:
        if kind in self.messages:
            return b"" if depth > 6 else self.message(kind, depth + 1)
        if kind.startswith("map"):
            return self.random.choice((b"", b"\x0a\1k", b"\x08\1", b"\x0a\1k\x12\0", b"\x08\1\x12\1x"))
        return self.random.choice((b"", b"x", 'ü"\\\n'.encode()))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
