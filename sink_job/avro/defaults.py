"""Defaults in Avro schemas: JSON values as values of Connect (see sink_job.connect.json_encoder)."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import msgspec

from sink_job.avro.map_entries import is_map_entry, map_of_entries
from sink_job.avro.schema import AvroType
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidValue

_BITS: Final = {"int": 32, "long": 64}
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "string": str,
    "enum": str,
    "bytes": str,
    "fixed": str,
    "array": list,
    "map": dict,
    "record": dict,
}


def avro_default(avro: AvroType, raw: object) -> object:
    """The value of the default `raw` of a type; None for null.

    The default of a union is one of its first member. Raises InvalidValue if the default does not conform to the type.
    """
    if raw is None:
        return None
    if avro.kind == "union":
        return _of_union(avro, raw)
    if not isinstance(raw, _TYPES.get(avro.kind, ())) or (isinstance(raw, bool) and avro.kind != "boolean"):
        _reject(avro)
    return _of_value(avro, raw)


def _reject(avro: AvroType) -> NoReturn:
    raise InvalidValue(f"a default is not a value of the type {avro.name or avro.kind}")


def _of_union(avro: AvroType, raw: object) -> object:
    if (inner := avro.nullable) is not None:
        return avro_default(inner, raw)
    if (only := avro.single) is not None:
        return avro_default(only, raw)
    first = avro.members[0] if avro.members else avro
    if first.kind in ("null", "union"):
        _reject(avro)
    return {first.member_name: avro_default(first, raw)}


def _of_value(avro: AvroType, raw: Any) -> object:
    match avro.kind:
        case "int" | "long":
            return _integer(avro, raw)
        case "float" | "double":
            return float(raw)
        case "bytes" | "fixed":
            return _bytes(avro, raw)
        case "array":
            return _array(avro, raw)
        case "map":
            return {key: avro_default(avro.items, item) for key, item in raw.items()}
        case "record":
            return _record(avro, raw)
    return raw


def _integer(avro: AvroType, raw: int) -> int:
    bits = {"int8": 8, "int16": 16}.get(str(avro.properties.get("connect.type")), _BITS[avro.kind])
    if not -(1 << bits - 1) <= raw < 1 << bits - 1:
        _reject(avro)
    return raw


def _bytes(avro: AvroType, raw: str) -> object:
    """A text has one character per byte."""
    try:
        found = raw.encode("latin-1")
    except UnicodeEncodeError:
        _reject(avro)
    if str(avro.properties.get("logicalType")).lower() != "decimal":
        return found
    scale = avro.properties.get("scale")
    return logical_types.decimal_from_bytes(found, scale if isinstance(scale, int) else 0)


def _array(avro: AvroType, raw: list[object]) -> object:
    found = [avro_default(avro.items, item) for item in raw]
    return map_of_entries(avro.items, found) if is_map_entry(avro.items) else found


def _record(avro: AvroType, raw: dict[str, object]) -> object:
    found = {}
    for field in avro.fields:
        given = raw.get(field.name, field.default)
        if given is msgspec.UNSET and field.type.nullable is None:
            _reject(avro)
        found[field.name] = None if given is msgspec.UNSET else avro_default(field.type, given)
    return found
