"""The schema of JSON bare values: an Avro schema, a JSON Schema or a field list."""

from __future__ import annotations

from msgspec import structs

from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, RegisteredSchema, Schema
from sink_job.json.json_schema.to_connect import json_connect_schema
from sink_job.json.typed.field_list import LANGUAGE, is_field_list, read_document, registered_fields_schema

_AVRO_RECORDS = ("record", "error")
_LIST = "a field list is a list, such as - {name: carrier, type: string}"


def language_of(text: str) -> str:
    """The language of a schema: `AVRO` for a record, `FIELDS` for a field list, else `JSON`.

    Raises InvalidSchema if the text is none of them.
    """
    document = read_document(text)
    if is_field_list(document):
        return LANGUAGE
    if not isinstance(document, dict):
        raise InvalidSchema(f"the text is neither an Avro record, nor a JSON Schema, nor a field list: {_LIST}")
    if not text.lstrip().startswith("{"):
        raise InvalidSchema(f"an Avro schema and a JSON Schema are JSON, and this is YAML; {_LIST}")
    return "AVRO" if document.get("type") in _AVRO_RECORDS else "JSON"


def value_schema(registered: RegisteredSchema, datums: DatumSettings) -> Schema:
    """The schema of JSON values in Connect's data model. Raises InvalidSchema."""
    match registered.language:
        case "AVRO":
            return connect_schema(parse_registered(registered), extension=datums.extension)
        case "JSON":
            return json_connect_schema(registered, optional_properties=True)
    schema = registered_fields_schema(registered)
    return schema if datums.keeps_logical_types else _without_logical_types(schema)


def _without_logical_types(schema: Schema) -> Schema:
    return structs.replace(
        schema,
        logical=None,
        fields=tuple(Field(each.name, _without_logical_types(each.schema)) for each in schema.fields),
        values=None if schema.values is None else _without_logical_types(schema.values),
    )
