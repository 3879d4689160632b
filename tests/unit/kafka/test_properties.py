"""Kafka properties: the sources of their values, and the protection of secret ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.kafka.properties import KafkaProperties

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="app" password="s3cr3t-word";'


def kafka(**fields: object) -> KafkaSpec:
    return KafkaSpec.model_validate({"bootstrapServers": "kafka:9092", "topics": ["t"], **fields})


def jaas(key: str = "jaas") -> dict[str, object]:
    return {"propertySecrets": [{"name": "sasl.jaas.config", "secret": "login", "key": key}]}


@pytest.fixture
def login(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "jaas").write_text(LOGIN + "\n")
    return {"login": tmp_path}


def test_the_properties_of_the_manifest_are_passed_to_the_client_unchanged() -> None:
    properties = KafkaProperties.of(kafka(properties={"security.protocol": "SSL"}), {})
    assert properties.client() == {
        "bootstrap.servers": "kafka:9092",
        "isolation.level": "read_committed",
        "security.protocol": "SSL",
    }


def test_the_isolation_level_is_converted_to_kafkas_spelling() -> None:
    properties = KafkaProperties.of(kafka(isolationLevel="ReadUncommitted"), {})
    assert properties.client()["isolation.level"] == "read_uncommitted"


def test_a_secret_is_read_from_its_file_without_the_final_newline(login: dict[str, Path]) -> None:
    assert KafkaProperties.of(kafka(**jaas()), login).client()["sasl.jaas.config"] == LOGIN


def test_a_secret_of_several_lines_keeps_its_inner_newlines(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN\nabc\n-----END\n")
    spec = kafka(propertySecrets=[{"name": "ssl.truststore.certificates", "secret": "ca", "key": "ca.crt"}])
    client = KafkaProperties.of(spec, {"ca": tmp_path}).client()
    assert client["ssl.truststore.certificates"] == "-----BEGIN\nabc\n-----END"


def test_the_error_for_a_secret_without_a_directory_names_it(login: dict[str, Path]) -> None:
    with pytest.raises(SecretNotFound, match=r"sasl\.jaas\.config: the Secret login is not mounted.*--secret login="):
        KafkaProperties.of(kafka(**jaas()), {})


def test_the_error_for_a_missing_key_of_a_secret_names_it(login: dict[str, Path]) -> None:
    with pytest.raises(SecretNotFound, match=r"sasl\.jaas\.config: the secret login has no key missing"):
        KafkaProperties.of(kafka(**jaas("missing")), login)


def test_the_repr_shows_only_the_names_of_properties(login: dict[str, Path]) -> None:
    shown = repr(KafkaProperties.of(kafka(**jaas()), login))
    assert shown == "KafkaProperties(bootstrap.servers, isolation.level, sasl.jaas.config)"


def test_kafka_properties_cannot_be_pickled(login: dict[str, Path]) -> None:
    with pytest.raises(TypeError, match="secrets"):
        pickle.dumps(KafkaProperties.of(kafka(**jaas()), login))


@pytest.mark.parametrize("quoted", [LOGIN, "login with s3cr3t-word failed", 'password="s3cr3t-word"'])
def test_the_password_of_a_jaas_configuration_is_removed_from_messages(login: dict[str, Path], quoted: str) -> None:
    message = KafkaProperties.of(kafka(**jaas()), login).redact(f"Invalid value {quoted} for configuration")
    assert "s3cr3t-word" not in message
    assert message.startswith("Invalid value ")


def test_the_value_of_a_secret_is_removed_from_messages_whatever_the_propertys_name(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("very-private")
    spec = kafka(propertySecrets=[{"name": "client.rack", "secret": "s", "key": "v"}])
    assert KafkaProperties.of(spec, {"s": tmp_path}).redact("rack very-private!") == "rack [hidden]!"


def test_a_password_in_the_manifest_is_removed_from_messages() -> None:
    properties = KafkaProperties.of(kafka(properties={"ssl.keystore.password": "changeit"}), {})
    assert properties.redact("keystore password changeit was incorrect") == ("keystore password [hidden] was incorrect")
