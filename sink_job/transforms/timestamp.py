"""Timestamp: changes the form of a time, in a field or in the whole value
(org.apache.kafka.connect.transforms.TimestampConverter).

A number is a time since the epoch, a text is one by the pattern. Null stays null, and a field that the object lacks
becomes null.
"""

from __future__ import annotations

from typing import Final

from sink_job.api.enums import TimestampType, UnixTimeUnit
from sink_job.api.units.java_dates import DatePattern
from sink_job.connect.errors import InvalidValue
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.json_values import MAX_INTEGER, checked_integer, is_null, kind_of, object_of, opened

_LARGER: Final = {UnixTimeUnit.SECONDS: 1000}
_SMALLER: Final = {UnixTimeUnit.MICROSECONDS: 1000, UnixTimeUnit.NANOSECONDS: 1_000_000}


class ConvertTimestamp:
    """`pattern`: None if no text is read or written. A tombstone stays one."""

    def __init__(self, field: str | None, kind: TimestampType, pattern: str | None, unit: UnixTimeUnit) -> None:
        self._field = field
        self._kind = kind
        self._pattern = None if pattern is None else DatePattern(pattern)
        self._unit = unit

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        if self._field is None:
            return self._converted(opened(value), "the value")
        found = object_of(value)
        converted = self._converted(opened(found.get(self._field)), f"the field {self._field}")
        return {**found, self._field: converted}

    def _converted(self, value: object, what: str) -> object:
        if value is None:
            return None
        time = self._time(value, what)
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
