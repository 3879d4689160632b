"""Schemas that Parquet cannot express."""

from __future__ import annotations

from typing import Final

from sink_job.schemas import logical
from sink_job.schemas.datum_settings import MAX_PARQUET_PRECISION
from sink_job.schemas.errors import InvalidSchema
from sink_job.schemas.model import Schema, SchemaType

MAX_LEVELS: Final = 99
"""Maximum depth of nested groups below the root. Arrow's reader rejects deeper schemas, so the footer could not be
written (parquet/schema.cc, kMaxSchemaDepth). A list or a map takes a level more than its items."""


def check_parquet(schema: Schema) -> None:
    """Raises InvalidSchema, with the field, for a schema that Parquet cannot express: a whole value that is no struct,
    a struct without fields, recursion, types nested deeper than MAX_LEVELS, and a decimal with a scale that is negative
    or above 38."""
    if schema.type is not SchemaType.STRUCT:
        raise InvalidSchema(f"Parquet requires a struct as the whole value, but its schema is {_shown(schema)}")
    _check(schema, "", 0)


def _check(schema: Schema, place: str, levels: int) -> None:
    if levels > MAX_LEVELS:
        raise _error(place, f"it is nested deeper than {MAX_LEVELS} levels, of which a list or a map takes two")
    match schema.type:
        case SchemaType.REFERENCE:
            raise _error(place, f"its schema is recursive: it refers to the enclosing {schema.name}")
        case SchemaType.STRUCT if not schema.fields:
            raise _error(place, f"the struct {schema.name or 'without a name'} has no fields")
        case SchemaType.BYTES if logical.is_decimal(schema):
            _check_scale(logical.scale_of(schema), place)
    for field in schema.fields:
        _check(field.schema, f"{place}.{field.name}" if place else field.name, levels + 1)
    for name, inner in (("key", schema.keys), ("value", schema.values)):
        if inner is not None:
            _check(inner, f"{place}[{name if schema.keys else ''}]", levels + 2)


def _check_scale(scale: int, place: str) -> None:
    if not 0 <= scale <= MAX_PARQUET_PRECISION:
        raise _error(place, f"the scale of a decimal is {scale}, and must be from 0 to {MAX_PARQUET_PRECISION}")


def _error(place: str, reason: str) -> InvalidSchema:
    where = f"the field {place}" if place else "the whole value"
    return InvalidSchema(f"Parquet cannot express {where}: {reason}")


def _shown(schema: Schema) -> str:
    return f"{schema.type} ({schema.name})" if schema.name else str(schema.type)
