"""Which objects can be compared before there is a ledger, and how far Kafka is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.engine.types import Range
from sink_job.maintenance.position.comparison import ObjectRange, compare_objects, comparison_name, not_comparable
from sink_job.registry.base import SchemaRegistry
from sink_job.verify.previous.previous_objects import ObjectEnd, PreviousObject, PreviousObjects, PreviousResult
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("log", 0)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"partitioner": {"type": "Field", "fields": ["a"]}}, "partitioner Field"),
        ({"partitioner": {"type": "Hourly", "timezone": "UTC", "locale": "en"}}, "partitioner Hourly"),
        ({"format": {"output": "Parquet", "converter": "Json", "inference": "Once"}}, "infers"),
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
        ({"format": {"converter": "ConnectJson"}}, "values of JSON"),
        ({"format": {"output": "Avro", "converter": "ConnectJson"}}, "rows of Avro"),
        ({"format": {"output": "Parquet", "converter": "ConnectJson"}}, "rows of Parquet"),
    ],
)
def test_objects_of_the_default_partitioner_are_compared(sections: dict[str, Any], name: str) -> None:
    assert not_comparable(object_settings(**sections)) is None
    assert comparison_name(object_settings(**sections)) == name


class _Engine:
    """Answers as a task for an object of 25 records from offset 10 on."""

    def __init__(self) -> None:
        self.read: list[Range] = []
        self.unresolved: list[list[str]] = []

    def run(self, *, ranges: Mapping[TopicPartition, Range], inputs: Mapping[TopicPartition, bytes], **_: Any) -> Any:
        self.read += ranges.values()
        end = ranges[TP].end
        result = ObjectEnd("k", "Equal" if end >= 35 else "Incomplete", min(end, 35) - 1)
        return {TP: msgspec.msgpack.encode(PreviousResult([result], self.unresolved.pop() if self.unresolved else []))}

    def cancel(self) -> None: ...


def compared(engine: _Engine, end: int, start: int = 10, registry: SchemaRegistry | None = None) -> Sequence[ObjectEnd]:
    objects = PreviousObjects((PreviousObject("k", 10),), 10)
    settings, s3 = object_settings(rotation={"flushSize": 2}), None
    ranges: Any = {TP: ObjectRange(objects, start, end)}
    found = compare_objects(ranges, cast("Any", engine), cast("Any", s3), settings, ErrorsSpec(), registry)
    return found[TP].ends


def test_a_range_grows_until_the_object_ends() -> None:
    engine = _Engine()
    assert [each.status for each in compared(engine, 1000)] == ["Equal"]
    assert engine.read == [Range(10, 12), Range(10, 26), Range(10, 138)]


def test_a_range_grows_until_the_committed_offset() -> None:
    objects = PreviousObjects((PreviousObject("k", 10, is_required=False),), 100)
    each, ended = ObjectRange(objects, 10, 300), PreviousResult([ObjectEnd("k", "Equal", 19)])
    assert each.end_of(20) == 30
    assert each.needs_more(ended, 30)
    assert not each.needs_more(ended, 100)
    assert not each.needs_more(PreviousResult(ended.ends, uncovered=25), 30)


def test_a_range_does_not_grow_after_a_difference_of_an_object_beyond_the_offset() -> None:
    objects = PreviousObjects((PreviousObject("k", 120),), 100)
    assert not ObjectRange(objects, 10, 300).needs_more(PreviousResult([ObjectEnd("k", "Different")]), 30)


def test_without_an_object_a_range_begins_with_the_log() -> None:
    each = ObjectRange(PreviousObjects((), 100), 10, 300)
    assert (each.end_of(20), each.needs_more(PreviousResult([]), 30)) == (30, True)


def test_a_range_ends_with_the_log() -> None:
    engine = _Engine()
    assert [each.status for each in compared(engine, 30)] == ["Incomplete"]
    assert engine.read[-1] == Range(10, 30)


def test_nothing_is_read_beyond_the_log() -> None:
    engine = _Engine()
    (result,) = compared(engine, 10)
    assert (result.status, result.message) == ("Different", "it begins at offset 10, and Kafka's log ends at 10")
    assert engine.read == []


class _Registry:
    url = "http://registry"

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema:
        return RegisteredSchema(schema_id, "AVRO", '"string"')

    def close(self) -> None: ...


def test_a_range_is_read_again_with_the_schemas_that_its_task_has_asked_for() -> None:
    engine = _Engine()
    engine.unresolved = [["2"], ["1"]]
    assert [each.status for each in compared(engine, 1000, registry=_Registry())] == ["Equal"]
    assert engine.read == [Range(10, 12), Range(10, 12), Range(10, 12), Range(10, 26), Range(10, 138)]


def test_schema_ids_without_a_registry_are_an_error_of_the_configuration() -> None:
    engine = _Engine()
    engine.unresolved = [["1"]]
    with pytest.raises(ConfigurationError, match=r"log.*spec.format.registry is not set"):
        compared(engine, 1000)
