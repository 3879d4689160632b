"""Transforms of the fields of an object: Insert, Keep, Drop and Rename.

The rules are those of org.apache.kafka.connect.transforms.InsertField and ReplaceField. A tombstone stays one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sink_job.api.enums import InsertSource
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.json_values import is_null, object_of


class Insert:
    """Adds a field, or replaces its value."""

    def __init__(self, field: str, source: InsertSource, text: str | None) -> None:
        self._field = field
        self._source = source
        self._text = text

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        content = self._content(origin)
        found = object_of(value)
        # A record without a timestamp gets no field, as in Connect.
        return found if content is None else {**found, self._field: content}

    def _content(self, origin: RecordOrigin) -> str | int | None:
        match self._source:
            case InsertSource.TOPIC:
                return origin.topic
            case InsertSource.PARTITION:
                return origin.partition
            case InsertSource.OFFSET:
                return origin.offset
            case InsertSource.TIMESTAMP:
                return origin.timestamp
        return self._text


class Select:
    """Keeps the fields in `fields`, or with `kept` False the others."""

    def __init__(self, fields: Collection[str], *, kept: bool) -> None:
        self._fields = frozenset(fields)
        self._kept = kept

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        return {name: each for name, each in object_of(value).items() if (name in self._fields) is self._kept}


class Rename:
    """Gives fields other names. Of two fields with one name the last one stays."""

    def __init__(self, renames: Mapping[str, str]) -> None:
        self._renames = dict(renames)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        return {self._renames.get(name, name): each for name, each in object_of(value).items()}
