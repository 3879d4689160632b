"""Random records in envelopes of JsonConverter."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from typing import Any, Final

from tests.support.connect_transforms import ConnectRecord

NAMES: Final = ("a", "b", "c", "ä")
ASCII_NAMES: Final = ("a", "b", "c", "d")
DATA: Final = "org.apache.kafka.connect.data"
TYPES: Final[list[dict[str, Any]]] = [
    *({"type": each} for each in ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")),
    {"type": "int32", "name": f"{DATA}.Date", "version": 1},
    {"type": "int32", "name": f"{DATA}.Time", "version": 1},
    {"type": "int64", "name": f"{DATA}.Timestamp", "version": 1},
    {"type": "bytes", "name": f"{DATA}.Decimal", "version": 1, "parameters": {"scale": "2"}},
    {"type": "array", "items": {"type": "int32"}},
    {"type": "map", "keys": {"type": "string"}, "values": {"type": "int64", "optional": True}},
    {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}},
]
TEXTS: Final = ("", "x", "12", "1.5", "true", "2024-02-29 23:59:59", "20240229", "300")


def random_schema(
    rng: random.Random, depth: int = 0, *, optional: bool = False, names: Sequence[str] = NAMES
) -> dict[str, Any]:
    """A struct with some of the names, each of a random type."""
    fields = []
    for name in rng.sample(names, rng.randrange(len(names) + 1)):
        found = (
            random_schema(rng, depth + 1, names=names) if depth < 2 and rng.random() < 0.2 else dict(rng.choice(TYPES))
        )
        found |= {"field": name, "optional": rng.random() < 0.4}
        if rng.random() < 0.2 and found["type"] in ("int8", "int32", "string", "double") and "name" not in found:
            found["default"] = {"int8": 7, "int32": 300, "string": "12", "double": 0.5}[found["type"]]
        if rng.random() < 0.2:
            found["doc"] = "of a field"
        fields.append(found)
    head = {"name": "N", "version": 2, "doc": "of all", "parameters": {"p": "q"}} if rng.random() < 0.5 else {}
    return {"type": "struct", "fields": fields, "optional": optional, **head}


def random_record(rng: random.Random, offset: int, schemas: list[dict[str, Any]]) -> ConnectRecord:
    """A record under one of the schemas; some have no value, no schema, or one of another type."""
    schema = rng.choice(schemas)
    payload = None if schema["optional"] and rng.random() < 0.3 else _value(rng, schema)
    text: str | None = json.dumps({"schema": schema, "payload": payload})
    if rng.random() < 0.1:
        other = {"type": "int64", "optional": True}
        text = rng.choice(
            [
                None,
                json.dumps({"schema": other, "payload": rng.choice([None, 5])}),
                json.dumps({"schema": None, "payload": rng.choice([{"a": 1}, None, 5])}),
            ]
        )
    timestamp = rng.choice([None, 0, 1_700_000_000_123])
    return ConnectRecord(text, "t", 3, offset, timestamp, tuple(rng.sample(["h", "other"], rng.randrange(3))))


def _value(rng: random.Random, schema: dict[str, Any]) -> Any:
    if schema["type"] == "struct":
        return {each["field"]: _field(rng, each) for each in schema["fields"]}
    if schema["type"] == "array":
        return [rng.randrange(9) for _ in range(rng.randrange(3))]
    if schema["type"] == "map":
        number = rng.randrange(3)
        return {f"k{each}": each for each in range(number)} if schema["keys"]["type"] == "string" else [[1, "v"]]
    match schema.get("name", "").rpartition(".")[2] or schema["type"]:
        case "Date":
            return rng.choice([0, 5, 19_000, -3])
        case "Time":
            return rng.choice([0, 86_399_999, 3_600_000])
        case "Timestamp":
            return rng.choice([0, 1_700_000_000_123, -86_400_001])
        case "Decimal" | "bytes":
            return base64.b64encode(rng.choice([b"\x01", b"\x01\x02", b"\xff\x00\x07"])).decode()
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return rng.choice(TEXTS)
        case "float" | "double":
            return rng.choice([0.5, -1.25, 300.0, 1e10, 0.1])
        case "int8":
            return rng.randrange(-128, 128)
        case "int16":
            return rng.randrange(-(2**15), 2**15)
        case "int32":
            return rng.randrange(-(2**31), 2**31)
    return rng.choice([0, 1_700_000_000_123, rng.randrange(-(2**60), 2**60)])


def _field(rng: random.Random, schema: dict[str, Any]) -> Any:
    return None if schema["optional"] and rng.random() < 0.25 else _value(rng, schema)
