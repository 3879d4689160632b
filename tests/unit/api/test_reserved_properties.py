"""Properties of Kafka and Spark that the sink keeps for itself are refused by name, with what to use instead."""

from __future__ import annotations

import pytest

from sink_job.api.reserved_properties import KAFKA_OWNED, SPARK_OWNED
from tests.unit.api.manifests import accepted, mistakes


@pytest.mark.parametrize("name", sorted(KAFKA_OWNED))
def test_a_kafka_property_that_the_sink_owns_is_refused(name: str) -> None:
    assert mistakes({"spec.kafka.properties": {name: "x"}}) == [
        f"spec.kafka.properties[{name}]: cannot be set here: {KAFKA_OWNED[name]}"
    ]


@pytest.mark.parametrize("name", sorted(SPARK_OWNED))
def test_a_spark_property_that_the_sink_owns_is_refused(name: str) -> None:
    assert mistakes({"spec.sparkConf": {name: "x"}}) == [
        f"spec.sparkConf[{name}]: cannot be set here: {SPARK_OWNED[name]}"
    ]


def test_a_family_of_spark_properties_that_the_sink_owns_is_refused() -> None:
    assert mistakes({"spec.sparkConf": {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}}) == [
        "spec.sparkConf[spark.sql.execution.arrow.maxRecordsPerBatch]: cannot be set here: the sink sets it by itself"
    ]


def test_a_property_that_is_none_of_spark_s_is_refused() -> None:
    assert mistakes({"spec.sparkConf": {"fs.s3a.endpoint": "x"}}) == [
        "spec.sparkConf[fs.s3a.endpoint]: is not a property of Spark: their names begin with spark."
    ]


def test_a_kafka_property_is_written_without_the_reader_s_prefix() -> None:
    assert mistakes({"spec.kafka.properties": {"kafka.security.protocol": "SSL"}}) == [
        "spec.kafka.properties[kafka.security.protocol]: is written without the prefix: security.protocol"
    ]


def test_what_authenticates_is_left_to_the_user() -> None:
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


def test_an_owned_property_cannot_come_from_a_secret_either() -> None:
    secrets = [{"name": "group.id", "secret": "a", "key": "b"}]
    assert mistakes({"spec.kafka.propertySecrets": secrets}) == [
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
def test_a_secret_is_not_written_into_the_manifest(name: str, value: str) -> None:
    """Everybody who may read the sink or its ConfigMap would read it."""
    assert mistakes({"spec.kafka.properties": {name: value}}) == [
        f"spec.kafka.properties[{name}]: cannot be written here: a manifest is no place for secrets: give its value by "
        "spec.kafka.propertySecrets"
    ]


@pytest.mark.parametrize(
    "name", ["spark.hadoop.fs.s3a.secret.key", "spark.executorEnv.AWS_SECRET_ACCESS_KEY", "spark.ssl.keyPassword"]
)
def test_a_secret_for_spark_is_not_written_into_the_manifest(name: str) -> None:
    assert mistakes({"spec.sparkConf": {name: "x"}}) == [
        f"spec.sparkConf[{name}]: cannot be written here: a manifest is no place for secrets: give it to the pods from "
        "a Secret, by their podTemplate"
    ]


def test_a_property_is_given_in_one_place() -> None:
    secret = {"name": "sasl.jaas.config", "secret": "a", "key": "b"}
    changes = {
        "spec.kafka.properties": {"client.rack": "x"},
        "spec.kafka.propertySecrets": [secret, secret, secret | {"name": "client.rack"}],
    }
    assert mistakes(changes) == [
        "spec.kafka.propertySecrets[1].name: sasl.jaas.config is listed twice",
        "spec.kafka.propertySecrets[2].name: client.rack is also in spec.kafka.properties: give it in one place",
    ]


def test_a_secret_needs_a_name_and_a_key() -> None:
    assert mistakes({"spec.kafka.propertySecrets": [{"name": "ssl.key.password"}]}) == [
        "spec.kafka.propertySecrets[0].secret: is missing: name of the Secret, such as s3-keys",
        "spec.kafka.propertySecrets[0].key: is missing: key in the Secret, such as ca.crt",
    ]
