"""ISO 8601 texts. `test_joda` compares the parser with Joda-Time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.partitioning.iso8601 import parse
from tests.unit.rotation.clocks import at


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-17", "2024-05-17T00:00"),
        ("2024-05", "2024-05-01T00:00"),
        ("2024-5-7", "2024-05-07T00:00"),
        ("2024-138", "2024-05-17T00:00"),
        ("2024-W20-5", "2024-05-17T00:00"),
        ("2024-W20", "2024-05-13T00:00"),
        ("2024-05-17T", "2024-05-17T00:00"),
        ("2024-05-17T10", "2024-05-17T10:00"),
        ("2024-05-17t10:20z", "2024-05-17T10:20"),
        ("2024-05-17T10:20:30", "2024-05-17T10:20:30"),
        ("2024-05-17T10:20:30.1", "2024-05-17T10:20:30.100"),
        ("2024-05-17T10:20:30,123999", "2024-05-17T10:20:30.123"),
        ("2024-05-17T10.5", "2024-05-17T10:30"),
        ("2024-05-17T10:20.25", "2024-05-17T10:20:15"),
        ("2024-05-17T10:20:30Z", "2024-05-17T10:20:30"),
        ("2024-05-17T10:20:30+02:00", "2024-05-17T08:20:30"),
        ("2024-05-17T10:20:30+0200", "2024-05-17T08:20:30"),
        ("2024-05-17T10:20:30-02", "2024-05-17T12:20:30"),
        ("T10:20", "1970-01-01T10:20"),
    ],
)
def test_a_text_is_parsed(text: str, expected: str) -> None:
    assert parse(text) == at(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2024-05-17 10:20",
        "2024-05-17Z",
        "2024-13-01",
        "2024-02-30",
        "2023-366",
        "2024-000",
        "2023-W53",
        "2024-05-17T24:00",
        "2024-05-17T10:60",
        "2024-05-17T10:20:60",
        "2024-05-17T10:20:30.",
        "2024-05-17T10:20:30.1234567890",
        "2024-05-17T10:20:30+25:00",
        " 2024-05-17",
        "2024-05-17\n",
        "٢٠٢٤-٠٥-١٧",
    ],
)
def test_a_text_that_is_not_a_time_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_a_time_written_by_python_is_parsed_as_by_python(moment: datetime) -> None:
    expected = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution * 1000)
    assert parse(moment.isoformat()) == expected
