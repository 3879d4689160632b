"""The objects of both sides, from a ledger and listings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.compare.compared_objects import OtherSide, SinkSide, read_other_side, read_sink_side
from sink_job.compare.location import Location
from tests.support.compared_sink import ComparedSink, log_of
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

FIRST = TopicPartition("log", 0)


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ComparedSink:
    return ComparedSink(MemorySinkFixture(tmp_path, monkeypatch), tmp_path / "sink.yaml")


def sink_side(sink: ComparedSink) -> SinkSide:
    return read_sink_side(sink.fixture.sink, cast("Any", sink.fixture.s3), lambda line: None)


def other_side(sink: ComparedSink, url: str = "s3://archive/connect", own: str = "") -> OtherSide:
    s3 = cast("Any", sink.fixture.s3)
    return read_other_side(Location.parse(url), s3, sink_side(sink), lambda line: None, own=own)


def test_the_ledger_has_the_offsets_of_the_sinks_objects(sink: ComparedSink) -> None:
    sink.write(log_of("Json", 12, paths=2), paths=True)
    side = sink_side(sink)
    partition = side.partitions[FIRST]
    assert (side.topics, partition.start, partition.end) == (["log"], 0, 12)
    assert [(o.name, o.path, o.first, o.last, o.records) for o in sorted(partition.objects, key=lambda o: o.first)] == [
        ("log/kind=k0/log+0+0000000000.json", "kind=k0", 0, 4, 3),
        ("log/kind=k1/log+0+0000000001.json", "kind=k1", 1, 3, 2),
        ("log/kind=k1/log+0+0000000005.json", "kind=k1", 5, 9, 3),
        ("log/kind=k0/log+0+0000000006.json", "kind=k0", 6, 8, 2),
        ("log/kind=k0/log+0+0000000010.json", "kind=k0", 10, 10, 1),
        ("log/kind=k1/log+0+0000000011.json", "kind=k1", 11, 11, 1),
    ]


def test_missing_and_truncated_objects_and_those_of_no_ledger_are_found(sink: ComparedSink) -> None:
    sink.write(log_of("Json", 15))
    first, second, _ = sink.keys("topics")
    del sink.fixture.s3.objects[first]
    sink.truncate(second, 1)
    sink.put("topics/log/partition=0/log+0+0000000007.json", [{}])
    partition = sink_side(sink).partitions[FIRST]
    assert [o.key for o in partition.missing] == [first]
    assert partition.damaged.keys() == {second}
    assert sorted((o.first, o.last) for o in partition.objects) == [(5, 9), (7, None), (10, 14)]


def test_dead_letter_objects_hold_no_records_to_compare(sink: ComparedSink) -> None:
    class Broken(SyntheticLog):
        def value(self, partition: int, offset: int) -> bytes:
            return b"{" if offset == 3 else super().value(partition, offset)

    errors = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}
    sink.write(Broken(records=10), spec={"errors": errors})
    partition = sink_side(sink).partitions[FIRST]
    assert [(o.first, o.last) for o in partition.rejected] == [(3, 3)]
    assert sum(o.records or 0 for o in partition.objects) == 9


def test_the_other_side_has_its_objects_by_topic_partition_in_any_path(sink: ComparedSink) -> None:
    sink.write(SyntheticLog(records=10, partitions=2))
    sink.copy(lambda name: name.replace("partition=0", "a/b=c"))
    side = other_side(sink)
    assert {tp.partition: [(o.path, o.first, o.last) for o in of_tp] for tp, of_tp in side.partitions.items()} == {
        0: [("a/b=c", 0, None), ("a/b=c", 5, None)],
        1: [("partition=1", 0, None), ("partition=1", 5, None)],
    }
    assert side.partitions[FIRST][0].name == "log/a/b=c/log+0+0000000000.json"


def test_other_topics_are_not_listed_and_other_keys_are_counted(sink: ComparedSink) -> None:
    sink.write(log_of("Json", 5))
    sink.copy()
    beside = "log/partition=0/log+0+0000000000.keys.json"
    for name in ("log2/partition=0/log2+0+0000000000.json", "log/partition=0/x.json", "log/_tmp/log+0+0.json", beside):
        sink.put(f"connect/{name}", [{}])
    side = other_side(sink)
    assert (len(side.partitions[FIRST]), side.ignored) == (1, 3)


def test_the_sinks_own_directory_in_that_of_the_other_is_left_out(sink: ComparedSink) -> None:
    """The other writes to the whole bucket, and its topic has the name of the sink's directory."""
    sink.write(SyntheticLog(topic="topics", records=5), spec={"kafka": {**KAFKA, "topics": ["topics"]}})
    sink.put("topics/partition=0/topics+0+0000000000.json", [{}])
    side = other_side(sink, "s3://archive", own="topics/")
    assert (side.partitions, side.ignored) == ({}, 0)
    assert other_side(sink, "s3://archive").partitions


KAFKA = {"bootstrapServers": "127.0.0.1:9", "groupId": "group"}


def test_a_connector_has_its_own_directories_beside_a_sink_with_others(sink: ComparedSink) -> None:
    """The ledger is below the prefix of a topic without a directory of its own."""
    location = sink.fixture.sink.spec.s3.model_dump(by_alias=True, exclude_none=True, mode="json")
    sink.write(log_of("Json", 10), spec={"s3": {**location, "topicInPath": False}})
    sink.put("connect/log/partition=0/log+0+0000000000.json", [{}])
    partition = sink_side(sink).partitions[FIRST]
    assert [o.key for o in partition.objects] == [f"topics/partition=0/log+0+{first:010}.json" for first in (0, 5)]
    found = other_side(sink)
    assert [o.path for o in found.partitions[FIRST]] == ["partition=0"]
