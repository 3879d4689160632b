"""Mask: replaces the values of fields (org.apache.kafka.connect.transforms.MaskField).

Null stays null, and a field that the object lacks becomes null.
"""

from __future__ import annotations

from collections.abc import Sequence

from sink_job.connect.errors import InvalidValue
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.java_numbers import parse_decimal, wrapped
from sink_job.transforms.json_values import checked_integer, kind_of, object_of, opened


class Mask:
    """`replacement`: None for an empty value of the same type. A tombstone is rejected."""

    def __init__(self, fields: Sequence[str], replacement: str | None) -> None:
        self._fields = tuple(fields)
        self._replacement = replacement

    def transform(self, value: object, origin: RecordOrigin) -> object:
        found = object_of(value)
        return {**found, **{name: self._masked(name, opened(found.get(name))) for name in self._fields}}

    def _masked(self, name: str, value: object) -> object:
        value = checked_integer(value, f"the field {name}")
        if value is None:
            return None
        if self._replacement is None:
            return type(value)()
        match value:
            case str():
                return self._replacement
            case int() | float() if not isinstance(value, bool):
                return _number(name, value, self._replacement)
        raise InvalidValue(f"the field {name} is {kind_of(value)}, which no replacement is for")


def _number(name: str, value: int | float, replacement: str) -> int | float:
    try:
        number = parse_decimal(replacement)
    except ValueError:
        raise InvalidValue(f"the field {name} is a number, and the replacement is not") from None
    return wrapped(int(number), 64) if isinstance(value, int) else float(number)
