"""Connect's schemas as Arrow's, for Parquet.

Each type has a field id (`sink_job.connect.field_ids`). A union is a struct of optional members, by the names that they
have in Connect.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from sink_job.api.enums import TimeUnit
from sink_job.avro.from_connect import is_text_map, is_union, logical_name
from sink_job.connect import logical_types
from sink_job.connect.field_ids import ELEMENT, KEY, VALUE, FieldIds, path_of
from sink_job.connect.output_settings import DatumSettings, fixed_size
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.scopes import child

FIELD_ID: Final = b"PARQUET:field_id"

_SCALARS: Final = {
    SchemaType.INT8: pa.int32(),
    SchemaType.INT16: pa.int32(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.uuid(),
}
_IN_MICROS: Final = {
    "time-millis": "time-micros",
    "timestamp-millis": "timestamp-micros",
    "local-timestamp-millis": "local-timestamp-micros",
}
"""The types that `format.timeUnit: Micros` writes in another unit. Nanoseconds stay: they would lose digits."""


def arrow_schema(schema: Schema, settings: DatumSettings, ids: FieldIds) -> pa.Schema:
    """The columns of values under `schema`; `check_parquet` has accepted it, and `ids` has each of its
    `field_paths`. Raises InvalidSchema for a type without its parameters."""
    return pa.schema(_Types(settings, ids).fields(schema, ""))


class _Types:
    def __init__(self, settings: DatumSettings, ids: FieldIds) -> None:
        self._settings = settings
        self._ids = ids

    def fields(self, schema: Schema, path: str) -> list[pa.Field]:
        return [self._field(field, path, is_member=is_union(schema)) for field in schema.fields]

    def _field(self, field: Field, parent: str, *, is_member: bool = False) -> pa.Field:
        path = path_of(parent, field.name)
        metadata = {FIELD_ID: str(self._ids[path]).encode()}
        return pa.field(field.name, self._type(field.schema, path), is_member or field.schema.optional, metadata)

    def _type(self, schema: Schema, path: str) -> pa.DataType:
        match schema.type:
            case SchemaType.STRUCT:
                return pa.struct(self.fields(schema, path))
            case SchemaType.ARRAY:
                return pa.list_(self._field(Field(ELEMENT, child(schema.values)), path))
            case SchemaType.MAP:
                keys = Schema(SchemaType.STRING) if is_text_map(schema) else child(schema.keys)
                key = self._field(Field(KEY, keys), path).with_nullable(False)
                return pa.map_(key, self._field(Field(VALUE, child(schema.values)), path))
        return self._scalar(schema)

    def _scalar(self, schema: Schema) -> pa.DataType:
        if logical_types.is_decimal(schema):
            scale = logical_types.scale_of(schema)
            return pa.decimal128(max(self._settings.precision(schema), scale), scale)
        if (name := logical_name(schema)) is not None:
            is_micros = self._settings.time_unit is TimeUnit.MICROS
            return _LOGICAL[_IN_MICROS.get(name, name) if is_micros else name]
        size = fixed_size(schema)
        return _SCALARS[schema.type] if size is None else pa.binary(size)
