"""The schema of bare values, as the driver finds it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.schema_section import SchemaSpec
from sink_job.connect.schema import RegisteredSchema
from sink_job.registry.bare_values import BareValueSchema, bare_value_schema
from sink_job.registry.client import open_schemas

AVRO = json.dumps({"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "string"}]})
JSON = json.dumps({"title": "Flight", "type": "object", "properties": {"carrier": {"type": "string"}}})


def settings(
    text: str | None, converter: ConverterType = ConverterType.AVRO, message: str = "example.Flight"
) -> FormatSpec:
    schema = SchemaSpec(text=text) if text is not None else SchemaSpec(config_map="flights", key="a")
    if converter is ConverterType.PROTOBUF:
        schema = schema.model_copy(update={"message": message})
    return FormatSpec(converter=converter, bare_value_schema=schema)


PROTO = 'syntax = "proto3"; package example; message Flight { string carrier = 1; message Seat { int32 row = 1; } }'


class Registry:
    """A registry that knows the id 1 of keys."""

    url = "https://registry.example.com"
    closed = False

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        return RegisteredSchema(schema_id, "AVRO", '"long"') if (schema_id, is_key) == ("1", True) else None

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("text", "converter", "language"),
    [
        (AVRO, ConverterType.AVRO, "AVRO"),
        (JSON, ConverterType.JSON_SCHEMA, "JSON"),
        (PROTO, ConverterType.PROTOBUF, "PROTOBUF"),
    ],
)
def test_the_schema_has_the_language_of_the_converter(text: str, converter: ConverterType, language: str) -> None:
    found = bare_value_schema(settings(text, converter))
    assert found is not None
    assert (found.language, found.text, found.subject, found.version) == (language, text, None, None)


def values_of(text: str, output: OutputFormat = OutputFormat.PARQUET, **given: Any) -> FormatSpec:
    """The settings of JSON values under a schema."""
    return FormatSpec(converter=ConverterType.JSON, output=output, bare_value_schema=SchemaSpec(text=text), **given)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (AVRO, "AVRO"),
        (JSON, "JSON"),
        ("- {name: carrier, type: string}", "FIELDS"),
        ('{"fields": [{"name": "carrier", "type": "string"}]}', "FIELDS"),
    ],
)
def test_the_schema_of_json_values_has_the_language_of_its_text(text: str, language: str) -> None:
    found = bare_value_schema(values_of(text))
    assert found is not None
    assert (found.language, found.text) == (language, text)


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        ("[", {}, "the text is neither JSON nor YAML"),
        ("carrier", {}, "the text is neither an Avro record, nor a JSON Schema, nor a field list"),
        ("carrier: string", {}, "a field list is a list, such as - {name: carrier, type: string}"),
        ("type: record\nname: Flight\nfields: []", {}, "an Avro schema and a JSON Schema are JSON, and this is YAML"),
        ("carrier", {}, "a field list is a list, such as - {name: carrier, type: string}"),
        ("- {name: carrier, type: text}", {}, "the field carrier has the type 'text', which is unknown"),
        ("- {name: seat, fields: []}", {}, "seat"),
        (
            "- {name: _unknown, type: string}",
            {"unknown_fields": "Json"},
            "its field _unknown has the name of the column",
        ),
        ("[]", {}, "struct"),
        ("[]", {"envelope": True}, "Parquet cannot express the field value: the struct"),
    ],
)
def test_a_schema_that_json_values_cannot_have_is_a_configuration_error(
    text: str, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        bare_value_schema(values_of(text, **given))
    assert "spec.format.schema cannot be used with the converter Json: " in str(raised.value)
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("text", "converter"),
    [
        ("{", ConverterType.AVRO),
        ('{"type":"record"}', ConverterType.AVRO),
        ("[", ConverterType.JSON_SCHEMA),
    ],
)
def test_an_invalid_schema_is_a_configuration_error(text: str, converter: ConverterType) -> None:
    with pytest.raises(
        ConfigurationError, match=f"spec.format.schema cannot be used with the converter {converter}: the "
    ) as raised:
        bare_value_schema(settings(text, converter))
    assert raised.value.exit_code == 7


def test_a_protobuf_text_that_does_not_compile_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="with the converter Protobuf: its text is not valid: "):
        bare_value_schema(settings("message Flight {", ConverterType.PROTOBUF))


def test_a_message_that_the_schema_lacks_is_a_configuration_error_with_its_messages() -> None:
    with pytest.raises(ConfigurationError) as raised:
        bare_value_schema(settings(PROTO, ConverterType.PROTOBUF, "example.Fligth"))
    assert "it has no message example.Fligth; its messages: example.Flight, example.Flight.Seat" in str(raised.value)
    assert raised.value.exit_code == 7


def test_a_config_map_that_was_not_read_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="the ConfigMap flights was not read"):
        bare_value_schema(settings(None))


def test_the_schema_is_found_by_its_id_alone() -> None:
    found = open_schemas(settings(AVRO), None, lambda _: False, lambda _: None)
    schema = bare_value_schema(settings(AVRO))
    assert found is not None
    assert schema is not None
    assert found.url == "spec.format.schema"
    assert found.fetch("flights", schema.id) == schema
    assert [found.fetch("flights", "1"), found.fetch("flights", schema.id, is_key=True)] == [None, None]
    found.close()


def test_the_schemas_of_keys_are_those_of_the_registry() -> None:
    schema, registry = bare_value_schema(settings(AVRO)), Registry()
    assert schema is not None
    found = BareValueSchema(schema, registry)
    assert found.fetch("flights", schema.id) == schema
    assert found.fetch("flights", "1", is_key=True) == RegisteredSchema("1", "AVRO", '"long"')
    assert found.url == registry.url
    found.close()
    assert registry.closed
