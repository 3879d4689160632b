"""A sink in the place of a connector of a real Kafka Connect worker, by the command line: its group with lag, in a
rebalance, after a stop, a deletion, a kill and the expiry of its offsets; and the way back.

The connector is Kafka's own for files: every sink connector has the same consumer group. What it has written to its
file is put into the bucket as the connector for S3 would.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka.admin import AdminClient

from devtools import bucket_listing
from devtools.connect_worker import ConnectWorker, connect_worker
from devtools.jars import tools_jars
from devtools.kafka import KafkaBroker, java_command
from devtools.processes import wait_until
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest, short_run
from devtools.topics import Record, Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
PARTITIONS = 2
ALL = ("--until-caught-up", "--publish-open")


@pytest.fixture(scope="module")
def worker(kafka: KafkaBroker) -> Iterator[ConnectWorker]:
    with connect_worker(kafka.bootstrap) as running:
        yield running


@dataclass
class Connector:
    """A connector of one topic, and what it has written."""

    worker: ConnectWorker
    topics: Topics
    bootstrap: str
    s3: S3Server
    bucket: str
    topic: str
    file: Path
    produced: list[tuple[int, int]] = field(default_factory=list)
    written: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def group(self) -> str:
        return f"connect-{self.topic}"

    @property
    def url(self) -> str:
        return self.worker.connector_url(self.topic)

    def produce(self, count: int) -> None:
        """Produces `count` records to each partition: each holds its partition and its offset."""
        for partition in range(PARTITIONS):
            first = sum(p == partition for p, _ in self.produced)
            numbers = range(first, first + count)
            values = ({"partition": partition, "n": n, "text": "ü" * (n % 5), "rate": n / 4} for n in numbers)
            records = (Record(value=json.dumps(value).encode(), partition=partition) for value in values)
            self.topics.produce(self.topic, records)
            self.produced += [(partition, n) for n in numbers]

    def start(self) -> None:
        self.worker.create_file_sink(self.topic, self.topic, self.file)
        self.wait_for(len(self.produced))

    def delivered(self) -> list[dict[str, Any]]:
        """The records in the connector's file, in their order."""
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.delivered()) >= count, "the connector's records", seconds=60)

    def stop(self) -> None:
        self.worker.request("PUT", f"/connectors/{self.topic}/stop")
        self.wait_until_empty()

    def resume(self) -> None:
        self.worker.request("PUT", f"/connectors/{self.topic}/resume")

    def wait_until_empty(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})

        def is_empty() -> bool:
            return not admin.describe_consumer_groups([self.group])[self.group].result().members

        wait_until(is_empty, "the end of the group's members", seconds=60)

    def write_objects(self, flush_size: int = 10) -> None:
        """Puts what the connector has delivered, and is in no object, into objects: fields sorted by name, as a map of
        Java has another order than the record."""
        values: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for value in self.delivered():
            values[value["partition"]].append(value)
        for partition, mine in values.items():
            for first in range(self.written[partition], len(mine), flush_size):
                rows = (
                    json.dumps(dict(sorted(value.items(), reverse=True))) for value in mine[first : first + flush_size]
                )
                self.put(partition, first, "".join(f"{row}\n" for row in rows))
            self.written[partition] = len(mine)

    def put(self, partition: int, first: int, content: str) -> str:
        key = f"topics/{self.topic}/partition={partition}/{self.topic}+{partition}+{first:010d}.json"
        self.s3.client().put_object(Bucket=self.bucket, Key=key, Body=content.encode())
        return key

    def committed(self) -> dict[int, int]:
        return self.topics.committed(self.group, self.topic)

    def spec(self, **sections: Mapping[str, Any]) -> dict[str, Any]:
        """The sink as `s3sink convert` writes it: the connector's group."""
        given: dict[str, Any] = {"kafka": {"groupId": self.group}, "rotation": {"flushSize": 10}, **sections}
        endpoint = self.s3.endpoint
        return local_spec(bootstrap=self.bootstrap, topics=[self.topic], endpoint=endpoint, bucket=self.bucket, **given)

    def expect_each_record_once(self, sink: SinkCommand) -> None:
        """By an own count over all objects of the bucket, and by `verify --deep`."""
        client = self.s3.client()
        keys = bucket_listing.objects(client, self.bucket)
        values = [json.loads(line) for key in keys for line in bucket_listing.lines(client, self.bucket, key)]
        assert sorted((value["partition"], value["n"]) for value in values) == sorted(self.produced)
        assert "OK: every record" in sink.must("verify", "--deep")
        assert bucket_listing.uploads(client, self.bucket) == {}


