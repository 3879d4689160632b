"""The time of a record (docs/semantics.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.timestamp_extractor import LIMIT, field_times, kafka_times
from sink_job.records.fields import MISSING
from tests.unit.rotation.clocks import at


def test_a_record_without_a_kafka_timestamp_is_rejected() -> None:
    times, rejected = kafka_times(np.array([5, -1, 0, -2], np.int64))
    assert times[[0, 2, 3]].tolist() == [5, 0, -2]
    assert rejected == [(1, "the record has no Kafka timestamp")]


ENDS = [bound + step for bound in (-(2**63), -LIMIT, 0, LIMIT, 2**63 - 1) for step in (-1, 0, 1)]
int64s = st.sampled_from([time for time in ENDS if -(2**63) <= time < 2**63]) | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(int64s, min_size=1))
def test_a_kafka_timestamp_is_rejected_if_and_only_if_it_is_out_of_range(column: list[int]) -> None:
    times, rejected = kafka_times(np.array(column, np.int64))
    assert times.tolist() == column
    assert dict(rejected) == {row: error for row, time in enumerate(column) if (error := time_error(time))}
    assert [row for row, _ in rejected] == sorted(row for row, _ in rejected)


def time_error(time: int) -> str | None:
    if time == -1:
        return "the record has no Kafka timestamp"
    return "the Kafka timestamp is out of range" if abs(time) >= LIMIT else None


@given(st.lists(int64s, min_size=1))
def test_an_integer_field_has_the_same_range_as_a_kafka_timestamp(column: list[int]) -> None:
    rejected = [row for row, _ in field_times("ts", column)[1]]
    assert rejected == [row for row, time in enumerate(column) if abs(time) >= LIMIT]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(1_700_000_000_000, 1_700_000_000_000, id="an integer is milliseconds"),
        pytest.param(-5, -5, id="an integer before 1970"),
        pytest.param("1700000000000", 1_700_000_000_000, id="digits are milliseconds"),
        pytest.param("-17", -17, id="negative digits are milliseconds"),
        pytest.param("2024", 2024, id="a year without a month is milliseconds"),
        pytest.param("2024-05-17T10:20:30Z", at("2024-05-17T10:20:30"), id="other text is ISO 8601"),
        pytest.param("2024-05-17T10:20:30", at("2024-05-17T10:20:30"), id="a text without an offset is in UTC"),
        pytest.param(
            "2024-05-17T10:20:30.5+02:00", at("2024-05-17T08:20:30.500"), id="a text with an offset is converted"
        ),
    ],
)
def test_a_field_is_converted_to_a_time(value: object, expected: int) -> None:
    times, rejected = field_times("ts", [value])
    assert (times.tolist(), rejected) == ([expected], [])
    mixed, rejected = field_times("ts", [value, "2024-01-01", 7])
    assert (mixed.tolist()[0], rejected) == (expected, [])


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (MISSING, 'field "a.ts" is missing'),
        (None, 'field "a.ts" holds null, not milliseconds or ISO 8601'),
        (True, 'field "a.ts" holds a boolean, not milliseconds or ISO 8601'),
        (1.0, 'field "a.ts" holds a number with a fraction, not milliseconds or ISO 8601'),
        ([], 'field "a.ts" holds an array, not milliseconds or ISO 8601'),
        ({}, 'field "a.ts" holds an object, not milliseconds or ISO 8601'),
        ("soon", "field \"a.ts\" holds 'soon': not an ISO 8601 time"),
        (2**63, 'field "a.ts" holds a time out of range'),
        (2**62, 'field "a.ts" holds a time out of range'),
        ("4611686018427387904", 'field "a.ts" holds a time out of range'),
        ("99999999999999999999", "field \"a.ts\" holds '99999999999999999999': not an ISO 8601 time"),
    ],
)
def test_a_field_without_a_valid_time_is_rejected(value: object, error: str) -> None:
    assert field_times("a.ts", [5, value, 6])[1] == [(1, error)]
    assert field_times("a.ts", [value])[1] == [(0, error)]


texts = st.datetimes().map(lambda moment: moment.isoformat(timespec="seconds") + "Z")
values: st.SearchStrategy[Any] = st.one_of(texts, texts, st.integers(-(2**64), 2**64), st.text(max_size=3), st.none())


@given(st.lists(texts | st.just("2024-02-30T00:00:00Z"), min_size=1) | st.lists(values, min_size=1))
def test_a_column_has_the_same_result_as_its_values_one_by_one(column: list[object]) -> None:
    times, rejected = field_times("ts", column)
    alone = [field_times("ts", [7, value]) for value in column]
    assert rejected == [(row, found[1][0][1]) for row, found in enumerate(alone) if found[1]]
    bad = {row for row, _ in rejected}
    assert [t for row, t in enumerate(times.tolist()) if row not in bad] == [
        int(found[0][1]) for found in alone if not found[1]
    ]
