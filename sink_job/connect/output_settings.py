"""The settings that shape the values of the outputs Avro and Parquet."""

from __future__ import annotations

from typing import Final

import msgspec

from sink_job.api.enums import LogicalTypes, OutputFormat, TimeUnit
from sink_job.api.sections.format_section import FormatSpec
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import Extension, Schema, SchemaType

_PRECISION: Final = "connect.decimal.precision"
_FIXED_SIZE: Final = "connect.fixed.size"
_AVRO_PRECISION: Final = 64
"""AvroData's precision of a decimal without one."""
MAX_PARQUET_PRECISION: Final = 38


class DatumSettings(msgspec.Struct, frozen=True):
    """The settings of one sink. `output` is Avro or Parquet. `envelope`: values are fields of an envelope. `time_unit`
    is that of the columns of Parquet; the data of rows have the times of their schemas."""

    output: OutputFormat = OutputFormat.AVRO
    logical_types: LogicalTypes = LogicalTypes.ALL
    connect_names: bool = False
    envelope: bool = False
    time_unit: TimeUnit = TimeUnit.MICROS

    @classmethod
    def of(cls, settings: FormatSpec) -> DatumSettings | None:
        """The settings; None for an output whose values are no Avro data."""
        if not settings.output.has_datums:
            return None
        return cls(
            settings.output,
            settings.logical_types,
            settings.avro is not None and settings.avro.connect_names,
            settings.envelope,
            TimeUnit.MICROS if settings.parquet is None else settings.parquet.time_unit,
        )

    @property
    def is_parquet(self) -> bool:
        return self.output is OutputFormat.PARQUET

    @property
    def extension(self) -> Extension:
        """What the schemas of Avro values have beyond Connect's data model."""
        return Extension.LOGICAL_TYPES if self.logical_types is LogicalTypes.ALL else Extension.SYMBOLS

    @property
    def keeps_logical_types(self) -> bool:
        """Whether logical types that Connect has no equivalent of are kept."""
        return self.extension is Extension.LOGICAL_TYPES

    def precision(self, schema: Schema) -> int:
        """The maximum number of digits of a decimal, at most 38 in Parquet."""
        found = given_precision(schema)
        if self.is_parquet:
            return min(found or MAX_PARQUET_PRECISION, MAX_PARQUET_PRECISION)
        return found or _AVRO_PRECISION


def given_precision(schema: Schema) -> int | None:
    """The precision that the schema of a decimal names; None if it names no valid one."""
    text = schema.parameter.get(_PRECISION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0 else None


def fixed_size(schema: Schema) -> int | None:
    """The size in bytes of a fixed; None for a schema that is none."""
    text = schema.parameter.get(_FIXED_SIZE, "")
    valid = schema.type is SchemaType.BYTES and text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if valid else None


def is_native_decimal(schema: Schema, precision: int) -> bool:
    """Whether Avro allows a decimal with the scale of `schema` and this precision: its readers reject the whole object
    otherwise."""
    size = fixed_size(schema)
    fits = size is None or (10**precision).bit_length() <= 8 * size
    return fits and 0 <= logical_types.scale_of(schema) <= precision


MAX_LEVELS: Final = 99
"""Maximum depth of nested groups below the root. Arrow's reader rejects deeper schemas, so the footer could not be
written (parquet/schema.cc, kMaxSchemaDepth). A list or a map takes a level more than its items."""


def check_parquet(schema: Schema) -> None:
    """Raises InvalidSchema, with the field, for a schema that Parquet cannot express: a whole value that is no struct,
    a struct without fields, a fixed without bytes, recursion, types nested deeper than MAX_LEVELS, and a decimal with a
    scale that is negative or above 38."""
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
        case SchemaType.BYTES if logical_types.is_decimal(schema):
            _check_scale(logical_types.scale_of(schema), place)
        case SchemaType.BYTES if fixed_size(schema) == 0:
            raise _error(place, f"the fixed {schema.name or 'without a name'} has the size 0")
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
