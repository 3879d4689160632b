"""How reads end: kills, exceptions, cancellation. Nothing hangs, and nothing is left in the JVM."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark import SparkContext

from devtools.kafka import KafkaBroker
from devtools.processes import wait_until
from devtools.topics import Topics
from sink_job.api.errors import DataError, DataLoss, SinkError, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Cancelled, PartitionFunction
from sink_job.spark.engine import SparkEngine
from tests.support import spark_tasks
from tests.support.reader import Jvm, engine_of, offsets, run

pytestmark = [pytest.mark.data, pytest.mark.spark]

MB = 1_000_000
ROUNDS = int(os.environ.get("S3SINK_READER_ROUNDS", "60"))
"""Rounds of the test of leaks."""
LARGE = 40
"""Records of 1 MB: more than the buffers between the broker and a worker hold."""


@pytest.fixture(scope="module")
def large(topics: Topics) -> TopicPartition:
    """A topic-partition with `LARGE` MB."""
    name = topics.create(f"large-{uuid.uuid4().hex[:8]}", settings={"max.message.bytes": str(2 * MB)})
    topics.produce_values(name, [b"x" * MB] * LARGE)
    return TopicPartition(name, 0)


@pytest.fixture
def jvm(spark: SparkContext) -> Jvm:
    return Jvm(spark)


@pytest.fixture
def engine(spark: SparkContext, kafka: KafkaBroker) -> SparkEngine:
    """An engine whose consumers no other test has created."""
    return own_engine(spark, kafka)


def own_engine(spark: SparkContext, kafka: KafkaBroker, **options: int) -> SparkEngine:
    return engine_of(spark, {"bootstrap.servers": kafka.bootstrap, "client.rack": uuid.uuid4().hex}, **options)


def is_clean(jvm: Jvm, engine: SparkEngine) -> bool:
    found = jvm.traces(engine)
    return found.threads == found.socket_files == 0


# -- failures in mid-frame -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_a_task_whose_worker_fails_in_mid_frame_is_retried(
    engine: SparkEngine, jvm: Jvm, large: TopicPartition, tmp_path: Path, how: str
) -> None:
    attempts = tmp_path / "attempts"
    assert run(engine, partial(spark_tasks.fail_first, how, attempts), {large: (0, LARGE)}) == {large: b"40"}
    assert attempts.exists()
    wait_until(lambda: is_clean(jvm, engine), "the end of the readers", seconds=20)


def test_an_exception_in_mid_frame_is_reported_in_pythons_words(
    engine: SparkEngine, jvm: Jvm, large: TopicPartition
) -> None:
    with pytest.raises(SinkError) as caught:
        run(engine, spark_tasks.raise_after_first, {large: (0, LARGE)})
    assert str(caught.value) == "ValueError: after a batch"
    wait_until(lambda: is_clean(jvm, engine), "the end of the readers", seconds=20)


def test_an_error_of_kafka_in_mid_stream_names_the_offset_that_was_reached(
    spark: SparkContext, kafka: KafkaBroker, large: TopicPartition
) -> None:
    impatient = own_engine(spark, kafka, poll_timeout_ms=500)
    with pytest.raises(TransientError, match=f"no record of {large} at offset {LARGE} within 500 ms"):
        run(impatient, spark_tasks.count, {large: (0, LARGE + 1)})


# -- cancellation ----------------------------------------------------------------------------------------------------


def cancelled(
    engine: SparkEngine, fn: PartitionFunction, tp: TopicPartition, end: int, when: Callable[[], bool]
) -> None:
    def cancel() -> None:
        wait_until(when, "the read", seconds=60)
        engine.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(Cancelled):
        run(engine, fn, {tp: (0, end)})
    canceller.join()


def test_a_job_is_cancelled_while_its_reader_is_blocked_in_a_write(
    engine: SparkEngine, jvm: Jvm, large: TopicPartition, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    blocked = partial(spark_tasks.start_and_block, started)
    cancelled(engine, blocked, large, LARGE, lambda: started.exists() and jvm.threads() == 1)
    wait_until(lambda: is_clean(jvm, engine), "the end of the reader", seconds=20)
    assert jvm.threads() == 0


def test_a_job_is_cancelled_while_its_reader_waits_for_kafka(
    spark: SparkContext, kafka: KafkaBroker, jvm: Jvm, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"])
    patient = own_engine(spark, kafka, poll_timeout_ms=300_000)
    before = jvm.consumers()
    tp = TopicPartition(topic, 0)
    cancelled(patient, spark_tasks.count, tp, 2, lambda: bool(jvm.consumers() - before))
    wait_until(lambda: is_clean(jvm, patient), "the end of the reader", seconds=20)
    assert jvm.consumers() <= before
    with pytest.raises(Cancelled):
        run(patient, spark_tasks.count, {tp: (0, 1)})


# -- consumers -------------------------------------------------------------------------------------------------------


class Seeks(logging.Handler):
    """The offsets to which consumers were set, from the JVM's log."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        _, seek, where = record.getMessage().partition("Seeking to offset ")
        if seek:
            self.found.append(where)


@pytest.fixture
def seeks(jvm: Jvm) -> Iterator[Seeks]:
    log, seeks = logging.getLogger("sink_job.spark.jvm"), Seeks()
    level = log.level
    log.addHandler(seeks)
    log.setLevel(logging.DEBUG)
    jvm.log_seeks(True)
    yield seeks
    jvm.log_seeks(False)
    log.setLevel(level)
    log.removeHandler(seeks)


