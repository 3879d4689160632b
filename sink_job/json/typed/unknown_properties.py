"""The properties of a JSON value that its schema lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from sink_job.connect.schema import Schema, SchemaType
from sink_job.connect.scopes import child
from sink_job.json.json_schema.decoder import is_union

COLUMN: Final = "_unknown"
"""The column with unknown properties (`unknownFields: Json`)."""

COLUMN_NAME: Final = "io.s3sink.UnknownProperties"
"""The name of its schema."""

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class Unknown(NamedTuple):
    """A property: the names that lead to it, and its JSON value. An item of an array has its index as its name."""

    path: tuple[str, ...]
    value: object


Find = Callable[[Any, Any, tuple[str, ...], list[Unknown]], None]
"""Adds the unknown properties of a value to a list. The arguments are the JSON value, the result of reading it, which
shows the chosen members of unions, its path, and the list."""


def unknown_finder(schema: Schema) -> Callable[[object, object], list[Unknown]]:
    """A function that returns the unknown properties of a value that conforms to `schema`: those of an object first,
    then those in its fields."""
    find = _compiled(schema, {})

    def of_value(value: object, read: object) -> list[Unknown]:
        found: list[Unknown] = []
        if find is not None and value is not None:
            find(value, read, (), found)
        return found

    return of_value


def json_text(value: object) -> str:
    """The compact JSON text of a result of `decode_json`."""
    return _encode(value).decode()


def as_object(found: Iterable[Unknown]) -> dict[str, Any]:
    """Unknown properties as one object, in which each is at its path."""
    result: dict[str, Any] = {}
    for path, value in found:
        inner = result
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return result


def _compiled(schema: Schema, scope: Mapping[str, list[Find]]) -> Find | None:
    """None for a type whose values have no unknown properties. `scope` has the functions of the enclosing structs."""
    match schema.type:
        case SchemaType.STRUCT:
            return _of_union(schema, scope) if is_union(schema) else _of_struct(schema, scope)
        case SchemaType.ARRAY if schema.values is not None:
            item = _compiled(schema.values, scope)
            return None if item is None else _of_array(item)
        case SchemaType.MAP if child(schema.keys).type is SchemaType.STRING and schema.values is not None:
            item = _compiled(schema.values, scope)
            return None if item is None else _of_map(item)
        case SchemaType.REFERENCE:
            return _of_reference(scope.get(schema.name or "", []))
    return None


def _of_reference(enclosing: list[Find]) -> Find:
    def find(value: Any, read: Any, path: tuple[str, ...], found: list[Unknown]) -> None:
        (of_struct,) = enclosing  # compiled by now
        of_struct(value, read, path, found)

    return find


def _of_struct(schema: Schema, scope: Mapping[str, list[Find]]) -> Find:
    itself: list[Find] = []
    inner = {**scope, schema.name or "": itself}
    fields = [(field.name, _compiled(field.schema, inner)) for field in schema.fields]
    names = {name for name, _ in fields}
    nested = [(name, find) for name, find in fields if find is not None]

    def find(value: Any, read: Any, path: tuple[str, ...], found: list[Unknown]) -> None:
        if not value.keys() <= names:
            found += [Unknown((*path, name), each) for name, each in value.items() if name not in names]
        for name, of_field in nested:
            if value.get(name) is not None:
                of_field(value[name], read[name], (*path, name), found)

    itself.append(find)
    return find


def _of_union(schema: Schema, scope: Mapping[str, list[Find]]) -> Find:
    members = {field.name: _compiled(field.schema, scope) for field in schema.fields}

    def find(value: Any, read: Any, path: tuple[str, ...], found: list[Unknown]) -> None:
        for name, member in read.items():
            if (of_member := members[name]) is not None:
                of_member(value, member, path, found)

    return find


def _of_array(item: Find) -> Find:
    def find(value: Any, read: Any, path: tuple[str, ...], found: list[Unknown]) -> None:
        for at, each in enumerate(value):
            if each is not None:
                item(each, read[at], (*path, str(at)), found)

    return find


def _of_map(item: Find) -> Find:
    def find(value: Any, read: Any, path: tuple[str, ...], found: list[Unknown]) -> None:
        for name, each in value.items():
            if each is not None:
                item(each, read[name], (*path, name), found)

    return find
