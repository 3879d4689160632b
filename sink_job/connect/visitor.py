"""The one walk over a schema, for all that only folds it: sizes, limits, names, questions about all types.

What compiles a schema to functions on values is based on `sink_job.connect.scopes` instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from sink_job.connect.schema import Schema, SchemaType


def inner_types(schema: Schema) -> list[Schema]:
    """The schemas directly in a schema: of the fields of a struct, of the keys and the values of a map, of the items of
    an array."""
    return [*(field.schema for field in schema.fields), *filter(None, (schema.keys, schema.values))]


def all_types(schema: Schema) -> Iterator[Schema]:
    """The schema and all schemas in it, each before those in it. A reference ends the walk.

    >>> number, text = Schema(SchemaType.INT32), Schema(SchemaType.STRING)
    >>> names = Schema(SchemaType.ARRAY, values=text)
    >>> [each.type.value for each in all_types(Schema(SchemaType.MAP, keys=number, values=names))]
    ['map', 'int32', 'array', 'string']
    """
    yield schema
    for inner in inner_types(schema):
        yield from all_types(inner)


def is_recursive(schema: Schema) -> bool:
    """Whether values of the schema can be nested without a limit."""
    return any(each.type is SchemaType.REFERENCE for each in all_types(schema))


def free_references(schema: Schema) -> frozenset[str]:
    """The names of the structs that must enclose the schema, because it refers to them."""
    if schema.type is SchemaType.REFERENCE:
        return frozenset([schema.name or ""])
    references = frozenset[str]().union(*map(free_references, inner_types(schema)))
    return references - {schema.name or ""} if schema.type is SchemaType.STRUCT else references
