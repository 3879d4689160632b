"""Values of `sink_job.avro.row_decoder` as values of Connect (see `sink_job.connect.json_encoder`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sink_job.avro.map_entries import is_map_entry, map_of_entries
from sink_job.avro.schema import AvroType
from sink_job.avro.to_connect import decimal_scale, logical_type
from sink_job.connect import logical_types
from sink_job.connect.scopes import Later

Normalise = Callable[[Any], object]


def normaliser(avro: AvroType) -> Normalise:
    """A function that turns a value which `DatumReader(avro)` has read into Connect's. It may change the value.

    It raises InvalidValue for a decimal that is empty or too long, and RecursionError.
    """
    return _Normaliser().function(avro) or _same


class _Normaliser:
    """Compiles types. A type whose values are already Connect's has no function."""

    def __init__(self) -> None:
        self.records: dict[AvroType, Later[object]] = {}
        self.compiled: dict[AvroType, Normalise | None] = {}

    def function(self, avro: AvroType) -> Normalise | None:
        match avro.kind:
            case "record":
                return self._named_record(avro)
            case "union":
                return self._union(avro)
            case "array":
                return self._array(avro)
            case "map":
                return _each_value(self.function(avro.items))
        return _scalar(avro)

    def _named_record(self, avro: AvroType) -> Normalise | None:
        if avro in self.compiled:
            return self.compiled[avro]
        if avro in self.records:
            return self.records[avro]
        later = self.records[avro] = Later[object]()
        found = _record([(field.name, self.function(field.type)) for field in avro.fields])
        later.set_to(found or _same)
        self.compiled[avro] = found
        return found

    def _union(self, avro: AvroType) -> Normalise | None:
        if (inner := avro.nullable) is not None:
            return _unless_null(self.function(inner))
        if (only := avro.single) is not None:
            return self.function(only)
        members = [(member.member_name, self.function(member)) for member in avro.members]
        return _unless_null(_record(members, sparse=True))

    def _array(self, avro: AvroType) -> Normalise | None:
        item = self.function(avro.items)
        if not is_map_entry(avro.items):
            return _each(item)
        of_item = item or _same
        return lambda value: map_of_entries(avro.items, [of_item(entry) for entry in value])


def _same(value: object) -> object:
    return value


def _scalar(avro: AvroType) -> Normalise | None:
    if avro.kind in ("bytes", "fixed") and logical_type(avro) == "decimal":
        scale = decimal_scale(avro)
        return lambda value: logical_types.decimal_from_bytes(value, scale)
    if avro.kind == "int" and not logical_type(avro):
        return {"int8": _int8, "int16": _int16}.get(str(avro.properties.get("connect.type")))
    return None


def _int8(value: int) -> int:
    """As Java's Integer.byteValue."""
    return (value + 0x80 & 0xFF) - 0x80


def _int16(value: int) -> int:
    """As Java's Integer.shortValue."""
    return (value + 0x8000 & 0xFFFF) - 0x8000


def _unless_null(function: Normalise | None) -> Normalise | None:
    if function is None:
        return None
    return lambda value: None if value is None else function(value)


def _each(function: Normalise | None) -> Normalise | None:
    if function is None:
        return None
    return lambda value: [function(item) for item in value]


def _each_value(function: Normalise | None) -> Normalise | None:
    if function is None:
        return None
    return lambda value: {key: function(item) for key, item in value.items()}


def _record(fields: list[tuple[str, Normalise | None]], *, sparse: bool = False) -> Normalise | None:
    """The function of a record with `fields`. `sparse`: a value has not all of them."""
    changed = [(name, function) for name, function in fields if function is not None]
    if not changed:
        return None

    def normalise(value: Any) -> object:
        for name, function in changed:
            if not sparse or name in value:
                value[name] = function(value[name])
        return value

    return normalise
