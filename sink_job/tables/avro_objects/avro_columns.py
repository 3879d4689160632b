"""The columns of an Avro object as Iceberg has them, by the schema in its header. Pure.

Readers of tables take a column by the types in this schema, so a type that Iceberg's readers do not read, or do not
read exactly, is rejected with the name of the column.
"""

from __future__ import annotations

from typing import Final

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
    TimestamptzType,
    TimeType,
    UUIDType,
)

from sink_job.api.errors import TableIncompatible
from sink_job.avro.schema import AvroType, parse_avro
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.field_ids import ELEMENT, KEY, VALUE

MAX_DIGITS: Final = 38
UUID_BYTES: Final = 16
_PLAIN: Final[dict[str, IcebergType]] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}
_LOGICAL: Final[dict[tuple[str, str], IcebergType]] = {
    ("int", "date"): DateType(),
    ("long", "time-micros"): TimeType(),
    ("long", "timestamp-millis"): TimestamptzType(),
    ("long", "timestamp-micros"): TimestamptzType(),
}
_PARQUET: Final = "with format.output: Parquet new objects can be in a table; those that exist stay as they are"
_AS_CONNECTOR: Final = (
    "format.logicalTypes: AsConnector writes new objects without this logical type; those that exist stay as they are"
)


def avro_columns(text: str, where: str) -> Schema:
    """The columns of the object `where` with the Avro schema `text`. Their ids are numbers from 1 on in the order of
    the schema, a field before what is in it: the table has others. Raises TableIncompatible."""
    try:
        root = parse_avro(text)
    except InvalidSchema as error:
        raise TableIncompatible(f"{where} has a schema that cannot be read: {error}") from None
    if root.kind != "record":
        raise TableIncompatible(f"the values in {where} have the type {root.kind}, and a table needs records")
    return Schema(*_AvroTypes(where).fields(root, ""))


class _AvroTypes:
    """Walks the types of a schema depth first."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._last = 0
        self._enclosing: list[AvroType] = []

    def fields(self, record: AvroType, parent: str) -> list[NestedField]:
        if any(record is each for each in self._enclosing):
            raise self._error(parent, f"the recursive type {record.name}", "it cannot be in a table")
        if not record.fields:
            raise self._error(parent, "a type without fields", "it cannot be in a table")
        self._enclosing.append(record)
        found = [self._field(each.name, each.type, parent) for each in record.fields]
        self._enclosing.pop()
        return found

    def _field(self, name: str, kind: AvroType, parent: str) -> NestedField:
        self._last += 1
        number, path = self._last, f"{parent}.{name}" if parent else name
        return NestedField(number, name, self._type(kind.nullable or kind, path), required=False)

    def _type(self, kind: AvroType, path: str) -> IcebergType:
        match kind.kind:
            case "record":
                return StructType(*self.fields(kind, path))
            case "array":
                element = self._field(ELEMENT, kind.items, path)
                return ListType(element.field_id, element.field_type, element_required=False)
            case "map":
                key = self._field(KEY, AvroType("string"), path)
                value = self._field(VALUE, kind.items, path)
                return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value_required=False)
            case "union":
                raise self._error(path, "a union other than null and one type", _PARQUET)
        return self._scalar(kind, path)

    def _scalar(self, kind: AvroType, path: str) -> IcebergType:
        logical = kind.properties.get("logicalType")
        if logical == "decimal" and kind.kind in ("bytes", "fixed"):
            return self._decimal(kind, path)
        if logical == "uuid" and kind.kind == "fixed" and kind.size == UUID_BYTES:
            return UUIDType()
        if logical is not None:
            found = _LOGICAL.get((kind.kind, str(logical)))
            if found is None:
                advice = _PARQUET if logical == "time-millis" else _AS_CONNECTOR
                raise self._error(path, f"the logical type {logical} on {kind.kind}", advice)
            return found
        if kind.kind == "fixed" and kind.size:
            return FixedType(kind.size)
        if kind.kind in _PLAIN:
            return _PLAIN[kind.kind]
        raise self._error(path, f"the type {kind.kind}", "it cannot be in a table")

    def _decimal(self, kind: AvroType, path: str) -> IcebergType:
        precision, scale = kind.properties.get("precision"), kind.properties.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision <= MAX_DIGITS:
            advice = (
                f"readers make null of a number with more than {MAX_DIGITS} digits. Give the field a precision of at "
                f"most {MAX_DIGITS}; {_PARQUET}"
            )
            raise self._error(path, f"a decimal with the precision {precision} and the scale {scale}", advice)
        return DecimalType(precision, scale)

    def _error(self, path: str, what: str, advice: str) -> TableIncompatible:
        return TableIncompatible(
            f"column {path or '(the whole value)'} of {self._where} has {what}, which readers of tables do not read "
            f"from Avro exactly: {advice}"
        )
