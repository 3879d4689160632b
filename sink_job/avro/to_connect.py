"""Avro schemas as Connect's, as io.confluent.connect.avro.AvroData.toConnectSchema makes them with its default settings
(Confluent Platform 7).

Differences from AvroData, on purpose:

- The version of the whole schema is the version in its subject, also where the schema has `connect.version`.
- A decimal on a fixed has the name of Connect's Decimal. AvroData rejects it.
- A default of a union is valid if it conforms to the first member. AvroData drops those of records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from sink_job.avro.defaults import avro_default
from sink_job.avro.map_entries import NAMESPACE, entry_types, is_map_entry
from sink_job.avro.schema import AvroField, AvroType, parse_avro
from sink_job.avro.value_encoders import is_uuid
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue, rejecting
from sink_job.connect.json_encoder import with_default
from sink_job.connect.limits import Limits
from sink_job.connect.schema import Extension, Field, RegisteredSchema, Schema, SchemaType

UNION: Final = f"{NAMESPACE}.Union"
ENUM: Final = logical_types.AVRO_ENUM
_UNNAMED: Final = f"{NAMESPACE}.ConnectDefault"
_DEFAULT_PRECISION: Final = 64
_UUID_BYTES: Final = 16
_PRIMITIVES: Final = {
    "boolean": SchemaType.BOOLEAN,
    "int": SchemaType.INT32,
    "long": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "bytes": SchemaType.BYTES,
    "fixed": SchemaType.BYTES,
    "string": SchemaType.STRING,
    "enum": SchemaType.STRING,
}
_SMALL: Final = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}
_LOGICAL: Final = {
    ("int", "date"): logical_types.DATE,
    ("int", "time-millis"): logical_types.TIME,
    ("long", "timestamp-millis"): logical_types.TIMESTAMP,
}


def parse_registered(schema: RegisteredSchema) -> AvroType:
    """The Avro type of a schema of a registry. Raises InvalidSchema."""
    return parse_avro(schema.text, [reference.text for reference in schema.references])


EXTENDED: Final = {
    "long": {
        *("time-micros", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    },
    "string": {"uuid"},
    "fixed": {"uuid"},
}
"""The logical types that Connect has no equivalent of and `Schema.logical` keeps, by the Avro type."""


def connect_schema(avro: AvroType, version: int | None = None, extension: Extension = Extension.NONE) -> Schema:
    """The schema of values of type `avro`. `version` is its version in its subject, None if no subject is known.

    Raises InvalidSchema if Connect's data model has no equivalent.
    """
    if avro.kind == "null":
        raise _unsupported("a null that is not in a union")
    with rejecting("the Avro schema"):
        return _AvroTranslation(extension).schema(avro, version=version, top=True)


class _Builder:
    """A schema in the making."""

    def __init__(self, kind: SchemaType) -> None:
        self.type = kind
        self.name: str | None = None
        self.version: int | None = None
        self.optional = False
        self.parameters: dict[str, str] = {}
        self.fields: list[Field] = []
        self.keys: Schema | None = None
        self.values: Schema | None = None
        self.logical: str | None = None
        self.symbols: tuple[str, ...] = ()

    def build(self, doc: str | None) -> Schema:
        return Schema(
            self.type,
            self.name,
            self.optional,
            self.version,
            doc,
            tuple(sorted(self.parameters.items())),
            None,
            tuple(self.fields),
            self.keys,
            self.values,
            self.logical,
            self.symbols,
        )


class _AvroTranslation:
    def __init__(self, extension: Extension) -> None:
        self.extension = extension
        self.limits = Limits()
        self.enclosing: list[AvroType] = []
        self.referred: set[str] = set()

    def schema(
        self,
        avro: AvroType,
        *,
        optional: bool = False,
        field: AvroField | None = None,
        version: int | None = None,
        top: bool = False,
    ) -> Schema:
        """The schema of `avro`. `field` is the field whose type it is."""
        with self.limits.counted():
            return self._schema(avro, optional, field, version, top)

    def _schema(
        self, avro: AvroType, optional: bool, field: AvroField | None, version: int | None, top: bool
    ) -> Schema:
        if (inner := avro.nullable) is not None:
            return self.schema(inner, optional=True, version=version, top=top)
        if (only := avro.single) is not None:
            return self.schema(only, optional=optional, version=version, top=top)
        if avro in self.enclosing:
            self.referred.add(avro.name)
            return Schema(SchemaType.REFERENCE, self._reference(avro), optional)
        builder = self._content(avro, field)
        _add_name(builder, avro, named=avro.name in self.referred)
        _add_version(builder, avro.properties, version if top else None)
        builder.optional |= optional
        return self._with_default(builder.build(_text(avro, "connect.doc")), avro, field)

    def _reference(self, avro: AvroType) -> str:
        """The name by which a field refers to an enclosing record. Raises InvalidSchema if it means another one."""
        name = _name(avro) or avro.name
        inner = self.enclosing[self.enclosing.index(avro) + 1 :]
        if name in [_name(other) or other.name for other in inner]:
            raise _unsupported(f"a recursive record that contains another record with its name {name}")
        return name

    def _with_default(self, schema: Schema, avro: AvroType, field: AvroField | None) -> Schema:
        """The schema with the field's default, else with that of `connect.default`. An invalid one is dropped."""
        given = field.default if field is not None else msgspec.UNSET
        raw = avro.properties.get("connect.default") if given is msgspec.UNSET else given
        self.limits.default(raw)
        try:
            value = avro_default(avro, raw)
            if schema.logical == "uuid" and isinstance(value, str) and not is_uuid(value):
                return schema
            return with_default(schema, value)
        except (InvalidValue, InvalidSchema):
            return schema

    def _content(self, avro: AvroType, field: AvroField | None) -> _Builder:
        builder = self._structure(avro)
        builder.parameters |= _parameters(avro.properties)
        if field is not None and field.default is not msgspec.UNSET and "connect.default" not in avro.properties:
            builder.parameters[f"{NAMESPACE}.field.default"] = "true"
        self.limits.parameters(builder.parameters)
        return builder

    def _structure(self, avro: AvroType) -> _Builder:
        match avro.kind:
            case "record":
                return self._record(avro)
            case "union":
                return self._union(avro)
            case "array":
                return self._array(avro)
            case "map":
                return self._map(Schema(SchemaType.STRING), self.schema(avro.items))
            case "null":
                raise _unsupported("a null that is not in a union")
        builder = _scalar(avro)
        if self.extension is not Extension.NONE:
            builder.symbols = tuple(avro.symbols)
        if self.extension is Extension.LOGICAL_TYPES:
            builder.logical = _extended(avro)
        return builder

    def _record(self, avro: AvroType) -> _Builder:
        builder = _Builder(SchemaType.STRUCT)
        if avro.doc is not None:
            builder.parameters[f"{NAMESPACE}.record.doc"] = avro.doc
        self.enclosing.append(avro)
        for field in avro.fields:
            if field.doc is not None:
                builder.parameters[f"{NAMESPACE}.field.doc.{field.name}"] = field.doc
            builder.fields.append(Field(field.name, self.schema(field.type, field=field)))
        self.enclosing.pop()
        return builder

    def _union(self, avro: AvroType) -> _Builder:
        builder = _Builder(SchemaType.STRUCT)
        builder.name = UNION
        builder.optional = any(member.kind == "null" for member in avro.members)
        members = [member for member in avro.members if member.kind != "null"]
        if len({member.member_name for member in members}) < len(members):
            raise _unsupported("a union of two types with the same name in different namespaces")
        builder.fields = [Field(member.member_name, self.schema(member, optional=True)) for member in members]
        return builder

    def _array(self, avro: AvroType) -> _Builder:
        if is_map_entry(avro.items):
            key, value = map(self.schema, entry_types(avro.items))
            return self._map(key, value)
        builder = _Builder(SchemaType.ARRAY)
        builder.values = self.schema(avro.items)
        return builder

    def _map(self, keys: Schema, values: Schema) -> _Builder:
        builder = _Builder(SchemaType.MAP)
        builder.keys, builder.values = keys, values
        return builder


