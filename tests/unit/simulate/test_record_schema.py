"""The schemas that records of a simulation are given with."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.connect.schema import Schema, SchemaType
from sink_job.simulate.record_schema import SchemaInput
from tests.unit.simulate.steps import offsets, record, run, sink, write

LARGE: dict[str, Any] = {"rotation": {"flushSize": 1000}}


def flight(version: int, **fields: Any) -> dict[str, Any]:
    """A record's schema."""
    return {"name": "Flight", "version": version, "fields": [{"name": "carrier", "type": "string", **fields}]}


@pytest.mark.parametrize(
    "other",
    [
        {"type": "int32"},
        {"optional": True},
        {"default": "AA"},
        {"name": "airline"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_schemas_that_differ_in_a_field_are_different(other: dict[str, Any]) -> None:
    first, second = record(0, schema=flight(1)), record(1, schema=flight(1, **other))
    (report,) = run(sink(**LARGE), write(first, second))
    assert offsets(report["closed"]) == [[0]]


def test_equal_schemas_are_equal_whatever_the_spelling_of_their_json() -> None:
    shuffled = {"fields": [{"optional": False, "type": "string", "name": "carrier"}], "version": 1, "name": "Flight"}
    (report,) = run(sink(**LARGE), write(record(0, schema=flight(1)), record(1, schema=shuffled)))
    assert offsets(report["open"]) == [[0, 1]]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"fields": [{"name": "a", "type": "text"}]}, "Invalid enum value 'text'"),
        ({"fields": [{"name": "a"}]}, "missing required field `type`"),
        ({"type": "struct"}, "unknown field `type`"),
        ({"fields": [{"name": "a", "type": "int8"}, {"name": "a", "type": "int8"}]}, "two fields have the same name"),
    ],
)
def test_an_invalid_schema_is_an_error_with_its_line(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match="records, line 1: ") as error:
        run(sink(), write(record(0, schema=schema)))
    assert message in str(error.value)


def given(**schema: Any) -> Schema:
    return msgspec.convert(schema, SchemaInput).schema()


def test_the_fields_of_a_schema_have_types_and_defaults_of_connect() -> None:
    fields = [
        {"name": "a", "type": "int8"},
        {"name": "b", "type": "string", "optional": True},
        {"name": "c", "type": "int64", "default": 7},
    ]
    found = msgspec.json.decode(json.dumps({"name": "R", "version": -1, "fields": fields}), type=SchemaInput).schema()
    assert (found.type, found.name, found.version) == (SchemaType.STRUCT, "R", -1)
    assert [(field.name, field.schema.type, field.schema.optional) for field in found.fields] == [
        ("a", SchemaType.INT8, False),
        ("b", SchemaType.STRING, True),
        ("c", SchemaType.INT64, False),
    ]
    assert [field.schema.default is not None for field in found.fields] == [False, False, True]


@pytest.mark.parametrize(("first", "second"), [('{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }'), ('"\\u00e4"', '"ä"')])
def test_equal_defaults_are_equal_whatever_their_spelling(first: str, second: str) -> None:
    schemas = [
        msgspec.json.decode(f'{{"fields": [{{"name": "a", "type": "bytes", "default": {text}}}]}}', type=SchemaInput)
        for text in (first, second)
    ]
    assert schemas[0].schema() == schemas[1].schema()


def test_null_is_no_default() -> None:
    text = '{"fields": [{"name": "a", "type": "int8", "default": null}]}'
    assert msgspec.json.decode(text, type=SchemaInput).schema() == given(fields=[{"name": "a", "type": "int8"}])


@pytest.mark.parametrize("version", [2**31, -(2**31) - 1, "1", 1.5])
def test_a_version_is_an_integer_of_32_bits(version: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        given(version=version)


def test_a_schema_may_be_empty() -> None:
    assert given() == Schema(SchemaType.STRUCT)
