"""What Kafka does to a log that a sink reads: transactions, compaction, retention; topics that come, grow and go."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from devtools.processes import wait_until
from devtools.topics import Record, Topics
from sink_job.api.errors import ConfigurationError, DataLoss, TopicNotFound, TopicRecreated
from tests.support.spark_fixture import ALL, SOON, Site

pytestmark = [pytest.mark.data, pytest.mark.spark]


def records(numbers: Iterable[int], *, partition: int = 0, key: bytes | None = None) -> Iterator[Record]:
    """Records that tell which they are."""
    return (Record(value=b'{"n":%d}' % n, key=key, partition=partition) for n in numbers)


def numbers(site: Site) -> dict[str, list[int]]:
    """By the last element of the visible objects' keys, the records in them."""
    return {
        key.rpartition("+0+")[2] if "+0+" in key else key.rpartition("/")[2]: [json.loads(line)["n"] for line in lines]
        for key, lines in site.values().items()
    }


def in_objects(site: Site) -> list[int]:
    """The records in all visible objects, sorted: each one as often as it is there."""
    return sorted(json.loads(line)["n"] for lines in site.values().values() for line in lines)


@pytest.fixture
def log(topics: Topics, topic: str) -> str:
    """A topic of one partition."""
    return topics.create(topic)


# -- transactions --------------------------------------------------------------------------------------------------


def test_aborted_records_are_in_no_object_and_do_not_count_for_flush_size(site: Site, log: str) -> None:
    site.topics.transaction(log, records(range(3)))
    site.topics.transaction(log, records([100, 101]), commit=False)
    site.topics.transaction(log, records(range(3, 5)))
    sink = site.sink([log], rotation={"flushSize": 5})
    site.run(sink, SOON)
    assert numbers(site) == {"0000000000.json": [0, 1, 2, 3, 4]}
    assert site.committed(sink, log) == site.topics.ends(log) == {0: 10}


def test_a_range_of_control_and_aborted_records_alone_is_passed_and_leaves_no_lag(site: Site, log: str) -> None:
    site.topics.transaction(log, records(range(10)))
    sink = site.sink([log])
    site.run(sink, SOON)
    site.topics.transaction(log, records([100]), commit=False)
    site.topics.transaction(log, [])
    site.run(sink, SOON)
    assert numbers(site) == {"0000000000.json": list(range(10))}
    assert site.committed(sink, log) == site.topics.ends(log)


def test_an_object_open_before_a_range_of_control_records_goes_on_behind_it(site: Site, log: str) -> None:
    site.topics.transaction(log, records(range(4)))
    sink = site.sink([log])
    site.run(sink, SOON)
    site.topics.transaction(log, records([100]), commit=False)
    site.run(sink, SOON)
    assert site.committed(sink, log) == {0: 0}
    site.topics.transaction(log, records(range(4, 10)))
    site.run(sink, SOON)
    assert numbers(site) == {"0000000000.json": list(range(10))}
    assert site.committed(sink, log) == site.topics.ends(log)


def test_nothing_is_read_beyond_an_open_transaction_until_it_is_committed(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(2)))
    producer = site.topics.open_transaction(log, records([2]))
    site.topics.produce(log, records([3]))
    sink = site.sink([log], rotation={"flushSize": 2})
    site.run(sink, ALL)
    assert in_objects(site) == [0, 1]
    assert site.committed(sink, log) == {0: 2}
    producer.commit_transaction(30)
    site.run(sink, ALL)
    assert in_objects(site) == [0, 1, 2, 3]


def test_a_transaction_that_stays_open_is_reported_with_its_first_offset_until_it_ends(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(2)))
    producer = site.topics.open_transaction(log, records([2, 3]))
    impatient = replace(site, look_every=50, stuck_after=300)
    with impatient.running(site.sink([log])) as sink:
        sink.wait_until(lambda: sink.report().stuck != [], "the report of the transaction", seconds=60)
        [stuck] = sink.report().stuck
        assert (stuck.topic, stuck.partition, stuck.offset, stuck.end) == (log, 0, 2, 4)
        producer.abort_transaction(30)
        sink.wait_until(lambda: sink.report().stuck == [], "the end of the report", seconds=60)


