"""Fields whose names differ by case only: readers such as Athena, Hive and Spark take them for one column."""

from __future__ import annotations

from collections.abc import Iterator

from sink_job.connect.field_ids import children, path_of
from sink_job.connect.schema import Schema, SchemaType


def equal_but_case(one: str, other: str) -> str:
    """A phrase for two paths of fields whose names differ by case only."""
    return f"{one} and {other} differ by case only, which Athena, Hive and Spark do not distinguish"


def names_equal_but_case(schema: Schema, path: str = "") -> Iterator[str]:
    """A phrase for each field of a struct whose name differs from that of an earlier field of it by case only."""
    names: dict[str, str] = {}
    for name, inner in children(schema):
        inner_path = path_of(path, name)
        if schema.type is SchemaType.STRUCT and (other := names.setdefault(name.lower(), inner_path)) != inner_path:
            yield equal_but_case(other, inner_path)
        yield from names_equal_but_case(inner, inner_path)
