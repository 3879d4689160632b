"""Value converters and the registry of their settings."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.migrate.converters import converter_class, is_url, without_login
from sink_job.migrate.findings import Severity
from tests.unit.migrate.test_conversion import findings_of, spec_of

AVRO = "io.confluent.connect.avro.AvroConverter"
URL = "https://registry.example.com"


def registry_of(settings: dict[str, str], converter: str = AVRO) -> dict[str, Any]:
    spec = spec_of({"value.converter": converter, **{f"value.converter.{key}": each for key, each in settings.items()}})
    found: dict[str, Any] = spec["format"]["registry"]
    return found


@pytest.mark.parametrize(
    ("name", "converter"),
    [
        ("org.apache.kafka.connect.storage.StringConverter", "Text"),
        ("org.apache.kafka.connect.converters.ByteArrayConverter", "Bytes"),
        ("JsonConverter", "ConnectJson"),
        ("String", "Text"),
        (AVRO, "Avro"),
        ("io.confluent.connect.protobuf.ProtobufConverter", "Protobuf"),
        ("io.confluent.connect.json.JsonSchemaConverter", "JsonSchema"),
        ("com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter", "Avro"),
        ("io.apicurio.registry.utils.converter.ExtJsonConverter", "JsonSchema"),
    ],
)
def test_each_class_of_a_converter_is_known(name: str, converter: str) -> None:
    found = converter_class(name)
    assert found is not None
    assert found.type == converter


@pytest.mark.parametrize(
    "name", ["com.example.AvroConverter", "org.apache.kafka.connect.converters.LongConverter", "X"]
)
def test_a_converter_of_ones_own_cannot_be_converted(name: str) -> None:
    assert converter_class(name) is None
    (found,) = findings_of({"value.converter": name}, Severity.IMPOSSIBLE)
    assert "not supported" in found


def test_json_has_schemas_unless_the_setting_says_otherwise() -> None:
    assert spec_of({"value.converter.schemas.enable": "true"})["format"]["converter"] == "ConnectJson"
    assert spec_of({"value.converter.schemas.enable": "false"})["format"]["converter"] == "Json"


def test_the_worker_s_converter_is_used_with_its_settings_if_the_connector_has_none() -> None:
    worker = {"value.converter": AVRO, "value.converter.schema.registry.url": URL}
    found = spec_of({"value.converter": ""}, worker=worker)["format"]
    assert (found["converter"], found["registry"]["url"]) == ("Avro", [URL])


def test_settings_of_a_connector_without_a_converter_have_no_effect_as_with_kafka_connect() -> None:
    worker = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
    }
    assert spec_of({"value.converter": ""}, worker=worker)["format"]["converter"] == "ConnectJson"


@pytest.mark.parametrize(
    ("output", "converter"),
    [("json.Json", "Json"), ("bytearray.ByteArray", "Bytes"), ("avro.Avro", "Avro"), ("parquet.Parquet", "Avro")],
)
def test_without_a_worker_the_converter_that_fits_the_output_is_assumed_and_reported(
    output: str, converter: str
) -> None:
    settings = {"value.converter": "", "format.class": f"io.confluent.connect.s3.format.{output}Format"}
    assert spec_of(settings)["format"]["converter"] == converter
    assert "--worker" in findings_of(settings)[0]


def test_urls_without_tls_need_insecure_beyond_loopback() -> None:
    assert registry_of({"schema.registry.url": "http://a:8081, http://b:8081"}) == {
        "url": ["http://a:8081", "http://b:8081"],
        "insecure": True,
    }
    assert registry_of({"schema.registry.url": "http://localhost:8081"}) == {"url": ["http://localhost:8081"]}


def test_a_login_in_the_url_becomes_a_secret() -> None:
    found = registry_of({"schema.registry.url": "https://user:hunter2@registry.example.com/x"})
    assert found == {"url": ["https://registry.example.com/x"], "credentials": {"secret": "flights-registry"}}


@pytest.mark.parametrize("url", ["", "registry:8081", "${env:URL}", "https://", "https://a b", "https://a/?q=1"])
def test_a_url_that_is_none_is_reported_and_to_be_written(url: str) -> None:
    settings = {"value.converter": AVRO, "value.converter.schema.registry.url": url}
    assert spec_of(settings)["format"]["registry"]["url"] == ["https://replace-me:8081"]
    assert len(findings_of(settings)) == 1


def test_the_logins_of_confluent_s_converters_become_one_secret() -> None:
    login = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "user:hunter2"}
    assert registry_of({"schema.registry.url": URL, **login})["credentials"] == {"secret": "flights-registry"}
    token = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "hunter2"}
    assert registry_of({"schema.registry.url": URL, **token})["credentials"] == {"secret": "flights-registry"}


def test_key_stores_of_the_registry_become_pem_secrets() -> None:
    found = registry_of(
        {
            "schema.registry.url": URL,
            "schema.registry.ssl.truststore.location": "/t.jks",
            "schema.registry.ssl.keystore.location": "/k.jks",
        }
    )
    assert found["caSecret"] == {"secret": "flights-registry-ca", "key": "ca.crt"}
    assert found["clientSecret"] == {"secret": "flights-registry-client"}


def test_subjects_and_places_of_ids_are_taken_over() -> None:
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    deserializer = "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdDeserializer"
    settings = {"value.subject.name.strategy": strategy, "value.schema.id.deserializer": deserializer}
    found = registry_of({"schema.registry.url": URL, **settings})
    assert (found["subjects"], found["idIn"]) == ("RecordName", "Value")


def test_a_strategy_of_ones_own_is_reported() -> None:
    settings = {"value.converter.value.subject.name.strategy": "com.example.S", "value.converter": AVRO}
    found = findings_of({"value.converter.schema.registry.url": URL, **settings})
    assert len(found) == 1


def test_glue_needs_a_region_and_apicurio_its_url() -> None:
    glue = "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter"
    assert registry_of({"region": "eu-central-1", "registry.name": "flights"}, glue) == {
        "type": "Glue",
        "region": "eu-central-1",
        "name": "flights",
    }
    assert registry_of({}, glue) == {"type": "Glue", "region": "replace-me"}
    apicurio = "io.apicurio.registry.utils.converter.AvroConverter"
    found = registry_of(
        {"apicurio.registry.url": f"{URL}/apis/registry/v3", "apicurio.registry.use-id": "contentId"}, apicurio
    )
    assert found == {"type": "Apicurio", "url": [f"{URL}/apis/registry/v3"], "useId": "ContentId"}


@pytest.mark.parametrize("name", ["a b", "\x08", "x" * 256, "${env:NAME}"])
def test_a_name_of_a_registry_that_glue_does_not_allow_is_left_out_and_reported(name: str) -> None:
    glue = "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter"
    assert registry_of({"region": "eu-central-1", "registry.name": name}, glue) == {
        "type": "Glue",
        "region": "eu-central-1",
    }
    settings = {"value.converter": glue, "value.converter.region": "eu-central-1"}
    assert len(findings_of({**settings, "value.converter.registry.name": name})) == 1


def test_a_url_that_is_too_long_is_to_be_written() -> None:
    found = registry_of({"schema.registry.url": f"https://host/{'x' * 600}"})
    assert found == {"url": ["https://replace-me:8081"]}


def test_a_setting_of_another_converter_has_no_effect_and_an_unknown_one_is_reported() -> None:
    assert findings_of({"value.converter.schema.registry.url": URL}) == []
    assert findings_of({"value.converter.schema.enable": "false"}) == [
        "value.converter.schema.enable: this setting of the converter is not known; "
        "did you mean value.converter.schemas.enable?"
    ]


def test_logins_are_taken_out_of_urls() -> None:
    assert without_login("https://u:p@host:8081/x") == ("https://host:8081/x", True)
    assert without_login("https://host") == ("https://host", False)
    assert without_login("http://[") == ("", False)


def test_urls_have_a_scheme_and_a_host() -> None:
    assert is_url("http://host:1")
    assert not any(map(is_url, ["host", "ftp://host", "http://", "http://host:99999", "http://host/ x"]))
