"""Settings of workers."""

from __future__ import annotations

import pytest
import yaml

from sink_job.api.errors import InvalidConnector
from sink_job.migrate.inputs.worker import of_kafka_connect, of_msk_connect, read_worker


def test_properties_of_a_worker_are_read() -> None:
    assert read_worker("bootstrap.servers=a:9092\nvalue.converter=X\n")["value.converter"] == "X"


def test_the_environment_of_confluent_s_image_is_read() -> None:
    text = "CONNECT_BOOTSTRAP_SERVERS=a:9092\nCONNECT_CONSUMER_ISOLATION_LEVEL=read_committed\nCONNECT_A__B___C=x\n"
    assert read_worker(text) == {
        "bootstrap.servers": "a:9092",
        "consumer.isolation.level": "read_committed",
        "a-b_c": "x",
    }


@pytest.mark.parametrize("text", ["", "a=1\n", "kind: Secret\n", "kind: KafkaConnect\n---\nkind: KafkaConnect\n"])
def test_other_files_are_not_those_of_a_worker(text: str) -> None:
    with pytest.raises(InvalidConnector, match="worker's file"):
        read_worker(text)


def test_tls_and_logins_of_strimzi_become_properties_of_the_consumer() -> None:
    spec = """
    bootstrapServers: kafka:9093
    tls: {trustedCertificates: [{secretName: ca, certificate: ca.crt}]}
    authentication: {type: tls, certificateAndKey: {secretName: user, certificate: user.crt, key: user.key}}
    """
    assert of_kafka_connect({"spec": yaml.safe_load(spec)}) == {
        "bootstrap.servers": "kafka:9093",
        "consumer.security.protocol": "SSL",
        "consumer.ssl.truststore.type": "PEM",
        "consumer.ssl.truststore.certificates": "${secrets:ca:ca.crt}",
        "consumer.ssl.keystore.type": "PEM",
        "consumer.ssl.keystore.certificate.chain": "${secrets:user:user.crt}",
        "consumer.ssl.keystore.key": "${secrets:user:user.key}",
    }


@pytest.mark.parametrize(
    ("kind", "mechanism", "module"),
    [("scram-sha-512", "SCRAM-SHA-512", "ScramLoginModule"), ("plain", "PLAIN", "PlainLoginModule")],
)
def test_a_login_by_password_is_a_secret_to_create(kind: str, mechanism: str, module: str) -> None:
    found = of_kafka_connect({"spec": {"authentication": {"type": kind, "username": "u"}}})
    assert found["consumer.security.protocol"] == "SASL_PLAINTEXT"
    assert found["consumer.sasl.mechanism"] == mechanism
    assert module in found["consumer.sasl.jaas.config"]


@pytest.mark.parametrize("document", [{}, {"spec": None}, {"spec": {"tls": None, "config": [], "authentication": "x"}}])
def test_a_resource_without_settings_has_none(document: dict[str, object]) -> None:
    assert of_kafka_connect(document) == {}
    assert of_msk_connect(document) == {}


def test_the_encryption_of_msk_connect_is_a_property() -> None:
    assert of_msk_connect({"kafkaClusterEncryptionInTransit": {"encryptionType": "TLS"}}) == {
        "consumer.security.protocol": "SSL"
    }
