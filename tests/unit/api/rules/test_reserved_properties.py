"""Reserved properties of Kafka and Spark are rejected by name, with the field to use instead."""

from __future__ import annotations

import pytest

from sink_job.api.rules.reserved_properties import KAFKA_OWNED, SPARK_OWNED
from tests.unit.api.manifests import accepted, spec_errors


@pytest.mark.parametrize("name", sorted(KAFKA_OWNED))
def test_a_reserved_kafka_property_is_rejected(name: str) -> None:
    assert spec_errors({"spec.kafka.properties": {name: "x"}}) == [
        f"spec.kafka.properties[{name}]: cannot be set here: {KAFKA_OWNED[name]}"
    ]


@pytest.mark.parametrize("name", sorted(SPARK_OWNED))
def test_a_reserved_spark_property_is_rejected(name: str) -> None:
    assert spec_errors({"spec.sparkConf": {name: "x"}}) == [
        f"spec.sparkConf[{name}]: cannot be set here: {SPARK_OWNED[name]}"
    ]


def test_a_spark_property_with_a_reserved_prefix_is_rejected() -> None:
    assert spec_errors({"spec.sparkConf": {"spark.dynamicAllocation.enabled": "true"}}) == [
        "spec.sparkConf[spark.dynamicAllocation.enabled]: cannot be set here: use spec.executor.instances"
    ]


def test_a_property_without_the_prefix_spark_is_rejected() -> None:
    assert spec_errors({"spec.sparkConf": {"fs.s3a.endpoint": "x"}}) == [
        "spec.sparkConf[fs.s3a.endpoint]: is not a Spark property: the name must start with spark."
    ]


def test_a_kafka_property_with_the_prefix_kafka_is_rejected() -> None:
    assert spec_errors({"spec.kafka.properties": {"kafka.security.protocol": "SSL"}}) == [
        "spec.kafka.properties[kafka.security.protocol]: must not have the prefix kafka.: use security.protocol"
    ]


def test_authentication_properties_are_accepted() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;",
        "ssl.truststore.location": "/certs/ca.p12",
        "request.timeout.ms": "30000",
        "client.id": "flights",
        "client.rack": "eu-central-1a",
    }
    assert accepted({"spec.kafka.properties": properties}).spec.kafka.properties == properties


def test_a_reserved_property_from_a_secret_is_rejected() -> None:
    secrets = [{"name": "group.id", "secret": "a", "key": "b"}]
    assert spec_errors({"spec.kafka.propertySecrets": secrets}) == [
        "spec.kafka.propertySecrets[0].name: group.id cannot be set here: use spec.kafka.groupId"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.key.password", "x"),
        ("ssl.keystore.key", "-----BEGIN"),
        ("sasl.oauthbearer.client.credentials.client.secret", "x"),
        ("sasl.jaas.config", 'PlainLoginModule required username="app" password="x";'),
    ],
)
def test_a_secret_kafka_property_in_the_manifest_is_rejected(name: str, value: str) -> None:
    """Every user with read access to the sink or its ConfigMap could read it."""
    assert spec_errors({"spec.kafka.properties": {name: value}}) == [
        f"spec.kafka.properties[{name}]: cannot be set here: a manifest must not contain secrets: use "
        "spec.kafka.propertySecrets"
    ]


@pytest.mark.parametrize(
    "name", ["spark.hadoop.fs.s3a.secret.key", "spark.executorEnv.AWS_SECRET_ACCESS_KEY", "spark.ssl.keyPassword"]
)
def test_a_secret_spark_property_in_the_manifest_is_rejected(name: str) -> None:
    assert spec_errors({"spec.sparkConf": {name: "x"}}) == [
        f"spec.sparkConf[{name}]: cannot be set here: a manifest must not contain secrets: mount it from a "
        "Secret with podTemplate"
    ]


def test_a_property_in_two_places_is_rejected() -> None:
    secret = {"name": "sasl.jaas.config", "secret": "a", "key": "b"}
    changes = {
        "spec.kafka.properties": {"client.rack": "x"},
        "spec.kafka.propertySecrets": [secret, secret, secret | {"name": "client.rack"}],
    }
    assert spec_errors(changes) == [
        "spec.kafka.propertySecrets[1].name: sasl.jaas.config is listed twice",
        "spec.kafka.propertySecrets[2].name: client.rack is also set in spec.kafka.properties: set it in one place "
        "only",
    ]


def test_a_secret_needs_a_name_and_a_key() -> None:
    assert spec_errors({"spec.kafka.propertySecrets": [{"name": "ssl.key.password"}]}) == [
        "spec.kafka.propertySecrets[0].secret: is missing: name of the secret, for example s3-keys",
        "spec.kafka.propertySecrets[0].key: is missing: key in the secret, for example ca.crt",
    ]
