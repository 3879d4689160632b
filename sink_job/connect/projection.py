"""Projection of values to another schema, as org.apache.kafka.connect.data.SchemaProjector does.

- Integers and floats widen; types, names and parameters are else equal.
- A field that only the target has takes its default, else null if it is optional. A field that only the source has is
  dropped.
- A null under an optional source takes the default of a target that is not optional.
- A union can be projected only to one with all of its members. SchemaProjector drops the others, and a value of one of
  them has nothing left.

Whether a projection is possible depends on the two schemas only, not on the value: the schemas of elements are compared
also for an empty array or map. As in the storage connectors (io.confluent.connect.storage.schema.SchemaProjector), the
source's enum may lack symbols of the target's, and docs of fields and `connect.record.*` are not compared. Unlike
there, the doc of a record or an enum and the parameter of a field's default are not compared either: no value depends
on them, and each edit of a comment would close objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from msgspec import structs

from sink_job.connect.errors import InvalidSchema, ProjectionError
from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.schema_cache import cached_by_size, compiled_size
from sink_job.connect.scopes import Later, child

Project = Callable[[Any], object]

_WIDENING: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
)
_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)
_ENUMS: Final = {"io.confluent.connect.avro.Enum", "io.confluent.connect.protobuf.Enum"}
_UNIONS: Final = (
    "io.confluent.connect.avro.Union",
    "io.confluent.connect.json.OneOf",
    "io.confluent.connect.protobuf.Union.",
)
"""The beginnings of the names of structs of which a value has one field: unions of Avro, `oneOf` of JSON Schema, and
`oneof` of Protobuf, whose name follows."""
_DOCUMENTATION: Final = (
    "connect.record.doc",
    "connect.record.aliases",
    "connect.record.namespace",
    "io.confluent.connect.avro.record.doc",
    "io.confluent.connect.avro.field.doc.",
    "io.confluent.connect.avro.enum.doc.",
    "io.confluent.connect.avro.field.default",
)
"""The beginnings of parameters that only document. The last one marks a default, which is compared as such."""


def can_project(source: Schema, target: Schema) -> str | None:
    """The reason why no value under `source` can be projected to `target`; None if all can."""
    try:
        projector(source, target)
    except (ProjectionError, InvalidSchema) as error:
        return str(error)
    return None


def projector(source: Schema, target: Schema) -> Project:
    """A function that projects a value under `source` to one under `target`.

    The value must conform to `source`. Raises ProjectionError, with the field, if projection is impossible.
    The function raises RecursionError.
    """
    return _projector((source, target))


def _compiled(pair: tuple[Schema, Schema]) -> Project:
    try:
        return _ValueProjection().project(*pair, "", {}, {})
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None


def _size(pair: tuple[Schema, Schema], _: Project) -> int:
    return sum(map(compiled_size, pair))


_projector: Final = cached_by_size(_compiled, _size)


_Structs = Mapping[str, Schema]
"""The enclosing structs by name."""


class _ValueProjection:
    def __init__(self) -> None:
        self.started: dict[tuple[Schema, Schema], Later[object]] = {}
        """The functions of pairs of structs, so that a reference to one of an enclosing pair ends."""

    def project(self, source: Schema, target: Schema, place: str, in_source: _Structs, in_target: _Structs) -> Project:
        source, target = _resolved(source, in_source), _resolved(target, in_target)
        _check(source, target, place)
        of_value = self._of_value(source, target, place, in_source, in_target)
        if not source.optional:
            return of_value
        null = functools.cache(lambda: _null(target))
        return lambda value: null() if value is None else of_value(value)

    def _of_value(
        self, source: Schema, target: Schema, place: str, in_source: _Structs, in_target: _Structs
    ) -> Project:
        match target.type:
            case SchemaType.STRUCT:
                return self._struct(source, target, place, in_source, in_target)
            case SchemaType.ARRAY:
                item = self.project(child(source.values), child(target.values), f"{place}[]", in_source, in_target)
                return lambda value: [item(each) for each in value]
            case SchemaType.MAP:
                return self._map(source, target, place, in_source, in_target)
        return _scalar(source, target)

    def _struct(self, source: Schema, target: Schema, place: str, in_source: _Structs, in_target: _Structs) -> Project:
        pair = _required(source), _required(target)
        if pair in self.started:
            return self.started[pair]
        function = self.started[pair] = Later[object]()
        in_source, in_target = _entered(in_source, source), _entered(in_target, target)
        _check_members(source, target, place)
        sources = {field.name: field.schema for field in source.fields}
        fields = [
            (field.name, self._field(sources.get(field.name), field, _inside(place, field), in_source, in_target))
            for field in target.fields
        ]
        return function.set_to(lambda value: {name: of_field(value.get(name)) for name, of_field in fields})

    def _field(
        self, source: Schema | None, field: Field, place: str, in_source: _Structs, in_target: _Structs
    ) -> Project:
        if source is not None:
            return self.project(source, field.schema, place, in_source, in_target)
        if field.schema.default is None and not field.schema.optional:
            raise _error(place, "it is required, has no default, and the record's schema does not have it")
        default = functools.cache(lambda: default_value(field.schema))
        return lambda _: default()

    def _map(self, source: Schema, target: Schema, place: str, in_source: _Structs, in_target: _Structs) -> Project:
        key = self.project(child(source.keys), child(target.keys), f"{place}[key]", in_source, in_target)
        item = self.project(child(source.values), child(target.values), f"{place}[]", in_source, in_target)
        if child(target.keys).type is SchemaType.STRING:
            return lambda value: {key(each): item(of) for each, of in value.items()}
        return lambda value: [(key(each), item(of)) for each, of in value]


def _resolved(schema: Schema, scope: _Structs) -> Schema:
    """The struct that a REFERENCE means, as optional as the reference; any other schema itself."""
    if schema.type is not SchemaType.REFERENCE:
        return schema
    found = scope.get(schema.name or "")
    if found is None:
        raise InvalidSchema(f"the schema refers to {schema.name}, which does not enclose the reference")
    return structs.replace(found, optional=schema.optional)


def _entered(scope: _Structs, schema: Schema) -> _Structs:
    return {**scope, schema.name: schema} if schema.name else scope


def _required(schema: Schema) -> Schema:
    return structs.replace(schema, optional=False, default=None)


def _inside(place: str, field: Field) -> str:
    return f"{place}.{field.name}" if place else field.name


def _check(source: Schema, target: Schema, place: str) -> None:
    """The checks in the order of SchemaProjector. Raises ProjectionError."""
    if source.type is not target.type and not _widens(source.type, target.type):
        raise _error(place, f"its type {source.type} cannot be projected to {target.type}")
    if source.name != target.name:
        raise _error(place, f"its schema's name {source.name} differs from {target.name}")
    if source.logical != target.logical:
        raise _error(place, f"its logical type {source.logical} differs from {target.logical}")
    if not _parameters_match(source, target):
        raise _error(place, "the parameters of its schema differ")
    if source.optional and not target.optional and target.default is None:
        raise _error(place, "it is optional, but the target is required and has no default")


def _check_members(source: Schema, target: Schema, place: str) -> None:
    if not (source.name or "").startswith(_UNIONS):
        return
    missing = {field.name for field in source.fields} - {field.name for field in target.fields}
    if missing:
        raise _error(place, f"the target does not have {', '.join(sorted(missing))} of its types")


def _widens(source: SchemaType, target: SchemaType) -> bool:
    return source in _WIDENING and target in _WIDENING[_WIDENING.index(source) :]


def _parameters_match(source: Schema, target: Schema) -> bool:
    theirs, ours = _compared(source), _compared(target)
    if _ENUMS & theirs.keys() and _ENUMS & ours.keys():
        return theirs.items() <= ours.items()
    return theirs == ours


def _compared(schema: Schema) -> dict[str, str]:
    return {key: value for key, value in schema.parameters if not key.startswith(_DOCUMENTATION)}


def _null(target: Schema) -> object:
    """The value for a null under an optional source."""
    return None if target.optional else default_value(target)


def _scalar(source: Schema, target: Schema) -> Project:
    if target.type in _FLOATS and source.type is not target.type:
        return _to_float32 if target.type is SchemaType.FLOAT32 else float
    return lambda value: value


def _to_float32(value: int) -> float:
    """As Java's Long.floatValue: rounded once."""
    return float(np.float32(np.int64(value)))


def _error(place: str, reason: str) -> ProjectionError:
    return ProjectionError(f"the field {place} cannot be projected: {reason}" if place else _whole(reason))


def _whole(reason: str) -> str:
    return f"the value cannot be projected: {reason}"
