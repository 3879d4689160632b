"""The schema of JSON values, inferred from some of them (ADR 31).

What is known of the values is an `Observed`. Those of several groups of values can be merged: in any order the result
has the same types, and fields in the order of their first occurrence. Each value that was observed conforms to the
schema:

- numbers that are integers of 64 bits: int64; other numbers: float64; true and false: boolean; texts: string
- arrays: an array of the type of all items; objects: a struct with the properties of all objects
- values of several types, only nulls, only objects without properties, more than `MAX_NAMES` properties of a nested
  object, and what is nested deeper than `MAX_DEPTH`: json, the value as its JSON text; also items of empty arrays
- every field is optional
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from sink_job.connect.field_names import equal_but_case
from sink_job.json.typed.field_list import JSON, FieldType

MAX_NAMES: Final = 1_000
"""Maximum number of properties of a nested object. Objects with more are used as maps, with data as names."""

MAX_DEPTH: Final = 20
"""Maximum number of nested arrays and objects that have types of their own."""

_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1


class SampledValues(msgspec.Struct):
    """The values of one place. `kinds` are the names of their scalar types, or `array`, `object` or `json`. `items` are
    the items of all arrays, None without one; `properties` are those of all objects. `types` are the names of the types
    of all values, also where `kinds` is `json`. Nulls are not observed."""

    kinds: set[str] = set()
    items: SampledValues | None = None
    properties: dict[str, SampledValues] = {}
    types: set[str] = set()

    def add(self, value: object, depth: int = 0) -> None:
        """Adds a value, as `decode_json` returns it."""
        if value is None:
            return
        kind = _kind(value)
        self.types |= {kind} - {JSON}
        if JSON in self.kinds:
            return
        if kind in ("array", "object") and depth >= MAX_DEPTH:
            kind = JSON
        self._add_kind(kind)
        if JSON in self.kinds:
            return
        if isinstance(value, list):
            for item in value:
                self.items = self.items or SampledValues()
                self.items.add(item, depth + 1)
        if isinstance(value, dict):
            for name, each in value.items():
                self.properties.setdefault(name, SampledValues()).add(each, depth + 1)
            self._limit(depth)

    def merge(self, other: SampledValues, depth: int = 0) -> None:
        """Adds what `other` has observed."""
        for kind in other.kinds:
            self._add_kind(kind)
        self.types |= other.types
        if JSON in self.kinds:
            return
        if other.items is not None:
            self.items = self.items or SampledValues()
            self.items.merge(other.items, depth + 1)
        for name, each in other.properties.items():
            self.properties.setdefault(name, SampledValues()).merge(each, depth + 1)
        self._limit(depth)

    def _add_kind(self, kind: str) -> None:
        self.kinds.add(kind)
        if _are_several(self.kinds):
            self.kinds = {JSON}
        if JSON in self.kinds:
            self._forget()

    def _limit(self, depth: int) -> None:
        if depth and len(self.properties) > MAX_NAMES:
            self.kinds = {JSON}
        if JSON in self.kinds:
            self._forget()

    def _forget(self) -> None:
        self.items, self.properties = None, {}

    def field(self, name: str | None) -> FieldType:
        """The type of the values, as a field with this name, or without a name as the type of items."""
        if self.kinds == {"array"}:
            return FieldType(name, items=(self.items or SampledValues()).field(None), optional=True)
        if self.kinds == {"object"} and (fields := inferred_fields(self.properties)):
            return FieldType(name, fields=fields, optional=True)
        return FieldType(name, type=self._scalar(), optional=True)

    def _scalar(self) -> str:
        if self.kinds and self.kinds <= _NUMBERS:
            return "float64" if "float64" in self.kinds else "int64"
        (kind,) = self.kinds or {JSON}
        return JSON if kind == "object" else kind

    def doubts(self, path: str = "") -> Iterator[str]:
        """What can be unexpected in the types of the values at `path`, as a phrase: a field with values of several
        types, and fields whose names differ by case only."""
        if _are_several(self.types):
            yield f"{path} has values of several types ({', '.join(sorted(self.types))}) and is JSON text"
        if self.items is not None:
            yield from self.items.doubts(f"{path}[]")
        names: dict[str, str] = {}
        for name, each in self.properties.items():
            inner = f"{path}.{name}" if path else name
            if (other := names.setdefault(name.lower(), inner)) != inner:
                yield equal_but_case(other, inner)
            yield from each.doubts(inner)


_NUMBERS: Final = frozenset(("int64", "float64"))


def _are_several(types: set[str]) -> bool:
    return len(types - _NUMBERS) + bool(types & _NUMBERS) > 1


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "int64" if _LOWEST <= value <= _HIGHEST else _float(value)
        case float() | Decimal():
            return _float(value)
        case list():
            return "array"
    return "object"


def _float(value: int | float | Decimal) -> str:
    try:
        return "float64" if math.isfinite(float(value)) else JSON
    except OverflowError:
        return JSON


def inferred_fields(properties: Mapping[str, SampledValues], leave_out: Iterable[str] = ()) -> tuple[FieldType, ...]:
    """The fields of objects with these properties, without those named in `leave_out`."""
    omitted = {"", *leave_out}
    return tuple(each.field(name) for name, each in properties.items() if name not in omitted)
