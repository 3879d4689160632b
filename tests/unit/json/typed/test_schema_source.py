"""The language of the schema of bare values, and their schema."""

from __future__ import annotations

import pytest

from sink_job.api.enums import LogicalTypes
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.json.typed.schema_source import language_of, value_schema

ALL, AS_CONNECTOR = DatumSettings(), DatumSettings(logical_types=LogicalTypes.AS_CONNECTOR)
MICROS = '{"type": "long", "logicalType": "timestamp-micros"}'
RECORD = f'{{"type": "record", "name": "R", "fields": [{{"name": "at", "type": {MICROS}}}]}}'
FIELDS = "- {name: at, type: timestamp-micros}\n- {name: all, items: {type: timestamp-micros}}\n"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (RECORD, "AVRO"),
        ('{"type": "error", "name": "E", "fields": []}', "AVRO"),
        (' \n{"type": "object"}', "JSON"),
        ("{}", "JSON"),
        ("- {name: a, type: string}", "FIELDS"),
        ('[{"name": "a", "type": "string"}]', "FIELDS"),
    ],
)
def test_the_language_of_a_schema_is_recognised(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("type: object", "an Avro schema and a JSON Schema are JSON, and this is YAML"),
        ("5", "the text is neither an Avro record, nor a JSON Schema, nor a field list"),
        ('"record"', "the text is neither an Avro record, nor a JSON Schema, nor a field list"),
    ],
)
def test_another_text_is_rejected_with_an_example(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason) as caught:
        language_of(text)
    assert str(caught.value).endswith("such as - {name: carrier, type: string}")


def schema(text: str, datums: DatumSettings = ALL) -> Schema:
    return value_schema(RegisteredSchema("1", language_of(text), text), datums)


def test_properties_of_a_json_schema_are_optional_unless_required() -> None:
    properties = '{"a": {"type": "string"}, "b": {"type": "string"}}'
    found = schema(f'{{"type": "object", "properties": {properties}, "required": ["a"]}}')
    assert [(field.name, field.schema.optional) for field in found.fields] == [("a", False), ("b", True)]


def logical(found: Schema) -> list[str | None]:
    inner = [field.schema for field in found.fields] + ([found.values] if found.values else [])
    return [found.logical, *(name for each in inner for name in logical(each))]


@pytest.mark.parametrize("text", [RECORD, FIELDS])
def test_logical_types_that_connect_lacks_are_kept_only_with_all_of_them(text: str) -> None:
    assert "timestamp-micros" in logical(schema(text, ALL))
    assert set(logical(schema(text, AS_CONNECTOR))) == {None}
