"""The reader of real Spark tasks with records and logs of every kind on a real broker."""

from __future__ import annotations

import hashlib
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from devtools.kafka import KafkaBroker
from devtools.processes import wait_until
from devtools.topics import Record, Topics
from sink_job.api.errors import DataLoss
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns
from sink_job.spark.engine import SparkEngine
from tests.support import spark_tasks
from tests.support.reader import engine_of, offsets, rows, run

pytestmark = [pytest.mark.data, pytest.mark.spark]

MB = 1_000_000


@pytest.fixture(scope="module")
def engine(spark: SparkContext, kafka: KafkaBroker) -> SparkEngine:
    return engine_of(spark, {"bootstrap.servers": kafka.bootstrap})


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(engine: SparkEngine, topics: Topics, topic: str, codec: str) -> None:
    topics.create(topic)
    settings: dict[str, Any] = {"compression.type": codec}
    topics.produce_values(topic, [b"v%d " % number * 50 for number in range(500)], **settings)
    got = rows(engine, TopicPartition(topic, 0), 100, 500)
    assert [(row["offset"], row["value"]) for row in got] == [(n, f"v{n} " * 50) for n in range(100, 500)]


def test_a_record_of_30_mb_is_read_between_empty_ones(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic, settings={"max.message.bytes": str(40 * MB)})
    values = [b"", b"x" * (30 * MB), b"", b"y"]
    settings: dict[str, Any] = {"message.max.bytes": 40 * MB}
    topics.produce_values(topic, values, **settings)
    [result] = run(engine, spark_tasks.digests, {TopicPartition(topic, 0): (0, 4)}).values()
    assert json.loads(result) == [[n, hashlib.sha256(value).hexdigest()] for n, value in enumerate(values)]


def test_null_and_empty_keys_values_and_headers_are_different(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce(
        topic,
        [
            Record(value=None, key=None, headers=[("", None)]),
            Record(value=b"", key=b"", headers=[("", b"")]),
            Record(value=None, key=b""),
            Record(value=b"", key=None),
        ],
    )
    got = rows(engine, TopicPartition(topic, 0), 0, 4, key=True, headers=True)
    assert [(row["value"], row["key"], row["headers"]) for row in got] == [
        (None, None, [{"key": "", "value": None}]),
        ("", "", [{"key": "", "value": ""}]),
        (None, "", None),
        ("", None, None),
    ]


def test_a_range_ends_before_an_open_transaction(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.transaction(topic, [Record(value=b"yes"), Record(value=b"yes")])  # 0, 1, and a marker at 2
    wait_until(lambda: topics.ends(topic) == {0: 3}, "the marker", seconds=30)
    producer = topics.open_transaction(topic, [Record(value=b"open")])  # 3
    topics.produce_values(topic, [b"after"])  # 4
    tp = TopicPartition(topic, 0)
    assert offsets(engine, tp, 0, 2) == [0, 1]
    assert offsets(engine, tp, 0, 3) == [0, 1]
    producer.abort_transaction(30)
    wait_until(lambda: topics.ends(topic) == {0: 6}, "the marker", seconds=30)
    assert offsets(engine, tp, 3, 6) == [4]
    assert offsets(engine, tp, 0, 6) == [0, 1, 4]
    assert offsets(engine, tp, 5, 6) == []


def test_records_that_retention_deletes_during_a_read_are_data_loss(
    engine: SparkEngine, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic, settings={"max.message.bytes": str(2 * MB)})
    topics.produce_values(topic, [b"x" * MB] * 40)
    started, resumed = tmp_path / "started", tmp_path / "resumed"

    def delete() -> None:
        wait_until(started.exists, "the first batch", seconds=60)
        topics.delete_records(topic, 0, 39)
        resumed.touch()

    retention = threading.Thread(target=delete)
    retention.start()
    slow = partial(spark_tasks.pause_after_first, started, resumed)
    with pytest.raises(DataLoss, match=f"no longer holds records of {topic}-0"):
        run(engine, slow, {TopicPartition(topic, 0): (0, 40)})
    retention.join()


def test_records_that_are_produced_during_a_read_are_not_part_of_it(
    engine: SparkEngine, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic, settings={"max.message.bytes": str(2 * MB)})
    topics.produce_values(topic, [b"x" * MB] * 12)
    started, resumed = tmp_path / "started", tmp_path / "resumed"

    def grow() -> None:
        wait_until(started.exists, "the first batch", seconds=60)
        topics.produce_values(topic, [b"y"] * 100)
        resumed.touch()

    growth = threading.Thread(target=grow)
    growth.start()
    slow = partial(spark_tasks.pause_after_first, started, resumed)
    tp = TopicPartition(topic, 0)
    assert run(engine, slow, {tp: (0, 12)}) == {tp: b"12"}
    growth.join()
    assert offsets(engine, tp, 12, 112) == list(range(12, 112))


def test_columns_of_a_round_are_not_those_of_the_previous_one(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce(topic, [Record(value=b"v", key=b"k", timestamp=n) for n in range(4)])
    tp = TopicPartition(topic, 0)
    wide = Columns(timestamp=True, key=True, headers=True, timestamp_type=True)
    for number, columns in enumerate([Columns(), wide, Columns(key=True), Columns()]):
        [row] = rows(engine, tp, number, number + 1, **columns._asdict())
        assert set(row) == {"offset", "value", *(name for name, on in columns._asdict().items() if on)}
