"""Topics, the consumer group, and the properties of the Kafka client."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.migrate.conversion import convert
from sink_job.migrate.findings import Configuration, Severity
from tests.unit.migrate.test_conversion import MINIMAL, findings_of, spec_of


def kafka(settings: dict[str, str], **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(settings, **more)["kafka"]
    return found


def test_topics_are_listed_once_each() -> None:
    assert kafka({"topics": "a, b,a,"})["topics"] == ["a", "b"]


@pytest.mark.parametrize("topics", ["", "a b", "<topic>", "x.*", "_s3sink", "${env:TOPIC}"])
def test_topics_that_are_none_are_reported(topics: str) -> None:
    assert kafka({"topics": topics})["topics"] == ["replace-me"]
    assert len(findings_of({"topics": topics})) == 1


def test_more_topics_than_a_manifest_lists_cannot_be_converted() -> None:
    (found,) = findings_of({"topics": ",".join(f"t{n}" for n in range(10_000))}, Severity.IMPOSSIBLE)
    assert "10,000 topics" in found
    assert len(found) < 400


def test_a_pattern_is_taken_over() -> None:
    assert kafka({"topics": "", "topics.regex": "a\\..*"})["topicsPattern"] == "a\\..*"


def test_topics_and_a_pattern_together_are_reported() -> None:
    assert "topicsPattern" not in kafka({"topics.regex": "a.*"})
    assert len(findings_of({"topics.regex": "a.*"})) == 1


@pytest.mark.parametrize("pattern", ["(", "(?P<a>x)", "[", "a" * 2000, "[a&&[b]]", r"\p{L}", "a{,3}"])
def test_a_pattern_that_is_none_cannot_be_converted(pattern: str) -> None:
    assert len(findings_of({"topics": "", "topics.regex": pattern}, Severity.IMPOSSIBLE)) == 1


@pytest.mark.parametrize("pattern", ["^(?!internal).*", "(?<=a)b", "(a)\\1", "a++", "(?>a)b"])
def test_a_pattern_that_re2_cannot_have_is_converted_with_a_remark(pattern: str) -> None:
    settings = {"topics": "", "topics.regex": pattern}
    assert kafka(settings)["topicsPattern"] == pattern
    assert any("RE2" in each for each in findings_of(settings, Severity.TO_DO))
    assert findings_of(settings) == []


def test_the_group_is_that_of_the_connector_unless_it_is_given() -> None:
    override = {"consumer.override.group.id": "mine"}
    assert kafka({})["groupId"] == "connect-flights"
    assert kafka(override)["groupId"] == "mine"
    assert kafka(override, group="given")["groupId"] == "given"


@pytest.mark.parametrize(
    ("settings", "more", "key"),
    [({}, {"group": "a\nb"}, "--group"), ({"consumer.override.group.id": "a\nb"}, {}, "consumer.override.group.id")],
)
def test_a_group_that_is_none_is_reported_by_where_it_came_from(
    settings: dict[str, str], more: dict[str, Any], key: str
) -> None:
    found = convert(Configuration({**MINIMAL, **settings}, "flights"), **more).findings
    assert [str(each).split(":")[0].split("=")[0] for each in found if each.severity is Severity.DIFFERENT] == [key]


def test_a_name_that_gives_no_group_is_reported_as_the_name() -> None:
    found = convert(Configuration(MINIMAL, "a\nb")).findings
    (found_name,) = [str(each) for each in found if each.severity is Severity.DIFFERENT]
    assert found_name.startswith("name: the consumer group of this name contains control characters")


@pytest.mark.parametrize(("topics", "count"), [("a b", 1), ("a b,a b", 1), ("a b,c d", 2)])
def test_each_name_that_is_no_topic_is_reported_once(topics: str, count: int) -> None:
    found = findings_of({"topics": topics})
    assert len(set(found)) == len(found) == count
    assert 'the topic "a b" is not a valid' in found[0]


def test_a_managed_connector_s_group_is_a_guess_unless_it_is_given() -> None:
    configuration = Configuration(MINIMAL, "flights", managed="MSK Connect")
    assert convert(configuration).exit_code == 8
    assert convert(configuration, group="connect-flights-1").exit_code == 0


def test_the_worker_has_brokers_and_settings_of_the_consumer_which_the_connector_overrides() -> None:
    worker = {
        "bootstrap.servers": "PLAINTEXT://a:9092, b:9092",
        "consumer.isolation.level": "read_committed",
        "consumer.auto.offset.reset": "latest",
        "consumer.security.protocol": "SSL",
        "security.protocol": "SASL_SSL",
    }
    found = kafka({"consumer.override.security.protocol": "PLAINTEXT"}, worker=worker)
    assert found == {
        "bootstrapServers": "a:9092,b:9092",
        "topics": ["flights"],
        "groupId": "connect-flights",
        "startingOffsets": "Latest",
        "isolationLevel": "ReadCommitted",
        "properties": {"security.protocol": "PLAINTEXT"},
    }


def test_brokers_of_the_consumer_precede_those_of_the_worker_as_with_kafka_connect() -> None:
    worker = {"bootstrap.servers": "a:9092", "consumer.bootstrap.servers": "b:9092"}
    assert kafka({}, worker=worker)["bootstrapServers"] == "b:9092"
    assert kafka({"consumer.override.bootstrap.servers": "c:9092"}, worker=worker)["bootstrapServers"] == "c:9092"
    assert kafka({"bootstrap.servers": "d:9092"})["bootstrapServers"] == "d:9092"


def test_a_group_of_the_worker_s_consumers_precedes_the_name_of_the_connector() -> None:
    assert kafka({}, worker={"consumer.group.id": "all"})["groupId"] == "all"


def test_offsets_and_isolation_that_are_unknown_are_reported() -> None:
    settings = {"consumer.override.auto.offset.reset": "none", "consumer.override.isolation.level": "x"}
    assert len(findings_of(settings)) == 2


def test_properties_that_the_sink_manages_are_left_out() -> None:
    settings = {"consumer.override.max.poll.records": "5", "consumer.override.client.id": "x"}
    assert "properties" not in kafka(settings)
    assert findings_of(settings) == []


def test_an_interceptor_is_reported_since_it_could_change_records() -> None:
    assert len(findings_of({"consumer.override.interceptor.classes": "com.example.I"})) == 1


def test_logins_and_passwords_become_secrets() -> None:
    settings = {
        "consumer.override.sasl.mechanism": "PLAIN",
        "consumer.override.sasl.jaas.config": 'PlainLoginModule required password="hunter2";',
        "consumer.override.ssl.key.password": "hunter2",
        "consumer.override.sasl.oauthbearer.client.credentials.client.secret": "${secrets:kafka/oauth:secret}",
    }
    found = kafka(settings)
    assert found["properties"] == {"sasl.mechanism": "PLAIN"}
    assert found["propertySecrets"] == [
        {"name": "sasl.jaas.config", "secret": "flights-kafka", "key": "sasl.jaas.config"},
        {"name": "ssl.key.password", "secret": "flights-kafka", "key": "ssl.key.password"},
        {"name": "sasl.oauthbearer.client.credentials.client.secret", "secret": "oauth", "key": "secret"},
    ]


def test_key_stores_become_pem_which_needs_no_files_in_pods() -> None:
    settings = {
        f"consumer.override.ssl.{name}": "x"
        for name in (
            "truststore.location",
            "truststore.password",
            "keystore.location",
            "keystore.password",
            "key.password",
        )
    }
    found = kafka(settings)
    assert found["properties"] == {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    names = [each["name"] for each in found["propertySecrets"]]
    assert names == ["ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key"]


def test_a_callback_class_is_reported_since_it_has_to_be_in_the_image() -> None:
    settings = {"consumer.override.sasl.client.callback.handler.class": "com.example.Handler"}
    assert len(findings_of(settings)) == 1


IAM = {
    "consumer.override.security.protocol": "SASL_SSL",
    "consumer.override.sasl.mechanism": "AWS_MSK_IAM",
    "consumer.override.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "consumer.override.sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}


def test_iam_of_msk_becomes_a_login() -> None:
    found = kafka({**IAM, "consumer.override.request.timeout.ms": "1"})
    assert found["login"] == {"type": "MskIam"}
    assert found["properties"] == {"request.timeout.ms": "1"}
    assert "propertySecrets" not in found
    assert findings_of(IAM) == []


def test_iam_of_msk_with_options_stays_properties_whose_classes_the_image_has() -> None:
    options = {"consumer.override.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required a='b';"}
    found = kafka(IAM | options)
    assert "login" not in found
    assert found["properties"]["sasl.mechanism"] == "AWS_MSK_IAM"
    assert findings_of(IAM | options) == []


@pytest.mark.parametrize(("name", "count"), [("x", 201), ("password", 51)])
def test_more_properties_than_a_manifest_has_cannot_be_converted(name: str, count: int) -> None:
    settings = {f"consumer.override.p{number}.{name}": "1" for number in range(count)}
    assert len(findings_of(settings, Severity.IMPOSSIBLE)) == 1


def test_an_invalid_name_of_a_property_is_reported() -> None:
    assert len(findings_of({"consumer.override.a b": "x"})) == 1
