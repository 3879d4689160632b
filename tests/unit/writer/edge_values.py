"""Values at the edge of what converters and outputs can express, for each converter."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from sink_job.api.enums import ConverterType
from sink_job.connect.schema import RegisteredSchema
from tests.unit.avro import avro_data
from tests.unit.plain.encoders import ENCODERS, Pairs
from tests.unit.protobuf import protobuf_data
from tests.unit.protobuf.protobuf_data import message, set_text

MIB_10: Final = "x" * 10_000_000
DEPTH: Final = 1_000
CASES: Final = (
    "null",
    "empty struct",
    "empty array",
    "number",
    "field twice",
    "10 MB",
    "depth 1,000",
    "NaN",
    "minus zero",
    "2^63",
    "empty map",
)


class Edge(NamedTuple):
    """A value, and its schema in the registry if it has one."""

    value: bytes | None
    schema: RegisteredSchema | None = None


TEXTS: Final[Mapping[str, str]] = {
    "null": "null",
    "empty struct": "{}",
    "empty array": "[]",
    "number": "5",
    "field twice": '{"n": 1, "n": 2}',
    "10 MB": f'{{"s": "{MIB_10}"}}',
    "depth 1,000": '{"c":' * DEPTH + "null" + "}" * DEPTH,
    "NaN": '{"x": NaN}',
    "minus zero": '{"x": -0.0}',
    "2^63": '{"n": 9223372036854775808}',
    "empty map": '{"m": {}}',
}
"""The values as JSON; NaN is not JSON."""

_ITEMS: Final[Mapping[str, Any]] = {
    "null": None,
    "empty struct": Pairs([]),
    "empty array": [],
    "number": 5,
    "field twice": Pairs([("n", 1), ("n", 2)]),
    "10 MB": Pairs([("s", MIB_10)]),
    "NaN": Pairs([("x", float("nan"))]),
    "minus zero": Pairs([("x", -0.0)]),
    "2^63": Pairs([("n", 2**63)]),
    "empty map": Pairs([("m", Pairs([]))]),
}
_ENDS = {ConverterType.CBOR: (b"\x81", b"\x01"), ConverterType.MESSAGE_PACK: (b"\x91", b"\x01")}
"""The head of an array with one item, and the item 1."""


def _plain(case: str) -> Edge:
    return Edge(TEXTS[case].encode())


def _binary(converter: ConverterType) -> Callable[[str], Edge]:
    def edge(case: str) -> Edge:
        if case == "depth 1,000":
            head, item = _ENDS[converter]
            return Edge(head * DEPTH + item)
        return Edge(ENCODERS[converter](_ITEMS[case], lambda _: 0))

    return edge


# -- JSON with a schema ------------------------------------------------------------------------------------------------

_PROPERTIES: Final[Mapping[str, Any]] = {
    "empty struct": {"type": "object"},
    "empty array": {"type": "array", "items": {"type": "integer"}},
    "number": {"type": "integer"},
    "depth 1,000": {"type": "object", "title": "C", "properties": {"c": {"oneOf": [{"type": "null"}, {"$ref": "#"}]}}},
}
_OF_ALL: Final = {
    "type": "object",
    "title": "All",
    "properties": {
        "s": {"type": "string"},
        "x": {"type": "number"},
        "n": {"type": "integer"},
        "m": {
            "type": "object",
            "connect.type": "map",
            "additionalProperties": {"type": "integer"},
        },
    },
}


def _json_schema(case: str) -> Edge:
    schema = RegisteredSchema("2", "JSON", json.dumps(_PROPERTIES.get(case, _OF_ALL)), version=1)
    return Edge(avro_data.in_wire_format(2, TEXTS[case].encode()), schema)


_CONNECT: Final[Mapping[str, Any]] = {
    "empty struct": {"type": "struct", "fields": []},
    "empty array": {"type": "array", "items": {"type": "int32"}},
    "number": {"type": "int32"},
}
_CONNECT_ALL: Final = {
    "type": "struct",
    "name": "All",
    "fields": [
        {"field": "s", "type": "string", "optional": True},
        {"field": "x", "type": "double", "optional": True},
        {"field": "n", "type": "int64", "optional": True},
        {"field": "m", "type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}, "optional": True},
        {"field": "c", "type": "struct", "fields": [{"field": "c", "type": "int32"}], "optional": True},
    ],
}


def _envelope(case: str) -> Edge:
    schema = json.dumps(_CONNECT.get(case, _CONNECT_ALL))
    return Edge(b'{"schema": %b, "payload": %b}' % (schema.encode(), TEXTS[case].encode()))


# -- Avro --------------------------------------------------------------------------------------------------------------

_NODE: Final = avro_data.record(("c", ["null", "N"]), name="N")
_AVRO: Final[Mapping[str, tuple[Any, Any]]] = {
    "null": (["null", avro_data.record(("n", "long"))], None),
    "empty struct": (avro_data.record(), {}),
    "empty array": ({"type": "array", "items": "int"}, []),
    "number": ("int", 5),
    "10 MB": (avro_data.record(("s", "string")), {"s": MIB_10}),
    "NaN": (avro_data.record(("x", "double")), {"x": float("nan")}),
    "minus zero": (avro_data.record(("x", "double")), {"x": -0.0}),
    "2^63": (avro_data.record(("n", {"type": "bytes", "logicalType": "decimal", "precision": 20})), None),
    "empty map": (avro_data.record(("m", {"type": "map", "values": "int"})), {"m": {}}),
}
_AVRO_DATA: Final[Mapping[str, tuple[Any, bytes]]] = {
    "field twice": (_AVRO["empty map"][0], b"\x04" + b"\x02k\x02" + b"\x02k\x04" + b"\x00"),
    "depth 1,000": (_NODE, b"\x02" * (DEPTH - 1) + b"\x00"),
    "2^63": (_AVRO["2^63"][0], b"\x12\x00\x80" + bytes(7)),
}
"""Two equal keys of a map; nested records; a decimal, since a long has no such value."""


def _avro(case: str) -> Edge:
    if case in _AVRO_DATA:
        schema, data = _AVRO_DATA[case]
    else:
        schema, value = _AVRO[case]
        data = avro_data.datum(schema, value)
    return Edge(avro_data.in_wire_format(2, data), avro_data.registered(schema, 2, version=1))


# -- Protobuf ----------------------------------------------------------------------------------------------------------

_PROTO: Final = """
syntax = "proto3";
message M { string s = 1; double x = 2; uint64 n = 3; map<string, int32> m = 4; repeated int32 l = 5; }
"""
_PROTO_OF: Final[Mapping[str, str]] = {
    "empty struct": 'syntax = "proto3"; message M {}',
    "depth 1,000": 'syntax = "proto3"; message M { M c = 1; }',
    "number": 'syntax = "proto3"; message M { int32 value = 1; }',
}
_MESSAGES: Final[Mapping[str, str]] = {
    "empty struct": "",
    "empty array": "",
    "number": "value: 5",
    "NaN": "x: nan",
    "minus zero": "x: -0.0",
    "2^63": "n: 9223372036854775808",
    "empty map": 's: ""',
}


def _protobuf(case: str) -> Edge:
    schema = protobuf_data.registered(_PROTO_OF.get(case, _PROTO), 2)
    match case:
        case "null":
            return Edge(None, schema)
        case "field twice":
            data = b"\x18\x01\x18\x02"
        case "10 MB":
            data = b"\x0a" + _varint(len(MIB_10)) + MIB_10.encode()
        case "depth 1,000":
            data = b""
            for _ in range(DEPTH - 1):
                data = b"\x0a" + _varint(len(data)) + data
        case _:
            data = set_text(message(schema), _MESSAGES[case]).SerializeToString()
    return Edge(protobuf_data.in_wire_format(data, 2), schema)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


EDGES: Final[Mapping[ConverterType, Callable[[str], Edge]]] = {
    ConverterType.JSON: _plain,
    ConverterType.TEXT: _plain,
    ConverterType.BYTES: _plain,
    ConverterType.CBOR: _binary(ConverterType.CBOR),
    ConverterType.MESSAGE_PACK: _binary(ConverterType.MESSAGE_PACK),
    ConverterType.JSON_SCHEMA: _json_schema,
    ConverterType.CONNECT_JSON: _envelope,
    ConverterType.AVRO: _avro,
    ConverterType.PROTOBUF: _protobuf,
}


def ordinary(converter: ConverterType) -> Edge:
    """A value that every output can write. Its schema has the id 1."""
    text = b'{"n": 1}'
    match converter:
        case ConverterType.CBOR | ConverterType.MESSAGE_PACK:
            return Edge(ENCODERS[converter](Pairs([("n", 1)]), Random(1).randrange))
        case ConverterType.JSON_SCHEMA:
            return Edge(
                avro_data.in_wire_format(1, text), RegisteredSchema("1", "JSON", json.dumps(_OF_ALL), version=1)
            )
        case ConverterType.CONNECT_JSON:
            return Edge(b'{"schema": %b, "payload": %b}' % (json.dumps(_CONNECT_ALL).encode(), text))
        case ConverterType.AVRO:
            schema = avro_data.record(("n", "long"))
            return Edge(
                avro_data.in_wire_format(1, avro_data.datum(schema, {"n": 1})), avro_data.registered(schema, version=1)
            )
        case ConverterType.PROTOBUF:
            registered = protobuf_data.registered(_PROTO)
            return Edge(protobuf_data.in_wire_format(b"\x18\x01"), registered)
    return Edge(text)
