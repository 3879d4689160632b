"""Maps whose keys are not texts: AvroConverter writes them as arrays of records with the fields `key` and `value`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sink_job.avro.schema import AvroType
from sink_job.connect.errors import InvalidSchema

NAMESPACE: Final = "io.confluent.connect.avro"


def is_map_entry(avro: AvroType) -> bool:
    """True for the items of an array that is such a map.

    Raises InvalidSchema if their fields are not `key` and `value`.
    """
    if avro.kind != "record":
        return False
    marked = avro.properties.get("connect.internal.type") == "MapEntry"
    if not marked and avro.name != f"{NAMESPACE}.MapEntry":
        return False
    if sorted(field.name for field in avro.fields) != ["key", "value"]:
        raise InvalidSchema(f"the fields of {avro.name} must be key and value, as it is the entry of a map")
    return True


def entry_types(avro: AvroType) -> tuple[AvroType, AvroType]:
    """The types of the keys and the values of a map with the entries `avro`."""
    types = {field.name: field.type for field in avro.fields}
    return types["key"], types["value"]


def map_of_entries(avro: AvroType, entries: list[Any]) -> object:
    """The map of `entries`: a dict if its keys are texts, else a list of pairs. The last of equal keys counts."""
    if _is_text(entry_types(avro)[0]):
        return {entry["key"]: entry["value"] for entry in entries}
    distinct = {_hashable(entry["key"]): (entry["key"], entry["value"]) for entry in entries}
    return list(distinct.values())


def _is_text(key: AvroType) -> bool:
    kind = (key.nullable or key.single or key).kind
    return kind in ("string", "enum")


def _hashable(key: object) -> object:
    """What is equal for equal keys. Floats are compared as by Java: NaN is equal to NaN, and 0.0 is not to -0.0."""
    if isinstance(key, float):
        return float, repr(key)
    return msgspec.json.encode(key, order="sorted") if isinstance(key, (dict, list)) else (type(key), key)
