"""Which objects can be compared before there is a ledger, and how far Kafka is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Range
from sink_job.maintenance.position.comparison import ObjectRange, compare_objects, comparison_name, not_comparable
from sink_job.verify.previous_objects import ObjectEnd, PreviousObject, PreviousObjects
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("log", 0)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"partitioner": {"type": "Field", "fields": ["a"]}}, "partitioner Field"),
        ({"partitioner": {"type": "Hourly", "timezone": "UTC", "locale": "en"}}, "partitioner Hourly"),
        ({"format": {"output": "Avro", "converter": "ConnectJson"}}, "output Avro"),
        ({"format": {"output": "Parquet", "converter": "ConnectJson"}}, "output Parquet"),
        ({"format": {"converter": "ConnectJson"}}, "converter ConnectJson"),
        ({"format": {"envelope": True}}, "envelope"),
    ],
)
def test_objects_that_need_more_than_their_records_are_not_compared(sections: dict[str, Any], reason: str) -> None:
    assert reason in str(not_comparable(object_settings(**sections)))


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({}, "values of JSON"),
        ({"format": {"compression": {"codec": "Gzip"}}}, "values of JSON"),
        ({"format": {"output": "Bytes", "converter": "Bytes"}}, "bytes"),
    ],
)
def test_json_and_bytes_of_the_default_partitioner_are_compared(sections: dict[str, Any], name: str) -> None:
    assert not_comparable(object_settings(**sections)) is None
    assert comparison_name(object_settings(**sections)) == name


class _Engine:
    """Answers as a task for an object of 25 records from offset 10 on."""

    def __init__(self) -> None:
        self.read: list[Range] = []

    def run(self, *, ranges: Mapping[TopicPartition, Range], inputs: Mapping[TopicPartition, bytes], **_: Any) -> Any:
        self.read += ranges.values()
        end = ranges[TP].end
        result = ObjectEnd("k", "Equal" if end >= 35 else "Incomplete", min(end, 35) - 1)
        return {TP: msgspec.msgpack.encode([result])}

    def cancel(self) -> None: ...


def compared(engine: _Engine, end: int, start: int = 10) -> Sequence[ObjectEnd]:
    objects = PreviousObjects((PreviousObject("k", 10),), 10)
    settings, s3 = object_settings(rotation={"flushSize": 2}), None
    found = compare_objects({TP: ObjectRange(objects, start, end)}, engine, s3, settings, ErrorsSpec())  # type: ignore[arg-type]
    return found[TP]


def test_a_range_grows_until_the_object_ends() -> None:
    engine = _Engine()
    assert [each.status for each in compared(engine, 1000)] == ["Equal"]
    assert engine.read == [Range(10, 12), Range(10, 26), Range(10, 138)]


def test_a_range_ends_with_the_log() -> None:
    engine = _Engine()
    assert [each.status for each in compared(engine, 30)] == ["Incomplete"]
    assert engine.read[-1] == Range(10, 30)


def test_nothing_is_read_beyond_the_log() -> None:
    engine = _Engine()
    (result,) = compared(engine, 10)
    assert (result.status, result.message) == ("Different", "it begins at offset 10, and Kafka's log ends at 10")
    assert engine.read == []
