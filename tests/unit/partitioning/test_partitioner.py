"""Paths of each partitioner (docs/semantics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from sink_job.partitioning.partitioner import PathColumns, PathPartitioner
from sink_job.plain.schemaless import NotFinite
from sink_job.records.batch import REJECTED, REJECTED_PATH
from sink_job.records.fields import MISSING
from tests.unit.rotation.clocks import at
from tests.unit.rotation.settings import object_settings

DAILY = "'year'=YYYY/'month'=MM/'day'=dd"


def partitioner(delimiter: str = "/", **settings: Any) -> PathPartitioner:
    return PathPartitioner.of(object_settings(partitioner=settings, s3={"directoryDelimiter": delimiter}))


def partition(
    found: PathPartitioner,
    *,
    n: int | None = None,
    fields: dict[str, list[Any]] | None = None,
    times: Sequence[int] | None = None,
    now: int = 0,
    skip: Sequence[bool] | None = None,
) -> PathColumns:
    count = n if n is not None else len(times or next(iter((fields or {}).values())))
    return found.partition(
        count,
        now,
        partition=7,
        timestamps=None if times is None else np.array(times, np.int64),
        fields=fields,
        skip=None if skip is None else np.array(skip),
    )


def paths(columns: PathColumns) -> list[str | None]:
    """The path of each row; None for a rejected row."""
    return [columns.paths[code] if code >= 0 else None for code in columns.codes]


def by_field(*names: str, delimiter: str = "/") -> PathPartitioner:
    return partitioner(delimiter, type="Field", fields=list(names))


def by_time(duration: str = "1h", path_format: str = DAILY, **settings: Any) -> PathPartitioner:
    chosen = {"timezone": "UTC", "timestampExtractor": "Record", **settings}
    return partitioner(type="Time", duration=duration, pathFormat=path_format, **chosen)


def test_the_path_of_default_is_the_kafka_partition() -> None:
    columns = partition(partitioner(type="Default"), n=3)
    assert paths(columns) == ["partition=7"] * 3
    assert columns.times is None


def test_the_path_of_a_field_is_its_name_and_value() -> None:
    assert paths(partition(by_field("carrier"), fields={"carrier": ["UA", "AA", "UA"]})) == [
        "carrier=UA",
        "carrier=AA",
        "carrier=UA",
    ]


def test_several_fields_are_directories_in_the_order_of_the_spec() -> None:
    columns = partition(by_field("b", "a"), fields={"a": [1, 2, 1], "b": ["x", "x", "x"]})
    assert paths(columns) == ["b=x/a=1", "b=x/a=2", "b=x/a=1"]
    assert len(columns.paths) == 2


def test_a_nested_field_keeps_its_dotted_name() -> None:
    assert paths(partition(by_field("a.b"), fields={"a.b": ["x"]})) == ["a.b=x"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, "f=5"),
        (-5, "f=-5"),
        (2**70, f"f={2**70}"),
        ("", "f="),
        ("5", "f=5"),
        ("a b", "f=a b"),
        ("ä€", "f=ä€"),
        ("50%", "f=50%"),
        ("a=b", "f=a=b"),
        (True, "f=true"),
        (False, "f=false"),
        (None, "f=null"),
        (".", "f=."),
        ("...", "f=..."),
        ("a..b", "f=a..b"),
    ],
)
def test_a_harmless_value_is_unchanged_in_a_path(value: object, expected: str) -> None:
    assert paths(partition(by_field("f"), fields={"f": [value]})) == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("..", "f=%2E%2E"),
        ("a/b", "f=a%2Fb"),
        ("../../x", "f=..%2F..%2Fx"),
        ("/", "f=%2F"),
        ("50%/x", "f=50%25%2Fx"),
        ("a\nb", "f=a%0Ab"),
        ("a\0%", "f=a%00%25"),
        ("\x7f", "f=%7F"),
        ("\x85ä", "f=%C2%85ä"),
    ],
)
def test_a_value_that_could_leave_its_directory_is_percent_encoded(value: str, expected: str) -> None:
    assert paths(partition(by_field("f"), fields={"f": [value]})) == [expected]


def test_a_decimal_is_not_the_integer_of_the_same_value() -> None:
    columns = partition(by_field("f"), fields={"f": [1, Decimal(1), 1]})
    assert paths(columns) == ["f=1", None, "f=1"]


def test_the_encoded_characters_depend_on_the_delimiter() -> None:
    assert paths(partition(by_field("f", delimiter="|"), fields={"f": ["a/b", "a|b"]})) == ["f=a/b", "f=a%7Cb"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (MISSING, 'field "f" is missing'),
        (1.0, 'field "f" holds a number with a fraction, not text, an integer or a boolean'),
        ([1], 'field "f" holds an array, not text, an integer or a boolean'),
        ({}, 'field "f" holds an object, not text, an integer or a boolean'),
        (b"x", 'field "f" holds bytes, not text, an integer or a boolean'),
        (Decimal(1), 'field "f" holds a decimal number, not text, an integer or a boolean'),
        (NotFinite.NAN, 'field "f" holds another value, not text, an integer or a boolean'),
    ],
)
def test_a_field_that_cannot_be_in_a_path_is_rejected(value: object, error: str) -> None:
    columns = partition(by_field("f"), fields={"f": ["x", value, "y", value]})
    assert paths(columns) == ["f=x", None, "f=y", None]
    assert columns.codes[1] == REJECTED_PATH
    assert columns.rejected == [(1, error), (3, error)]


def test_values_that_are_equal_in_python_have_different_paths() -> None:
    columns = partition(by_field("f"), fields={"f": [1, True, 1.0, 0, False, "1", None]})
    assert paths(columns) == ["f=1", "f=true", None, "f=0", "f=false", "f=1", "f=null"]
    assert len(set(columns.paths)) == len(columns.paths)


def test_rows_that_were_rejected_before_are_skipped() -> None:
    columns = partition(by_field("f"), fields={"f": ["x", MISSING, "y"]}, skip=[False, True, False])
    assert columns.codes[1] == REJECTED
    assert columns.rejected == []
    assert paths(columns) == ["f=x", None, "f=y"]


def test_all_rows_of_a_batch_can_be_rejected() -> None:
    columns = partition(by_field("f"), fields={"f": [MISSING, MISSING]}, skip=[True, True])
    assert columns.codes.tolist() == [REJECTED, REJECTED]
    assert partition(partitioner(type="Default"), n=1, skip=[True]).codes.tolist() == [REJECTED]


def test_only_the_first_invalid_field_of_a_record_is_reported() -> None:
    columns = partition(by_field("f", "g"), fields={"f": [MISSING, 1], "g": [MISSING, MISSING]})
    assert columns.rejected == [(0, 'field "f" is missing'), (1, 'field "g" is missing')]


def test_a_time_path_is_the_time_bucket_of_the_record() -> None:
    times = [at("2024-05-17T23:59:59.999"), at("2024-05-18T00:00")]
    columns = partition(by_time(), times=times)
    assert paths(columns) == ["year=2024/month=05/day=17", "year=2024/month=05/day=18"]
    assert columns.times is not None
    assert columns.times.tolist() == times


def test_time_buckets_with_equal_texts_have_one_path() -> None:
    columns = partition(by_time("1h"), times=[at("2024-05-17T01:00"), at("2024-05-17T02:00")])
    assert columns.paths == ["year=2024/month=05/day=17"]
    assert columns.codes.tolist() == [0, 0]


def test_a_time_path_is_the_start_of_the_bucket_and_not_the_records_time() -> None:
    pattern = "YYYY-MM-dd-HH-mm"
    assert paths(partition(by_time("15m", pattern), times=[at("2024-05-17T10:29")])) == ["2024-05-17-10-15"]


def test_time_paths_are_in_local_time() -> None:
    columns = partition(by_time(timezone="Asia/Kolkata"), times=[at("2024-05-17T18:30")])
    assert paths(columns) == ["year=2024/month=05/day=18"]


@pytest.mark.parametrize("pattern", ["YYYY/MM/", "YYYY/MM'/'"])
def test_a_delimiter_at_the_end_of_the_pattern_is_removed(pattern: str) -> None:
    assert paths(partition(by_time("1d", pattern), times=[0])) == ["1970/01"]


def test_hourly_and_daily_have_fixed_patterns() -> None:
    moment = [at("2024-05-17T10:20")]
    for kind, expected in (
        ("Hourly", "year=2024/month=05/day=17/hour=10"),
        ("Daily", "year=2024/month=05/day=17"),
    ):
        found = partitioner(type=kind, timezone="UTC", timestampExtractor="Record")
        assert paths(partition(found, times=moment)) == [expected]


def test_the_directories_of_hourly_are_joined_by_the_directory_delimiter() -> None:
    found = partitioner("|", type="Daily", timezone="UTC", timestampExtractor="Record")
    assert paths(partition(found, times=[0])) == ["year=1970|month=01|day=01"]


def test_names_of_months_are_in_the_language_of_the_locale() -> None:
    assert paths(partition(by_time("1d", "YYYY/MMMM", locale="de"), times=[at("2024-03-01T00:00")])) == ["2024/März"]


def test_the_time_of_the_extractor_wallclock_is_the_clock_of_the_round() -> None:
    found = by_time(timestampExtractor="Wallclock")
    columns = partition(found, n=2, now=at("2024-05-17T10:00"))
    assert columns.times is not None
    assert columns.times.tolist() == [at("2024-05-17T10:00")] * 2
    assert paths(columns) == ["year=2024/month=05/day=17"] * 2
    assert found.needs_clock
    assert not found.needs_timestamp


def test_a_record_without_a_time_is_rejected_without_any_effect() -> None:
    columns = partition(by_time(), times=[0, -1])
    assert columns.codes.tolist() == [0, REJECTED]
    assert columns.rejected == [(1, "the record has no Kafka timestamp")]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "-18:00", "Asia/Kathmandu", "+18:00"])
@pytest.mark.parametrize("extractor", ["Record", "RecordField"])
def test_the_smallest_and_the_largest_64_bit_time_are_rejected_in_every_zone(zone: str, extractor: str) -> None:
    times = [0, -(2**63), -(2**63) + 1, -(2**62), 2**62, 2**63 - 1]
    found = by_time(timezone=zone, timestampExtractor=extractor, timestampField="at")
    columns = partition(found, times=times, fields={"at": times})
    assert columns.codes.tolist() == [0, *[REJECTED] * 5]
    assert [row for row, _ in columns.rejected] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("zone", ["America/New_York", "-18:00", "Asia/Kathmandu", "+18:00"])
def test_the_first_and_the_last_time_in_range_have_paths_in_every_zone(zone: str) -> None:
    columns = partition(by_time(timezone=zone), times=[1 - 2**62, 2**62 - 1])
    assert (len(columns.paths), columns.rejected) == (2, [])


def test_the_time_of_the_extractor_record_field_is_a_field() -> None:
    found = by_time(timestampExtractor="RecordField", timestampField="at.time")
    assert [each.text for each in found.fields] == ["at.time"]
    columns = partition(found, fields={"at.time": ["2024-05-17T10:00:00Z", 0, "x"]})
    assert paths(columns) == ["year=2024/month=05/day=17", "year=1970/month=01/day=01", None]
    assert columns.codes[2] == REJECTED


def test_field_and_time_puts_the_fields_first() -> None:
    found = partitioner(
        type="FieldAndTime", fields=["f"], duration="1d", pathFormat=DAILY, timezone="UTC", timestampExtractor="Record"
    )
    columns = partition(found, fields={"f": ["x", "y", "x"]}, times=[0, 0, at("1970-01-02T00:00")])
    assert paths(columns) == [
        "f=x/year=1970/month=01/day=01",
        "f=y/year=1970/month=01/day=01",
        "f=x/year=1970/month=01/day=02",
    ]


def test_a_record_with_a_time_but_no_path_keeps_its_time() -> None:
    found = partitioner(
        type="FieldAndTime", fields=["f"], duration="1d", pathFormat=DAILY, timezone="UTC", timestampExtractor="Record"
    )
    columns = partition(found, fields={"f": [MISSING, "x", MISSING]}, times=[5, 6, -1])
    assert columns.codes.tolist() == [REJECTED_PATH, 0, REJECTED]
    assert columns.times is not None
    assert columns.times.tolist()[:2] == [5, 6]


def test_a_partitioner_declares_the_columns_that_it_needs() -> None:
    assert [each.text for each in by_field("a", "b.c").fields] == ["a", "b.c"]
    assert by_time().fields == ()
    assert by_time().needs_timestamp
    assert not by_time().needs_clock
    assert partitioner(type="Default").fields == ()
