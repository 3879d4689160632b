"""The driver's Kafka admin requests, with a real broker."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from py4j.java_gateway import JavaGateway

from devtools.kafka import KafkaBroker, kafka_broker
from devtools.processes import free_ports, wait_until
from devtools.topics import Record, Topics
from sink_job.api.errors import (
    AccessDenied,
    ConfigurationError,
    InvalidCredentials,
    TopicNotFound,
    TransientError,
)
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import GroupMember
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.jvm import plain_jvm
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark.jars import client_jars

pytestmark = pytest.mark.data

USERS = {"admin": "admin-word", "guest": "guest-word"}
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaGateway]:
    gateway = plain_jvm(client_jars())
    yield gateway
    gateway.shutdown()


@pytest.fixture(scope="module")
def admin(jvm: JavaGateway, kafka: KafkaBroker) -> Iterator[JavaKafkaAdmin]:
    with JavaKafkaAdmin(jvm, KafkaProperties({"bootstrap.servers": kafka.bootstrap})) as client:
        yield client


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker where `guest` can log in but has no permissions."""
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    with kafka_broker(users=USERS, settings=rights) as broker:
        yield broker


def logged_in(jvm: JavaGateway, broker: KafkaBroker, user: str, password: str) -> JavaKafkaAdmin:
    properties = {
        "bootstrap.servers": broker.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN_MODULE} required username="{user}" password="{password}";',
    }
    return JavaKafkaAdmin(jvm, KafkaProperties(properties), timeout_ms=10_000)


def partitions_of(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def test_end_offsets_are_those_of_committed_records_by_default(
    admin: JavaKafkaAdmin, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"1", b"2"])
    producer = topics.open_transaction(topic, [Record(value=b"3")])
    [partition] = partitions_of(topic, 0)
    try:
        assert admin.end_offsets([partition]) == {partition: 2}
        assert admin.end_offsets([partition], committed=False) == {partition: 3}
    finally:
        producer.abort_transaction()
    wait_until(lambda: admin.end_offsets([partition]) == {partition: 4}, "the marker of the end", seconds=30)


def test_the_beginning_offset_moves_up_when_records_are_deleted(
    admin: JavaKafkaAdmin, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"1", b"2", b"3"])
    topics.delete_records(topic, 0, 2)
    assert admin.beginning_offsets(partitions_of(topic, 0)) == {TopicPartition(topic, 0): 2}


