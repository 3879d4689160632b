"""Timestamp: changes the form of a time, in a field or in the whole value
(org.apache.kafka.connect.transforms.TimestampConverter).

A number is a time since the epoch, a text is one by the pattern. Null stays null, and a field that the object lacks
becomes null.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sink_job.api.enums import TimestampType, UnixTimeUnit
from sink_job.api.units.java_dates import DatePattern
from sink_job.connect.errors import InvalidValue
from sink_job.connect.logical_types import DATE, TIME, TIMESTAMP
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.json_values import MAX_INTEGER, checked_integer, is_null, kind_of, object_of, opened
from sink_job.transforms.typed_values import SchemaChange, TypedValue, field_schema, struct, with_fields

_DAY: Final = 86_400_000
_SCHEMAS: Final = {
    TimestampType.TEXT: Schema(SchemaType.STRING),
    TimestampType.UNIX_TIME: Schema(SchemaType.INT64),
    TimestampType.DATE: Schema(SchemaType.INT32, name=DATE, version=1),
    TimestampType.TIME: Schema(SchemaType.INT32, name=TIME, version=1),
    TimestampType.TIMESTAMP: Schema(SchemaType.INT64, name=TIMESTAMP, version=1),
}
_LARGER: Final = {UnixTimeUnit.SECONDS: 1000}
_SMALLER: Final = {UnixTimeUnit.MICROSECONDS: 1000, UnixTimeUnit.NANOSECONDS: 1_000_000}


class ConvertTimestamp:
    """`pattern`: None if no text is read or written. A tombstone stays one."""

    def __init__(self, field: str | None, kind: TimestampType, pattern: str | None, unit: UnixTimeUnit) -> None:
        self._field = field
        self._kind = kind
        self._pattern = None if pattern is None else DatePattern(pattern)
        self._unit = unit
        self._schema = SchemaChange(self._changed)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        if self._field is None:
            return self._converted(opened(value), "the value")
        found = object_of(value)
        converted = self._converted(opened(found.get(self._field)), f"the field {self._field}")
        return {**found, self._field: converted}

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        schema = self._schema(given.schema)
        if self._field is None:
            return TypedValue(schema, self._converted_typed(given.schema, given.value, "the value"))
        field = field_schema(given.schema, self._field)
        if given.value is None or field is None:
            return TypedValue(schema, given.value)
        converted = self._converted_typed(field, given.value.get(self._field), f"the field {self._field}")
        return TypedValue(schema, {**given.value, self._field: converted})

    def _changed(self, schema: Schema) -> Schema:
        if self._field is None:
            return msgspec.structs.replace(_SCHEMAS[self._kind], optional=schema.optional)
        fields = []
        for each in struct(schema).fields:
            of_field = each.schema
            if each.name == self._field:
                of_field = msgspec.structs.replace(_SCHEMAS[self._kind], optional=of_field.optional)
            fields.append(Field(each.name, of_field))
        return msgspec.structs.replace(with_fields(schema, fields), optional=schema.optional)

    def _converted_typed(self, schema: Schema, value: Any, what: str) -> object:
        days = schema.name == DATE
        is_logical = days or schema.name in (TIME, TIMESTAMP)
        if not is_logical and schema.type not in (SchemaType.STRING, SchemaType.INT64):
            raise InvalidValue(f"{what} has the type {schema.type}, which is no time")
        if value is None:
            return None
        time = value * (_DAY if days else 1) if is_logical else self._time(value, what)
        match self._kind:
            case TimestampType.DATE:
                if abs(time // _DAY) >= 1 << 31:
                    raise InvalidValue(f"{what}: the time is out of range")
                return time // _DAY
            case TimestampType.TIME:
                return time % _DAY
            case TimestampType.TIMESTAMP:
                return time
        return self._written(time, what)

    def _converted(self, value: object, what: str) -> object:
        if value is None:
            return None
        if self._kind not in (TimestampType.TEXT, TimestampType.UNIX_TIME):
            raise InvalidValue(f"{what} has no schema, so it cannot have the type {self._kind}")
        return self._written(self._time(value, what), what)

    def _written(self, time: int, what: str) -> object:
        """The time as a text or a number."""
        if self._kind is TimestampType.UNIX_TIME:
            return _saturated(_divided(time, _LARGER.get(self._unit, 1)) * _SMALLER.get(self._unit, 1))
        assert self._pattern is not None, "a text needs a pattern"
        try:
            return self._pattern.text(time)
        except ValueError as error:
            raise InvalidValue(f"{what}: {error}") from None

    def _time(self, value: object, what: str) -> int:
        """The time in milliseconds."""
        if type(value) is int:
            checked_integer(value, what)
            return _saturated(_divided(value, _SMALLER.get(self._unit, 1)) * _LARGER.get(self._unit, 1))
        if isinstance(value, str) and self._pattern is not None:
            try:
                return self._pattern.time(value)
            except ValueError as error:
                raise InvalidValue(f"{what} does not match the pattern: {error}") from None
        raise InvalidValue(f"{what} is {kind_of(value)}, which is no time")


def _divided(value: int, by: int) -> int:
    """Toward zero, as TimeUnit does."""
    return -(-value // by) if value < 0 else value // by


def _saturated(value: int) -> int:
    return max(-MAX_INTEGER - 1, min(MAX_INTEGER, value))
