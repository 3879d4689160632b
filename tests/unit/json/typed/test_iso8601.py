"""ISO 8601 texts of dates, times and timestamps in JSON values."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.connect.errors import InvalidValue
from sink_job.json.typed.iso8601 import days, time_of_day, timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.dates())
def test_a_date_of_python_is_read(day: date) -> None:
    assert days(day.isoformat()) == (day - EPOCH.date()).days


@given(st.times())
def test_a_time_of_python_is_read(value: time) -> None:
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    assert time_of_day(value.isoformat(), 6) == micros
    assert time_of_day(value.isoformat(), 9) == micros * 1000


@given(st.datetimes(timezones=OFFSETS))
def test_a_timestamp_of_python_is_read_with_its_offset(value: datetime) -> None:
    micros = (value - EPOCH) // timedelta(microseconds=1)
    assert timestamp(value.isoformat(), 6, local=False) == micros
    assert timestamp(value.isoformat(" "), 6, local=False) == micros


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01t00:00:01z", 1000),
        ("1970-01-01 00:00", 0),
        ("1970-01-01T00:00:00.1Z", 100),
        ("1970-01-01T00:00:00.100000000Z", 100),
        ("1970-01-01T01:00:00+0100", 0),
        ("1969-12-31T23:00:00-01:00", 0),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_the_forms_of_a_timestamp(text: str, ms: int) -> None:
    assert timestamp(text, 3, local=False) == ms


def test_a_local_timestamp_has_no_offset() -> None:
    assert timestamp("1970-01-01T00:00:01", 3, local=True) == 1000
    for text in ("1970-01-01T00:00:01Z", "1970-01-01T00:00:01+00:00"):
        with pytest.raises(InvalidValue, match="has an offset, but its type is a local timestamp"):
            timestamp(text, 3, local=True)


@pytest.mark.parametrize("digits", [3, 6])
def test_a_smaller_unit_than_that_of_the_type_is_rejected(digits: int) -> None:
    fits = f"00:00:00.{'1' * digits}"
    assert time_of_day(f"{fits}00", digits) == int("1" * digits)
    with pytest.raises(InvalidValue, match=f"has more than {digits} decimal places of a second"):
        time_of_day(f"{fits}1", digits)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2013-02-29", "is no date that exists"),
        ("0000-01-01", "is no date that exists"),
        ("2013-1-31", "is no date, such as 2013-01-31"),
        ("2013-01-31\n", "is no date, such as 2013-01-31"),
        ("２013-01-31", "is no date, such as 2013-01-31"),
        ("12013-01-31", "is no date, such as 2013-01-31"),
    ],
)
def test_another_text_is_no_date(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{re.escape(f'the text {text!r} {reason}')}$"):
        days(text)


@pytest.mark.parametrize("text", ["24:00", "23:60", "23:59:60"])
def test_a_time_that_does_not_exist_is_rejected(text: str) -> None:
    with pytest.raises(InvalidValue, match="is no time of the day that exists"):
        time_of_day(text, 3)


@pytest.mark.parametrize("text", ["", "23", "23:59:59.", "23:59:59Z", "1:00", "23:59:59.1234567890"])
def test_another_text_is_no_time(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"is no time of the day, such as 23:59:59.999"):
        time_of_day(text, 9)


@pytest.mark.parametrize("offset", ["+24:00", "-00:60"])
def test_an_offset_that_does_not_exist_is_rejected(offset: str) -> None:
    with pytest.raises(InvalidValue, match="is no timestamp with an offset that exists"):
        timestamp(f"2013-01-31T00:00:00{offset}", 3, local=False)


@pytest.mark.parametrize("text", ["2013-01-31", "2013-01-31T", "2013-01-31T00:00:00 Z", "2013-01-31_00:00", "now"])
def test_another_text_is_no_timestamp(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"is no timestamp, such as 2013-01-31T23:59:59.999Z"):
        timestamp(text, 3, local=False)


def test_a_long_text_is_shortened_in_its_reason() -> None:
    with pytest.raises(InvalidValue) as caught:
        days("x" * 1000)
    assert str(caught.value) == f"the text '{'x' * 100}' is no date, such as 2013-01-31"
