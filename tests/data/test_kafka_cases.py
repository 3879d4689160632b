"""Logs with transactions, compaction and retention; topics that are created, extended and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from devtools.processes import wait_until
from devtools.topics import Record, Topics
from sink_job.api.errors import ConfigurationError, DataLoss, TopicNotFound, TopicRecreated
from tests.support.spark_fixture import PUBLISH_ALL, UNTIL_CAUGHT_UP, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]


def records(numbers: Iterable[int], *, partition: int = 0, key: bytes | None = None) -> Iterator[Record]:
    """Records that contain their number."""
    return (Record(value=b'{"n":%d}' % n, key=key, partition=partition) for n in numbers)


def numbers(spark_fixture: SparkFixture) -> dict[str, list[int]]:
    """The records of each visible object, by the last element of its key."""
    return {
        key.rpartition("+0+")[2] if "+0+" in key else key.rpartition("/")[2]: [json.loads(line)["n"] for line in lines]
        for key, lines in spark_fixture.values().items()
    }


def in_objects(spark_fixture: SparkFixture) -> list[int]:
    """The records in all visible objects, sorted, with duplicates."""
    return sorted(json.loads(line)["n"] for lines in spark_fixture.values().values() for line in lines)


@pytest.fixture
def log(topics: Topics, topic: str) -> str:
    """A topic of one partition."""
    return topics.create(topic)


# -- transactions ----------------------------------------------------------------------------------------------------


def test_aborted_records_are_in_no_object_and_do_not_count_for_flush_size(
    spark_fixture: SparkFixture, log: str
) -> None:
    spark_fixture.topics.transaction(log, records(range(3)))
    spark_fixture.topics.transaction(log, records([100, 101]), commit=False)
    spark_fixture.topics.transaction(log, records(range(3, 5)))
    sink = spark_fixture.sink([log], rotation={"flushSize": 5})
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert numbers(spark_fixture) == {"0000000000.json": [0, 1, 2, 3, 4]}
    assert spark_fixture.committed(sink, log) == spark_fixture.topics.ends(log) == {0: 10}


def test_a_range_of_control_and_aborted_records_is_passed_without_lag(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.transaction(log, records(range(10)))
    sink = spark_fixture.sink([log])
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    spark_fixture.topics.transaction(log, records([100]), commit=False)
    spark_fixture.topics.transaction(log, [])
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert numbers(spark_fixture) == {"0000000000.json": list(range(10))}
    assert spark_fixture.committed(sink, log) == spark_fixture.topics.ends(log)


def test_an_open_object_continues_after_a_range_of_control_records(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.transaction(log, records(range(4)))
    sink = spark_fixture.sink([log])
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    spark_fixture.topics.transaction(log, records([100]), commit=False)
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert spark_fixture.committed(sink, log) == {0: 0}
    spark_fixture.topics.transaction(log, records(range(4, 10)))
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert numbers(spark_fixture) == {"0000000000.json": list(range(10))}
    assert spark_fixture.committed(sink, log) == spark_fixture.topics.ends(log)


def test_nothing_is_read_beyond_an_open_transaction_until_it_is_committed(
    spark_fixture: SparkFixture, log: str
) -> None:
    spark_fixture.topics.produce(log, records(range(2)))
    producer = spark_fixture.topics.open_transaction(log, records([2]))
    spark_fixture.topics.produce(log, records([3]))
    sink = spark_fixture.sink([log], rotation={"flushSize": 2})
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == [0, 1]
    assert spark_fixture.committed(sink, log) == {0: 2}
    producer.commit_transaction(30)
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == [0, 1, 2, 3]


def test_a_hanging_transaction_is_reported_with_its_first_offset_until_it_ends(
    spark_fixture: SparkFixture, log: str
) -> None:
    spark_fixture.topics.produce(log, records(range(2)))
    producer = spark_fixture.topics.open_transaction(log, records([2, 3]))
    impatient = replace(spark_fixture, discovery_interval_ms=50, hanging_after_ms=300)
    with impatient.running(spark_fixture.sink([log])) as sink:
        sink.wait_until(lambda: sink.report().hanging_transactions != [], "the report of the transaction", seconds=60)
        [hanging] = sink.report().hanging_transactions
        assert (hanging.topic, hanging.partition, hanging.offset, hanging.end) == (log, 0, 2, 4)
        producer.abort_transaction(30)
        sink.wait_until(lambda: sink.report().hanging_transactions == [], "the end of the report", seconds=60)


def test_read_uncommitted_reads_aborted_records_too(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.transaction(log, records([0, 1]), commit=False)
    spark_fixture.run(spark_fixture.sink([log], kafka={"isolationLevel": "ReadUncommitted"}), PUBLISH_ALL)
    assert in_objects(spark_fixture) == [0, 1]


def test_offsets_removed_by_compaction_are_passed(spark_fixture: SparkFixture, topics: Topics, topic: str) -> None:
    compacting = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.0",
        "max.compaction.lag.ms": "1",
        "segment.ms": "1",
    }
    topics.create(topic, settings=compacting)
    for n in range(
        12
    ):  # each record replaces the previous one; each has its own segment, which the cleaner can process
        topics.produce(topic, records([n], key=b"same"))
    topics.produce(topic, records([12, 13], key=b"other"))
    wait_until(lambda: len(topics.read(topic)) < 14, "compaction", seconds=30)
    sink = spark_fixture.sink([topic], rotation={"flushSize": 100})
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == [json.loads(message.value() or b"")["n"] for message in topics.read(topic)]
    assert spark_fixture.committed(sink, topic) == topics.ends(topic) == {0: 14}


# -- start offsets ---------------------------------------------------------------------------------------------------


def test_a_new_sink_starts_at_the_earliest_offset_in_kafka(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(8)))
    spark_fixture.topics.delete_records(log, 0, 3)
    spark_fixture.run(spark_fixture.sink([log]), PUBLISH_ALL)
    assert numbers(spark_fixture) == {"0000000003.json": [3, 4, 5, 6, 7]}


def test_a_start_at_the_latest_offset_skips_existing_records(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(5)))
    sink = spark_fixture.sink([log], kafka={"startingOffsets": "Latest"})
    spark_fixture.run(sink, PUBLISH_ALL)
    spark_fixture.topics.produce(log, records(range(5, 8)))
    spark_fixture.run(sink, PUBLISH_ALL)
    assert numbers(spark_fixture) == {"0000000005.json": [5, 6, 7]}


def test_the_groups_offsets_take_precedence_over_starting_offsets(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(8)))
    sink = spark_fixture.sink([log], kafka={"startingOffsets": "Latest"})
    spark_fixture.topics.commit(sink.group_id, log, {0: 2})
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == [2, 3, 4, 5, 6, 7]


# -- topics that are extended, created and deleted -------------------------------------------------------------------


def test_partitions_added_during_a_run_are_read_from_their_beginning(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture = replace(spark_fixture, discovery_interval_ms=100)
    spark_fixture.topics.produce(log, records(range(10)))
    sink = spark_fixture.sink([log], kafka={"startingOffsets": "Latest"})
    spark_fixture.topics.commit(sink.group_id, log, {0: 0})
    with spark_fixture.running(sink) as running:
        running.wait_until(lambda: spark_fixture.committed(sink, log) == {0: 10}, "the first partition")
        spark_fixture.topics.add_partitions(log, 3)
        spark_fixture.topics.produce(log, records(range(10, 20), partition=2))
        running.wait_until(lambda: spark_fixture.committed(sink, log).get(2) == 10, "the new partition")
    assert in_objects(spark_fixture) == list(range(20))


def test_topics_created_during_a_run_are_read_if_the_pattern_matches(
    spark_fixture: SparkFixture, topics: Topics, topic: str
) -> None:
    spark_fixture = replace(spark_fixture, discovery_interval_ms=100)
    one, two, other = (topics.create(f"{name}-{topic}") for name in ("a1", "a2", "b1"))
    topics.produce(one, records(range(10)))
    topics.produce(other, records([99] * 10))
    sink = spark_fixture.sink(None, kafka={"topicsPattern": f"a[0-9]-{topic}"})
    with spark_fixture.running(sink) as running:
        running.wait_until(lambda: spark_fixture.committed(sink, one) == {0: 10}, "the first topic")
        topics.produce(two, records(range(10, 20)))
        three = topics.create(f"a3-{topic}")
        topics.produce(three, records(range(20, 30)))
        running.wait_until(lambda: spark_fixture.committed(sink, two) == {0: 10}, "the second topic")
        running.wait_until(lambda: spark_fixture.committed(sink, three) == {0: 10}, "the third topic")
    assert in_objects(spark_fixture) == list(range(30))


def test_a_topic_deleted_during_a_run_ends_the_run_with_its_name(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(10)))
    sink = spark_fixture.sink([log])
    with spark_fixture.running(sink) as running:
        running.wait_until(lambda: spark_fixture.committed(sink, log) == {0: 10}, "the records")
        spark_fixture.topics.delete(log)
        error = running.ended_by()
    assert isinstance(error, TopicNotFound)
    assert error.exit_code == 7
    assert f"topic {log} does not exist" in str(error)


def test_other_topics_continue_when_a_topic_of_a_pattern_is_deleted(
    spark_fixture: SparkFixture, topics: Topics, topic: str
) -> None:
    gone, stays = (topics.create(f"{name}-{topic}") for name in ("gone", "stays"))
    sink = spark_fixture.sink(None, kafka={"topicsPattern": f".*-{topic}"})
    topics.produce(gone, records(range(15)))
    with replace(spark_fixture, discovery_interval_ms=100).running(sink) as running:
        running.wait_until(lambda: spark_fixture.committed(sink, gone) == {0: 10}, "the topic that goes")
        topics.delete(gone)
        topics.produce(stays, records(range(20, 30)))
        running.wait_until(lambda: spark_fixture.committed(sink, stays) == {0: 10}, "the topic that stays")
    topics.produce(stays, records(range(30, 40)))
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == [*range(15), *range(20, 40)]


def expect_recreated(error: BaseException | None, topic: str) -> None:
    assert isinstance(error, TopicRecreated)
    assert error.exit_code == 7
    assert f"topic {topic} was deleted and created again" in str(error)


def test_a_recreated_topic_is_not_taken_for_the_previous_one(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(10)))
    sink = spark_fixture.sink([log])
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    spark_fixture.topics.delete(log)
    spark_fixture.topics.create(log)
    spark_fixture.topics.produce(log, records(range(20)))
    with pytest.raises(TopicRecreated) as error:
        spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    expect_recreated(error.value, log)
    assert in_objects(spark_fixture) == list(range(10))


def test_a_topic_recreated_during_a_run_ends_the_run(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(10)))
    sink = spark_fixture.sink([log])
    with spark_fixture.running(sink) as running:
        running.wait_until(lambda: spark_fixture.committed(sink, log) == {0: 10}, "the records")
        spark_fixture.topics.delete(log)
        spark_fixture.topics.create(log)
        spark_fixture.topics.produce(log, records([99]))
        error = running.ended_by()
    expect_recreated(error, log)
    assert in_objects(spark_fixture) == list(range(10))


# -- the group -------------------------------------------------------------------------------------------------------


def test_a_group_with_active_members_is_rejected_before_the_ledger_is_created(
    spark_fixture: SparkFixture, log: str
) -> None:
    spark_fixture.topics.produce(log, records(range(30)))
    sink = spark_fixture.sink([log])
    reader = Consumer(
        {"bootstrap.servers": spark_fixture.bootstrap, "group.id": sink.group_id, "enable.auto.commit": False}
    )
    reader.subscribe([log])
    wait_until(lambda: bool(reader.poll(0.1) or reader.assignment()), "the other reader's partition", seconds=30)
    with pytest.raises(ConfigurationError, match="members"):
        spark_fixture.run(sink, PUBLISH_ALL)
    reader.commit(offsets=[TopicPartition(log, 0, 20)], asynchronous=False)
    reader.close()
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == list(range(20, 30))
    assert spark_fixture.committed(sink, log) == {0: 30}


# -- retention -------------------------------------------------------------------------------------------------------


def test_offsets_removed_by_retention_stop_the_sink_with_an_error(spark_fixture: SparkFixture, log: str) -> None:
    spark_fixture.topics.produce(log, records(range(25)))
    sink = spark_fixture.sink([log])
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    spark_fixture.topics.produce(log, records(range(25, 50)))
    spark_fixture.topics.delete_records(log, 0, 40)
    with pytest.raises(DataLoss, match=rf"{log}-0: 25 to 39\): retention has deleted them") as error:
        spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert error.value.exit_code == 5
    assert in_objects(spark_fixture) == list(range(20))


def test_with_on_data_loss_continue_remaining_records_are_read_and_the_loss_is_counted(
    spark_fixture: SparkFixture, log: str
) -> None:
    sink = spark_fixture.sink([log], onDataLoss="Continue")
    spark_fixture.topics.produce(log, records(range(20)))
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    spark_fixture.topics.produce(log, records(range(20, 50)))
    spark_fixture.topics.delete_records(log, 0, 40)
    with spark_fixture.driver(sink, PUBLISH_ALL) as driver:
        driver.run()
        assert driver.progress.lost_offsets == 20
    assert numbers(spark_fixture)["0000000040.json"] == list(range(40, 50))
    assert spark_fixture.committed(sink, log) == {0: 50}