@pytest.fixture
def connector(
    worker: ConnectWorker, kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, tmp_path: Path
) -> Iterator[Connector]:
    topics.create(topic, partitions=PARTITIONS)
    made = Connector(worker, topics, kafka.bootstrap, s3, bucket, topic, tmp_path / "file-sink.txt")
    made.produce(20)
    made.start()
    yield made
    worker.delete(topic)


@pytest.fixture
def sink(connector: Connector, sink_here: SinkFactory) -> SinkCommand:
    return sink_here(manifest("flights", connector.spec()))


def cases(output: str) -> list[str]:
    """The case of each topic-partition in the output of a dry run."""
    return [line.split()[-1] for line in output.splitlines()[1 : 1 + PARTITIONS]]


def dry_run(sink: SinkCommand, *arguments: str, exit_code: int = 0) -> str:
    return sink.must("run", "--from-connector", "--dry-run", *arguments, exit_code=exit_code)


def take_over(sink: SinkCommand, *arguments: str) -> str:
    return sink.must("run", "--from-connector", *ALL, *arguments)


def printed(output: str, command: str) -> list[list[str]]:
    """The words of each command in the output of a dry run that begins so."""
    return [shlex.split(line) for line in output.splitlines() if line.strip().startswith(command)]


def set_offset(words: list[str]) -> None:
    """Runs `kafka-consumer-groups.sh` with the words behind its name, by the class that it starts."""
    main = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    options = ["-Xmx128m", "-XX:TieredStopAtLevel=1"]
    done = subprocess.run(
        java_command(main, *words[1:], options=options, more=tools_jars()), capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Error" in done.stdout) == (0, False), done.stdout + done.stderr


def test_a_running_connector_is_stopped_and_the_sink_continues_behind_it(
    connector: Connector, sink: SinkCommand
) -> None:
    connector.write_objects()
    output = dry_run(sink, "--stop-connector", connector.url, exit_code=7)
    assert "1 active members" in output
    assert f"curl -X PUT '{connector.url}/stop'" in output
    assert connector.worker.states(connector.topic)[0] == "RUNNING"
    take_over(sink, "--stop-connector", connector.url)
    assert connector.worker.states(connector.topic) == ["STOPPED"]
    connector.produce(7)
    sink.must("run", *ALL)
    connector.expect_each_record_once(sink)


def test_a_wrong_group_does_not_start_behind_the_objects_of_a_running_connector(
    connector: Connector, sink_here: SinkFactory
) -> None:
    connector.write_objects()
    sink = sink_here(manifest("flights", connector.spec(kafka={"groupId": f"{connector.group}-typo"})))
    output = dry_run(sink, "--start-at-objects", exit_code=7)
    assert cases(output) == ["Forgotten", "Forgotten"]
    assert f"running connectors read this topic with the groups {connector.group}" in output
    assert "if one of these groups is the connector's, set kafka.groupId to it" in output
    wrong = sink.must("run", "--from-connector", "--dry-run", "--stop-connector", connector.url, exit_code=2)
    assert f"its consumer group is {connector.group}, and kafka.groupId is {connector.group}-typo" in wrong
    missing = f"{connector.url}-typo"
    assert "has no connector" in sink.must(
        "run", "--from-connector", "--dry-run", "--stop-connector", missing, exit_code=2
    )
    assert connector.worker.states(connector.topic)[0] == "RUNNING"


def test_a_running_connector_rejects_the_start(connector: Connector, sink: SinkCommand) -> None:
    output = sink.must("run", "--from-connector", *ALL, exit_code=7)
    assert f"consumer group {connector.group} has 1 active members" in output
    assert bucket_listing.objects(connector.s3.client(), connector.bucket, ledger=True) == {}


def test_a_rebalance_in_progress_rejects_the_start(connector: Connector, sink: SinkCommand) -> None:
    group = {"bootstrap.servers": connector.bootstrap, "group.id": connector.group, "enable.auto.commit": False}
    silent = Consumer(group)
    silent.subscribe([connector.topic])
    wait_until(lambda: silent.poll(0.1) is not None or bool(silent.assignment()), "the other member", seconds=60)
    connector.worker.create_file_sink(connector.topic, connector.topic, connector.file, **{"tasks.max": "2"})
    admin = AdminClient({"bootstrap.servers": connector.bootstrap})

    def is_rebalancing() -> bool:
        state = admin.describe_consumer_groups([connector.group])[connector.group].result().state
        return bool(state == ConsumerGroupState.PREPARING_REBALANCING)

    wait_until(is_rebalancing, "the rebalance, which the silent member does not join", seconds=60)
    assert "active members" in dry_run(sink, exit_code=7)
    silent.close()
    connector.stop()
    connector.write_objects()
    take_over(sink)
    connector.expect_each_record_once(sink)


def test_a_stopped_connector_with_lag_is_continued_at_its_offsets(connector: Connector, sink: SinkCommand) -> None:
    connector.stop()
    connector.write_objects()
    connector.produce(13)
    assert connector.committed() == {0: 20, 1: 20}
    assert cases(dry_run(sink)) == ["Committed", "Committed"]
    take_over(sink)
    connector.expect_each_record_once(sink)
    assert connector.committed() == {0: 33, 1: 33}


def test_a_deleted_connector_is_continued_at_its_offsets(connector: Connector, sink: SinkCommand) -> None:
    connector.write_objects()
    connector.worker.delete(connector.topic)
    connector.wait_until_empty()
    connector.produce(5)
    assert cases(dry_run(sink)) == ["Committed", "Committed"]
    take_over(sink)
    connector.expect_each_record_once(sink)
    connector.worker.create_file_sink(connector.topic, connector.topic, connector.file)


def test_a_killed_worker_leaves_objects_beyond_its_offsets_that_are_accepted(
    connector: Connector, sink: SinkCommand
) -> None:
    connector.stop()
    connector.produce(25)
    connector.resume()
    connector.wait_for(90)
    connector.worker.kill()
    try:
        connector.write_objects()
        assert connector.committed() == {0: 20, 1: 20}
        assert "active members" in dry_run(sink, exit_code=7)
        connector.wait_until_empty()
        connector.s3.client().create_multipart_upload(
            Bucket=connector.bucket, Key=f"topics/{connector.topic}/partition=0/{connector.topic}+0+0000000045.json"
        )
        connector.produce(8)
        output = dry_run(sink)
        assert cases(output) == ["Accepted", "Accepted"]
        assert "offsets 20 to 29, 10 records, equal to Kafka's (values of JSON)" in output
        assert "1 unfinished uploads at keys of this sink are aborted after the first claim" in output
        accepting = {"groupId": connector.group, "existingObjects": "Accept"}
        sink.write(short_run(manifest("flights", connector.spec(kafka=accepting))))
        sink.must("run", *ALL)  # as the operator starts it
        connector.expect_each_record_once(sink)
        assert f"{connector.topic}-0: 3 objects with offsets 20 to 44 are of the previous writer" in sink.must("verify")
    finally:
        connector.worker.start()


def test_offsets_that_have_expired_are_those_that_the_objects_suggest(connector: Connector, sink: SinkCommand) -> None:
    connector.stop()
    connector.write_objects(flush_size=8)
    connector.produce(3)
    admin = AdminClient({"bootstrap.servers": connector.bootstrap})
    admin.delete_consumer_groups([connector.group])[connector.group].result()
    output = dry_run(sink, exit_code=7)
    assert cases(output) == ["Forgotten", "Forgotten"]
    assert "start with --start-at-objects, or set the offset:" in output
    assert "--to-offset 20 --execute" in output
    sink.must("run", "--from-connector", *ALL, exit_code=7)
    take_over(sink, "--start-at-objects")
    connector.expect_each_record_once(sink)


def test_an_object_that_differs_is_moved_away_and_its_records_are_read_from_kafka(
    connector: Connector, sink: SinkCommand
) -> None:
    connector.stop()
    connector.topics.commit(connector.group, connector.topic, {0: 10, 1: 10})
    connector.write_objects()
    key = connector.put(1, 10, '{"partition": 1, "n": 10, "text": "another", "rate": 2.5}\n')
    output = dry_run(sink, exit_code=7)
    assert cases(output) == ["Accepted", "Different"]
    assert f"{key}: the record at offset 10 differs from the one in Kafka" in output
    assert f"aws s3 mv s3://{connector.bucket}/{key} s3://{connector.bucket}/previous-writer/{key}" in output
    assert "(Different)" in sink.must("run", "--from-connector", *ALL, exit_code=7)
    (move,) = printed(output, "aws s3 mv")
    assert move[-2:] == ["--endpoint-url", connector.s3.endpoint]
    source, target = (urlsplit(url) for url in move[3:5])
    client = connector.s3.client()
    content = client.get_object(Bucket=source.netloc, Key=source.path[1:])["Body"].read()
    client.put_object(Bucket=target.netloc, Key=target.path[1:], Body=content)
    client.delete_object(Bucket=source.netloc, Key=source.path[1:])
    take_over(sink)
    client.delete_object(Bucket=target.netloc, Key=target.path[1:])  # only for the count of the records
    connector.expect_each_record_once(sink)


def test_objects_of_another_partitioner_are_kept_if_the_offsets_are_set_behind_them(
    connector: Connector, sink_here: SinkFactory
) -> None:
    connector.stop()
    connector.topics.commit(connector.group, connector.topic, {0: 10, 1: 10})
    connector.write_objects()
    sink = sink_here(manifest("flights", connector.spec(partitioner={"type": "Field", "fields": ["partition"]})))
    output = dry_run(sink, exit_code=7)
    assert cases(output) == ["NotCompared", "NotCompared"]
    assert "with partitioner Field the records of several objects interleave" in output
    assert f"--group {connector.group} --topic {connector.topic}:0 --reset-offsets --to-offset OFFSET" in output
    for words in printed(output, "kafka-consumer-groups.sh"):
        set_offset([word.replace("OFFSET", "20") for word in words])
    assert connector.committed() == {0: 20, 1: 20}
    connector.produce(4)
    take_over(sink)
    connector.expect_each_record_once(sink)


def test_the_connector_continues_behind_the_sink_on_the_way_back(connector: Connector, sink: SinkCommand) -> None:
    connector.stop()
    connector.write_objects()
    connector.produce(15)
    take_over(sink)
    connector.produce(4)
    sink.must("run", *ALL)
    sink.must("verify")
    assert connector.committed() == {0: 39, 1: 39}
    before = len(connector.delivered())
    connector.produce(6)
    connector.resume()
    connector.wait_for(before + 2 * 6)
    connector.stop()
    back = sorted((value["partition"], value["n"]) for value in connector.delivered()[before:])
    assert back == [(partition, n) for partition in range(PARTITIONS) for n in range(39, 45)]
    assert connector.committed() == {0: 45, 1: 45}
