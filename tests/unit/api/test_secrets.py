"""A secret in a manifest is never shown: not in messages, not in repr, not in the manifest for logs."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from sink_job.api.rules.reserved_properties import is_secret
from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.api.spec import ObjectSettings
from tests.unit.api.manifests import accepted, spec_errors

SECRET = "hunter2"
CARRIERS = {
    "spec.kafka.properties": {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": f'com.sun.security.auth.module.Krb5LoginModule required principal="{SECRET}";',
        "ssl.truststore.certificates": SECRET,
        "client.rack": f"password={SECRET}",
    },
    "spec.sparkConf": {"spark.hadoop.fs.s3a.access.key": SECRET, "spark.ui.port": "4041"},
    "spec.driver.podTemplate": {"spec": {"containers": [{"env": [{"name": "TOKEN", "value": SECRET}]}]}},
}

WRONG_PLACES = [
    pytest.param({"spec.kafka.properties": {"sasl.jaas.config": [SECRET]}}, id="as a list"),
    pytest.param(
        {"spec.kafka.properties": {"ssl.key.password": 2}, "spec.s3.secretKey": SECRET}, id="in an unknown field"
    ),
    pytest.param({"spec.s3.credentials": SECRET}, id="as the credentials themselves"),
    pytest.param({"spec.s3.credentials": {"secret": f"/{SECRET}"}}, id="as the name of a secret"),
    pytest.param({"spec.s3.credentials": {"secretAccessKey": SECRET}}, id="in a reference to a secret"),
    pytest.param({"spec.kafka.propertySecrets": [{"name": f"/{SECRET}", "secret": "a", "key": "b"}]}, id="as a name"),
    pytest.param({"spec.s3.endpoint": f"https://me:{SECRET}@minio:9000"}, id="in an endpoint"),
    pytest.param({"spec.kafka.bootstrapServers": f"SASL://me:{SECRET}@kafka:9092"}, id="in the brokers"),
    pytest.param({"spec.kafka.groupId": f" password={SECRET}"}, id="in another field"),
    pytest.param({"spec.sparkConf": {"spark.ssl.keyPassword": [SECRET]}}, id="in a Spark property"),
    pytest.param({"spec.kafka.properties": {f"password={SECRET}": 1}}, id="as the name of a property"),
    pytest.param({"spec.driver.podTemplate": SECRET}, id="in a pod template"),
]


@pytest.mark.parametrize("changes", WRONG_PLACES)
def test_a_secret_in_the_wrong_place_is_not_shown(changes: dict[str, object]) -> None:
    assert SECRET not in "\n".join(spec_errors(changes))


def test_the_repr_of_a_sink_has_no_secrets() -> None:
    sink = accepted(CARRIERS)
    assert SECRET not in f"{sink!r} {sink} {sink.spec.kafka!r} {sink.spec.driver}"


def test_a_redacted_manifest_keeps_all_fields_except_secrets() -> None:
    redacted = accepted(CARRIERS).redacted()
    assert SECRET not in json.dumps(redacted)
    assert redacted["spec"]["kafka"]["properties"] == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "[hidden]",
        "ssl.truststore.certificates": "[hidden]",
        "client.rack": "[hidden]",
    }
    assert redacted["spec"]["sparkConf"]["spark.ui.port"] == "4041"
    assert redacted["spec"]["s3"]["bucket"] == "archive"


def test_object_settings_contain_no_secrets() -> None:
    assert SECRET not in accepted(CARRIERS).object_settings().model_dump_json()


def test_a_validation_error_of_the_models_shows_no_value() -> None:
    with pytest.raises(ValidationError) as raised:
        KafkaSpec.model_validate({"properties": {"sasl.jaas.config": [SECRET]}})
    assert SECRET not in str(raised.value)
    with pytest.raises(ValidationError) as raised:
        ObjectSettings.model_validate_json(json.dumps({"rotation": SECRET}))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "basic.auth.user.info",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
    ],
)
def test_a_secret_property_is_recognized_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    ["security.protocol", "sasl.mechanism", "ssl.keystore.location", "ssl.keystore.type", "client.id", "spark.ui.port"],
)
def test_a_harmless_property_is_shown(name: str) -> None:
    assert not is_secret(name)
