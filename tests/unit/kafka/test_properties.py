"""One set of Kafka properties: where values come from, and that secret ones stay inside."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.api.spec import KafkaSpec
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


def test_the_manifests_properties_reach_the_client_as_they_are() -> None:
    properties = KafkaProperties.of(kafka(properties={"security.protocol": "SSL"}), {})
    assert properties.client() == {
        "bootstrap.servers": "kafka:9092",
        "isolation.level": "read_committed",
        "security.protocol": "SSL",
    }


def test_the_isolation_level_is_spelled_as_kafka_does() -> None:
    properties = KafkaProperties.of(kafka(isolationLevel="ReadUncommitted"), {})
    assert properties.client()["isolation.level"] == "read_uncommitted"


def test_a_secret_is_read_from_its_file_without_the_final_newline(login: dict[str, Path]) -> None:
    assert KafkaProperties.of(kafka(**jaas()), login).client()["sasl.jaas.config"] == LOGIN


def test_a_secret_of_several_lines_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN\nabc\n-----END\n")
    spec = kafka(propertySecrets=[{"name": "ssl.truststore.certificates", "secret": "ca", "key": "ca.crt"}])
    client = KafkaProperties.of(spec, {"ca": tmp_path}).client()
    assert client["ssl.truststore.certificates"] == "-----BEGIN\nabc\n-----END"


def test_a_secret_without_a_directory_is_named(login: dict[str, Path]) -> None:
    with pytest.raises(SecretNotFound, match=r"sasl\.jaas\.config: login has no directory here.*--secret login="):
        KafkaProperties.of(kafka(**jaas()), {})


def test_a_key_that_the_secret_lacks_is_named(login: dict[str, Path]) -> None:
    with pytest.raises(SecretNotFound, match=r"sasl\.jaas\.config: the secret login has no key missing"):
        KafkaProperties.of(kafka(**jaas("missing")), login)


def test_the_representation_shows_names_alone(login: dict[str, Path]) -> None:
    shown = repr(KafkaProperties.of(kafka(**jaas()), login))
    assert shown == "KafkaProperties(bootstrap.servers, isolation.level, sasl.jaas.config)"


def test_they_do_not_travel_by_pickle(login: dict[str, Path]) -> None:
    with pytest.raises(TypeError, match="secrets"):
        pickle.dumps(KafkaProperties.of(kafka(**jaas()), login))


@pytest.mark.parametrize("quoted", [LOGIN, "login with s3cr3t-word failed", 'password="s3cr3t-word"'])
def test_a_clients_message_loses_the_password_in_a_jaas_line(login: dict[str, Path], quoted: str) -> None:
    said = KafkaProperties.of(kafka(**jaas()), login).redact(f"Invalid value {quoted} for configuration")
    assert "s3cr3t-word" not in said
    assert said.startswith("Invalid value ")


def test_a_clients_message_loses_what_a_secret_holds_whatever_the_property_is_called(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("very-private")
    spec = kafka(propertySecrets=[{"name": "client.rack", "secret": "s", "key": "v"}])
    assert KafkaProperties.of(spec, {"s": tmp_path}).redact("rack very-private!") == "rack [hidden]!"


def test_a_password_written_into_the_manifest_is_hidden_too() -> None:
    properties = KafkaProperties.of(kafka(properties={"ssl.keystore.password": "changeit"}), {})
    assert properties.redact("keystore password changeit was incorrect") == ("keystore password [hidden] was incorrect")
