"""JsonConverter's envelope."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.json_encoder import json_text
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.json.connect_envelope import envelope_schema, parse_envelope, payload_reader
from tests.unit.connect import oracle, strategies

NAMES = {SchemaType.FLOAT32: "float", SchemaType.FLOAT64: "double"}


def schema_of(node: object) -> Schema | None:
    return envelope_schema(json.dumps(node).encode())


def as_json(schema: Schema) -> dict[str, Any]:
    """JsonConverter.asJsonSchema."""
    node: dict[str, Any] = {"type": NAMES.get(schema.type, schema.type.value), "optional": schema.optional}
    attributes = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    node |= {key: value for key, value in attributes.items() if value is not None}
    if schema.parameters:
        node["parameters"] = schema.parameter
    if schema.default is not None:
        node["default"] = json.loads(schema.default.json)
    match schema.type:
        case SchemaType.STRUCT:
            node["fields"] = [as_json(field.schema) | {"field": field.name} for field in schema.fields]
        case SchemaType.ARRAY:
            node["items"] = as_json(oracle.child(schema.values))
        case SchemaType.MAP:
            node |= {"keys": as_json(oracle.child(schema.keys)), "values": as_json(oracle.child(schema.values))}
    return node


def test_an_envelope_has_a_schema_and_a_payload() -> None:
    found = parse_envelope(b'{"payload": {"a":1}, "schema": {"type":"int32"}}')
    assert (bytes(found.schema), bytes(found.payload)) == (b'{"type":"int32"}', b'{"a":1}')


@pytest.mark.parametrize("value", [b"5", b"{}", b'{"schema":null}', b'{"schema":1,"payload":2,"x":3}', b"", b"{"])
def test_any_other_value_is_rejected(value: bytes) -> None:
    with pytest.raises(InvalidValue, match='an object of "schema" and "payload"'):
        parse_envelope(value)


def test_a_null_schema_is_no_schema() -> None:
    assert schema_of(None) is None


def test_a_schema_has_all_its_attributes() -> None:
    node = {"type": "struct", "name": "R", "version": 3, "doc": "d", "parameters": {"p": "1"}, "optional": True}
    assert schema_of(node | {"fields": [{"field": "a", "type": "int8"}]}) == Schema(
        SchemaType.STRUCT,
        name="R",
        version=3,
        doc="d",
        parameters=(("p", "1"),),
        optional=True,
        fields=(Field("a", Schema(SchemaType.INT8)),),
    )


@given(strategies.schemas(3))
def test_a_schema_is_read_as_jsonconverter_writes_it(schema: Schema) -> None:
    assert schema_of(as_json(schema)) == schema


@given(st.data())
def test_a_payload_is_read_as_jsonconverter_writes_it(data: st.DataObject) -> None:
    schema = data.draw(strategies.schemas(3))
    value = data.draw(strategies.values(schema, full=True))
    text = json_text(schema, value)
    assert json_text(schema, payload_reader(schema)(text)) == text


def test_a_default_is_read_under_its_schema() -> None:
    found = schema_of({"type": "bytes", "default": "AP8="})
    assert found is not None
    assert default_value(found) == b"\x00\xff"


@pytest.mark.parametrize(("payload", "value"), [(b'"e9A="', "316.96"), (b"12.30", "12.30"), (b"5", "5")])
def test_a_decimal_is_read_from_base64_or_a_number(payload: bytes, value: str) -> None:
    schema = Schema(SchemaType.BYTES, name=logical_types.DECIMAL, parameters=(("scale", "2"),))
    assert payload_reader(schema)(payload) == Decimal(value)


def test_a_missing_field_takes_its_default() -> None:
    schema = schema_of({"type": "struct", "fields": [{"field": "a", "type": "int32", "default": 5}]})
    assert schema is not None
    assert payload_reader(schema)(b"{}") == {"a": 5}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (5, "an object with a type"),
        ({}, "an object with a type"),
        ({"type": "int4"}, "'int4' is unknown"),
        ({"type": "struct"}, "fields of a struct"),
        ({"type": "struct", "fields": [{"type": "int8"}]}, "no name"),
        ({"type": "struct", "fields": [{"field": "a", "type": "int8"}] * 2}, "two fields"),
        ({"type": "array"}, "an object with a type"),
        ({"type": "map", "keys": {"type": "string"}}, "an object with a type"),
        ({"type": "int8", "parameters": {"p": 1}}, "must be texts"),
        ({"type": "int8", "default": 128}, "does not conform"),
    ],
)
def test_an_invalid_schema_is_rejected_with_the_reason(node: object, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        schema_of(node)


def test_schemas_that_are_nested_too_deeply_are_rejected() -> None:
    node: object = {"type": "int8"}
    for _ in range(150):
        node = {"type": "array", "items": node}
    with pytest.raises(InvalidSchema, match="deeper than 100"):
        schema_of(node)


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000])
def test_a_text_that_is_not_json_is_rejected(text: bytes) -> None:
    with pytest.raises(InvalidSchema, match="not JSON"):
        envelope_schema(text)
    with pytest.raises(InvalidValue, match="cannot be read"):
        payload_reader(Schema(SchemaType.INT8))(text)


def test_a_schema_with_too_many_types_is_rejected() -> None:
    node = {"type": "struct", "fields": [{"field": str(n), "type": "int8"} for n in range(100_000)]}
    with pytest.raises(InvalidSchema, match="more than 100,000 types"):
        schema_of(node)


def test_a_default_that_is_nested_too_deeply_is_rejected() -> None:
    default: list[Any] = []
    for _ in range(300):
        default = [default]
    with pytest.raises(InvalidSchema, match="a default that is nested deeper than 100"):
        schema_of({"type": "array", "items": {"type": "int8"}, "default": default})


@pytest.mark.parametrize("scale", ["10000000000000000000", "1000000000", "x"])
def test_a_decimal_with_an_unusable_scale_cannot_be_read(scale: str) -> None:
    schema = Schema(SchemaType.BYTES, name=logical_types.DECIMAL, parameters=(("scale", scale),))
    with pytest.raises(InvalidSchema, match="within ±10,000"):
        payload_reader(schema)


def test_a_number_whose_exponent_is_out_of_range_is_rejected() -> None:
    with pytest.raises(InvalidSchema, match="not JSON"):
        envelope_schema(b'{"type":"double","default":1e99999999999999999999}')
    with pytest.raises(InvalidValue, match="out of range"):
        payload_reader(Schema(SchemaType.FLOAT64))(b"1e99999999999999999999")
