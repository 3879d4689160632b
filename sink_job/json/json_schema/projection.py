"""Projection of JSON that is written as its producer wrote it, for values with a JSON Schema.

Such values are not validated. So the projection is defined for any JSON value: a part that does not have the form of
its schema is unchanged. Otherwise the rules are those of `sink_job.connect.projection`:

- A property that the record's schema has and the target lacks is dropped, and so is one that neither has.
- A property that only the target has takes its default, else null.
- A property that both have and the value lacks takes the default of the record's schema, else null if it is optional
  there. Otherwise it stays absent.
- Numbers widen without a change of their text.

Only the objects and arrays that the schemas describe are parsed. The texts of all other parts stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import structs

from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.schema_cache import cached_by_size, compiled_size
from sink_job.connect.scopes import Later, child
from sink_job.json.json_schema.to_connect import ONE_OF

ProjectJson = Callable[[msgspec.Raw], object]
"""From the JSON text of a value to its projection, a value that msgspec encodes."""
_ProjectProperty = Callable[[msgspec.Raw | None], object]
"""The same for a property of an object; None is an absent one."""
_Structs = Mapping[str, Schema]
"""The enclosing structs by name."""

_NULL: Final = msgspec.Raw(b"null")
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_NUMBER: Final = [bytes([digit]) for digit in b"-0123456789"]
_FRACTION: Final = re.compile(rb"[.eE]")


def text_projector(source: Schema, target: Schema) -> Callable[[bytes], bytes]:
    """A function that projects JSON texts of values under `source` to `target`, each to one line. It raises
    RecursionError."""
    project = json_projector(source, target)

    def projected(text: bytes) -> bytes:
        if b"\n" in text or b"\r" in text:
            text = msgspec.json.format(text, indent=-1)
        return _encode(project(msgspec.Raw(text.strip())))

    return projected


def json_projector(source: Schema, target: Schema) -> ProjectJson:
    """A function that projects values under `source` to `target`, to which `source` can be projected (`can_project`).
    The function raises RecursionError."""
    return _projector((source, target))


def _compiled(pair: tuple[Schema, Schema]) -> ProjectJson:
    return _JsonTextProjection().project(*pair, {}, {})


def _size(pair: tuple[Schema, Schema], _: ProjectJson) -> int:
    return sum(map(compiled_size, pair))


_projector: Final = cached_by_size(_compiled, _size)


class _JsonTextProjection:
    def __init__(self) -> None:
        self.started: dict[tuple[Schema, Schema], Later[object]] = {}

    def project(self, source: Schema, target: Schema, in_source: _Structs, in_target: _Structs) -> ProjectJson:
        source, target = _resolved(source, in_source), _resolved(target, in_target)
        of_value = self._of_value(source, target, in_source, in_target)
        null = _default(target) if source.optional and not target.optional else _NULL
        return lambda value: null if value == _NULL else of_value(value)

    def _of_value(self, source: Schema, target: Schema, in_source: _Structs, in_target: _Structs) -> ProjectJson:
        match target.type:
            case SchemaType.STRUCT if target.name == ONE_OF:
                return self._union(source, target, in_source, in_target)
            case SchemaType.STRUCT:
                return self._struct(source, target, in_source, in_target)
            case SchemaType.ARRAY:
                item = self.project(child(source.values), child(target.values), in_source, in_target)
                return _of_array(item)
            case SchemaType.MAP:
                item = self.project(child(source.values), child(target.values), in_source, in_target)
                is_object = child(target.keys).type is SchemaType.STRING
                return _of_map(item) if is_object else _of_array(_of_entry(item))
        return _same

    def _struct(self, source: Schema, target: Schema, in_source: _Structs, in_target: _Structs) -> ProjectJson:
        pair = _required(source), _required(target)
        if pair in self.started:
            return self.started[pair]
        function = self.started[pair] = Later[object]()
        in_source, in_target = _entered(in_source, source), _entered(in_target, target)
        sources = {field.name: field.schema for field in source.fields}
        fields = [
            (field.name, self._field(sources.get(field.name), field, in_source, in_target)) for field in target.fields
        ]
        return function.set_to(lambda value: _projected(_object(value), fields) if _begins(value, "{") else value)

    def _field(self, source: Schema | None, field: Field, in_source: _Structs, in_target: _Structs) -> _ProjectProperty:
        if source is None:
            added = _default(field.schema)
            return lambda _: added
        project = self.project(source, field.schema, in_source, in_target)
        if not source.optional and source.default is None:
            return lambda value: None if value is None else project(value)
        missing = _default(source)
        return lambda value: project(missing if value is None else value)

    def _union(self, source: Schema, target: Schema, in_source: _Structs, in_target: _Structs) -> ProjectJson:
        targets = {field.name: field.schema for field in target.fields}
        members = [
            (
                _resolved(field.schema, in_source),
                self.project(field.schema, targets[field.name], in_source, in_target),
            )
            for field in source.fields
        ]
        return lambda value: _member(members, value)(value)


def _projected(value: dict[str, msgspec.Raw], fields: list[tuple[str, _ProjectProperty]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, of_field in fields:
        projected = of_field(value.get(name))
        if projected is not None:
            found[name] = projected
    return found


def _of_array(item: ProjectJson) -> ProjectJson:
    return lambda value: [item(each) for each in _array(value)] if _begins(value, "[") else value


def _of_map(item: ProjectJson) -> ProjectJson:
    def project(value: msgspec.Raw) -> object:
        return {key: item(each) for key, each in _object(value).items()} if _begins(value, "{") else value

    return project


def _of_entry(item: ProjectJson) -> ProjectJson:
    """For an entry of a map without text keys: an object with `key` and `value`."""

    def project(entry: msgspec.Raw) -> object:
        found = _object(entry) if _begins(entry, "{") else {}
        return {**found, "value": item(found["value"])} if "value" in found else entry

    return project


def _member(members: list[tuple[Schema, ProjectJson]], value: msgspec.Raw) -> ProjectJson:
    """The projection of the member of a union that has the JSON type of the value. Of several objects it is the one
    with the most of the value's properties, and of several equal ones the first."""
    fits = [_fit(schema, value) for schema, _ in members]
    best = max(fits, default=-1)
    return _same if best < 0 else members[fits.index(best)][1]


