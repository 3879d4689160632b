"""Transforms of nested values: Flatten, Extract and Hoist.

The rules are those of org.apache.kafka.connect.transforms.Flatten, ExtractField and HoistField.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.json_values import is_null, object_of, opened
from sink_job.transforms.typed_values import SchemaChange, TypedValue, field_schema, struct, with_fields

MAX_DEPTH: Final = 256
"""The maximum number of nested objects of a value that is flattened. It is lower than Python's recursion limit, whose
effect varies with the caller: a rebuild must accept the same records."""


class Flatten:
    """Moves the fields of nested objects to the top. Arrays stay, and an empty object disappears. A tombstone stays
    one."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._schema = SchemaChange(
            lambda schema: with_fields(schema, self._flat(struct(schema), "", optional=schema.optional))
        )

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return value if is_null(value) else dict(self._fields(object_of(value), ""))

    def _fields(self, fields: Mapping[str, object], start: str, depth: int = 1) -> Iterator[tuple[str, object]]:
        if depth > MAX_DEPTH:
            raise InvalidValue(f"the value is nested deeper than {MAX_DEPTH} levels")
        for name, value in fields.items():
            inner = opened(value) if _is_object(value) else None
            if isinstance(inner, dict):
                yield from self._fields(inner, f"{start}{name}{self._delimiter}", depth + 1)
            else:
                yield f"{start}{name}", value

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            return given
        return TypedValue(self._schema(given.schema), dict(self._values(given.schema, given.value, "")))

    def _values(self, schema: Schema, value: Mapping[str, Any] | None, start: str) -> Iterator[tuple[str, object]]:
        for field in schema.fields:
            inner: Any = default_value(field.schema) if value is None else value.get(field.name)
            if field.schema.type is SchemaType.STRUCT:
                yield from self._values(field.schema, inner, f"{start}{field.name}{self._delimiter}")
            else:
                yield f"{start}{field.name}", inner

    def _flat(self, schema: Schema, start: str, *, optional: bool) -> Iterator[Field]:
        """The fields of a struct at the top. `optional`: a struct around them is."""
        for field in schema.fields:
            is_optional = optional or field.schema.optional
            name = f"{start}{field.name}"
            if field.schema.type is SchemaType.STRUCT:
                yield from self._flat(field.schema, f"{name}{self._delimiter}", optional=is_optional)
            elif field.schema.type is SchemaType.MAP:
                raise InvalidValue(f"the field {name} is a map, which cannot be flattened")
            else:
                yield Field(name, msgspec.structs.replace(field.schema, optional=is_optional))


class Extract:
    """Replaces the value by one of its fields; by none if the object lacks it. A tombstone stays one."""

    def __init__(self, field: str) -> None:
        self._field = field

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        found = object_of(value).get(self._field)
        return None if is_null(found) else found

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        schema = field_schema(struct(given.schema), self._field)
        if schema is None:
            raise InvalidValue(f"the struct has no field {self._field}")
        return TypedValue(schema, None if given.value is None else given.value.get(self._field))


class Hoist:
    """Puts the value into the field of an object, also a tombstone."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._schema = SchemaChange(lambda schema: Schema(SchemaType.STRUCT, fields=(Field(field, schema),)))

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return {self._field: opened(value)}

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        return TypedValue(self._schema(given.schema), {self._field: given.value})


def _is_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, msgspec.Raw) and bytes(value)[:1] == b"{")
