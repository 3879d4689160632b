"""Names of properties that Kafka's client does not know, by the names of the real client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway

from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.kafka.jvm import plain_jvm
from sink_job.kafka.unknown_properties import unknown_properties
from sink_job.spark.jars import client_jars

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def gateway() -> Iterator[JavaGateway]:
    found = plain_jvm(client_jars())
    yield found
    found.shutdown()


def kafka(*names: str, secret: str | None = None) -> KafkaSpec:
    secrets = [{"name": secret, "secret": "a", "key": "b"}] if secret else []
    properties = {"properties": dict.fromkeys(names, "a"), "propertySecrets": secrets}
    return KafkaSpec.model_validate({"bootstrapServers": "kafka:9092", "topics": ["t"], **properties})


def test_a_misspelled_property_is_reported_with_the_nearest_known_one(gateway: JavaGateway) -> None:
    found = unknown_properties(gateway, kafka("sasl.mechnism", "client.rack", secret="ssl.trustore.type"))
    assert found == [
        "spec.kafka.properties: Kafka's client does not know sasl.mechnism, which has no effect on it; did you mean "
        "sasl.mechanism?",
        "spec.kafka.propertySecrets: Kafka's client does not know ssl.trustore.type, which has no effect on it; did "
        "you mean ssl.truststore.type?",
    ]


def test_a_property_like_no_other_is_reported_without_a_suggestion(gateway: JavaGateway) -> None:
    [sentence] = unknown_properties(gateway, kafka("x.y"))
    assert sentence.endswith("does not know x.y, which has no effect on it")


@pytest.mark.parametrize(
    "name", ["ssl.keystore.certificate.chain", "sasl.oauthbearer.token.endpoint.url", "delivery.timeout.ms"]
)
def test_properties_of_each_client_are_known(gateway: JavaGateway, name: str) -> None:
    assert unknown_properties(gateway, kafka(name)) == []