def test_a_consumer_continues_at_its_position_in_the_next_round(
    engine: SparkEngine, jvm: Jvm, topics: Topics, topic: str, seeks: Seeks
) -> None:
    topics.create(topic)
    before = jvm.consumers()
    tp = TopicPartition(topic, 0)
    for start in (0, 10, 20):
        topics.produce_values(topic, [b"v"] * 10)
        assert offsets(engine, tp, start, start + 10) == list(range(start, start + 10))
    assert offsets(engine, tp, 5, 7) == [5, 6]
    assert len(jvm.consumers() - before) == 1
    wait_until(lambda: f"5 for partition {tp}" in seeks.found, "the last seek", seconds=20)
    assert [seek for seek in seeks.found if tp.topic in seek] == [f"{offset} for partition {tp}" for offset in (0, 5)]


def test_there_is_one_consumer_for_each_concurrent_task(
    engine: SparkEngine, jvm: Jvm, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=24)
    for number in range(24):
        topics.produce_values(topic, [b"v"] * 3, partition=number)
    before = jvm.consumers()
    ranges = {TopicPartition(topic, number): (0, 3) for number in range(24)}
    for _ in range(3):
        assert set(run(engine, spark_tasks.count, ranges).values()) == {b"3"}
    assert 1 <= len(jvm.consumers() - before) <= 2


def test_an_idle_consumer_is_closed(
    spark: SparkContext, kafka: KafkaBroker, jvm: Jvm, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 3)
    engine = own_engine(spark, kafka, idle_ms=100)
    before = jvm.consumers()
    tp = TopicPartition(topic, 0)
    for start in range(2):  # a new one is created after it
        assert offsets(engine, tp, start, start + 1) == [start]
        wait_until(lambda: not jvm.consumers() - before, "the end of the consumer", seconds=20)


def test_a_consumer_is_closed_after_a_failure_of_kafka(
    engine: SparkEngine, jvm: Jvm, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 5)
    topics.delete_records(topic, 0, 2)
    before = jvm.consumers()
    tp = TopicPartition(topic, 0)
    with pytest.raises(DataLoss):
        offsets(engine, tp, 0, 5)
    wait_until(lambda: not jvm.consumers() - before, "the end of the consumer", seconds=20)
    assert offsets(engine, tp, 2, 5) == [2, 3, 4]


def test_a_worker_that_needs_no_more_records_stops_the_reader_which_reads_any_range_next(
    engine: SparkEngine, jvm: Jvm, large: TopicPartition
) -> None:
    before = jvm.consumers()
    for start in (0, 7, 7, 12):
        assert offsets_of_first(engine, large, start) == start
        wait_until(lambda: is_clean(jvm, engine), "the end of the reader", seconds=20)
    assert len(jvm.consumers() - before) <= 1
    assert run(engine, spark_tasks.count, {large: (3, LARGE)}) == {large: b"37"}


def offsets_of_first(engine: SparkEngine, tp: TopicPartition, start: int) -> int:
    """Reads the first batch only: its first offset."""
    [result] = run(engine, spark_tasks.first_offset, {tp: (start, LARGE)}).values()
    return int(result)


def test_engines_with_other_credentials_do_not_share_consumers(
    spark: SparkContext, kafka: KafkaBroker, jvm: Jvm, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 2)
    before = jvm.consumers()
    for _ in range(2):
        assert offsets(own_engine(spark, kafka), TopicPartition(topic, 0), 0, 2) == [0, 1]
    assert len(jvm.consumers() - before) == 2


# -- leaks -----------------------------------------------------------------------------------------------------------


def test_a_task_frees_the_buffers_of_its_frames_without_a_garbage_collection(
    engine: SparkEngine, jvm: Jvm, large: TopicPartition
) -> None:
    added = []
    for _ in range(4):
        wait_until(lambda: is_clean(jvm, engine), "the end of the readers", seconds=20)
        before = jvm.direct_bytes()
        run(engine, spark_tasks.count, {large: (0, 4)})
        wait_until(lambda: is_clean(jvm, engine), "the end of the readers", seconds=20)
        added.append(jvm.direct_bytes() - before)
    assert max(added[1:]) < MB / 2


def test_many_rounds_leave_nothing_behind(
    engine: SparkEngine, jvm: Jvm, topics: Topics, topic: str, large: TopicPartition, tmp_path: Path
) -> None:
    topics.create(topic, partitions=4)
    small = {TopicPartition(topic, number): (0, 5) for number in range(4)}
    for tp in small:
        topics.produce_values(topic, [b"v"] * 5, partition=tp.partition)

    def rounds(name: str, count: int) -> int:
        """The most bytes outside the heap that there were after a round."""
        most = 0
        for number in range(count):
            assert set(run(engine, spark_tasks.count, {**small, large: (0, 4)}).values()) == {b"5", b"4"}
            if number % 10 == 5:
                with pytest.raises(DataError):
                    run(engine, spark_tasks.reject_after_first, {large: (0, LARGE)})
            if number % 20 == 10:
                first = partial(spark_tasks.fail_first, "raise", tmp_path / f"{name}-{number}")
                assert run(engine, first, {large: (0, LARGE)}) == {large: b"40"}
            most = max(most, jvm.direct_bytes())
        wait_until(lambda: is_clean(jvm, engine), "the end of the readers", seconds=20)
        return most

    rounds("warm-up", 20)
    before, started = jvm.traces(engine), time.monotonic()
    most = rounds("round", ROUNDS)
    after, seconds = jvm.traces(engine), time.monotonic() - started
    logging.getLogger(__name__).info("%d rounds, %.1f s: %s, then %s; %d", ROUNDS, seconds, before, after, most)
    assert after.files <= before.files + 10  # Spark's own vary
    assert after.sockets <= before.sockets + 6
    assert after.consumers <= before.consumers + 1
    assert most < 16 * MB
