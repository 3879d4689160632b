"""The path of objects as columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.parser import load_sink
from sink_job.ddl.path_columns import path_columns
from sink_job.ddl.table import PathColumn, Projection

INTEGER, DATE, INJECTED = Projection.INTEGER, Projection.DATE, Projection.INJECTED


def columns(partitioner: dict[str, Any], **given: Any) -> tuple[PathColumn, ...]:
    manifest = {
        "apiVersion": "s3sink.io/v1alpha1",
        "kind": "S3Sink",
        "metadata": {"name": "t"},
        "spec": {
            "kafka": {"bootstrapServers": "kafka:9092", "topics": ["t"]},
            "partitioner": partitioner,
            "rotation": {"flushSize": 1},
            "s3": {"bucket": "lake", "region": "eu-west-1"},
            **given,
        },
    }
    return path_columns(load_sink(json.dumps(manifest)).object_settings())


def shown(found: tuple[PathColumn, ...]) -> list[tuple[str, Projection, str]]:
    return [(each.name, each.projection, each.template) for each in found]


def of_pattern(pattern: str) -> tuple[PathColumn, ...]:
    return columns({"type": "Time", "pathFormat": pattern, "duration": "1h", "timezone": "UTC"})


def test_a_kafka_partition_is_a_number() -> None:
    assert columns({"type": "Default"}) == (PathColumn("partition", INTEGER, "partition={}", lowest=0, highest=9_999),)


def test_the_calendar_of_hourly_and_daily_are_numbers_of_a_fixed_width() -> None:
    hourly = columns({"type": "Hourly", "timezone": "UTC"})
    assert shown(hourly) == [
        ("year", INTEGER, "year={}"),
        ("month", INTEGER, "month={}"),
        ("day", INTEGER, "day={}"),
        ("hour", INTEGER, "hour={}"),
    ]
    assert [(each.lowest, each.highest, each.digits) for each in hourly] == [
        (2000, 2100, 4),
        (1, 12, 2),
        (1, 31, 2),
        (0, 23, 2),
    ]
    assert columns({"type": "Daily", "timezone": "UTC"}) == hourly[:3]


def test_fields_are_named_as_in_the_path_and_have_any_value() -> None:
    found = columns({"type": "Field", "fields": ["carrier", "origin.country", "$header.tenant", "$partition"]})
    assert shown(found) == [
        ("carrier", INJECTED, "carrier={}"),
        ("origin.country", INJECTED, "origin.country={}"),
        ("header.tenant", INJECTED, "header.tenant={}"),
        ("partition", INJECTED, "partition={}"),
    ]


def test_fields_come_before_the_time_and_the_schema_name_is_at_its_end() -> None:
    found = columns(
        {
            "type": "FieldAndTime",
            "fields": ["k"],
            "pathFormat": "'dt'=YYYY-MM-dd",
            "duration": "1d",
            "timezone": "UTC",
            "schemaName": "Suffix",
        },
        format={"converter": "ConnectJson"},
    )
    assert [each.name for each in found] == ["k", "dt", "schema_name"]


@pytest.mark.parametrize(
    ("pattern", "java", "unit"),
    [
        ("'dt'=YYYY-MM-dd", "yyyy-MM-dd", "DAYS"),
        ("'dt'=yyyyMMdd", "yyyyMMdd", "DAYS"),
        ("'h'=YYYY-MM-dd-HH", "yyyy-MM-dd-HH", "HOURS"),
        ("'h'=YYYY-MM-dd'T'HH", "yyyy-MM-dd'T'HH", "HOURS"),
        ("'m'=YYYY-MM", "yyyy-MM", "MONTHS"),
    ],
)
def test_a_date_in_one_element_has_its_pattern_in_javas_letters(pattern: str, java: str, unit: str) -> None:
    (found,) = of_pattern(pattern)
    assert (found.projection, found.pattern, found.unit) == (DATE, java, unit)


@pytest.mark.parametrize("pattern", ["'m'=MMM", "'w'=ww", "'d'=MM-dd", "'e'=E", "'y'=yy", "'z'=YYYY-MM-ddZ"])
def test_what_is_no_date_or_number_has_any_value(pattern: str) -> None:
    (found,) = of_pattern(pattern)
    assert found.projection is INJECTED


def test_elements_without_a_name_get_one_and_are_marked() -> None:
    found = of_pattern("'v1'/YYYY/MM/'day-'dd/MMM")
    assert [(each.name, each.template, each.is_named) for each in found] == [
        ("year", "v1/{}", False),
        ("month", "{}", False),
        ("time_3", "{}", False),
        ("time_4", "{}", False),
    ]


def test_names_occur_once() -> None:
    found = of_pattern("'x'=YYYY/'X'=MM")
    assert [(each.name, each.template, each.is_named) for each in found] == [
        ("x", "x={}", True),
        ("X_2", "X={}", False),
    ]
