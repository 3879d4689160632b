"""JSON texts: without a schema, with a JSON Schema, and in Connect's envelope; and texts and bytes without a form."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from devtools.fuzz.case import Case
from devtools.fuzz.mutation import arbitrary_bytes, mutated_bytes, mutated_json, some_mutated
from devtools.fuzz.wire_format import LAYOUTS, in_wire_format

SCHEMA_KEYS: Final = (
    *("type", "properties", "items", "oneOf", "anyOf", "allOf", "$ref", "enum", "title", "default", "definitions"),
    *("$id", "connect.type", "connect.index", "connect.version", "connect.parameters", "additionalProperties"),
)
ENVELOPE_KEYS: Final = (
    *("type", "fields", "field", "items", "keys", "values", "optional", "name", "version", "parameters", "default"),
)
_DOCUMENT: Final = {"a": [1, 2.5, {"b": None}], "f0": "x", "c": {"d": "ü\n", "e": 12345678901234567890}}
_FIELDS: Final = ((), ("a",), ("c.d", "f0"))
_EXPONENTS: Final = (b"1e999999999", b"1e99999999999999999999", b"-1e-999999999", b"1e4000")


def json_case(random: Random) -> Case:
    return Case("Json", _values(json_texts(random), random), fields=random.choice(_FIELDS))


def text_case(random: Random) -> Case:
    return Case("Text", _values(json_texts(random), random), fields=random.choice(_FIELDS))


def bytes_case(random: Random) -> Case:
    rows = [arbitrary_bytes(random) for _ in range(8)]
    return Case("Bytes", _values(rows, random), fields=random.choice(_FIELDS))


def json_schema_case(random: Random) -> Case:
    schema = _json_schema(3, random)
    schema["definitions"] = {name: _json_schema(3, random) for name in "ABC"}
    text = json.dumps(mutated_json(schema, SCHEMA_KEYS, random))
    layout = random.choice(LAYOUTS)
    rows = in_wire_format(json_texts(random), layout, random)
    return Case("JsonSchema", rows, (text, '{"type": "string"}'), random.choice(_FIELDS), layout)


def json_envelope_case(random: Random) -> Case:
    return Case(
        "ConnectJson",
        _values([_envelope_text(random) for _ in range(4)], random),
        fields=random.choice(((), ("a", "b.c"))),
        decimals=random.choice(("Base64", "Numeric")),
        timestamps=random.choice(("Number", "Iso")),
    )


def _values(rows: list[bytes], random: Random) -> tuple[bytes | None, ...]:
    return tuple(None if random.randrange(40) == 0 else row for row in rows)


def json_texts(random: Random) -> list[bytes]:
    """Texts of which many are valid."""
    count = random.choice((1, 6, 20))
    rows = [json.dumps(mutated_json(_DOCUMENT, ("a", "f0"), random)).encode() for _ in range(count)]
    rows += [b" 1 ", b"null", b'"a"', b"{}\n", b"{}{}", b"1 2", b"[", b"]["] * random.randrange(2)
    random.shuffle(rows)
    return some_mutated(rows, random)


def _json_schema(depth: int, random: Random) -> dict[str, Any]:
    kinds = ["object", "array", "ref", "all", "one", "map", "types"] if depth else []
    match random.choice((*kinds, *kinds, "integer", "string", "number", "boolean")):
        case "object":
            return {"type": "object", "title": random.choice("AB"), "properties": _properties(depth, random)}
        case "array":
            return {"type": "array", "items": _json_schema(depth - 1, random)}
        case "ref":
            return {"$ref": random.choice(("#", "#/definitions/A", "#/definitions/B", "#/definitions/C"))}
        case "all":
            return {"description": "d", "allOf": [_json_schema(depth - 1, random) for _ in range(random.randint(1, 2))]}
        case "one":
            more = [_json_schema(depth - 1, random)] if random.random() < 0.3 else []
            return {"oneOf": [{"type": "null"}, _json_schema(depth - 1, random), *more]}
        case "map":
            return {"type": "object", "connect.type": "map", "additionalProperties": _json_schema(depth - 1, random)}
        case "types":
            return {"type": ["object", "null"], "properties": _properties(depth, random)}
        case kind:
            return {"type": kind}


def _properties(depth: int, random: Random) -> dict[str, Any]:
    return {name: _json_schema(depth - 1, random) for name in random.sample("abcd", random.randint(0, 3))}


def _envelope_text(random: Random) -> bytes:
    schema, payload = _envelope(3, random)
    if random.random() < 0.5:
        schema = mutated_json(schema, ENVELOPE_KEYS, random)
    if random.random() < 0.5:
        payload = mutated_json(payload, ("a", "b"), random)
    if random.random() < 0.05:
        schema = None
    text = json.dumps({"schema": schema, "payload": payload}).encode()
    if random.random() < 0.5:
        text = text.replace(b"1e+300", random.choice(_EXPONENTS))
    return mutated_bytes(text, random) if random.random() < 0.5 else text


def _envelope(depth: int, random: Random) -> tuple[Any, Any]:
    """A schema of the envelope and a payload under it."""
    kinds = ["struct", "array", "map"] if depth else []
    match random.choice((*kinds, *kinds, *_ENVELOPE_TYPES, "decimal", "timestamp")):
        case "struct":
            return _envelope_struct(depth, random)
        case "array":
            items, payload = _envelope(depth - 1, random)
            return {"type": "array", "items": items}, [payload] * random.randint(0, 3)
        case "map":
            return _envelope_map(depth, random)
        case "decimal":
            parameters = {"scale": random.choice(("0", "2", "-3", "1000000000"))}
            schema = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
            return schema, random.choice((1.5, "AP8=", 10**30))
        case "timestamp":
            schema = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
            return schema, random.choice((0, 2**62, -(2**62)))
        case kind:
            return _annotated(kind, random), random.choice(_ENVELOPE_TYPES[kind])


_NUMBERS: Final = (1, 127, 3.5, 1e300, "NaN")
_ENVELOPE_TYPES: Final[dict[str, tuple[object, ...]]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "float", "double"), _NUMBERS),
    "bytes": ("AA==",),
    "string": ("x",),
    "boolean": (True,),
}


def _annotated(kind: str, random: Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind}
    if random.random() < 0.3:
        schema["optional"] = True
    if random.random() < 0.2:
        schema["default"] = random.choice((1, "AA==", True, 1e300))
    return schema


def _envelope_struct(depth: int, random: Random) -> tuple[Any, Any]:
    fields = [(name, *_envelope(depth - 1, random)) for name in random.sample("abcd", random.randint(0, 3))]
    schema = {"type": "struct", "fields": [{**of_field, "field": name} for name, of_field, _ in fields]}
    return schema, {name: payload for name, _, payload in fields}


def _envelope_map(depth: int, random: Random) -> tuple[Any, Any]:
    values, payload = _envelope(depth - 1, random)
    key = random.choice(("string", "int32"))
    schema = {"type": "map", "keys": {"type": key}, "values": values}
    return schema, {"k": payload} if key == "string" else [[1, payload]]
