"""Field lists: the short form of a schema for JSON values, in a manifest and for inferred schemas.

A field list is a YAML or JSON list, or an object with the key `fields` alone:

    - {name: carrier, type: string}
    - {name: delay, type: int64, optional: true}
    - {name: pos, fields: [{name: lat, type: float64}, {name: lon, type: float64}]}
    - {name: legs, optional: true, items: {type: string}}
    - {name: tags, values: {type: string, optional: true}}

`fields` makes a struct, `items` an array, `values` a map with text keys. The other types are those of `TYPES`,
`decimal(precision, scale)` and `json`: a string column with any JSON value as its text.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from sink_job.api import yaml_loader
from sink_job.api.errors import InvalidSpec
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import Limits
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType

LANGUAGE: Final = "FIELDS"
"""The language of a field list among the schemas of a ledger."""

JSON: Final = "json"
"""The type of a column with JSON texts."""

JSON_NAME: Final = "io.s3sink.Json"
"""The name of its schema."""

MAX_PRECISION: Final = 38

_NAMED: Final = {
    "date": (SchemaType.INT32, logical_types.DATE),
    "time-millis": (SchemaType.INT32, logical_types.TIME),
    "timestamp-millis": (SchemaType.INT64, logical_types.TIMESTAMP),
}
_LOGICAL: Final = {
    "time-micros": SchemaType.INT64,
    "timestamp-micros": SchemaType.INT64,
    "timestamp-nanos": SchemaType.INT64,
    "local-timestamp-millis": SchemaType.INT64,
    "local-timestamp-micros": SchemaType.INT64,
    "local-timestamp-nanos": SchemaType.INT64,
    "uuid": SchemaType.STRING,
}
_PLAIN: Final = {
    each.value: each
    for each in (
        SchemaType.BOOLEAN,
        SchemaType.INT8,
        SchemaType.INT16,
        SchemaType.INT32,
        SchemaType.INT64,
        SchemaType.FLOAT32,
        SchemaType.FLOAT64,
        SchemaType.STRING,
        SchemaType.BYTES,
    )
}
TYPES: Final = (*_PLAIN, *_NAMED, *_LOGICAL, JSON)
"""The names of the types without arguments."""

_ALIASES: Final = {
    "bool": "boolean",
    "int": "int32 or int64",
    "integer": "int32 or int64",
    "number": "float64 or int64",
    "long": "int64",
    "bigint": "int64",
    "float": "float32 or float64",
    "double": "float64",
    "text": "string",
    "varchar": "string",
    "binary": "bytes",
    "time": "time-millis",
    "timestamp": "timestamp-millis",
    "datetime": "timestamp-millis",
    "decimal": "decimal(10, 2)",
    "array": "items",
    "list": "items",
    "map": "values",
    "struct": "fields",
    "record": "fields",
    "object": "fields",
}
"""The types that names of other languages probably mean."""

_FORM: Final = (
    "A field is {name: a, type: string}, or has fields: [{name: b, type: string}], items: {type: string} or "
    "values: {type: string} instead of type; optional: true and doc may follow. A type with a comma needs quotes: "
    "'decimal(10, 2)'"
)

_decimal: Final = re.compile(r"decimal\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)").fullmatch


class FieldType(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A type of a field list. `name` is that of a field; None for the type of items and values."""

    name: str | None = None
    type: str | None = None
    fields: tuple[FieldType, ...] | None = None
    items: FieldType | None = None
    values: FieldType | None = None
    optional: bool = False
    doc: str | None = None


def read_document(text: str) -> object:
    """The content of a schema's text in JSON or YAML. Raises InvalidSchema."""
    with suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(text)  # YAML takes seconds for a large JSON text
    try:
        document, duplicates = yaml_loader.read(text)
    except InvalidSpec as error:
        raise InvalidSchema(f"the text is neither JSON nor YAML: {error}") from None
    if duplicates:
        raise InvalidSchema(f"the text is invalid: {'; '.join(duplicates)}")
    return document


def is_field_list(document: object) -> bool:
    """Whether the content of a schema's text is a field list."""
    return isinstance(document, list) or (isinstance(document, dict) and document.keys() == {"fields"})


def parse_fields(text: str) -> tuple[FieldType, ...]:
    """The fields of a field list in YAML or JSON. Raises InvalidSchema."""
    document = read_document(text)
    if not is_field_list(document):
        raise InvalidSchema("the field list is not a list of fields")
    try:
        found = msgspec.convert(document["fields"] if isinstance(document, dict) else document, tuple[FieldType, ...])
        field_list_text(found)
        return found
    except msgspec.ValidationError as error:
        raise InvalidSchema(f"the field list is invalid: {error}. {_FORM}") from None
    except RecursionError:
        raise InvalidSchema("the field list is nested too deeply") from None
    except UnicodeEncodeError:  # YAML has escapes for any code point
        raise InvalidSchema("the field list has a surrogate that is not part of a pair") from None


