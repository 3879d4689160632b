"""JsonConverter's envelope: `{"schema": …, "payload": …}`.

The rules are those of org.apache.kafka.connect.json.JsonConverter.asConnectSchema with `schemas.enable=true`. A schema
names its own version, as no registry knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from sink_job.connect.errors import InvalidSchema, InvalidValue, rejecting
from sink_job.connect.json_decoder import decode_json, value_reader
from sink_job.connect.json_encoder import with_default
from sink_job.connect.limits import TEXT_TOO_DEEP, Limits
from sink_job.connect.schema import Field, Schema, SchemaType

_SCALARS: Final = {
    "boolean": SchemaType.BOOLEAN,
    "int8": SchemaType.INT8,
    "int16": SchemaType.INT16,
    "int32": SchemaType.INT32,
    "int64": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "bytes": SchemaType.BYTES,
    "string": SchemaType.STRING,
}
_NAMES: Final = {SchemaType.FLOAT32: "float", SchemaType.FLOAT64: "double"}


class Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON texts of the schema and of the payload."""

    schema: msgspec.Raw
    payload: msgspec.Raw


_DECODER: Final = msgspec.json.Decoder(Envelope)


def parse_envelope(value: bytes) -> Envelope:
    """The parts of an envelope. Raises InvalidValue if it is not an object with exactly these two fields."""
    try:
        return _DECODER.decode(value)
    except RecursionError:
        raise InvalidValue(TEXT_TOO_DEEP) from None
    except msgspec.DecodeError as error:
        raise InvalidValue(f'the value is not an object of "schema" and "payload": {error}') from None


def envelope_schema(text: bytes) -> Schema | None:
    """The schema with the JSON text `text`; None for null: the payload has no schema. Raises InvalidSchema."""
    try:
        found = decode_json(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidSchema(f"the schema of the envelope is not JSON: {error}") from None
    with rejecting("the schema of the envelope"):
        return None if found is None else _schema(found, Limits())


def payload_reader(schema: Schema) -> Callable[[bytes], object]:
    """A function that reads a payload under `schema`, as Connect's value (see sink_job.connect.json_encoder).

    The function raises InvalidValue. Raises InvalidSchema.
    """
    read = value_reader(schema)

    def payload_value(text: bytes) -> object:
        try:
            return read(decode_json(text))
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidValue(f"the payload cannot be read: {error}") from None

    return payload_value


def schema_document(schema: Schema) -> dict[str, Any]:
    """The JSON of a schema in an envelope, as `envelope_schema` reads it."""
    document: dict[str, Any] = {"type": _NAMES.get(schema.type, str(schema.type)), "optional": schema.optional}
    match schema.type:
        case SchemaType.STRUCT:
            document["fields"] = [{**schema_document(each.schema), "field": each.name} for each in schema.fields]
        case SchemaType.ARRAY if schema.values is not None:
            document["items"] = schema_document(schema.values)
        case SchemaType.MAP if schema.keys is not None and schema.values is not None:
            document |= {"keys": schema_document(schema.keys), "values": schema_document(schema.values)}
    given = {"name": schema.name, "version": schema.version, "doc": schema.doc, "parameters": schema.parameter or None}
    document |= {name: value for name, value in given.items() if value is not None}
    return document if schema.default is None else document | {"default": msgspec.Raw(schema.default.json.encode())}


def _schema(node: object, limits: Limits) -> Schema:
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise _invalid("a schema must be an object with a type")
    with limits.counted():
        structure = _structure(node, limits)
    limits.default(node.get("default"))
    schema = msgspec.structs.replace(
        structure,
        name=_text(node, "name"),
        optional=node.get("optional") is True,
        version=_version(node),
        doc=_text(node, "doc"),
        parameters=_parameters(node),
    )
    return _defaulted(schema, node.get("default"))


def _structure(node: dict[str, Any], limits: Limits) -> Schema:
    kind = node["type"]
    match kind:
        case "struct":
            return Schema(SchemaType.STRUCT, fields=_fields(node, limits))
        case "array":
            return Schema(SchemaType.ARRAY, values=_schema(node.get("items"), limits))
        case "map":
            keys, values = (_schema(node.get(each), limits) for each in ("keys", "values"))
            return Schema(SchemaType.MAP, keys=keys, values=values)
    if kind not in _SCALARS:
        raise _invalid(f"the type {kind!r} is unknown")
    return Schema(_SCALARS[kind])


def _fields(node: dict[str, Any], limits: Limits) -> tuple[Field, ...]:
    found = node.get("fields")
    if not isinstance(found, list):
        raise _invalid("the fields of a struct must be an array")
    fields = tuple(_field(each, limits) for each in found)
    if len({field.name for field in fields}) < len(fields):
        raise _invalid("a struct has two fields with one name")
    return fields


def _field(node: object, limits: Limits) -> Field:
    name = node.get("field") if isinstance(node, dict) else None
    if not isinstance(name, str):
        raise _invalid("a field of a struct has no name")
    return Field(name, _schema(node, limits))


def _text(node: dict[str, Any], key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _version(node: dict[str, Any]) -> int | None:
    value = node.get("version")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parameters(node: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found = node.get("parameters")
    if not isinstance(found, dict):
        return ()
    if not all(isinstance(value, str) for value in found.values()):
        raise _invalid("the parameters of a schema must be texts")
    return tuple(sorted(found.items()))


def _defaulted(schema: Schema, default: object) -> Schema:
    try:
        return schema if default is None else with_default(schema, value_reader(schema)(default))
    except InvalidValue as error:
        raise _invalid(f"a default does not conform to its schema: {error}") from None


def _invalid(reason: str) -> InvalidSchema:
    return InvalidSchema(f"the schema of the envelope is invalid: {reason}")