def test_read_uncommitted_reads_aborted_records_too(site: Site, log: str) -> None:
    site.topics.transaction(log, records([0, 1]), commit=False)
    site.run(site.sink([log], kafka={"isolationLevel": "ReadUncommitted"}), ALL)
    assert in_objects(site) == [0, 1]


def test_offsets_that_compaction_has_emptied_are_passed(site: Site, topics: Topics, topic: str) -> None:
    compacting = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.0",
        "max.compaction.lag.ms": "1",
        "segment.ms": "1",
    }
    topics.create(topic, settings=compacting)
    for n in range(12):  # each one replaces the last one; a segment of its own each, which lets the cleaner at it
        topics.produce(topic, records([n], key=b"same"))
    topics.produce(topic, records([12, 13], key=b"other"))
    wait_until(lambda: len(topics.read(topic)) < 14, "compaction", seconds=30)
    sink = site.sink([topic], rotation={"flushSize": 100})
    site.run(sink, ALL)
    assert in_objects(site) == [json.loads(message.value() or b"")["n"] for message in topics.read(topic)]
    assert site.committed(sink, topic) == topics.ends(topic) == {0: 14}


# -- where it starts -----------------------------------------------------------------------------------------------


def test_a_new_sink_starts_with_the_earliest_records_that_kafka_still_holds(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(8)))
    site.topics.delete_records(log, 0, 3)
    site.run(site.sink([log]), ALL)
    assert numbers(site) == {"0000000003.json": [3, 4, 5, 6, 7]}


def test_starting_with_the_latest_leaves_out_what_was_there_before(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(5)))
    sink = site.sink([log], kafka={"startingOffsets": "Latest"})
    site.run(sink, ALL)
    site.topics.produce(log, records(range(5, 8)))
    site.run(sink, ALL)
    assert numbers(site) == {"0000000005.json": [5, 6, 7]}


def test_the_offsets_of_the_group_come_before_starting_offsets(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(8)))
    sink = site.sink([log], kafka={"startingOffsets": "Latest"})
    site.topics.commit(sink.group_id, log, {0: 2})
    site.run(sink, ALL)
    assert in_objects(site) == [2, 3, 4, 5, 6, 7]


# -- topics that grow, come and go ---------------------------------------------------------------------------------


def test_partitions_added_while_it_runs_are_read_from_their_beginning(site: Site, log: str) -> None:
    site = replace(site, look_every=100)
    site.topics.produce(log, records(range(10)))
    sink = site.sink([log], kafka={"startingOffsets": "Latest"})
    site.topics.commit(sink.group_id, log, {0: 0})
    with site.running(sink) as running:
        running.wait_until(lambda: site.committed(sink, log) == {0: 10}, "the first partition")
        site.topics.add_partitions(log, 3)
        site.topics.produce(log, records(range(10, 20), partition=2))
        running.wait_until(lambda: site.committed(sink, log).get(2) == 10, "the new partition")
    assert in_objects(site) == list(range(20))


def test_topics_of_a_pattern_are_read_also_those_made_while_it_runs(site: Site, topics: Topics, topic: str) -> None:
    site = replace(site, look_every=100)
    one, two, other = (topics.create(f"{name}-{topic}") for name in ("a1", "a2", "b1"))
    topics.produce(one, records(range(10)))
    topics.produce(other, records([99] * 10))
    sink = site.sink(None, kafka={"topicsPattern": f"a[0-9]-{topic}"})
    with site.running(sink) as running:
        running.wait_until(lambda: site.committed(sink, one) == {0: 10}, "the first topic")
        topics.produce(two, records(range(10, 20)))
        three = topics.create(f"a3-{topic}")
        topics.produce(three, records(range(20, 30)))
        running.wait_until(lambda: site.committed(sink, two) == {0: 10}, "the second topic")
        running.wait_until(lambda: site.committed(sink, three) == {0: 10}, "the third topic")
    assert in_objects(site) == list(range(30))


def test_a_topic_that_is_deleted_while_it_is_read_ends_the_run_with_its_name(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(10)))
    sink = site.sink([log])
    with site.running(sink) as running:
        running.wait_until(lambda: site.committed(sink, log) == {0: 10}, "the records")
        site.topics.delete(log)
        error = running.ended_by()
    assert isinstance(error, TopicNotFound)
    assert error.exit_code == 7
    assert f"topic {log} does not exist" in str(error)


