"""Avro of Confluent's serializer from a real broker, with a real registry that requires credentials, to objects."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from devtools.bucket_listing import body, lines, objects
from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.schema_registry.server import SchemaRegistryServer, basic_authorization, schema_registry
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Record, Topics
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]

PASSWORD = "correct-horse-battery"
FIELDS = [{"name": "number", "type": "long"}, {"name": "carrier", "type": "string"}]
VERSIONS = [
    {"type": "record", "name": "example.Flight", "fields": FIELDS},
    {
        "type": "record",
        "name": "example.Flight",
        "fields": [*FIELDS, {"name": "seats", "type": ["null", "long"], "default": None}],
    },
]
FLIGHTS: list[dict[str, Any]] = [
    {"number": n, "carrier": f"ä{n % 3}"} | ({"seats": n if n % 4 == 1 else None} if n % 2 else {}) for n in range(200)
]
"""Flights with an odd number have the second version."""


class Producer:
    """Two producers with one version each, which send the schema id in the value or in a header."""

    def __init__(self, url: str, topic: str, **config: Any) -> None:
        client = SchemaRegistryClient({"url": url, "basic.auth.user.info": f"reader:{PASSWORD}"})
        self._topic = topic
        self._serializers = [AvroSerializer(client, json.dumps(schema), conf=config) for schema in VERSIONS]

    def record(self, flight: Mapping[str, Any]) -> Record:
        context = SerializationContext(self._topic, MessageField.VALUE, [])
        value = self._serializers[flight["number"] % 2](dict(flight), context)
        return Record(value=value, headers=[*(context.headers or [])])


def produce(topics: Topics, topic: str, url: str) -> None:
    """Produces the flights, the first half with ids in the values, the others with GUIDs in headers."""
    in_value = Producer(url, topic)
    # srfake returns the GUID of a schema when it is looked up, not when it is registered
    in_header = Producer(
        url, topic, **{"auto.register.schemas": False, "schema.id.serializer": header_schema_id_serializer}
    )
    topics.produce(topic, ((in_value if flight["number"] < 100 else in_header).record(flight) for flight in FLIGHTS))


def test_two_versions_of_a_schema_become_two_objects_and_pass_verify_deep_without_the_registry(
    kafka: KafkaBroker,
    topics: Topics,
    s3: S3Server,
    topic: str,
    bucket: str,
    tmp_path: Path,
    sink_of: Callable[[Mapping[str, Any]], SinkCommand],
) -> None:
    with schema_registry(authorization=basic_authorization("reader", PASSWORD)) as registry:
        topics.create(topic)
        produce(topics, topic, registry.url)
        sink = sink_of(manifest("flights", spec(kafka, s3, topic, bucket, registry)))
        sink.catch_up("--secret", f"registry-login={login(tmp_path)}")
    found = {
        key: [json.loads(line) for line in lines(s3.client(), bucket, key)] for key in objects(s3.client(), bucket)
    }
    assert [*found.values()] == [FLIGHTS[0::2], FLIGHTS[1::2]]
    proof = json.loads(sink.must("verify", "--deep", "-o", "json"))
    (result,) = proof["partitions"]
    assert (proof["passed"], result["compared"]["records"]) == (True, 200)
    assert PASSWORD not in "".join(process.log for process in sink.processes)


SEATED = [{"seats": None} | flight for flight in FLIGHTS]
PROJECTED: dict[str, list[list[dict[str, Any]]]] = {
    "Backward": [FLIGHTS[:1], SEATED[1:]],
    "Forward": [[{"number": flight["number"], "carrier": flight["carrier"]} for flight in FLIGHTS]],
}
"""The records of each object. The first flight has the older version."""


@pytest.mark.parametrize("compatibility", PROJECTED)
def test_two_alternating_versions_are_projected_to_the_newer_or_the_older_one(
    spark_fixture: SparkFixture, topic: str, compatibility: str
) -> None:
    login(spark_fixture.folder / "secrets")
    with schema_registry(authorization=basic_authorization("reader", PASSWORD)) as registry:
        spark_fixture.topics.create(topic)
        produce(spark_fixture.topics, topic, registry.url)
        sink = spark_fixture.sink([topic], **SECTIONS, format=avro_of(registry), schemaCompatibility=compatibility)
        spark_fixture.run(sink, PUBLISH_ALL)
    found = [[json.loads(line) for line in records] for records in spark_fixture.values().values()]
    assert found == PROJECTED[compatibility]
    (result,) = spark_fixture.verify_deep(sink)
    assert result.compared is not None
    assert (result.findings, result.compared.records) == ((), 200)


def test_parquet_objects_of_a_connector_are_compared_with_the_schemas_of_the_registry(
    kafka: KafkaBroker,
    topics: Topics,
    s3: S3Server,
    topic: str,
    bucket: str,
    tmp_path: Path,
    sink_here: Callable[[Mapping[str, Any]], SinkCommand],
) -> None:
    """A connector with `schema.compatibility=BACKWARD` has written half of the records and committed none."""
    secret = f"registry-login={login(tmp_path)}"
    with schema_registry(authorization=basic_authorization("reader", PASSWORD)) as registry:
        topics.create(topic)
        produce(topics, topic, registry.url)
        topics.commit("connect-flights", topic, {0: 0})
        for first, flights in {0: FLIGHTS[:1], 1: SEATED[1:100]}.items():
            content = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(flights), content)
            key = f"topics/{topic}/partition=0/{topic}+0+{first:010d}.snappy.parquet"
            s3.client().put_object(Bucket=bucket, Key=key, Body=content.getvalue())
        settings = spec(kafka, s3, topic, bucket, registry)
        settings["format"]["output"] = "Parquet"
        settings["kafka"]["groupId"] = "connect-flights"
        sink = sink_here(manifest("flights", {**settings, "schemaCompatibility": "Backward"}))
        shown = sink.must("run", "--from-connector", "--dry-run", "--secret", secret)
        assert "99 records, equal to Kafka's (rows of Parquet)" in shown
        sink.catch_up("--from-connector", "--secret", secret)
    assert json.loads(sink.must("verify", "--deep", "-o", "json"))["passed"]
    stored = [pq.read_table(io.BytesIO(body(s3.client(), bucket, key))) for key in objects(s3.client(), bucket)]
    numbers = [number for table in stored for number in table["number"].to_pylist()]
    assert sorted(numbers) == [*range(200)]


SECTIONS: dict[str, Mapping[str, Any]] = {
    "rotation": {"flushSize": 1000},
    "rounds": {"minBytes": 0, "maxDelay": "50ms"},
}


def avro_of(registry: SchemaRegistryServer) -> dict[str, Any]:
    """The section `format` of a sink."""
    return {"converter": "Avro", "registry": {"url": [registry.url], "credentials": {"secret": "registry-login"}}}


def spec(kafka: KafkaBroker, s3: S3Server, topic: str, bucket: str, registry: SchemaRegistryServer) -> dict[str, Any]:
    chosen = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3.endpoint,
        bucket=bucket,
        format=avro_of(registry),
        **SECTIONS,
    )
    return {**chosen, "schemaCompatibility": "Separate"}


def login(folder: Path) -> Path:
    """The directory of the mounted Secret."""
    secret = folder / "registry-login"
    secret.mkdir(parents=True)
    for name, content in {"username": "reader", "password": PASSWORD}.items():
        (secret / name).write_text(content)
    return secret
