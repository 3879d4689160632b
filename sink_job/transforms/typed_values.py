"""Values with a schema, as Connect has them: structs whose schemas transforms change, too.

A value is one of Connect (see sink_job.connect.json_encoder). A struct keeps name, version, doc and parameters of its
schema when its fields change, and is required then, as in Kafka's transforms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from sink_job.connect.errors import InvalidValue
from sink_job.connect.schema import Field, Schema, SchemaType

_MAX_SCHEMAS: Final = 1000


class TypedValue(NamedTuple):
    """A value with its schema; the value None is a tombstone."""

    schema: Schema
    value: Any


class SchemaChange:
    """What a transform makes of schemas, computed once for each schema object."""

    def __init__(self, make: Callable[[Schema], Schema]) -> None:
        self._make = make
        self._made: dict[int, tuple[Schema, Schema]] = {}

    def __call__(self, schema: Schema) -> Schema:
        """The changed schema, the same object each time. Raises InvalidValue."""
        found = self._made.get(id(schema))
        if found is None or found[0] is not schema:
            if len(self._made) >= _MAX_SCHEMAS:
                self._made.clear()
            found = self._made[id(schema)] = (schema, self._make(schema))
        return found[1]


def struct(schema: Schema) -> Schema:
    """The schema, which must be that of a struct. Raises InvalidValue for another one."""
    if schema.type is not SchemaType.STRUCT:
        raise InvalidValue(f"the value is of the type {schema.type}, not a struct")
    return schema


def with_fields(schema: Schema, fields: Iterable[Field]) -> Schema:
    """The schema of a struct with other fields. Raises InvalidValue for two fields with one name."""
    found = tuple(fields)
    if len({each.name for each in found}) < len(found):
        raise InvalidValue("two fields of the struct would have one name")
    return Schema(
        SchemaType.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=found,
        subject=schema.subject,
    )


def field_schema(schema: Schema, name: str) -> Schema | None:
    """The schema of a field; None without it."""
    return next((each.schema for each in schema.fields if each.name == name), None)


def optional(schema: Schema, *, like: Schema) -> Schema:
    """The schema, optional if `like` is."""
    return msgspec.structs.replace(schema, optional=like.optional)