def _fit(schema: Schema, value: msgspec.Raw) -> int:
    """-1 for a value of another JSON type, else the number of properties in common."""
    if schema.name == ONE_OF:
        return max((_fit(field.schema, value) for field in schema.fields), default=-1)
    if not _has_type(schema, bytes(value)):
        return -1
    return len(_object(value).keys() & {field.name for field in schema.fields}) if schema.fields else 0


def _has_type(schema: Schema, text: bytes) -> bool:
    match schema.type:
        case SchemaType.STRUCT | SchemaType.REFERENCE:
            return text.startswith(b"{")
        case SchemaType.MAP:
            return text.startswith(b"{" if child(schema.keys).type is SchemaType.STRING else b"[")
        case SchemaType.ARRAY:
            return text.startswith(b"[")
        case SchemaType.STRING:
            return text.startswith(b'"')
        case SchemaType.BOOLEAN:
            return text in (b"true", b"false")
        case SchemaType.FLOAT32 | SchemaType.FLOAT64 | SchemaType.BYTES:
            return text[:1] in _NUMBER or (schema.type is SchemaType.BYTES and text.startswith(b'"'))
    return text[:1] in _NUMBER and not _FRACTION.search(text)


def _begins(value: msgspec.Raw, character: str) -> bool:
    return memoryview(value)[0] == ord(character)


def _default(schema: Schema) -> msgspec.Raw:
    return _NULL if schema.default is None else msgspec.Raw(schema.default.json)


def _resolved(schema: Schema, scope: _Structs) -> Schema:
    if schema.type is not SchemaType.REFERENCE:
        return schema
    return structs.replace(scope[schema.name or ""], optional=schema.optional)


def _entered(scope: _Structs, schema: Schema) -> _Structs:
    return {**scope, schema.name: schema} if schema.name else scope


def _required(schema: Schema) -> Schema:
    return structs.replace(schema, optional=False, default=None)


def _same(value: msgspec.Raw) -> object:
    return value
