"""Protobuf values of an independent producer: the serializer of confluent-kafka, with ids in values and in headers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.protobuf.converter import ProtobufConverter
from tests.unit.avro.avro_data import Table, texts
from tests.unit.protobuf.protobuf_data import classes, registered

AIRPORT = "syntax = 'proto3'; package example; message Airport { string code = 1; }"
FLIGHTS = """
syntax = 'proto3';
package example;
import 'airport.proto';
import 'google/protobuf/timestamp.proto';
message Seat { int32 row = 1; }
message Flight {
  message Leg { Airport start = 1; map<string, int32> delays = 2; }
  int32 number = 1;
  optional string carrier = 2;
  repeated Leg legs = 3;
  google.protobuf.Timestamp at = 4;
  oneof state { bool planned = 5; bytes raw = 6; }
}
"""
SCHEMA = registered(FLIGHTS, references={"airport.proto": AIRPORT})
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Registry:
    """confluent-kafka's registry client, whose registry is in memory, and its schemas as the driver resolves them."""

    def __init__(self) -> None:
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})

    def serialize(self, name: str, values: list[Any], **config: Any) -> tuple[list[bytes], list[list[Any]]]:
        """The values as they are produced, and the headers of each."""
        serializer = ProtobufSerializer(classes(SCHEMA)[name], self.client, conf=config)
        produced: list[Any] = []
        headers: list[list[Any]] = []
        for value in values:
            context = SerializationContext("t", MessageField.VALUE, [])
            produced.append(serializer(value, context))
            headers.append([{"key": key, "value": given} for key, given in list(context.headers or [])])
        return produced, headers

    def table(self) -> Table:
        version = self.client.get_latest_version("t-value")
        references = tuple(
            SchemaReference(str(each.name), str(each.subject), 1, self._text(each))
            for each in version.schema.references or ()
        )
        schema = RegisteredSchema("", "PROTOBUF", str(version.schema.schema_str), references, version=version.version)
        return Table({str(version.schema_id): schema, str(version.guid): schema})

    def _text(self, reference: Any) -> str:
        return str(self.client.get_version(reference.subject, reference.version).schema.schema_str)


def flight(number: int) -> Any:
    found = classes(SCHEMA)["example.Flight"](number=number)
    if number % 2:
        found.carrier, found.raw = f"ä{number}", b"\0"
    else:
        found.at.seconds = number
    leg = found.legs.add(delays={"a": number})
    leg.start.code = "FRA"
    return found


def expected(number: int) -> dict[str, Any]:
    is_odd = number % 2
    return {
        "state_0": {"planned": None, "raw": "AA=="} if is_odd else None,
        "number": number,
        "carrier": f"ä{number}" if is_odd else None,
        "legs": [{"start": {"code": "FRA"}, "delays": {"a": number}}],
        "at": None if is_odd else number * 1000,
    }


@pytest.mark.parametrize("config", [{}, {"schema.id.serializer": header_schema_id_serializer}], ids=["value", "header"])
def test_what_confluents_serializer_writes_is_read(config: dict[str, Any]) -> None:
    registry = Registry()
    values, headers = registry.serialize("example.Flight", [flight(number) for number in range(40)], **config)
    wire_format = WireFormat(Layout.CONFLUENT, chooses_message=True)
    converter = ProtobufConverter((), SchemaSettings(registry.table(), wire_format))
    found = converter.convert(pa.array(values, pa.binary()), BatchSource("t", pa.array(headers, HEADERS)))
    assert (found.rejected, found.unresolved) == ([], [])
    assert [json.loads(text or b"") for text in texts(found)] == [expected(number) for number in range(40)]