def field_list_text(fields: Sequence[FieldType]) -> str:
    """The field list as canonical JSON text."""
    return msgspec.json.encode(fields).decode()


def field_list_lines(fields: Sequence[FieldType]) -> Iterator[str]:
    """The field list as YAML, one line for each top-level field: for `spec.format.schema.text`."""
    for each in fields:
        yield f"- {msgspec.json.encode(each).decode()}"  # JSON is YAML


def fields_schema(fields: Sequence[FieldType]) -> Schema:
    """The schema of values under a field list. Raises InvalidSchema with the path of an invalid field."""
    return _FieldListTranslation().struct(fields, "", optional=False)


def registered_fields_schema(registered: RegisteredSchema) -> Schema:
    """The same for the copy of a field list in the ledger."""
    return fields_schema(parse_fields(registered.text))


class _FieldListTranslation:
    def __init__(self) -> None:
        self._limits = Limits()

    def struct(self, fields: Sequence[FieldType], path: str, *, optional: bool) -> Schema:
        names = [self._name(field, number, path) for number, field in enumerate(fields, start=1)]
        for name, count in Counter(names).items():
            if count > 1:
                raise InvalidSchema(f"the field {_inner(path, name)} is listed {count} times")
        found = (self.schema(field, _inner(path, name)) for field, name in zip(fields, names, strict=True))
        return Schema(SchemaType.STRUCT, optional=optional, fields=tuple(map(Field, names, found)))

    def schema(self, field: FieldType, path: str) -> Schema:
        with self._limits.counted():
            schema = self._content(field, path)
        return schema if field.doc is None else msgspec.structs.replace(schema, doc=field.doc)

    def _content(self, field: FieldType, path: str) -> Schema:
        kinds = {"struct": field.fields, "array": field.items, "map": field.values}
        given = [kind for kind, inner in kinds.items() if inner is not None]
        if not given:
            return _scalar(field, path)
        if len(given) > 1 or field.type not in (None, given[0]):
            raise InvalidSchema(f"the field {path} has several types: set one of type, fields, items and values")
        if field.fields is not None:
            return self.struct(field.fields, path, optional=field.optional)
        inner = field.items or field.values
        assert inner is not None
        if inner.name is not None:
            raise InvalidSchema(f"the field {path} has a name for its items or values: remove {inner.name!r}")
        if field.items is not None:
            return Schema(SchemaType.ARRAY, optional=field.optional, values=self.schema(inner, f"{path}[]"))
        keys, values = Schema(SchemaType.STRING), self.schema(inner, f"{path}[]")
        return Schema(SchemaType.MAP, optional=field.optional, keys=keys, values=values)

    def _name(self, field: FieldType, number: int, path: str) -> str:
        if not field.name:
            raise InvalidSchema(f"a field of {path or 'the value'} has no name: number {number} of its fields")
        return field.name


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _scalar(field: FieldType, path: str) -> Schema:
    kind, optional = field.type or "", field.optional
    if kind in _PLAIN:
        return Schema(_PLAIN[kind], optional=optional)
    if kind in _NAMED:
        return Schema(_NAMED[kind][0], _NAMED[kind][1], optional, version=logical_types.VERSION)
    if kind in _LOGICAL:
        return Schema(_LOGICAL[kind], optional=optional, logical=kind)
    if kind == JSON:
        return Schema(SchemaType.STRING, JSON_NAME, optional)
    if (found := _decimal(kind)) is not None:
        return _decimal_schema(int(found[1]), int(found[2]), path, optional=optional)
    wrong = f"the type {kind!r}, which is unknown" if kind else "no type"
    raise InvalidSchema(
        f"the field {path} has {wrong}: use {', '.join(TYPES)}, decimal(precision, scale), or fields, items or "
        f"values{_did_you_mean(kind)}"
    )


def _did_you_mean(kind: str) -> str:
    near = _ALIASES.get(kind.lower()) or next(iter(difflib.get_close_matches(kind.lower(), TYPES, n=1, cutoff=0.7)), "")
    return f"; did you mean {near}?" if near else ""


def _decimal_schema(precision: int, scale: int, path: str, *, optional: bool) -> Schema:
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise InvalidSchema(
            f"the field {path} has the type decimal({precision}, {scale}): the precision is from 1 to {MAX_PRECISION}, "
            "the scale at most the precision"
        )
    parameters: dict[str, Any] = {logical_types.SCALE: str(scale), "connect.decimal.precision": str(precision)}
    return Schema(
        SchemaType.BYTES,
        logical_types.DECIMAL,
        optional,
        logical_types.VERSION,
        parameters=tuple(sorted(parameters.items())),
    )
