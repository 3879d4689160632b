"""A round's tasks on real Spark with a real broker: exact ranges, and the results of failures."""

from __future__ import annotations

import hashlib
import json
import threading
from functools import partial
from pathlib import Path

import pytest
from pyspark import SparkContext

from devtools.certificates import self_signed
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.processes import wait_until
from devtools.topics import Record, Topics
from sink_job.api.errors import DataError, DataLoss, InvalidCredentials, SinkError, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Cancelled, Columns
from sink_job.spark.engine import SparkEngine
from tests.support import spark_tasks
from tests.support.reader import engine_of, offsets, rows, run

pytestmark = [pytest.mark.data, pytest.mark.spark]

LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def engine(spark: SparkContext, kafka: KafkaBroker) -> SparkEngine:
    return engine_of(spark, {"bootstrap.servers": kafka.bootstrap})


# -- reads -----------------------------------------------------------------------------------------------------------


def test_a_range_is_read_from_its_start_up_to_its_end(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [f"v{number}".encode() for number in range(10)])
    assert rows(engine, TopicPartition(topic, 0), 3, 6) == [
        {"offset": 3, "value": "v3"},
        {"offset": 4, "value": "v4"},
        {"offset": 5, "value": "v5"},
    ]


def test_timestamp_key_and_headers_are_read_on_request(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    header = [("h", b"1"), ("h", None)]
    topics.produce(
        topic, [Record(value=b"v", key=b"k", timestamp=1_234, headers=header), Record(value=None, timestamp=5)]
    )
    tp = TopicPartition(topic, 0)
    assert rows(engine, tp, 0, 2, timestamp=True, key=True, headers=True) == [
        {
            "offset": 0,
            "value": "v",
            "timestamp": 1_234,
            "key": "k",
            "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": None}],
        },
        {"offset": 1, "value": None, "timestamp": 5, "key": None, "headers": None},
    ]
    assert [set(row) for row in rows(engine, tp, 0, 2, timestamp=True)] == [{"offset", "value", "timestamp"}] * 2


