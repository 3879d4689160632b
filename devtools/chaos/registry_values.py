"""Values with a schema in a registry: the versions of the schema, and what an object has of a value.

Values have the wire format of Confluent's serializers. They are encoded here, without the product's code.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import fastavro

from devtools.chaos.load import Burst, base_fields

VERSIONS: Final = (1, 2, 3, 4)
LANGUAGES: Final = {"Avro": "AVRO", "JsonSchema": "JSON", "Protobuf": "PROTOBUF"}
"""`spec.format.converter`, and what a registry calls its language."""

_BASE: Final = ("id", "user", "vip", "at", "pad")
FIELDS: Final[Mapping[int, tuple[str, ...]]] = {
    1: _BASE,
    2: (*_BASE, "note"),
    3: (*_BASE, "score"),
    4: (*_BASE, "score", "tags"),
}
"""The fields of each version. The names determine the version of an object."""

WIDENING: Final = 4
"""The version whose `user.tier` is wider: its records cannot be projected to an older version."""

_MISSING: Final[Mapping[str, Mapping[str, Any]]] = {
    "Avro": {"note": None, "score": 1.5, "tags": []},
    "JsonSchema": {"note": None, "score": 1.5, "tags": None},
    "Protobuf": {"note": None, "score": None, "tags": None},
}
"""What a field has in an object if the schema of the record lacks it: the default, else null."""


class VersionedValues:
    """The values of one topic. `first_id` is the id of version 1; the others follow."""

    def __init__(self, converter: str, topic: str, first_id: int) -> None:
        self.converter = converter
        self.language = LANGUAGES[converter]
        self.subject = f"{topic}-value"
        self._first_id = first_id
        self._name = topic.replace("-", "_")
        self._avro = {version: fastavro.parse_schema(_avro(version, self._name)) for version in VERSIONS}
        self._contents: dict[bytes, bytes] = {}
        self.used: set[int] = set()

    def schema_id(self, version: int) -> int:
        return self._first_id + version - 1

    def text(self, version: int) -> str:
        """The schema as its producers register it."""
        if self.converter == "Avro":
            return json.dumps(_avro(version, self._name))
        return json.dumps(_json_schema(version)) if self.converter == "JsonSchema" else _protobuf(version, self._name)

    def value(self, rng: random.Random, identity: str, at_ms: int, burst: Burst) -> bytes | None:
        """A value as a producer writes it; sometimes None or without wire format, if the burst requests it."""
        drawn = rng.random()
        if drawn < burst.nulls:
            return None
        if drawn < burst.nulls + burst.broken:
            return b'{"id":"' + identity.encode() + b'", broken'
        version = _version(identity, burst)
        fields = {**base_fields(rng, identity, at_ms, burst), "at": at_ms}
        fields["note"] = rng.choice((None, "", "São Tomé", identity))
        fields["score"] = rng.choice((0.0, -1.5, rng.random()))
        fields["tags"] = [f"t{n}" for n in range(rng.randrange(4))]
        fields = {name: fields[name] for name in FIELDS[version]}
        value = b"\0" + self.schema_id(version).to_bytes(4, "big") + self._encoded(version, fields)
        self._contents[value] = canonical(fields)
        self.used.add(version)
        return value

    def content(self, value: bytes) -> bytes:
        """The content of a value as canonical JSON; another value as it is."""
        return self._contents.get(value, value)

    def projected(self, record: Mapping[str, Any], version: int) -> dict[str, Any]:
        """The record, which has another version, as an object of this version has it."""
        return {name: record[name] if name in record else _MISSING[self.converter][name] for name in FIELDS[version]}

    def min_row_size(self, record: Mapping[str, Any]) -> int:
        """The number of bytes that a record of an Avro or Parquet object counts for `maxBytes` at least."""
        plain = {**record, "note": record.get("note"), "score": record.get("score") or 0.0}
        version = version_of(record)
        assert version is not None
        return len(self._avro_encoded(version, plain | {"tags": record.get("tags") or []})) + 4

    def _encoded(self, version: int, fields: Mapping[str, Any]) -> bytes:
        encode: Callable[[int, Mapping[str, Any]], bytes] = {
            "Avro": self._avro_encoded,
            "JsonSchema": lambda _, fields: json.dumps(fields, ensure_ascii=False).encode(),
            "Protobuf": lambda _, fields: b"\0" + _protobuf_encoded(fields),
        }[self.converter]
        return encode(version, fields)

    def _avro_encoded(self, version: int, fields: Mapping[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._avro[version], dict(fields))
        return out.getvalue()


def canonical(record: Mapping[str, Any]) -> bytes:
    """The same JSON for equal records."""
    return json.dumps(record, sort_keys=True).encode()


def version_of(record: Mapping[str, Any]) -> int | None:
    """The version with the fields of this record; None if there is none."""
    return next((version for version, names in FIELDS.items() if {*names} == {*record}), None)


def _version(identity: str, burst: Burst) -> int:
    """Producers use a version for `burst.run` records."""
    name, _, number = identity.rpartition("-")
    return random.Random(f"{name} {int(number) // burst.run}").choice(burst.versions)


def _avro(version: int, namespace: str) -> dict[str, Any]:
    tier = "long" if version >= WIDENING else "int"
    user = [{"name": "country", "type": "string"}, {"name": "tier", "type": tier}]
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "string"},
        {"name": "user", "type": {"type": "record", "name": "User", "fields": user}},
        {"name": "vip", "type": "boolean"},
        {"name": "at", "type": "long"},
        {"name": "pad", "type": "string"},
    ]
    more: dict[str, dict[str, Any]] = {
        "note": {"type": ["null", "string"], "default": None},
        "score": {"type": "double", "default": 1.5},
        "tags": {"type": {"type": "array", "items": "string"}, "default": []},
    }
    fields += [{"name": name, **more[name]} for name in FIELDS[version] if name in more]
    if version % 2 == 0:
        fields.insert(0, fields.pop(2))  # producers also reorder fields
    return {"type": "record", "name": "Value", "namespace": namespace, "fields": fields}


def _json_schema(version: int) -> dict[str, Any]:
    text = {"type": "string"}
    user = {"type": "object", "properties": {"country": text, "tier": {"type": "integer"}}}
    properties: dict[str, Any] = {
        "id": text,
        "user": {**user, "title": "User", "required": ["country", "tier"]},
        "vip": {"type": "boolean"},
        "at": {"type": "integer"},
        "pad": text,
        "note": {"oneOf": [{"type": "null"}, text]},
        "score": {"type": "number", "default": 1.5},
        "tags": {"type": "array", "items": text},
    }
    required = [name for name in FIELDS[version] if name not in ("note", "tags")]
    chosen = {name: properties[name] for name in FIELDS[version]}
    return {"type": "object", "title": "Value", "properties": chosen, "required": required}


_NUMBERS: Final = {"id": 1, "user": 2, "vip": 3, "at": 4, "pad": 5, "note": 6, "score": 7, "tags": 8}


def _protobuf(version: int, package: str) -> str:
    kinds = {"id": "string", "user": "User", "vip": "bool", "at": "int64", "pad": "string", "score": "double"}
    kinds |= {"note": "optional string", "tags": "repeated string"}
    fields = " ".join(f"{kinds[name]} {name} = {_NUMBERS[name]};" for name in FIELDS[version])
    tier = "int64" if version >= WIDENING else "int32"
    user = f"message User {{ string country = 1; {tier} tier = 2; }}"
    return f'syntax = "proto3"; package {package}; message Value {{ {fields} {user} }}'


def _protobuf_encoded(fields: Mapping[str, Any]) -> bytes:
    out = b""
    for name, value in fields.items():
        number = _NUMBERS[name]
        match value:
            case None:
                pass
            case bool() | int():
                out += _varint(number << 3) + _varint(value)
            case float():
                out += _varint(number << 3 | 1) + struct.pack("<d", value)
            case str():
                out += _delimited(number, value.encode())
            case list():
                out += b"".join(_delimited(number, each.encode()) for each in value)
            case dict():
                user = _delimited(1, value["country"].encode()) + _varint(2 << 3) + _varint(value["tier"])
                out += _delimited(number, user)
    return out


def _delimited(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Of a number that is not negative."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
