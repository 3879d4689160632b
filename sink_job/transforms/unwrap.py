"""Unwrap: replaces Debezium's change event by the state of the row after it
(io.debezium.transforms.ExtractNewRecordState).

A change event is a struct whose schema has a name that ends with `.Envelope`. Another value stays as it is. Tombstones,
which Debezium sends after deletes, are left out, as are events without a row, such as those of a truncated table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from sink_job.api.enums import DeletedRows
from sink_job.connect.errors import InvalidValue
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.transforms.base import FILTERED, Filtered, RecordOrigin
from sink_job.transforms.typed_values import SchemaChange, TypedValue, field_schema, with_fields

_SUFFIX: Final = ".Envelope"
_DELETED: Final = "__deleted"
_OF_EVENT: Final = ("op", "ts_ms", "ts_us", "ts_ns")
_REWRITES: Final = (DeletedRows.REWRITE, DeletedRows.REWRITE_WITH_TOMBSTONE)


class Unwrap:
    """`added`: fields of the event, or with a dot or another name of its source, that the row gets as optional ones."""

    def __init__(self, deletes: DeletedRows, added: Sequence[str]) -> None:
        self._deletes = deletes
        self._added = [_AddedField(each) for each in added]
        self._schema = SchemaChange(self._changed)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return FILTERED if value is None and not self._keeps_tombstones else value

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue | Filtered:
        schema, event = given
        if event is None:
            return given if self._keeps_tombstones else FILTERED
        if schema.type is not SchemaType.STRUCT or not (schema.name or "").endswith(_SUFFIX):
            return given
        after = event.get("after")
        is_deleted = after is None
        row = event.get("before") if is_deleted else after
        if row is None or (is_deleted and event.get("op") != "d"):
            return FILTERED
        if is_deleted and self._deletes not in _REWRITES:
            drops = self._deletes is DeletedRows.DROP
            return FILTERED if drops else TypedValue(_row_schema(schema), None)
        mark = {_DELETED: "true" if is_deleted else "false"} if self._deletes in _REWRITES else {}
        added = {each.name: each.value(event) for each in self._added}
        return TypedValue(self._schema(schema), {**row, **mark, **added})

    @property
    def _keeps_tombstones(self) -> bool:
        return self._deletes is DeletedRows.REWRITE_WITH_TOMBSTONE

    def _changed(self, schema: Schema) -> Schema:
        row = _row_schema(schema)
        added = [Field(each.name, each.schema(schema)) for each in self._added]
        mark = [Field(_DELETED, Schema(SchemaType.STRING, optional=True))] if self._deletes in _REWRITES else []
        return with_fields(row, (*row.fields, *mark, *added))


class _AddedField:
    """A field of the event: `op`, `source.ts_ms`, or `table` for one of the source."""

    def __init__(self, path: str) -> None:
        section, dot, field = path.rpartition(".")
        self.name = f"__{section}_{field}" if dot else f"__{field}"
        self._section = section if dot else None if field in _OF_EVENT else "source"
        self._field = field

    def value(self, event: Mapping[str, Any]) -> Any:
        section = event if self._section is None else event.get(self._section)
        return None if section is None else section.get(self._field)

    def schema(self, event: Schema) -> Schema:
        """The schema of the field, optional. Raises InvalidValue if the event lacks the field."""
        section = event if self._section is None else field_schema(event, self._section)
        found = None if section is None else field_schema(section, self._field)
        if found is None:
            where = "the event" if self._section is None else self._section
            raise InvalidValue(f"{where} has no field {self._field}")
        return msgspec.structs.replace(found, optional=True)


def _row_schema(event: Schema) -> Schema:
    found = field_schema(event, "after")
    if found is None or found.type is not SchemaType.STRUCT:
        raise InvalidValue("the event has no struct in the field after")
    return found
