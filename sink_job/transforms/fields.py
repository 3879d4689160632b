"""Transforms of the fields of an object: Insert, Keep, Drop and Rename.

The rules are those of org.apache.kafka.connect.transforms.InsertField and ReplaceField. A tombstone stays one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from sink_job.api.enums import InsertSource
from sink_job.connect.errors import InvalidValue
from sink_job.connect.logical_types import TIMESTAMP
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.json_values import is_null, object_of
from sink_job.transforms.typed_values import SchemaChange, TypedValue, field_schema, struct, with_fields

_SCHEMAS: Final = {
    InsertSource.TOPIC: Schema(SchemaType.STRING),
    InsertSource.PARTITION: Schema(SchemaType.INT32),
    InsertSource.OFFSET: Schema(SchemaType.INT64),
    InsertSource.TIMESTAMP: Schema(SchemaType.INT64, name=TIMESTAMP, version=1),
    InsertSource.TEXT: Schema(SchemaType.STRING),
}


class Insert:
    """Adds a field, or replaces its value. A struct gets an optional field, or with `required` one that is not; it must
    not have one of this name."""

    def __init__(self, field: str, source: InsertSource, text: str | None, *, required: bool = False) -> None:
        self._field = field
        self._source = source
        self._text = text
        self._is_required = required
        added = Field(field, msgspec.structs.replace(_SCHEMAS[source], optional=not required))
        self._schema = SchemaChange(lambda schema: with_fields(schema, (*struct(schema).fields, added)))

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        content = self._content(origin)
        found = object_of(value)
        # A record without a timestamp gets no field, as in Connect.
        return found if content is None else {**found, self._field: content}

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            return given
        content = self._content(origin)
        if content is None and self._is_required:
            raise InvalidValue("the record has no timestamp, and the field is required")
        return TypedValue(self._schema(given.schema), {**given.value, self._field: content})

    def _content(self, origin: RecordOrigin) -> str | int | None:
        match self._source:
            case InsertSource.TOPIC:
                return origin.topic
            case InsertSource.PARTITION:
                return origin.partition
            case InsertSource.OFFSET:
                return origin.offset
            case InsertSource.TIMESTAMP:
                return origin.timestamp
        return self._text


class Select:
    """Keeps the fields in `fields`, or with `kept` False the others."""

    def __init__(self, fields: Collection[str], *, kept: bool) -> None:
        self._fields = frozenset(fields)
        self._kept = kept
        self._schema = SchemaChange(
            lambda schema: with_fields(schema, (each for each in struct(schema).fields if self._keeps(each.name)))
        )

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        return {name: each for name, each in object_of(value).items() if self._keeps(name)}

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            return given
        schema = self._schema(given.schema)
        return TypedValue(schema, {name: each for name, each in given.value.items() if self._keeps(name)})

    def _keeps(self, name: str) -> bool:
        return (name in self._fields) is self._kept


class Rename:
    """Gives fields other names. Of two fields with one name the last one stays."""

    def __init__(self, renames: Mapping[str, str]) -> None:
        self._renames = dict(renames)
        self._schema = SchemaChange(self._changed)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        return {self._of(name): each for name, each in object_of(value).items()}

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        if given.value is None:
            return given
        schema = self._schema(given.schema)
        return TypedValue(schema, {self._of(name): each for name, each in given.value.items()})

    def _changed(self, schema: Schema) -> Schema:
        for name in set(self._renames.values()) - self._renames.keys():
            if field_schema(struct(schema), name) is not None:
                raise InvalidValue(f"the struct has a field {name} before a field gets this name")
        return with_fields(schema, (Field(self._of(each.name), each.schema) for each in struct(schema).fields))

    def _of(self, name: str) -> str:
        return self._renames.get(name, name)