def _scalar(avro: AvroType) -> _Builder:
    builder = _Builder(_scalar_type(avro))
    if avro.kind in ("bytes", "fixed"):
        _add_bytes(builder, avro)
    elif avro.kind == "enum":
        _add_symbols(builder, avro)
    else:
        name = _LOGICAL.get((avro.kind, logical_type(avro)))
        builder.name, builder.version = name, logical_types.VERSION if name else None
    return builder


def logical_type(avro: AvroType) -> str:
    """The logical type in lower case; empty if there is none."""
    return (_text(avro, "logicalType") or "").lower()


def _extended(avro: AvroType) -> str | None:
    """The logical type that Connect has no equivalent of. Avro ignores one that does not fit its type."""
    name = logical_type(avro)
    is_valid = name in EXTENDED.get(avro.kind, ()) and (avro.kind != "fixed" or avro.size == _UUID_BYTES)
    return name if is_valid else None


def _scalar_type(avro: AvroType) -> SchemaType:
    annotated = avro.properties.get("connect.type")
    if avro.kind != "int" or annotated is None or logical_type(avro):
        return _PRIMITIVES[avro.kind]
    if not isinstance(annotated, str) or annotated not in _SMALL:
        raise _unsupported(f"an int with connect.type {annotated!r}")
    return _SMALL[annotated]


