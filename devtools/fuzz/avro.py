"""Avro schemas and data."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any, Final

from devtools.fuzz.case import Case
from devtools.fuzz.mutation import mutated_json, some_mutated
from devtools.fuzz.wire_format import LAYOUTS, in_wire_format

KEYS: Final = (
    *("type", "name", "namespace", "fields", "symbols", "size", "items", "values", "default", "doc", "logicalType"),
    *("scale", "precision", "connect.name", "connect.type", "connect.version", "connect.default", "avro.x"),
    *("connect.parameters", "connect.internal.type"),
)
_LEAVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
_LONGS: Final = (0, 1, -1, 63, 64, 2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63))


def avro_case(random: Random) -> Case:
    schema = Schemas(random).schema()
    writer = Writer(schema, random)
    payloads = some_mutated([writer.datum() for _ in range(random.choice((3, 20)))], random)
    given = mutated_json(schema, KEYS, random) if random.random() < 0.5 else schema
    layout = random.choice(LAYOUTS)
    return Case(
        "Avro",
        in_wire_format(payloads, layout, random),
        (json.dumps(given), '"string"'),
        random.choice(((), ("f0",), ("f0.a", "f1"))),
        layout,
        random.choice(("Base64", "Numeric")),
        random.choice(("Number", "Iso")),
    )


class Schemas:
    """Draws schemas in which no name occurs twice."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0

    def schema(self) -> Any:
        return self.record([(f"f{n}", self.any(3)) for n in range(self.random.randint(1, 4))])

    def any(self, depth: int) -> Any:
        draw: list[Callable[[int], Any]] = [self.leaf, self.leaf, self.logical, self.named, self.nullable]
        if depth:
            draw += [self.array, self.map, self.nested, self.union, self.recursive, self.entries, self.defaults]
        return self.random.choice(draw)(depth - 1)

    def name(self) -> str:
        self.count += 1
        return f"N{self.count}"

    def record(self, fields: list[tuple[str, Any]], **more: Any) -> Any:
        return {"type": "record", "name": self.name(), **more, "fields": [{"name": n, "type": of} for n, of in fields]}

    def leaf(self, _: int) -> Any:
        return self.random.choice(_LEAVES)

    def logical(self, _: int) -> Any:
        scale = self.random.randint(0, 4)
        return self.random.choice(
            (
                {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale},
                {"type": "int", "logicalType": self.random.choice(("date", "time-millis"))},
                {"type": "long", "logicalType": "timestamp-millis"},
            )
        )

    def named(self, _: int) -> Any:
        if self.random.random() < 0.5:
            return {"type": "enum", "name": self.name(), "symbols": ["A", "B"]}
        return {"type": "fixed", "name": self.name(), "size": self.random.randint(0, 4)}

    def nullable(self, depth: int) -> Any:
        inner = self.any(max(depth, 0))
        return inner if isinstance(inner, list) else self.random.sample(["null", inner], 2)

    def array(self, depth: int) -> Any:
        return {"type": "array", "items": self.any(depth)}

    def map(self, depth: int) -> Any:
        return {"type": "map", "values": self.any(depth)}

    def nested(self, depth: int) -> Any:
        return self.record([(name, self.any(depth)) for name in "abcd"[: self.random.randint(0, 4)]])

    def union(self, depth: int) -> Any:
        return ["null", "long", self.record([("a", self.any(depth))])]

    def recursive(self, depth: int) -> Any:
        found = self.record([])
        inner: Any = ["null", found["name"]]
        if self.random.random() < 0.5:
            inner = {"type": "array", "items": found["name"]}
        found["fields"] = [{"name": "v", "type": self.any(depth)}, {"name": "next", "type": inner}]
        return found

    def entries(self, depth: int) -> Any:
        key = self.random.choice(("int", "string", "bytes"))
        entry = self.record([("key", key), ("value", self.any(depth))], **{"connect.internal.type": "MapEntry"})
        return {"type": "array", "items": entry}

    def defaults(self, _: int) -> Any:
        found = self.record([("a", ["null", "int"]), ("b", "string")])
        found["fields"][0]["default"], found["fields"][1]["default"] = None, "x"
        return found


class Writer:
    """Writes random data of a schema."""

    def __init__(self, schema: Any, random: Random) -> None:
        self.schema = schema
        self.random = random
        self.records: dict[str, Any] = {}

    def datum(self) -> bytes:
        return self.write(self.schema, 0)

    def write(self, schema: Any, depth: int) -> bytes:
        if isinstance(schema, list):
            branch = self.branch(schema, depth)
            return zigzag(branch) + self.write(schema[branch], depth + 1)
        if isinstance(schema, str):
            return self.write(self.records[schema], depth + 1) if schema in self.records else self.leaf(schema)
        match schema["type"]:
            case "record":
                self.records[schema["name"]] = schema
                return b"".join(self.write(field["type"], depth + 1) for field in schema["fields"])
            case "array":
                return self.blocks(b"", schema["items"], depth)
            case "map":
                return self.blocks(b"\2k", schema["values"], depth)
            case "enum":
                return zigzag(self.random.randrange(2))
            case "fixed":
                return self.random.randbytes(schema["size"])
        return self.leaf(schema["type"], schema.get("logicalType"))

    def branch(self, members: list[Any], depth: int) -> int:
        return members.index("null") if depth > 12 and "null" in members else self.random.randrange(len(members))

    def blocks(self, key: bytes, element: Any, depth: int) -> bytes:
        count = 0 if depth > 12 else self.random.choice((0, 1, 1, 3))
        if key:
            count = min(count, 1)
        content = b"".join(key + self.write(element, depth + 1) for _ in range(count))
        if not count:
            return b"\0"
        return (
            (zigzag(count) if self.random.random() < 0.8 else zigzag(-count) + zigzag(len(content))) + content + b"\0"
        )

    def leaf(self, kind: str, logical: str | None = None) -> bytes:
        random = self.random
        match kind:
            case "boolean":
                return bytes([random.randrange(2)])
            case "int" | "long":
                small = random.random() < 0.8 or kind == "int"
                return zigzag(random.randint(0 if logical else -(10**5), 10**5) if small else random.choice(_LONGS))
            case "float":
                return struct.pack("<f", random.choice((0.1, 1e10, float("nan"), random.random())))
            case "double":
                return struct.pack("<d", random.choice((0.1, 1e300, float("inf"), random.random())))
        data = random.choice((b"", b"x", b"ab", 'ü"\\\n'.encode()))
        data = (data or b"\0") if logical else data
        return zigzag(len(data)) + data


def zigzag(value: int) -> bytes:
    """A variable-length integer of Avro."""
    number = (value << 1) ^ (value >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