def test_the_offset_of_a_time_is_that_of_the_first_record_not_before_it(
    admin: JavaKafkaAdmin, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce(topic, [Record(value=b"", timestamp=ms) for ms in (1_000, 2_000, 3_000)])
    [partition] = partitions_of(topic, 0)
    assert [admin.offsets_for_times([partition], ms)[partition] for ms in (0, 1_001, 3_000, 3_001)] == [0, 1, 2, 3]


def test_empty_requests_return_without_a_call_to_kafka(admin: JavaKafkaAdmin) -> None:
    assert admin.end_offsets([]) == {}
    assert admin.group_offsets("none", []) == {}
    assert admin.topics([]) == {}


def test_topics_are_listed_with_id_and_number_of_partitions(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=3)
    before = admin.topics([topic])[topic]
    topics.add_partitions(topic, 5)
    wait_until(lambda: admin.topics([topic])[topic].partitions == 5, "new partitions", seconds=10)
    assert before.partitions == 3
    assert admin.topics([topic])[topic].id == before.id


def test_a_recreated_topic_has_another_id(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic)
    before = admin.topics([topic])[topic].id
    topics.delete(topic)
    topics.create(topic)
    wait_until(lambda: admin.topics([topic])[topic].id != before, "another id", seconds=30)


def test_a_pattern_matches_whole_names(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    for name in (topic, f"{topic}-2", f"x-{topic}"):
        topics.create(name)
    assert set(admin.topics(pattern=f"{topic}(-\\d)?")) == {topic, f"{topic}-2"}


def test_kafkas_internal_topics_match_no_pattern(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic)
    admin.alter_group_offsets(group(), {TopicPartition(topic, 0): 0})
    assert not [name for name in admin.topics(pattern=".*") if name.startswith("__")]


def test_an_invalid_pattern_is_a_configuration_error(admin: JavaKafkaAdmin) -> None:
    with pytest.raises(ConfigurationError, match="Unclosed group"):
        admin.topics(pattern="(")


def test_the_error_names_missing_topics(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic)
    with pytest.raises(TopicNotFound, match="topics missing-1, missing-2 do not exist"):
        admin.topics([topic, "missing-1", "missing-2"])


def test_the_error_names_a_missing_partition(jvm: JavaGateway, kafka: KafkaBroker, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=2)
    with (
        JavaKafkaAdmin(jvm, KafkaProperties({"bootstrap.servers": kafka.bootstrap}), timeout_ms=1_000) as client,
        pytest.raises(TopicNotFound, match=f"topic {topic} has no partition 2"),
    ):
        client.end_offsets(partitions_of(topic, 0, 2))


def test_the_cluster_has_an_id(admin: JavaKafkaAdmin, topics: Topics) -> None:
    assert admin.cluster_id() == topics.admin.list_topics(timeout=10).cluster_id


def test_a_group_without_commits_has_no_offsets(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=2)
    assert admin.group_offsets(group(), partitions_of(topic, 0, 1)) == {}


def test_committed_offsets_are_read_again(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=3)
    name, (first, second, third) = group(), partitions_of(topic, 0, 1, 2)
    admin.alter_group_offsets(name, {first: 7, second: 0})
    admin.alter_group_offsets(name, {first: 5})
    assert admin.group_offsets(name, [first, second, third]) == {first: 5, second: 0}
    assert admin.group_offsets(name) == {first: 5, second: 0}
    assert topics.committed(name, topic) == {0: 5, 1: 0}


def test_commits_are_found_by_what_their_metadata_begins_with(
    admin: JavaKafkaAdmin, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=4)
    name, (first, second, third, fourth) = group(), partitions_of(topic, 0, 1, 2, 3)
    full = "generation 1, ledger s3://lake/räume: 100% + more/_s3sink/a\nb/"
    admin.alter_group_offsets(name, {first: 7}, metadata=full)
    admin.alter_group_offsets(name, {second: 8}, metadata="generation 12")
    admin.alter_group_offsets(name, {third: 9})
    assert admin.group_metadata(name, [first, second, third, fourth]) == {
        first: full,
        second: "generation 12",
        third: "",
    }
    assert admin.group_metadata(name, []) == {}
    assert admin.group_offsets(name, [first, second, third]) == {first: 7, second: 8, third: 9}
    assert admin.group_offsets(name, [first, second, third], metadata="generation 1") == {first: 7}
    assert admin.group_offsets(name, [first, second, third], metadata=full) == {first: 7}


def test_offsets_of_a_group_with_active_consumers_are_not_altered(
    admin: JavaKafkaAdmin, kafka: KafkaBroker, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    name = group()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": name, "client.id": "client 1"})
    consumer.subscribe([topic])
    try:
        wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "a member", seconds=30)
        with pytest.raises(ConfigurationError, match=f"commit the offsets of group {name}: the group has members"):
            admin.alter_group_offsets(name, {TopicPartition(topic, 0): 1})
        assert admin.group_members(name) == 1
        assert admin.active_groups([topic]) == [GroupMember(name, "client 1", topic)]
        assert admin.active_groups([]) == []
    finally:
        consumer.close()


def test_a_missing_group_and_one_with_offsets_only_have_no_members(
    admin: JavaKafkaAdmin, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    name = group()
    assert admin.group_members(name) == 0
    admin.alter_group_offsets(name, {TopicPartition(topic, 0): 1})
    assert admin.group_members(name) == 0


def test_log_sizes_show_which_partition_holds_more_data(admin: JavaKafkaAdmin, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=2)
    topics.produce_values(topic, [b"x" * 100_000], partition=1)
    sizes = admin.log_sizes([topic])
    assert sizes is not None
    assert set(sizes) == set(partitions_of(topic, 0, 1))
    assert sizes[TopicPartition(topic, 1)] > 100_000 > sizes[TopicPartition(topic, 0)]


def test_a_request_is_one_call_into_the_jvm_for_any_number_of_partitions(
    admin: JavaKafkaAdmin, jvm: JavaGateway, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.create(topic, partitions=1_000)
    everything = partitions_of(topic, *range(1_000))
    name = group()
    calls: list[str] = []
    send = jvm._gateway_client.send_command

    def counted(command: str, **options: Any) -> Any:
        calls.append(command)
        return send(command, **options)

    monkeypatch.setattr(jvm._gateway_client, "send_command", counted)
    assert len(admin.end_offsets(everything)) == 1_000
    assert len(admin.beginning_offsets(everything)) == 1_000
    admin.alter_group_offsets(name, dict.fromkeys(everything, 0))
    assert len(admin.group_offsets(name, everything)) == 1_000
    assert len(calls) == 4


def test_unreachable_brokers_are_a_transient_error_that_names_them(jvm: JavaGateway) -> None:
    [port] = free_ports(1)
    properties = KafkaProperties({"bootstrap.servers": f"127.0.0.1:{port}"})
    with (
        JavaKafkaAdmin(jvm, properties, timeout_ms=1_000) as client,
        pytest.raises(TransientError, match=f"Kafka at 127.0.0.1:{port} did not describe the cluster in time"),
    ):
        client.cluster_id()


def test_unresolvable_host_names_are_a_transient_error(jvm: JavaGateway) -> None:
    with pytest.raises(TransientError, match=r"no name in kafka\.invalid:9092 can be resolved"):
        JavaKafkaAdmin(jvm, KafkaProperties({"bootstrap.servers": "kafka.invalid:9092"}))


def test_the_error_names_a_property_with_an_invalid_value(jvm: JavaGateway, kafka: KafkaBroker) -> None:
    properties = {"bootstrap.servers": kafka.bootstrap, "security.protocol": "PIGEON"}
    with pytest.raises(ConfigurationError, match=r"Invalid value PIGEON for configuration security\.protocol"):
        JavaKafkaAdmin(jvm, KafkaProperties(properties))


def test_a_login_works_with_the_readers_properties(jvm: JavaGateway, guarded: KafkaBroker) -> None:
    with logged_in(jvm, guarded, "admin", USERS["admin"]) as client:
        assert client.cluster_id()


def test_the_error_for_a_wrong_password_does_not_show_it(jvm: JavaGateway, guarded: KafkaBroker) -> None:
    with (
        logged_in(jvm, guarded, "admin", "wrong-word") as client,
        pytest.raises(InvalidCredentials, match="authentication failed") as caught,
    ):
        client.cluster_id()
    assert "wrong-word" not in str(caught.value)


def test_the_error_for_an_invalid_jaas_line_does_not_quote_it(jvm: JavaGateway, guarded: KafkaBroker) -> None:
    properties = {
        "bootstrap.servers": guarded.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "PlainLoginModule requird password=secret-word",
    }
    with pytest.raises(ConfigurationError) as caught:
        JavaKafkaAdmin(jvm, KafkaProperties(properties))
    assert "secret-word" not in str(caught.value)


def test_the_error_for_missing_permissions_names_the_operation(
    jvm: JavaGateway, guarded: KafkaBroker, topic: str
) -> None:
    Topics(guarded.bootstrap).create(topic)
    [partition] = partitions_of(topic, 0)
    with logged_in(jvm, guarded, "guest", USERS["guest"]) as client:
        with pytest.raises(AccessDenied, match="cannot read the end offsets: access denied"):
            client.end_offsets([partition])
        with pytest.raises(AccessDenied, match="cannot commit the offsets of group g: access denied"):
            client.alter_group_offsets("g", {partition: 1})
        assert client.log_sizes([topic]) is None
