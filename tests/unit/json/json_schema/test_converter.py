"""JSON with a schema of a registry: values of confluent-kafka's serializer, and invalid ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import OutputFormat
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.json_schema.converter import JsonSchemaConverter
from sink_job.json.json_schema.to_connect import json_connect_schema
from sink_job.records.fields import MISSING
from tests.unit.avro.avro_data import Table, in_wire_format, texts

FLIGHT = {
    "title": "Flight",
    "type": "object",
    "properties": {"number": {"type": "integer"}, "carrier": {"type": "string"}},
    "required": ["number"],
}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def registered(schema: object, schema_id: int = 1, version: int = 1, language: str = "JSON") -> RegisteredSchema:
    return RegisteredSchema(str(schema_id), language, json.dumps(schema), version=version)


def convert(
    values: Sequence[bytes | None], *schemas: RegisteredSchema, fields: tuple[str, ...] = (), **settings: Any
) -> Converted:
    table = Table({schema.id: schema for schema in schemas or [registered(FLIGHT)]}, unknown=("404",))
    found = JsonSchemaConverter(fields, SchemaSettings(table, WireFormat(Layout.CONFLUENT), **settings))
    return found.convert(pa.array(values, pa.binary()), BatchSource("t"))


@pytest.mark.parametrize("config", [{}, {"schema.id.serializer": header_schema_id_serializer}], ids=["value", "header"])
def test_what_confluents_serializer_writes_is_read(config: dict[str, Any]) -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    serializer = JSONSerializer(json.dumps(FLIGHT), client, conf=config)
    flights = [{"number": n, "carrier": f"ä{n}"} if n % 2 else {"number": n} for n in range(10)]
    values, headers = [], []
    for flight in flights:
        context = SerializationContext("t", MessageField.VALUE, [])
        values.append(serializer(flight, context))
        headers.append([{"key": key, "value": value} for key, value in dict(context.headers or []).items()])
    version = client.get_latest_version("t-value")
    schema = RegisteredSchema("", "JSON", version.schema.schema_str or "", version=version.version)
    table = Table({str(version.schema_id): schema, str(version.guid): schema})
    converter = JsonSchemaConverter(("carrier",), SchemaSettings(table, WireFormat(Layout.CONFLUENT)))
    found = converter.convert(pa.array(values, pa.binary()), BatchSource("t", pa.array(headers, HEADERS)))
    assert (found.rejected, found.unresolved) == ([], [])
    assert [json.loads(text or b"") for text in texts(found)] == flights
    assert found.fields["carrier"] == [flight.get("carrier", MISSING) for flight in flights]


def test_the_text_is_written_as_it_came_and_on_one_line() -> None:
    values = [in_wire_format(1, b'{"number": 1.0}'), in_wire_format(1, b'{\n"number":2}')]
    assert texts(convert(values)) == [b'{"number": 1.0}', b'{"number":2}']
    assert texts(convert(values, output=OutputFormat.BYTES)) == values


def test_each_record_has_the_schema_of_its_id() -> None:
    other = {"type": "object", "properties": {"number": {"type": "string"}}}
    first, second = registered(FLIGHT, 1, 1), registered(other, 2, 2)
    found = convert([in_wire_format(1, b"{}"), in_wire_format(2, b"{}"), None, in_wire_format(1, b"{}")], first, second)
    assert found.schemas is not None
    assert found.schemas.codes.tolist() == [0, 1, -1, 0]
    assert found.schemas.schemas == [json_connect_schema(first), json_connect_schema(second)]


def test_tombstones_and_json_nulls_are_no_value() -> None:
    found = convert([None, in_wire_format(1, b"null"), in_wire_format(1, b"{}")])
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b'{"number":1}', "the value starts with the byte 123; "),
        (b"\0\0\0", "the value "),
        (in_wire_format(404, b"{}"), "the registry does not know schema 404"),
        (in_wire_format(1, b""), "the value is empty"),
        (in_wire_format(1, b'{"number":1'), "the value is not JSON: Input data was truncated"),
        (in_wire_format(1, b"{}{}"), "the value is not JSON: trailing characters"),
        (in_wire_format(1, b'"\xff"'), "the value is not UTF-8"),
        (in_wire_format(2, b"{}"), "schema 2 is AVRO, but format.converter is JsonSchema"),
        (in_wire_format(3, b"{}"), "schema 3 cannot be used: "),
    ],
)
def test_an_invalid_value_is_rejected_alone(value: bytes, error: str) -> None:
    others = [registered("int", 2, language="AVRO"), RegisteredSchema("3", "JSON", "{")]
    found = convert([in_wire_format(1, b"1"), value, in_wire_format(1, b"2")], registered(FLIGHT), *others)
    [(row, reason)] = found.rejected
    assert row == 1
    assert error in reason
    assert texts(found) == [b"1", None, b"2"]


def test_an_id_that_is_not_resolved_yet_is_reported() -> None:
    assert convert([in_wire_format(1, b"1"), in_wire_format(7, b"2"), in_wire_format(7, b"3")]).unresolved == [(1, "7")]


@given(st.lists(st.binary(max_size=8).map(lambda data: in_wire_format(1, data)) | st.binary(max_size=8), max_size=5))
def test_arbitrary_bytes_are_rejected_or_become_one_json_text(batch: list[bytes]) -> None:
    found = convert(batch, fields=("a",))
    if not found.unresolved:
        for text in texts(found):
            assert text is None or (b"\n" not in text and json.loads(text) is not None)
