"""Protobuf of Confluent's serializer from a real broker, with a real registry, to objects.

The serializer registers a schema, and the files that it imports as references, as descriptors in base64.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from devtools.schema_registry.server import schema_registry
from devtools.topics import Record, Topics
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture
from tests.unit.protobuf.protobuf_data import classes, registered

pytestmark = [pytest.mark.data, pytest.mark.spark]

AIRPORT = "syntax = 'proto3'; package example; message Airport { string code = 1; }"
SCHEMA = registered(
    """
    syntax = 'proto3';
    package example;
    import 'airport.proto';
    import 'google/protobuf/timestamp.proto';
    message Delay { int64 number = 1; uint32 minutes = 2; }
    message Flight {
      int64 number = 1;
      Airport start = 2;
      google.protobuf.Timestamp at = 3;
      oneof note { string text = 4; bytes raw = 5; }
      map<string, int32> seats = 6;
    }
    """,
    references={"airport.proto": AIRPORT},
)
COUNT = 200


def messages() -> Iterator[Any]:
    """Flights and delays in turn: two messages of one schema."""
    for number in range(COUNT):
        if number % 2:
            yield classes(SCHEMA)["example.Delay"](number=number, minutes=number % 7)
        else:
            flight = classes(SCHEMA)["example.Flight"](number=number, text=f"ä{number}", seats={"a": number})
            flight.start.code = "FRA"
            flight.at.FromMilliseconds(1_700_000_000_000 + number)
            yield flight


FLIGHTS = [
    {
        "note_0": {"text": f"ä{number}", "raw": None},
        "number": number,
        "start": {"code": "FRA"},
        "at": 1_700_000_000_000 + number,
        "seats": {"a": number},
    }
    for number in range(0, COUNT, 2)
]
DELAYS = [{"number": number, "minutes": number % 7} for number in range(1, COUNT, 2)]


def produce(topics: Topics, topic: str, url: str) -> None:
    client = SchemaRegistryClient({"url": url})
    names = ("example.Flight", "example.Delay")
    serializers = {name: ProtobufSerializer(classes(SCHEMA)[name], client) for name in names}
    context = SerializationContext(topic, MessageField.VALUE, [])
    topics.produce(topic, (Record(value=serializers[each.DESCRIPTOR.full_name](each, context)) for each in messages()))


def test_two_messages_of_a_schema_become_two_objects_and_pass_verify_deep_without_the_registry(
    spark_fixture: SparkFixture, topic: str
) -> None:
    with schema_registry() as registry:
        spark_fixture.topics.create(topic)
        produce(spark_fixture.topics, topic, registry.url)
        sink = spark_fixture.sink(
            [topic],
            format={"converter": "Protobuf", "registry": {"url": [registry.url]}},
            rotation={"flushSize": 1000},
            schemaCompatibility="Separate",
        )
        spark_fixture.run(sink, PUBLISH_ALL)
    assert [[json.loads(line) for line in records] for records in spark_fixture.values().values()] == [FLIGHTS, DELAYS]
    (result,) = spark_fixture.verify_deep(sink)
    assert result.compared is not None
    assert (result.findings, result.compared.records) == ((), COUNT)