def _add_bytes(builder: _Builder, avro: AvroType) -> None:
    if logical_type(avro) == "decimal":
        builder.name, builder.version = logical_types.DECIMAL, logical_types.VERSION
        builder.parameters[logical_types.SCALE] = str(decimal_scale(avro))
        precision = _integer(avro, "precision")
        if precision not in (None, _DEFAULT_PRECISION):
            builder.parameters["connect.decimal.precision"] = str(precision)
    if avro.kind == "fixed":
        builder.parameters["connect.fixed.size"] = str(avro.size)


def decimal_scale(avro: AvroType) -> int:
    """The scale of a decimal, 0 if the type has none. Raises InvalidSchema if it is too large."""
    return logical_types.checked_scale(_integer(avro, "scale") or 0)


def _add_symbols(builder: _Builder, avro: AvroType) -> None:
    if avro.doc is not None:
        builder.parameters[f"{NAMESPACE}.enum.doc.{avro.short_name}"] = avro.doc
    if avro.default is not None:
        builder.parameters[f"{NAMESPACE}.enum.default.{avro.short_name}"] = avro.default
    builder.parameters[ENUM] = avro.name
    builder.parameters |= {f"{ENUM}.{symbol}": symbol for symbol in avro.symbols}


def _parameters(properties: Mapping[str, object]) -> dict[str, str]:
    given = properties.get("connect.parameters", {})
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise _unsupported("connect.parameters that are not an object of texts")
    return given | {key: _java_text(value) for key, value in properties.items() if key.startswith("avro")}


def _java_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _add_name(builder: _Builder, avro: AvroType, *, named: bool) -> None:
    """Names the schema. `named`: also where Connect drops the name, because a reference needs it."""
    name = _name(avro) or (avro.name if named else None)
    if builder.name is None:
        builder.name = name
    elif "connect.name" in avro.properties and name != builder.name:
        raise _unsupported(f"{builder.name} with connect.name {name}")


def _name(avro: AvroType) -> str | None:
    name = avro.properties.get("connect.name", avro.name or None)
    if name is not None and not isinstance(name, str):
        raise _unsupported("a connect.name that is not a text")
    return None if name is not None and name.startswith(_UNNAMED) else name


def _add_version(builder: _Builder, properties: Mapping[str, object], in_subject: int | None) -> None:
    """Sets the version. `in_subject` is the version of the whole schema."""
    own = properties.get("connect.version")
    if own is not None and not isinstance(own, int):
        raise _unsupported("a connect.version that is not an integer")
    if in_subject is not None:
        builder.version = in_subject
    elif builder.version is None:
        builder.version = own
    elif own not in (None, builder.version):
        raise _unsupported(f"{builder.name} with connect.version {own}")


def _text(avro: AvroType, key: str) -> str | None:
    value = avro.properties.get(key)
    return value if isinstance(value, str) else None


def _integer(avro: AvroType, key: str) -> int | None:
    value = avro.properties.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _unsupported(what: str) -> InvalidSchema:
    return InvalidSchema(f"the Avro schema has no equivalent in Kafka Connect: {what} is not supported")
