"""The fields of values with a schema: which fields exist is decided by the schema, not by the value."""

from __future__ import annotations

from collections.abc import Sequence

from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import Schema, SchemaType
from sink_job.records.fields import MISSING, segments


def columns(records: Sequence[object], schema: Schema, fields: tuple[str, ...]) -> dict[str, list[object]]:
    """For each of `fields` its value in each of `records`, in Connect's data model.

    The name of a nested field is dotted; the empty name is the whole value. A field is MISSING where the schema lacks
    it, and null below a null. A null takes the default of its schema, as `Struct.get` of Kafka Connect.
    """
    return {name: _column(records, schema, segments(name)) for name in fields}


def _column(records: Sequence[object], schema: Schema, path: Sequence[str]) -> list[object]:
    enclosing: dict[str | None, Schema] = {}
    values = list(records)
    current: Schema | None = schema
    for segment in path:
        current = enclosing.get(current.name, current) if current and current.type is SchemaType.REFERENCE else current
        if current is not None:
            enclosing[current.name] = current
        current = _child(current, segment)
        if current is None:
            return [MISSING] * len(values)
        default = default_value(current) if current.default is not None else None
        values = [_value(value, segment, default) for value in values]
    return values


def _child(schema: Schema | None, name: str) -> Schema | None:
    if schema is not None and schema.type is SchemaType.STRUCT:
        return next((field.schema for field in schema.fields if field.name == name), None)
    return schema.values if schema is not None and schema.type is SchemaType.MAP else None


def _value(value: object, name: str, default: object) -> object:
    if value is MISSING:
        return MISSING
    if not isinstance(value, dict):
        return None if value is None else MISSING
    found = value.get(name, MISSING)
    return default if found is None else found
