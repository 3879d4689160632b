"""The records of a dead-letter topic from the lines of objects."""

from __future__ import annotations

import json
from typing import Any

from sink_job.api.enums import ConverterType
from sink_job.coordinator.dead_letters.records import RecordFormat, lines_of

LINE: dict[str, Any] = {
    "key": "azI=",
    "headers": [{"name": "h", "value": None}, {"name": "s3sink.id", "value": "eA=="}],
    "timestamp": 7,
    "topic": "log",
    "partition": 0,
    "offset": 2,
    "value": "ezI=",
    "reason": "InvalidRecord",
    "message": "the value is not JSON",
    "rejectedAt": 9,
}


def record_of(*, errors: bool = True, max_bytes: int = 1 << 20, **fields: Any) -> Any:
    line = json.dumps({**LINE, **fields}).encode()
    return RecordFormat("default.flights", ConverterType.JSON, errors=errors, max_bytes=max_bytes).record(line)


def test_a_record_has_the_headers_of_its_source_and_those_of_kafka_connect() -> None:
    found = record_of()
    assert (found.timestamp, found.key, found.value) == (9, b"k2", b"{2")
    assert found.headers == [
        ("h", None),
        ("s3sink.id", b"x"),
        ("s3sink.id", b"default.flights/log/0/2"),
        ("s3sink.timestamp", b"7"),
        ("__connect.errors.topic", b"log"),
        ("__connect.errors.partition", b"0"),
        ("__connect.errors.offset", b"2"),
        ("__connect.errors.connector.name", b"default.flights"),
        ("__connect.errors.task.id", b"0"),
        ("__connect.errors.stage", b"VALUE_CONVERTER"),
        ("__connect.errors.class.name", b"s3sink.Json"),
        ("__connect.errors.exception.class.name", b"s3sink.InvalidRecord"),
        ("__connect.errors.exception.message", b"the value is not JSON"),
        ("__connect.errors.exception.stacktrace", b"s3sink.InvalidRecord: the value is not JSON"),
    ]
    assert found.id == "default.flights/log/0/2"


def test_without_headers_the_id_stays() -> None:
    found = record_of(errors=False, timestamp=None, headers=[])
    assert found.headers == [("s3sink.id", b"default.flights/log/0/2")]


def test_a_record_without_a_path_is_a_failure_of_the_task() -> None:
    assert dict(record_of(reason="InvalidPath").headers)["__connect.errors.stage"] == b"TASK_PUT"


def test_a_record_that_is_too_large_has_no_value_and_its_size_in_a_header() -> None:
    found = record_of(max_bytes=2_000, value="A" * 4_000)
    assert (found.key, found.value, dict(found.headers)["s3sink.value.omitted"]) == (b"k2", None, b"3000")


def test_a_record_that_is_too_large_without_its_value_has_no_key_and_headers_either() -> None:
    found = record_of(max_bytes=2_000, headers=[{"name": "h", "value": "A" * 4_000}])
    headers = dict(found.headers)
    assert (found.key, found.value, "h" in headers) == (None, None, False)
    assert (headers["s3sink.key.omitted"], headers["s3sink.value.omitted"]) == (b"3003", b"2")


def test_a_record_that_is_larger_than_a_tiny_limit_without_all_that_has_its_id() -> None:
    headers = dict(record_of(max_bytes=200, headers=[]).headers)
    assert headers.keys() == {"s3sink.id", "s3sink.key.omitted", "s3sink.value.omitted"}


def test_lines_may_span_chunks() -> None:
    assert list(lines_of([b"a\nb", b"c\n", b"", b"d\n"])) == [b"a", b"bc", b"d"]


def test_records_that_are_in_the_topic_are_left_out() -> None:
    lines = [json.dumps({**LINE, "offset": offset, "headers": []}).encode() for offset in (2, 3, 4)]
    shape = RecordFormat("s", ConverterType.JSON, errors=False, max_bytes=1_000)
    (batch,) = shape.batches(lines, frozenset({"s/log/0/3"}))
    assert [record.id for record in batch] == ["s/log/0/2", "s/log/0/4"]
