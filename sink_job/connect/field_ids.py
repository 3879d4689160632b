"""The ids of the types in a Parquet schema, by their paths.

A path has the names from the whole value down, joined by dots: of fields, and `element`, `key` and `value` for what is
in a list or a map. These are the names in the Parquet file. A dot or a backslash in a name has a backslash before it,
so that two types of a schema never have the same path. The rule for ids is that of Apache Iceberg: each field, element,
key and value has one, which is never used for another path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sink_job.connect.schema import Schema, SchemaType
from sink_job.connect.scopes import child

FieldIds = Mapping[str, int]
"""path -> id, from 1 on."""
ELEMENT: Final = "element"
KEY: Final = "key"
VALUE: Final = "value"

_SPECIAL: Final = re.compile(r"[.\\]")


def field_paths(schema: Schema) -> list[str]:
    """The paths of all types of a struct in the order of the schema: a field first, then what is in it.

    The schema is not recursive (`check_parquet`). Raises InvalidSchema for an array or a map without its schemas.
    """
    return list(_paths(schema, ""))


def _paths(schema: Schema, parent: str) -> Iterator[str]:
    for name, inner in children(schema):
        path = path_of(parent, name)
        yield path
        yield from _paths(inner, path)


def children(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The names and schemas of what is in a struct, a list or a map. Raises InvalidSchema as `field_paths`."""
    match schema.type:
        case SchemaType.STRUCT:
            yield from ((field.name, field.schema) for field in schema.fields)
        case SchemaType.ARRAY:
            yield ELEMENT, child(schema.values)
        case SchemaType.MAP:
            yield KEY, child(schema.keys)
            yield VALUE, child(schema.values)


def path_of(parent: str, name: str) -> str:
    """The path of what is called `name` in the type at `parent` (empty: the whole value)."""
    escaped = _SPECIAL.sub(r"\\\g<0>", name)
    return f"{parent}.{escaped}" if parent else escaped


def numbered(paths: Iterable[str], first: int = 1) -> dict[str, int]:
    """The paths with consecutive ids from `first` on."""
    return {path: number for number, path in enumerate(paths, start=first)}
