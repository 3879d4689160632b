"""Avro values of an independent producer: the serializers of confluent-kafka, with ids in values and in headers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from sink_job.avro.converter import AvroConverter
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from tests.unit.avro.avro_data import Table, record, texts

FLIGHT = record(
    ("number", "int"),
    ("carrier", ["null", "string"]),
    ("delays", {"type": "array", "items": "double"}),
    ("raw", "bytes"),
    ("status", {"type": "enum", "name": "Status", "symbols": ["PLANNED", "LANDED"]}),
    name="Flight",
)
FLIGHTS = [
    {"number": n, "carrier": f"ä{n}" if n % 2 else None, "delays": [n / 4] * (n % 3), "raw": b"\0", "status": "LANDED"}
    for n in range(40)
]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Registry:
    """confluent-kafka's registry client, whose registry is in memory, and its schemas as the driver resolves them."""

    def __init__(self) -> None:
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})

    def serialize(self, schema: Any, values: list[Any], **config: Any) -> tuple[list[bytes], list[list[Any]]]:
        """The values as they are produced, and the headers of each."""
        serializer = AvroSerializer(self.client, json.dumps(schema), conf=config)
        produced: list[Any] = []
        headers: list[list[Any]] = []
        for value in values:
            context = SerializationContext("t", MessageField.VALUE, [])
            produced.append(serializer(value, context))
            headers.append([{"key": key, "value": given} for key, given in list(context.headers or [])])
        return produced, headers

    def table(self) -> Table:
        version = self.client.get_latest_version("t-value")
        schema = RegisteredSchema("", "AVRO", str(version.schema.schema_str), version=version.version)
        return Table({str(version.schema_id): schema, str(version.guid): schema})


@pytest.mark.parametrize("config", [{}, {"schema.id.serializer": header_schema_id_serializer}], ids=["value", "header"])
def test_what_confluents_serializer_writes_is_read(config: dict[str, Any]) -> None:
    registry = Registry()
    values, headers = registry.serialize(FLIGHT, FLIGHTS, **config)
    converter = AvroConverter((), SchemaSettings(registry.table(), WireFormat(Layout.CONFLUENT)))
    found = converter.convert(pa.array(values, pa.binary()), BatchSource("t", pa.array(headers, HEADERS)))
    assert (found.rejected, found.unresolved) == ([], [])
    assert [json.loads(text or b"") for text in texts(found)] == [{**flight, "raw": "AA=="} for flight in FLIGHTS]