def test_when_a_topic_of_a_pattern_is_deleted_the_others_go_on(site: Site, topics: Topics, topic: str) -> None:
    gone, stays = (topics.create(f"{name}-{topic}") for name in ("gone", "stays"))
    sink = site.sink(None, kafka={"topicsPattern": f".*-{topic}"})
    topics.produce(gone, records(range(15)))
    with replace(site, look_every=100).running(sink) as running:
        running.wait_until(lambda: site.committed(sink, gone) == {0: 10}, "the topic that goes")
        topics.delete(gone)
        topics.produce(stays, records(range(20, 30)))
        running.wait_until(lambda: site.committed(sink, stays) == {0: 10}, "the topic that stays")
    topics.produce(stays, records(range(30, 40)))
    site.run(sink, ALL)
    assert in_objects(site) == [*range(15), *range(20, 40)]


def expect_recreated(error: BaseException | None, topic: str) -> None:
    assert isinstance(error, TopicRecreated)
    assert error.exit_code == 7
    assert f"topic {topic} was deleted and created again" in str(error)


def test_a_topic_that_was_made_anew_is_not_taken_for_the_one_before(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(10)))
    sink = site.sink([log])
    site.run(sink, SOON)
    site.topics.delete(log)
    site.topics.create(log)
    site.topics.produce(log, records(range(20)))
    with pytest.raises(TopicRecreated) as error:
        site.run(sink, SOON)
    expect_recreated(error.value, log)
    assert in_objects(site) == list(range(10))


def test_a_topic_that_is_made_anew_while_it_is_read_ends_the_run(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(10)))
    sink = site.sink([log])
    with site.running(sink) as running:
        running.wait_until(lambda: site.committed(sink, log) == {0: 10}, "the records")
        site.topics.delete(log)
        site.topics.create(log)
        site.topics.produce(log, records([99]))
        error = running.ended_by()
    expect_recreated(error, log)
    assert in_objects(site) == list(range(10))


# -- the group -----------------------------------------------------------------------------------------------------


def test_a_group_that_somebody_still_reads_with_is_refused_before_the_ledger_says_where_the_sink_starts(
    site: Site, log: str
) -> None:
    site.topics.produce(log, records(range(30)))
    sink = site.sink([log])
    reader = Consumer({"bootstrap.servers": site.bootstrap, "group.id": sink.group_id, "enable.auto.commit": False})
    reader.subscribe([log])
    wait_until(lambda: bool(reader.poll(0.1) or reader.assignment()), "the other reader's partition", seconds=30)
    with pytest.raises(ConfigurationError, match="members"):
        site.run(sink, ALL)
    reader.commit(offsets=[TopicPartition(log, 0, 20)], asynchronous=False)
    reader.close()
    site.run(sink, ALL)
    assert in_objects(site) == list(range(20, 30))
    assert site.committed(sink, log) == {0: 30}


# -- retention -----------------------------------------------------------------------------------------------------


def test_offsets_that_retention_has_eaten_stop_the_sink_loudly(site: Site, log: str) -> None:
    site.topics.produce(log, records(range(25)))
    sink = site.sink([log])
    site.run(sink, SOON)
    site.topics.produce(log, records(range(25, 50)))
    site.topics.delete_records(log, 0, 40)
    with pytest.raises(DataLoss, match=rf"{log}-0: 25 to 39\): retention has eaten them") as error:
        site.run(sink, SOON)
    assert error.value.exit_code == 5
    assert in_objects(site) == list(range(20))


def test_with_on_data_loss_continue_the_rest_is_read_and_the_loss_is_counted(site: Site, log: str) -> None:
    sink = site.sink([log], onDataLoss="Continue")
    site.topics.produce(log, records(range(20)))
    site.run(sink, SOON)
    site.topics.produce(log, records(range(20, 50)))
    site.topics.delete_records(log, 0, 40)
    with site.driver(sink, ALL) as driver:
        driver.run()
        assert driver.progress.lost_offsets == 20
    assert numbers(site)["0000000040.json"] == list(range(40, 50))
    assert site.committed(sink, log) == {0: 50}
