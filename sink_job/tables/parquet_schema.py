"""The columns of a Parquet object as Iceberg has them, by the field ids in its footer. Pure.

The footer decides, and not the ledger: it is what readers of the table see. All columns are optional, as those of the
table: a later object may lack one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from sink_job.api.errors import TableIncompatible
from sink_job.parquet.types import FIELD_ID

_TYPES: Final[dict[pa.DataType, IcebergType]] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.time64("us"): TimeType(),
    pa.timestamp("us"): TimestampType(),
    pa.uuid(): UUIDType(),
}
_UNITS: Final = {"ms": "milliseconds", "ns": "nanoseconds"}


@dataclass(frozen=True)
class ObjectColumns:
    """The columns of an object. `leaves` are the field ids of Parquet's columns, in their order. `by_name`: the ids in
    `schema` are not those of the table, which has the columns by name."""

    schema: Schema
    leaves: tuple[int, ...]
    by_name: bool = False


def columns_of(metadata: pq.FileMetaData, key: str) -> ObjectColumns:
    """The columns of the object with this footer and `key`. Raises TableIncompatible for a column that no table can
    have, and for one without a field id."""
    reader = _Reader(metadata, key)
    fields = reader.fields(metadata.schema.to_arrow_schema(), "")
    return ObjectColumns(Schema(*fields), tuple(reader.leaves))


class _Reader:
    """Walks the types of a footer depth first, which is the order of Parquet's columns."""

    def __init__(self, metadata: pq.FileMetaData, key: str) -> None:
        self._columns = metadata.schema
        self._key = key
        self.leaves: list[int] = []

    def fields(self, fields: Iterable[pa.Field], parent: str) -> list[NestedField]:
        return [self._field(each, parent) for each in fields]

    def _field(self, field: pa.Field, parent: str) -> NestedField:
        path = f"{parent}.{field.name}" if parent else field.name
        number = self._id(field, path)
        return NestedField(number, field.name, self._type(field.type, number, path), required=False)

    def _id(self, field: pa.Field, path: str) -> int:
        text = (field.metadata or {}).get(FIELD_ID)
        if text is None:
            raise TableIncompatible(
                f"column {path} of {self._key} has no field id: the object was not written by a sink of this version"
            )
        return int(text)

    def _type(self, kind: pa.DataType, number: int, path: str) -> IcebergType:
        if pa.types.is_struct(kind):
            return StructType(*self.fields(kind.fields, path))
        if pa.types.is_list(kind):
            element = self._field(kind.value_field, path)
            return ListType(element.field_id, element.field_type, element_required=False)
        if pa.types.is_map(kind):
            key, value = self._field(kind.key_field, path), self._field(kind.item_field, path)
            return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value_required=False)
        is_uuid = self._columns.column(len(self.leaves)).logical_type.type == "UUID"
        self.leaves.append(number)
        return UUIDType() if is_uuid else self._scalar(kind, path)

    def _scalar(self, kind: pa.DataType, path: str) -> IcebergType:
        if pa.types.is_decimal(kind):
            return DecimalType(kind.precision, kind.scale)
        if pa.types.is_fixed_size_binary(kind):
            return FixedType(kind.byte_width)
        if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit == "us":
            return TimestamptzType()
        if kind in _TYPES:
            return _TYPES[kind]
        if (pa.types.is_time(kind) or pa.types.is_timestamp(kind)) and kind.unit in _UNITS:
            advice = (
                "set format.parquet.timeUnit: Micros for new objects; those that exist stay as they are"
                if kind.unit == "ms"
                else "version 3, which has nanoseconds, is not supported. Give the field a type with microseconds, or "
                "set format.logicalTypes: AsConnector, with which new objects have a plain long; those that exist stay "
                "as they are"
            )
            raise TableIncompatible(
                f"column {path} of {self._key} has {_UNITS[kind.unit]} ({kind}), and tables of format version 2 have "
                f"microseconds: {advice}"
            )
        raise TableIncompatible(f"column {path} of {self._key} has the type {kind}, which tables do not have")
