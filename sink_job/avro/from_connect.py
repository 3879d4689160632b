"""Connect's schemas as Avro's, as io.confluent.connect.avro.AvroData.fromConnectSchema makes them with
`enhanced.avro.schema.support=true`, the default of the Kafka Connect S3 sink (Confluent Platform 7).

Differences from AvroData, on purpose:

- Names that Avro does not allow are changed (`sink_job.avro.names`), also without `scrub.invalid.names`.
- Of several types of one name with different content, each further one gets a number (`sink_job.avro.names`).
  AvroData rejects the schema.
- A struct that is optional and has a default is the first member of its union. AvroData drops its default.
- `Schema.logical` is the logical type of a long, a string or a fixed.
- A decimal has no logical type where Avro does not allow it: its scale is negative or above its precision, or a fixed
  is too small for its precision.
- A type has no namespace if it refers to an enclosing type that has none (`sink_job.avro.names`).
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from typing import Any, Final

import msgspec

from sink_job.avro.map_entries import NAMESPACE
from sink_job.avro.names import MAP_ENTRY, Node, avro_name, is_avro_name, with_names
from sink_job.avro.schema import AvroType, parse_avro
from sink_job.avro.to_connect import ENUM, UNION
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue, rejecting
from sink_job.connect.json_decoder import default_value
from sink_job.connect.output_settings import DatumSettings, fixed_size, is_native_decimal
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.scopes import child

_IS_FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
"""The mark of a default that came from that of a field in Avro."""
_PRIMITIVES: Final = {
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_LOGICAL: Final = {
    (logical_types.DATE, SchemaType.INT32): "date",
    (logical_types.TIME, SchemaType.INT32): "time-millis",
    (logical_types.TIMESTAMP, SchemaType.INT64): "timestamp-millis",
}
_SMALL: Final = (SchemaType.INT8, SchemaType.INT16)


def avro_schema(schema: Schema, settings: DatumSettings) -> str:
    """The Avro schema of values under `schema`, as JSON text. Equal arguments give equal texts.

    Raises InvalidSchema if two fields of a struct have the same name in Avro.
    """
    with rejecting("the schema of the record"):
        node = with_names(_Tree(settings).node(schema))
        return msgspec.json.encode(node).decode()


@functools.lru_cache(maxsize=100)
def avro_type(schema: Schema, settings: DatumSettings) -> AvroType:
    """The Avro type of values under `schema`. Raises InvalidSchema."""
    return parse_avro(avro_schema(schema, settings))


def is_union(schema: Schema) -> bool:
    """Whether values under `schema` are those of an Avro union. A struct with a single member is a record, because a
    union of one type is that type."""
    return schema.type is SchemaType.STRUCT and schema.name == UNION and len(schema.fields) > 1


def is_text_map(schema: Schema) -> bool:
    """Whether values under the schema of a map are an Avro map; otherwise they are an array of entries."""
    keys = child(schema.keys)
    return keys.type is SchemaType.STRING and not keys.optional


def enum_symbols(schema: Schema) -> tuple[str, ...]:
    """The symbols of an Avro enum; none for a schema that is no enum, or has a symbol that Avro does not allow."""
    if schema.type is not SchemaType.STRING or ENUM not in schema.parameter:
        return ()
    prefix = f"{ENUM}."
    named = tuple(key.removeprefix(prefix) for key, _ in schema.parameters if key.startswith(prefix))
    found = schema.symbols if set(schema.symbols) == set(named) else named
    return found if all(map(is_avro_name, found)) else ()


def logical_name(schema: Schema) -> str | None:
    """The Avro logical type of an integer, a text or a fixed; None if it has none."""
    return _LOGICAL.get((schema.name or "", schema.type), schema.logical)


class _Tree:
    """The Avro schema as a tree without references by name, except those to enclosing types: `{"ref": name}`. A named
    type has its full name in `name`, None if it has none."""

    def __init__(self, settings: DatumSettings) -> None:
        self._settings = settings

    def node(self, schema: Schema) -> object:
        return _optional(schema, self.required(schema)) if schema.optional else self.required(schema)

    def required(self, schema: Schema) -> Any:
        """The type of values that are not null. A union is a list, without null."""
        if schema.type is SchemaType.REFERENCE:
            return {"ref": schema.name}
        if is_union(schema):
            return [self.required(field.schema) for field in schema.fields]
        node = self._content(schema)
        return self._annotated(node, schema)

    def _content(self, schema: Schema) -> Node:
        match schema.type:
            case SchemaType.STRUCT:
                return self._record(schema)
            case SchemaType.ARRAY:
                return {"type": "array", "items": self.node(child(schema.values))}
            case SchemaType.MAP if is_text_map(schema):
                return {"type": "map", "values": self.node(child(schema.values))}
            case SchemaType.MAP:
                return {"type": "array", "items": self._entry(schema)}
        return self._scalar(schema)

    def _record(self, schema: Schema) -> Node:
        doc = schema.parameter.get(f"{NAMESPACE}.record.doc")
        docs = schema.parameter
        fields = [self._field(field, docs.get(f"{NAMESPACE}.field.doc.{field.name}")) for field in schema.fields]
        names: dict[str, str] = {}
        for given, field in zip(schema.fields, fields, strict=True):
            if names.setdefault(field["name"], given.name) != given.name:
                raise InvalidSchema(
                    f"the fields {names[field['name']]} and {given.name} have the same name in Avro, {field['name']}"
                )
        return {"type": "record", "name": schema.name, **_doc(doc), "fields": fields, "connect": schema.name}

    def _field(self, field: Field, doc: str | None) -> Node:
        node = {"name": avro_name(field.name), "type": self.node(field.schema), **_doc(doc)}
        return node | self._default(field.schema)

    def _default(self, schema: Schema, *, of_field: bool = True) -> Node:
        try:
            return {"default": avro_default_json(schema, of_field=of_field)}
        except NoDefault:
            return {}

    def _entry(self, schema: Schema) -> Node:
        fields = [
            {"name": "key", "type": self.node(child(schema.keys)), **self._default(child(schema.keys))},
            {"name": "value", "type": self.node(child(schema.values)), **self._default(child(schema.values))},
        ]
        if schema.name is None:
            return {"type": "record", "name": MAP_ENTRY, "fields": fields}
        return {"type": "record", "name": schema.name, "fields": fields, "connect.internal.type": "MapEntry"}

    def _scalar(self, schema: Schema) -> Node:
        if symbols := enum_symbols(schema):
            return _enum(schema, symbols)
        node: Node = {"type": _PRIMITIVES[schema.type]}
        if (size := fixed_size(schema)) is not None:
            name = None if logical_types.is_decimal(schema) else schema.name
            node = {"type": "fixed", "name": name, "size": size}
        if logical_types.is_decimal(schema):
            return node | self._decimal(schema)
        name = logical_name(schema)
        return node if name is None else node | {"logicalType": name}

    def _decimal(self, schema: Schema) -> Node:
        precision = self._settings.precision(schema)
        if not is_native_decimal(schema, precision):
            return {}
        return {"logicalType": "decimal", "precision": precision, "scale": logical_types.scale_of(schema)}

    def _annotated(self, node: Node, schema: Schema) -> Node:
        node |= {key: value for key, value in schema.parameters if key.startswith("avro")}
        if not self._settings.connect_names:
            return node
        annotations = {
            "connect.doc": schema.doc,
            "connect.version": schema.version,
            "connect.parameters": schema.parameter or None,
            "connect.name": schema.name,
            "connect.type": schema.type.value if schema.type in _SMALL else None,
        }
        node |= {key: value for key, value in annotations.items() if value is not None}
        return node | ({"connect.default": default["default"]} if (default := self._given(schema)) else {})

    def _given(self, schema: Schema) -> Node:
        if schema.default is None or _IS_FIELD_DEFAULT in schema.parameter:
            return {}
        return self._default(schema, of_field=False)


def _optional(schema: Schema, required: Any) -> list[Any]:
    """The union with null. Null comes first, except if the schema has a default."""
    if isinstance(required, list):
        return [{"type": "null"}, *required]
    return [required, {"type": "null"}] if schema.default is not None else [{"type": "null"}, required]


def _enum(schema: Schema, symbols: tuple[str, ...]) -> Node:
    full = schema.parameter[ENUM]
    short = full.rpartition(".")[2]
    doc = schema.parameter.get(f"{ENUM.removesuffix('.Enum')}.enum.doc.{short}")
    default = schema.parameter.get(f"{NAMESPACE}.enum.default.{short}")
    node = {"type": "enum", "name": full or None, **_doc(doc), "symbols": list(symbols)}
    return node | ({"default": default} if default in symbols else {})


def _doc(doc: str | None) -> Node:
    return {} if doc is None else {"doc": doc}


_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)


class NoDefault(Exception):
    """A field has no default, or one that Avro cannot express."""


def avro_default_json(schema: Schema, *, of_field: bool = True) -> object:
    """The default of a schema, as JSON: null for an optional one without its own. Raises NoDefault.

    `of_field`: as the default of a field, where Avro allows of each union only a value of its first member."""
    if schema.default is None:
        if schema.optional:
            return None
        raise NoDefault
    try:
        return _Defaults(of_field).required(schema, default_value(schema))
    except (InvalidValue, InvalidSchema):
        raise NoDefault from None


class _Defaults:
    def __init__(self, of_field: bool) -> None:
        self._of_field = of_field

    def value(self, schema: Schema, value: object) -> object:
        """The default of a type within another one."""
        is_first = (schema.default is None) == (value is None)
        if schema.optional and self._of_field and not is_first:
            raise NoDefault
        return None if value is None else self.required(schema, value)

    def required(self, schema: Schema, value: Any) -> object:
        match schema.type:
            case SchemaType.STRUCT if schema.name == UNION and len(schema.fields) > 1:
                return self._member(schema, value)
            case SchemaType.STRUCT:
                return {avro_name(each.name): self.value(each.schema, value.get(each.name)) for each in schema.fields}
            case SchemaType.ARRAY:
                return [self.value(child(schema.values), item) for item in value]
            case SchemaType.MAP:
                return self._map(child(schema.keys), child(schema.values), value)
            case SchemaType.REFERENCE:
                raise NoDefault
        return _scalar(schema, value)

    def _member(self, schema: Schema, value: dict[str, object]) -> object:
        first = schema.fields[0] if schema.fields else None
        given = [name for name, member in value.items() if member is not None]
        if first is None or schema.optional or given != [first.name]:
            raise NoDefault
        return self.required(first.schema, value[first.name])

    def _map(self, keys: Schema, values: Schema, value: Any) -> object:
        if keys.type is SchemaType.STRING and not keys.optional:
            return {key: self.value(values, item) for key, item in value.items()}
        entries = value.items() if isinstance(value, dict) else value
        return [{"key": self.value(keys, key), "value": self.value(values, item)} for key, item in entries]


def _scalar(schema: Schema, value: Any) -> object:
    if isinstance(value, Decimal):
        return logical_types.decimal_to_bytes(value, logical_types.scale_of(schema)).decode("latin-1")
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if schema.type in _FLOATS and not math.isfinite(value):
        raise NoDefault
    return value