def test_any_mix_of_records_is_read_as_it_was_produced(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    produced = [
        Record(
            value=None if number % 7 == 0 else b"v" * (number % 5),
            key=None if number % 3 else b"k" * (number % 4),
            timestamp=1_000 + number,
            headers=[(f"h{n}", None if n % 2 else str(number).encode()) for n in range(number % 4)],
        )
        for number in range(3_000)
    ]
    topics.produce(topic, produced)
    got = rows(engine, TopicPartition(topic, 0), 0, 3_000, timestamp=True, key=True, headers=True, timestamp_type=True)
    assert got == [
        {
            "offset": number,
            "value": None if record.value is None else record.value.decode(),
            "timestamp": record.timestamp,
            "key": None if record.key is None else record.key.decode(),
            "headers": [{"key": name, "value": value and value.decode()} for name, value in record.headers] or None,
            "timestamp_type": 0,
        }
        for number, record in enumerate(produced)
    ]


def test_a_separator_follows_each_value_that_is_not_null(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce(topic, [Record(value=b"a"), Record(value=None), Record(value=b""), Record(value=b"b\n")])
    tp = TopicPartition(topic, 0)
    [result] = run(engine, spark_tasks.rows_as_json, {tp: (0, 4)}, columns=Columns(separator=b"\r\n")).values()
    assert json.loads(result) == [
        {"offset": 0, "row": "a\r\n"},
        {"offset": 1, "row": None},
        {"offset": 2, "row": "\r\n"},
        {"offset": 3, "row": "b\n\r\n"},
    ]


def test_values_larger_than_a_batch_are_read_whole_and_in_order(
    engine: SparkEngine, topics: Topics, topic: str
) -> None:
    topics.create(topic, settings={"max.message.bytes": "4000000"})
    sizes = [10, 900_000, 500_000, 1_048_576, 3_000_000, 0, 20, 1_048_577, 300_000, 300_000, 300_000, 300_000]
    topics.produce_values(topic, [bytes([97 + number]) * size for number, size in enumerate(sizes)])
    [result] = run(engine, spark_tasks.digests, {TopicPartition(topic, 0): (0, len(sizes))}).values()
    assert json.loads(result) == [
        [number, hashlib.sha256(bytes([97 + number]) * size).hexdigest()] for number, size in enumerate(sizes)
    ]


def test_topic_partitions_that_share_a_task_keep_their_records_apart(
    engine: SparkEngine, topics: Topics, topic: str
) -> None:
    topics.create(topic, partitions=30)
    topics.produce(
        topic,
        [
            Record(
                value=None if turn == 1 else f"{number}".encode(),
                partition=number,
                timestamp=turn + 1,
                headers=[("n", b"1")],
            )
            for turn in range(3)
            for number in range(30)
        ],
    )
    ranges = {TopicPartition(topic, number): (0, 3) for number in range(30)}
    got = run(engine, spark_tasks.rows_as_json, ranges, columns=Columns(timestamp=True, headers=True))
    for tp, result in got.items():
        assert [(r["offset"], r["value"], r["timestamp"], r["headers"]) for r in json.loads(result)] == [
            (turn, None if turn == 1 else str(tp.partition), turn + 1, [{"key": "n", "value": "1"}])
            for turn in range(3)
        ]


def test_records_of_aborted_transactions_are_absent(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.transaction(topic, [Record(value=b"yes"), Record(value=b"yes")])
    topics.transaction(topic, [Record(value=b"no"), Record(value=b"no")], commit=False)
    topics.transaction(topic, [Record(value=b"yes")])
    tp = TopicPartition(topic, 0)
    wait_until(lambda: topics.ends(topic) == {0: 8}, "the last marker", seconds=30)
    # 0 1 | marker | 3 4 aborted | marker | 6 | marker
    assert [(row["offset"], row["value"]) for row in rows(engine, tp, 0, 8)] == [(0, "yes"), (1, "yes"), (6, "yes")]


def test_a_range_without_records_is_processed_too(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.transaction(topic, [Record(value=b"yes")])
    topics.transaction(topic, [Record(value=b"no")], commit=False)
    tp = TopicPartition(topic, 0)
    wait_until(lambda: topics.ends(topic) == {0: 4}, "the last marker", seconds=30)
    assert offsets(engine, tp, 1, 2) == []  # a marker
    assert offsets(engine, tp, 2, 3) == []  # inside the aborted transaction
    assert offsets(engine, tp, 1, 4) == []


def test_records_removed_by_compaction_are_not_a_loss(engine: SparkEngine, topics: Topics, topic: str) -> None:
    compacted = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    topics.create(topic, settings=compacted)
    tp = TopicPartition(topic, 0)
    topics.produce(topic, [Record(key=b"same", value=f"{number}".encode()) for number in range(20)])

    def has_gaps() -> bool:
        topics.produce(topic, [Record(key=b"other", value=b"rolls the segment")])
        return len(offsets(engine, tp, 0, 20)) < 20

    wait_until(has_gaps, "compaction", seconds=60)
    assert offsets(engine, tp, 0, 19) == []
    assert offsets(engine, tp, 0, 20) == [19]


def test_a_round_continues_where_the_previous_one_ended(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 30)
    tp = TopicPartition(topic, 0)
    read = [offsets(engine, tp, start, start + 10) for start in (0, 10, 20)]
    assert read == [list(range(10)), list(range(10, 20)), list(range(20, 30))]
    assert offsets(engine, tp, 5, 7) == [5, 6]


def test_a_partition_added_later_is_read(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"a"])
    assert offsets(engine, TopicPartition(topic, 0), 0, 1) == [0]
    topics.add_partitions(topic, 2)
    topics.produce_values(topic, [b"b"], partition=1)
    assert offsets(engine, TopicPartition(topic, 1), 0, 1) == [0]


# -- calls -----------------------------------------------------------------------------------------------------------


def test_many_small_and_idle_ranges_each_get_their_own_input(engine: SparkEngine, topics: Topics, topic: str) -> None:
    other = f"{topic}-2"
    for name in (topic, other):
        topics.create(name, partitions=40)
        topics.produce(name, [Record(value=f"{name}{number}".encode(), partition=number) for number in range(40)] * 3)
    ranges = {TopicPartition(name, number): (1, 3) for name in (topic, other) for number in range(39)}
    idle = [TopicPartition(name, 39) for name in (topic, other)]
    inputs = {tp: f"input of {tp}".encode() for tp in [*ranges, *idle]}
    got = run(engine, spark_tasks.summary, ranges, idle=idle, inputs=inputs)
    assert {tp: json.loads(result) for tp, result in got.items()} == {
        **{tp: [str(tp), f"input of {tp}", 2, 1, 2] for tp in ranges},
        **{tp: [str(tp), f"input of {tp}", 0, None, None] for tp in idle},
    }


def test_a_large_range_beside_many_small_ones(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=30)
    topics.produce_values(topic, [b"v"] * 12_000, partition=29)
    topics.produce(topic, [Record(value=b"v", partition=number) for number in range(29)])
    ranges = {TopicPartition(topic, number): (0, 1) for number in range(29)} | {TopicPartition(topic, 29): (0, 12_000)}
    got = run(engine, spark_tasks.summary, ranges)
    assert {tp.partition: json.loads(result)[2] for tp, result in got.items()} == {
        **dict.fromkeys(range(29), 1),
        29: 12_000,
    }


def test_large_inputs_reach_the_tasks(engine: SparkEngine) -> None:
    inputs = {TopicPartition("none", number): b"x" * (200_000 + number) for number in range(8)}
    got = run(engine, spark_tasks.size_of_input, {}, idle=list(inputs), inputs=inputs)
    assert {tp: int(result) for tp, result in got.items()} == {tp: len(given) for tp, given in inputs.items()}


def test_spark_writes_nothing_into_the_working_directory(
    engine: SparkEngine, topics: Topics, topic: str, spark_working_dir: Path
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"])
    assert offsets(engine, TopicPartition(topic, 0), 0, 1) == [0]
    assert list(spark_working_dir.iterdir()) == []


def test_a_round_without_ranges_ends_at_once(engine: SparkEngine) -> None:
    assert run(engine, spark_tasks.raise_bug, {}) == {}


# -- failures --------------------------------------------------------------------------------------------------------


def test_records_that_kafka_deleted_are_data_loss(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 10)
    topics.delete_records(topic, 0, 5)
    with pytest.raises(DataLoss, match=f"no longer holds records of {topic}-0"):
        offsets(engine, TopicPartition(topic, 0), 2, 10)


def test_a_range_beyond_the_log_end_is_an_error(
    spark: SparkContext, kafka: KafkaBroker, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 3)
    impatient = engine_of(spark, {"bootstrap.servers": kafka.bootstrap}, poll_timeout_ms=500)
    with pytest.raises(TransientError, match=f"no record of {topic}-0 at offset 3 within 500 ms"):
        offsets(impatient, TopicPartition(topic, 0), 0, 5)


def test_a_domain_error_is_returned_as_it_was_raised(engine: SparkEngine) -> None:
    with pytest.raises(DataError, match="record at t-3 offset 7: not JSON") as caught:
        run(engine, spark_tasks.reject, {}, idle=[TopicPartition("t", 3)])
    assert (caught.value.partition, caught.value.offset) == (3, 7)


def test_spark_does_not_retry_an_operation_that_the_task_has_retried(engine: SparkEngine, tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="S3 is slow"):
        run(engine, partial(spark_tasks.fail_transiently, tmp_path / "tries"), {}, idle=[TopicPartition("t", 0)])
    assert (tmp_path / "tries").read_text() == "x"


def test_an_unexpected_error_is_reported_by_its_last_line(engine: SparkEngine) -> None:
    with pytest.raises(SinkError) as caught:
        run(engine, spark_tasks.raise_bug, {}, idle=[TopicPartition("t", 0)])
    assert str(caught.value) == "ZeroDivisionError: integer division or modulo by zero"


def test_a_repeatedly_killed_worker_is_a_transient_error(engine: SparkEngine) -> None:
    with pytest.raises(TransientError, match="worker of Spark was killed"):
        run(engine, spark_tasks.kill_self, {}, idle=[TopicPartition("t", 0)])


def test_the_engine_continues_after_a_failure(engine: SparkEngine, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"v"] * 3)
    with pytest.raises(DataError):
        run(engine, spark_tasks.reject, {TopicPartition(topic, 0): (0, 3)})
    assert offsets(engine, TopicPartition(topic, 0), 0, 3) == [0, 1, 2]


def test_the_reader_logs_in_over_tls_and_an_error_does_not_show_the_password(
    spark: SparkContext, topic: str, tmp_path: Path
) -> None:
    folders = [tmp_path / "own", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    own, other = map(self_signed, folders)
    with kafka_broker(users={"app": "app-word"}, certificate=own) as broker:
        login = {
            "bootstrap.servers": broker.sasl_bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(own.certificate),
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{LOGIN_MODULE} required username="app" password="app-word";',
        }
        made = Topics(broker.bootstrap)
        made.create(topic)
        made.produce_values(topic, [b"v" * 3_000_000, b"w"])
        [result] = run(engine_of(spark, login), spark_tasks.digests, {TopicPartition(topic, 0): (0, 2)}).values()
        assert [number for number, _ in json.loads(result)] == [0, 1]

        wrong = {**login, "sasl.jaas.config": login["sasl.jaas.config"].replace("app-word", "wrong-word")}
        with pytest.raises(InvalidCredentials, match="authentication failed") as caught:
            offsets(engine_of(spark, wrong), TopicPartition(topic, 0), 0, 1)
        assert "wrong-word" not in str(caught.value)

        distrustful = {**login, "ssl.truststore.location": str(other.certificate)}
        with pytest.raises(InvalidCredentials, match="TLS handshake failed"):
            offsets(engine_of(spark, distrustful), TopicPartition(topic, 0), 0, 1)


def test_cancel_ends_a_run_and_rejects_later_ones(spark: SparkContext, tmp_path: Path) -> None:
    engine = engine_of(spark, {"bootstrap.servers": "127.0.0.1:9"})
    started = tmp_path / "started"

    def cancel_after_start() -> None:
        wait_until(started.exists, "the task", seconds=60)
        engine.cancel()

    canceller = threading.Thread(target=cancel_after_start)
    canceller.start()
    endless = partial(spark_tasks.start_and_block, started)
    with pytest.raises(Cancelled):
        run(engine, endless, {}, idle=[TopicPartition("t", 0)])
    canceller.join()
    with pytest.raises(Cancelled):
        run(engine, endless, {}, idle=[TopicPartition("t", 0)])
