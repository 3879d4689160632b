"""The reader of real Spark tasks with ranges that are fetched together."""

from __future__ import annotations

import hashlib
import json
import random
import uuid

import pytest
from pyspark import SparkContext

from devtools.kafka import KafkaBroker
from devtools.processes import wait_until
from devtools.topics import Record, Topics
from sink_job.api.errors import DataLoss, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns
from sink_job.spark.engine import SparkEngine
from tests.support import spark_tasks
from tests.support.reader import engine_of, run

pytestmark = [pytest.mark.data, pytest.mark.spark]

PARTITIONS = 160
"""At two cores a task has 20 topic-partitions: a full group of 16, and another one."""
Ranges = dict[TopicPartition, tuple[int, int]]


@pytest.fixture(scope="module")
def engine(spark: SparkContext, kafka: KafkaBroker) -> SparkEngine:
    return engine_of(spark, {"bootstrap.servers": kafka.bootstrap})


@pytest.fixture(scope="module")
def shared(topics: Topics) -> str:
    """A topic of `PARTITIONS` partitions with 30 records each."""
    topic = topics.create(f"groups-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    topics.produce(topic, [Record(value=value(p, n), partition=p) for n in range(30) for p in range(PARTITIONS)])
    return topic


def value(partition: int, number: int) -> bytes:
    return f"{partition}-{number}".encode()


def read(engine: SparkEngine, ranges: Ranges) -> dict[TopicPartition, list[tuple[int, str]]]:
    """The offsets and values of each range."""
    found = run(engine, spark_tasks.rows_as_json, ranges, columns=Columns())
    return {tp: [(row["offset"], row["value"]) for row in json.loads(result)] for tp, result in found.items()}


def expected(ranges: Ranges) -> dict[TopicPartition, list[tuple[int, str]]]:
    return {tp: [(n, value(tp.partition, n).decode()) for n in range(*range_)] for tp, range_ in ranges.items()}


def test_ranges_that_end_before_the_log_end_are_read_round_after_round(engine: SparkEngine, shared: str) -> None:
    for start in (0, 10, 20):
        ranges = {TopicPartition(shared, p): (start, start + 10) for p in range(PARTITIONS)}
        assert read(engine, ranges) == expected(ranges)


def test_any_ranges_of_any_topic_partitions_are_read_exactly(engine: SparkEngine, shared: str) -> None:
    choose = random.Random(20261126)
    for _ in range(8):
        chosen = choose.sample(range(PARTITIONS), choose.randint(20, PARTITIONS))
        ranges = {}
        for p in chosen:
            start = choose.randint(0, 30)
            ranges[TopicPartition(shared, p)] = (start, choose.randint(start, 30))
        assert read(engine, ranges) == expected(ranges)


def test_after_a_group_that_was_not_read_to_its_end_each_of_its_topic_partitions_is_read_alone(
    spark: SparkContext, kafka: KafkaBroker, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=16)
    small = [Record(value=value(p, n), partition=p) for p in range(8) for n in range(10)]
    large = [Record(value=bytes(900_000), partition=p) for p in range(8, 16) for _ in range(4)]
    topics.produce(topic, small + large)
    engine = engine_of(spark, {"bootstrap.servers": kafka.bootstrap}, poll_timeout_ms=5_000)
    both = {TopicPartition(topic, p): (0, 5 if p < 8 else 4) for p in range(16)}
    run(engine, spark_tasks.first_offset, both)  # a small one and a large one in each of eight tasks
    for p in range(8):
        alone = {TopicPartition(topic, p): (5, 10)}
        assert read(engine, alone) == expected(alone)


def test_records_larger_than_the_share_of_a_topic_partition_are_read_whole_and_in_order(
    engine: SparkEngine, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=40)
    sizes = [700_000, 10, 300_000, 0, 500_000]
    topics.produce(
        topic,
        [
            Record(value=bytes([65 + number]) * (size + partition), partition=partition)
            for number, size in enumerate(sizes)
            for partition in range(40)
        ],
    )
    ranges = {TopicPartition(topic, p): (0, len(sizes)) for p in range(40)}
    found = run(engine, spark_tasks.digests, ranges)
    for tp, result in found.items():
        assert json.loads(result) == [
            [number, hashlib.sha256(bytes([65 + number]) * (size + tp.partition)).hexdigest()]
            for number, size in enumerate(sizes)
        ]


def test_ranges_that_end_in_markers_or_aborted_records_are_read_beside_others(
    engine: SparkEngine, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=40)
    topics.produce(topic, [Record(value=b"yes", partition=p) for p in range(1, 40, 2) for _ in range(4)])
    committed = [Record(value=b"yes", partition=p) for p in range(0, 40, 2)]
    aborted = [Record(value=b"no", partition=p) for p in range(0, 40, 2)]
    topics.transaction(topic, committed)  # 0, and a marker at 1
    topics.transaction(topic, aborted, commit=False)  # 2, and a marker at 3
    wait_until(lambda: set(topics.ends(topic).values()) == {4}, "the last marker", seconds=30)
    found = read(engine, {TopicPartition(topic, p): (0, 4) for p in range(40)})
    assert found == {
        TopicPartition(topic, p): [(n, "yes") for n in range(4 if p % 2 else 1)] for p in range(40)
    }  # fmt: skip


def test_the_topic_partition_whose_records_kafka_deleted_is_named(
    engine: SparkEngine, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=40)
    topics.produce(topic, [Record(value=b"v", partition=p) for _ in range(5) for p in range(40)])
    topics.delete_records(topic, 33, 4)
    with pytest.raises(DataLoss, match=f"no longer holds records of {topic}-33 in the range from offset 1"):
        read(engine, {TopicPartition(topic, p): (1, 5) for p in range(40)})


def test_the_topic_partition_that_has_no_record_is_named(
    spark: SparkContext, kafka: KafkaBroker, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=40)
    topics.produce(topic, [Record(value=b"v", partition=p) for _ in range(5) for p in range(40)])
    impatient = engine_of(spark, {"bootstrap.servers": kafka.bootstrap}, poll_timeout_ms=1_000)
    ranges = {TopicPartition(topic, p): (0, 6 if p == 21 else 5) for p in range(40)}
    with pytest.raises(TransientError, match=f"no record of {topic}-21 at offset 5 within 1000 ms"):
        read(impatient, ranges)


def test_a_small_range_beside_one_of_thousands_of_records(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=40)
    ranges = {TopicPartition(topic, p): (0, 9_000 if p < 2 else 3) for p in range(40)}
    topics.produce(topic, [Record(value=b"v", partition=tp.partition) for tp in ranges for _ in range(*ranges[tp])])
    assert run(engine, spark_tasks.count, ranges) == {tp: str(end).encode() for tp, (_, end) in ranges.items()}
