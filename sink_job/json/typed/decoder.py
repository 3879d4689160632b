"""JSON values under the schema of a sink: `spec.format.schema`, an inferred schema, or the JSON Schema of a registry.

The rules are those of `sink_job.json.json_schema.decoder`. In addition, properties that the schema lacks can be
dropped or written as JSON, and values of the converter Json have dates and times as numbers or ISO 8601 texts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from msgspec import structs

from sink_job.api.enums import UnknownFields
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidFieldValue, InvalidSchema, InvalidValue
from sink_job.connect.json_decoder import JsonReader, Read, decode_json, decode_reason
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.scopes import Scope, child
from sink_job.connect.visitor import is_recursive
from sink_job.json.json_schema.decoder import JsonSchemaReader, is_union
from sink_job.json.typed import iso8601 as typed_iso8601
from sink_job.json.typed.field_list import JSON_NAME
from sink_job.json.typed.unknown_properties import COLUMN, COLUMN_NAME, as_object, json_text, unknown_finder


class TextReading:
    """Reads JSON texts under a schema. `schema` is that of the values that it returns. `dropped` is the number of the
    properties that it has dropped."""

    def __init__(
        self, schema: Schema, unknown: UnknownFields = UnknownFields.FAIL, *, is_bare_json: bool = False
    ) -> None:
        """`is_bare_json`: values of the converter Json. Raises InvalidSchema if `unknown` cannot be used with
        `schema`."""
        self.schema = schema if unknown is not UnknownFields.JSON else _with_column(schema)
        self.dropped = 0
        self._find = unknown_finder(schema)
        self._is_bare_json = is_bare_json
        self._unknown = unknown
        self._reader = _TypedReader(is_lenient=unknown is not UnknownFields.FAIL, is_bare_json=is_bare_json)
        self._read = self._reader.whole(schema)

    def read(self, text: bytes) -> object:
        """The value. Raises InvalidValue if the text does not conform to the schema, and RecursionError."""
        try:
            value = decode_json(text)
        except msgspec.DecodeError as error:
            raise InvalidValue(f"the value cannot be read: {decode_reason(error, text)}") from None
        self._reader.has_unknown = False
        found = self._read(value)
        return self._with_unknown(value, found) if self._reader.has_unknown else found

    def reader_of(self, schema: Schema) -> Read:
        """A function that reads a JSON value under `schema`, a part of the schema. It raises InvalidValue as `read`,
        and also for an unknown property, which `read` has to handle."""
        if schema.name == COLUMN_NAME:
            return _no_property
        return _TypedReader(is_lenient=False, is_bare_json=self._is_bare_json).whole(schema)

    def reads_any(self, schema: Schema) -> bool:
        """Whether values of this type have another form in JSON than the type alone says."""
        return schema.name == COLUMN_NAME or (
            self._is_bare_json and (schema.name == JSON_NAME or _of_text(schema) is not None)
        )

    def _with_unknown(self, value: object, found: object) -> object:
        unknown = self._find(value, found)
        if self._unknown is UnknownFields.DROP:
            self.dropped += len(unknown)
        elif unknown and isinstance(found, dict):  # a member of a union that was not chosen can have had some
            found[COLUMN] = json_text(as_object(unknown))
        return found


def _with_column(schema: Schema) -> Schema:
    if schema.type is not SchemaType.STRUCT or is_union(schema) or is_recursive(schema):
        raise InvalidSchema("unknownFields Json needs the schema of a struct that is not recursive: use Fail or Drop")
    if any(field.name == COLUMN for field in schema.fields):
        raise InvalidSchema(f"its field {COLUMN} has the name of the column for unknownFields Json: rename it")
    column = Field(COLUMN, Schema(SchemaType.STRING, COLUMN_NAME, optional=True))
    return structs.replace(schema, fields=(*schema.fields, column))


def _no_property(value: object) -> None:
    """A property with the name of the column is an unknown one, also if it is null."""
    if value is not msgspec.UNSET:
        raise InvalidValue(f"{COLUMN} is the name of the column for unknown properties")


class _TypedReader(JsonSchemaReader):
    def __init__(self, *, is_lenient: bool, is_bare_json: bool) -> None:
        super().__init__()
        self._is_lenient = is_lenient
        self._is_bare_json = is_bare_json
        self.has_unknown = False

    def struct(self, schema: Schema, scope: Scope[object]) -> Read:
        if not self._is_lenient:
            return super().struct(schema, scope)
        if is_union(schema):
            return self._lenient_union(schema, scope)
        read, names = JsonReader.struct(self, schema, scope), {field.name for field in schema.fields}

        def reading(value: object) -> object:
            if isinstance(value, dict) and not value.keys() <= names:
                self.has_unknown = True
            return read(value)

        return reading

    def _lenient_union(self, schema: Schema, scope: Scope[object]) -> Read:
        """A member that the value conforms to without unknown properties comes first, as if they were errors."""
        self._is_lenient = False
        strict = self._attempt(self._union(schema, scope))
        self._is_lenient = True
        lenient = self._union(schema, scope)

        def read(value: object) -> object:
            try:
                return strict(value)
            except InvalidValue:
                return lenient(value)

        return read

    def map(self, schema: Schema, scope: Scope[object]) -> Read:
        """Unknown properties in entries with keys that are no texts have no path, so they are rejected."""
        before, self._is_lenient = self._is_lenient, self._is_lenient and child(schema.keys).type is SchemaType.STRING
        read = super().map(schema, scope)
        self._is_lenient = before
        return read

    def scalar(self, schema: Schema) -> Read:
        read = super().scalar(schema)
        if not self._is_bare_json:
            return read
        if schema.name == JSON_NAME:
            return json_text
        if schema.symbols:
            return _symbol(read, schema.symbols)
        of_text = _of_text(schema)
        if of_text is None:
            return read
        return lambda value: of_text(value) if isinstance(value, str) else read(value)


def _symbol(read: Read, symbols: tuple[str, ...]) -> Read:
    """A union can have another member for a text that is no symbol of its enum."""

    def checked(value: object) -> object:
        if value not in symbols:
            raise InvalidFieldValue(f"{str(value)[:100]!r} is not a symbol of its enum")
        return read(value)

    return checked


_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}


def _of_text(schema: Schema) -> Callable[[str], int] | None:
    """The function for a date or time in ISO 8601; None for another type."""
    kind = {logical_types.TIME: "time-millis", logical_types.TIMESTAMP: "timestamp-millis"}.get(
        schema.name or "", schema.logical
    )
    if schema.name == logical_types.DATE:
        return typed_iso8601.days
    base, _, unit = (kind or "").rpartition("-")
    if base == "time":
        return partial(typed_iso8601.time_of_day, digits=_DIGITS[unit])
    if base in ("timestamp", "local-timestamp"):
        return partial(typed_iso8601.timestamp, digits=_DIGITS[unit], local=base != "timestamp")
    return None
