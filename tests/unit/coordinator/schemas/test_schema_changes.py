"""Warnings about objects that are closed by changes of schema."""

from __future__ import annotations

import logging

import pytest

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.schemas.schema_changes import MAX_CHANGES, SchemaChangeWarnings, schema_changes
from sink_job.ledger.state import ClosedObject, OffsetChecksum

TP = TopicPartition("log", 0)


def closed(first: int, schema: str | None, *, path: str = "partition=0", partition: int = 0) -> ClosedObject:
    return ClosedObject(
        key=f"log/{path}/{first}",
        topic="log",
        partition=partition,
        path=path,
        first=first,
        last=first,
        bytes=1,
        crc=0,
        upload="upload",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(),
        settings=1,
        schema=schema,
    )


def in_turn(n: int) -> list[ClosedObject]:
    return [closed(first, str(first % 2)) for first in range(n)]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        (SchemaCompatibility.NONE, "to Separate, which has an object for each schema, or to Backward"),
        (SchemaCompatibility.FORWARD, "cannot be projected. Set spec.schemaCompatibility to Separate"),
    ],
)
def test_more_changes_of_schema_than_the_limit_are_warned_of_with_the_way_out(
    caplog: pytest.LogCaptureFixture, mode: SchemaCompatibility, advice: str
) -> None:
    SchemaChangeWarnings(mode).round_recorded(in_turn(MAX_CHANGES + 2))
    (warning,) = warnings(caplog)
    assert warning.startswith(f"log-0: the schema changed between {MAX_CHANGES + 1} objects of one round")
    assert advice in warning


def test_a_topic_partition_is_warned_of_once_in_a_driver(caplog: pytest.LogCaptureFixture) -> None:
    reporter = SchemaChangeWarnings(SchemaCompatibility.NONE)
    reporter.round_recorded(in_turn(MAX_CHANGES + 2))
    reporter.round_recorded(in_turn(MAX_CHANGES + 2))
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize(
    ("mode", "n"), [(SchemaCompatibility.NONE, MAX_CHANGES + 1), (SchemaCompatibility.SEPARATE, 3 * MAX_CHANGES)]
)
def test_few_changes_and_objects_for_each_schema_are_not_warned_of(
    caplog: pytest.LogCaptureFixture, mode: SchemaCompatibility, n: int
) -> None:
    SchemaChangeWarnings(mode).round_recorded(in_turn(n))
    assert warnings(caplog) == []


def test_changes_are_counted_for_each_path_in_the_order_of_offsets() -> None:
    objects = [
        *(closed(first, "1", path="a") for first in (5, 1, 3)),
        *(closed(first, "2", path="b") for first in (2, 4)),
        closed(6, "2", path="a"),
        closed(7, None, path="a"),
    ]
    assert schema_changes(objects) == {TP: 2}


def test_objects_of_different_topic_partitions_are_not_compared() -> None:
    assert schema_changes([closed(0, "1"), closed(0, "2", partition=1)]) == {}
