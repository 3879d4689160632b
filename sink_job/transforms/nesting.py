"""Transforms of nested values: Flatten, Extract and Hoist.

The rules are those of org.apache.kafka.connect.transforms.Flatten, ExtractField and HoistField.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.json_values import is_null, object_of, opened


class Flatten:
    """Moves the fields of nested objects to the top. Arrays stay, and an empty object disappears. A tombstone stays
    one."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return value if is_null(value) else dict(self._fields(object_of(value), ""))

    def _fields(self, fields: Mapping[str, object], start: str) -> Iterator[tuple[str, object]]:
        for name, value in fields.items():
            inner = opened(value) if _is_object(value) else None
            if isinstance(inner, dict):
                yield from self._fields(inner, f"{start}{name}{self._delimiter}")
            else:
                yield f"{start}{name}", value


class Extract:
    """Replaces the value by one of its fields; by none if the object lacks it. A tombstone stays one."""

    def __init__(self, field: str) -> None:
        self._field = field

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        found = object_of(value).get(self._field)
        return None if is_null(found) else found


class Hoist:
    """Puts the value into the field of an object, also a tombstone."""

    def __init__(self, field: str) -> None:
        self._field = field

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return {self._field: opened(value)}


def _is_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, msgspec.Raw) and bytes(value)[:1] == b"{")
