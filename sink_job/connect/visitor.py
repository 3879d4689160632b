"""The one walk over a schema, for all that only folds it: sizes, limits, names, questions about all types.

What compiles a schema to functions on values derives from `sink_job.connect.scopes.SchemaCompiler` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from sink_job.connect.schema import Schema, SchemaType

Result = TypeVar("Result")


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


def fold(schema: Schema, combine: Callable[[Schema, list[Result]], Result]) -> Result:
    """The result of `combine` for the schema and the results of its inner types, from the bottom up.

    >>> pairs = Schema(SchemaType.ARRAY, values=Schema(SchemaType.ARRAY, values=Schema(SchemaType.INT32)))
    >>> fold(pairs, lambda schema, inner: f"{schema.type}({', '.join(inner)})")
    'array(array(int32()))'
    """
    return combine(schema, [fold(inner, combine) for inner in inner_types(schema)])


def is_recursive(schema: Schema) -> bool:
    """Whether values of the schema can be nested without a limit."""
    return any(each.type is SchemaType.REFERENCE for each in all_types(schema))


def free_references(schema: Schema) -> frozenset[str]:
    """The names of the structs that must enclose the schema, because it refers to them."""
    return fold(schema, _free_references)


def _free_references(schema: Schema, inner: list[frozenset[str]]) -> frozenset[str]:
    if schema.type is SchemaType.REFERENCE:
        return frozenset([schema.name or ""])
    references = frozenset[str]().union(*inner)
    return references - {schema.name or ""} if schema.type is SchemaType.STRUCT else references
