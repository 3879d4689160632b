"""Avro of Apicurio's Java serializers from a real broker, with a real Apicurio and its own API, to objects."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from devtools.processes import ServerFailedError
from devtools.schema_registry.apicurio import ApicurioServer, apicurio
from devtools.topics import Record
from sink_job.registry.clients.apicurio import ApicurioRegistry
from sink_job.registry.settings import RegistrySettings
from tests.support.apicurio_values import CONTENT_IDS, GLOBAL_IDS, schema_texts, written_values
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]

RUNS = [
    "3.1.7 content id",
    "3.1.7 content id in a header",
    "3.1.7 global id in a header",
    "3.1.7 content id of 8 bytes",
    "2.6.13 global id in a header",
]
FLIGHTS = [each for run in RUNS for each in written_values(run)]


@pytest.fixture
def registry() -> Iterator[ApicurioServer]:
    """An Apicurio in which the schemas have the ids that they had when the values were written."""
    try:
        with apicurio() as server:
            first, second = schema_texts()
            server.register("older-value", first)
            ids = [server.register("flights-value", text) for text in (first, second)]
            assert [each.content_id for each in ids] == [*CONTENT_IDS]
            assert [each.global_id for each in ids] == [*GLOBAL_IDS]
            yield server
    except ServerFailedError as error:
        pytest.skip(f"Apicurio cannot run here: {error}")


def test_values_of_apicurios_serializers_are_written_and_pass_verify_deep_without_the_registry(
    spark_fixture: SparkFixture, topic: str, registry: ApicurioServer
) -> None:
    spark_fixture.topics.create(topic)
    spark_fixture.topics.produce(topic, (Record(value=each.value, headers=each.headers) for each in FLIGHTS))
    sink = spark_fixture.sink(
        [topic],
        format={"converter": "Avro", "registry": {"type": "Apicurio", "url": [registry.own_url]}},
        rotation={"flushSize": 1000},
        schemaCompatibility="Separate",
    )
    spark_fixture.run(sink, PUBLISH_ALL)
    registry.kill()
    found = [json.loads(line) for records in spark_fixture.values().values() for line in records]
    assert sorted(found, key=lambda flight: int(flight["number"])) == [each.flight for each in FLIGHTS]
    (result,) = spark_fixture.verify_deep(sink)
    assert result.compared is not None
    assert (result.findings, result.compared.records) == ((), len(FLIGHTS))


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_the_newest_schema_of_a_topic_is_found_by_both_versions_of_the_api(
    registry: ApicurioServer, version: str
) -> None:
    settings = RegistrySettings(urls=(registry.own_url.replace("v3", version),))
    client = ApicurioRegistry(settings, lambda _: False, lambda _: None)
    try:
        found = client.latest("flights")
        assert found is not None
        assert (found.subject, json.loads(found.text)) == ("flights-value", json.loads(schema_texts()[1]))
        assert client.latest("unknown") is None
    finally:
        client.close()
