"""The timestamps of single records for the age of the lag, with a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway

from devtools.kafka import KafkaBroker
from devtools.processes import free_ports
from devtools.topics import Record, Topics
from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.kafka.jvm import plain_jvm
from sink_job.kafka.properties import KafkaProperties
from sink_job.kafka.record_times import RecordTimes
from sink_job.spark.jars import client_jars

pytestmark = pytest.mark.data

PARTITIONS = 200


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaGateway]:
    gateway = plain_jvm(client_jars())
    yield gateway
    gateway.shutdown()


@pytest.fixture
def times(jvm: JavaGateway, kafka: KafkaBroker) -> Iterator[RecordTimes]:
    reader = RecordTimes(
        jvm, KafkaProperties({"bootstrap.servers": kafka.bootstrap, "isolation.level": "read_committed"})
    )
    yield reader
    reader.close()


def at(topic: str, *offsets: int) -> dict[TopicPartition, int]:
    """An offset of each partition."""
    return {TopicPartition(topic, number): offset for number, offset in enumerate(offsets)}


def test_the_time_is_that_of_the_first_record_from_an_offset_on(times: RecordTimes, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce(topic, [Record(value=b"", timestamp=ms) for ms in (1_000, 2_000, 3_000)])
    assert times.read(at(topic, 1), timeout_ms=30_000) == at(topic, 2_000)
    assert times.read(at(topic, 2), timeout_ms=30_000) == at(topic, 3_000)


def test_many_partitions_with_large_batches_are_read_in_one_request(
    times: RecordTimes, topics: Topics, topic: str
) -> None:
    """A batch larger than the limit of a fetch comes alone."""
    topics.create(topic, partitions=PARTITIONS)
    large = bytes(100_000)
    topics.produce(topic, [Record(value=large, partition=n, timestamp=1_000 + n) for n in range(PARTITIONS)])
    expected = at(topic, *range(1_000, 1_000 + PARTITIONS))
    assert times.read(at(topic, *[0] * PARTITIONS), timeout_ms=30_000) == expected


def test_records_of_aborted_transactions_are_skipped(times: RecordTimes, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.transaction(topic, [Record(value=b"1", timestamp=1_000)], commit=False)
    topics.produce(topic, [Record(value=b"2", timestamp=5_000)])
    assert times.read(at(topic, 0), timeout_ms=30_000) == at(topic, 5_000)


def test_a_partition_without_a_record_or_whose_offset_is_deleted_has_no_time(
    times: RecordTimes, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=3)
    topics.produce(topic, [Record(value=b"", partition=n, timestamp=1_000) for n in (0, 1)])
    topics.delete_records(topic, 1, 1)
    found = times.read(at(topic, 0, 0, 0), timeout_ms=5_000)
    assert found == {TopicPartition(topic, 0): 1_000}


def test_without_a_broker_nothing_is_found_within_the_time(jvm: JavaGateway) -> None:
    (port,) = free_ports(1)
    reader = RecordTimes(jvm, KafkaProperties({"bootstrap.servers": f"127.0.0.1:{port}"}))
    for _ in range(2):
        assert reader.read({TopicPartition("flights", 0): 0}, timeout_ms=500) == {}
    reader.close()


def test_invalid_settings_are_an_error(jvm: JavaGateway) -> None:
    reader = RecordTimes(jvm, KafkaProperties({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "nosuch"}))
    with pytest.raises(ConfigurationError, match="nosuch"):
        reader.read({TopicPartition("flights", 0): 0}, timeout_ms=500)
