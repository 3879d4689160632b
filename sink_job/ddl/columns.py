"""The columns of records under a schema, as each output writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sink_job.api.enums import OutputFormat, TimestampFormat, TimeUnit
from sink_job.api.sections.format_section import FormatSpec
from sink_job.avro.from_connect import is_text_map, is_union, logical_name
from sink_job.connect import logical_types
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.ddl.table import ColumnType, Kind, TableColumn
from sink_job.json.typed.field_list import JSON_NAME

_SCALARS: Final = {
    SchemaType.INT8: Kind.INT,
    SchemaType.INT16: Kind.INT,
    SchemaType.INT32: Kind.INT,
    SchemaType.INT64: Kind.LONG,
    SchemaType.FLOAT32: Kind.FLOAT,
    SchemaType.FLOAT64: Kind.DOUBLE,
    SchemaType.BOOLEAN: Kind.BOOLEAN,
    SchemaType.STRING: Kind.STRING,
    SchemaType.BYTES: Kind.BYTES,
}
_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}
_ISO: Final = (logical_types.DATE, logical_types.TIME, logical_types.TIMESTAMP)
MAX_DECIMAL: Final = 38
"""Digits of a decimal that engines have."""


def columns_of(schema: Schema, settings: FormatSpec) -> tuple[TableColumn, ...] | None:
    """The columns of records under `schema`; None if they are no structs: each is one value."""
    if schema.type is not SchemaType.STRUCT or is_union(schema):
        return None
    compiler = _JsonTypes(settings) if settings.output is OutputFormat.JSON else _DatumTypes(settings)
    return compiler.fields(schema.fields)


class _DatumTypes:
    """The types of Avro and Parquet objects."""

    def __init__(self, settings: FormatSpec) -> None:
        self.datums = DatumSettings.of(settings) or DatumSettings()

    def fields(self, fields: tuple[Field, ...]) -> tuple[TableColumn, ...]:
        return tuple(TableColumn(each.name, self.type(each.schema)) for each in fields)

    def type(self, schema: Schema) -> ColumnType:
        match schema.type:
            case SchemaType.STRUCT:
                kind = Kind.UNION if is_union(schema) and not self.datums.is_parquet else Kind.STRUCT
                return ColumnType(kind, fields=self.fields(schema.fields))
            case SchemaType.ARRAY if schema.values is not None:
                return ColumnType(Kind.ARRAY, element=self.type(schema.values))
            case SchemaType.MAP if schema.values is not None and schema.keys is not None:
                return self.map(schema, schema.keys, schema.values)
            case SchemaType.REFERENCE:
                return ColumnType(Kind.RECURSIVE)
        return self.scalar(schema)

    def map(self, schema: Schema, keys: Schema, values: Schema) -> ColumnType:
        if not is_text_map(schema) and not self.datums.is_parquet:
            entry = (TableColumn("key", self.type(keys)), TableColumn("value", self.type(values)))
            return ColumnType(Kind.ARRAY, element=ColumnType(Kind.STRUCT, fields=entry))
        return ColumnType(Kind.MAP, key=self.type(keys), element=self.type(values))

    def scalar(self, schema: Schema) -> ColumnType:
        if logical_types.is_decimal(schema):
            scale = logical_types.scale_of(schema)
            return ColumnType(Kind.DECIMAL, max(self.datums.precision(schema), scale), scale)
        name = logical_name(schema)
        if name is None:
            return ColumnType(_SCALARS[schema.type])
        if name in ("date", "uuid"):
            return ColumnType(Kind(name))
        base, _, unit = name.rpartition("-")
        digits = _DIGITS[unit]
        if self.datums.is_parquet and self.datums.time_unit is TimeUnit.MICROS:
            digits = max(digits, 6)
        kind = {"time": Kind.TIME, "timestamp": Kind.TIMESTAMP}.get(base, Kind.LOCAL_TIMESTAMP)
        return ColumnType(kind, digits)


class _JsonTypes(_DatumTypes):
    """The types of JSON lines: what JsonConverter writes."""

    def __init__(self, settings: FormatSpec) -> None:
        super().__init__(settings)
        self.settings = settings

    def type(self, schema: Schema) -> ColumnType:
        found = super().type(schema)
        return replace(found, kind=Kind.STRUCT) if found.kind is Kind.UNION else found

    def map(self, schema: Schema, keys: Schema, values: Schema) -> ColumnType:
        if keys.type is SchemaType.STRING:
            return ColumnType(Kind.MAP, key=ColumnType(Kind.STRING), element=self.type(values))
        return ColumnType(Kind.ARRAY, element=ColumnType(Kind.JSON))  # pairs of two types

    def scalar(self, schema: Schema) -> ColumnType:
        if logical_types.is_decimal(schema):
            if self.settings.decimals.value == "Base64":
                return ColumnType(Kind.STRING)
            scale = logical_types.scale_of(schema)
            return ColumnType(Kind.DECIMAL, max(self.datums.precision(schema), scale), scale)
        if schema.name in _ISO and self.settings.timestamps is TimestampFormat.ISO:
            return ColumnType(Kind.STRING)
        if schema.name == JSON_NAME:
            return ColumnType(Kind.JSON)
        kind = _SCALARS[schema.type]
        return ColumnType(Kind.STRING if kind is Kind.BYTES else kind)
