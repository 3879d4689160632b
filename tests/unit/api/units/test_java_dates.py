"""Patterns of SimpleDateFormat. tests/data/test_connect_transforms.py compares them with Java's."""

from __future__ import annotations

import pytest

from sink_job.api.units.java_dates import DatePattern

NOON = 1_709_208_001_005
"""2024-02-29 12:00:01.005"""


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-02-29T12:00:01.005Z"),
        ("yyyyMMddHHmmss", "20240229120001"),
        ("d.M.yyyyy H''m", "29.2.02024 12'0"),
        ("yyyy 'o''clock' Z", "2024 o'clock +0000"),
    ],
)
def test_a_time_as_text(pattern: str, text: str) -> None:
    assert DatePattern(pattern).text(NOON) == text


@pytest.mark.parametrize(
    ("pattern", "text", "time"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2024-02-29 12:00:01", NOON - 5),
        ("yyyyMMddHHmmssSSS", "20240229120001005", NOON),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-02-29T14:00:01+02:00 and more", NOON - 5),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2024-02-29T12:00:01Z", NOON - 5),
        ("yyyy-MM-dd HH:mm:ss Z", "2024-02-29 10:30:01 -0130", NOON - 5),
        ("yyyy-MM-dd", "2024-02-30", 1_709_251_200_000),
        ("yyyy-MM", "2023-14", 1_706_745_600_000),
        ("yyyy-MM-dd", "2024- 2- 1", 1_706_745_600_000),
        ("HH:mm", "00:01", 60_000),
    ],
)
def test_a_text_as_time(pattern: str, text: str, time: int) -> None:
    assert DatePattern(pattern).time(text) == time


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2024/02/29"),
        ("yyyy-MM-dd", "2024-02"),
        ("yyyyMMdd", "2024"),
        ("yyyy-MM-dd", "24-02-29"),
        ("yyyyX", "2024"),
        ("HHXXX", "00+0100"),
        ("HHXXX", "00+24:00"),
        ("HHXX", "00+0160"),
        ("HH:mm", "1:1234567890"),
    ],
)
def test_a_text_that_does_not_match_is_an_error(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"^the (text|year) "):
        DatePattern(pattern).time(text)


@pytest.mark.parametrize("time", [2**63 - 1, -(2**62), -12_300_000_000_000])
def test_a_time_beyond_the_calendar_is_an_error(time: int) -> None:
    with pytest.raises(ValueError, match=r"out of range|year is not between"):
        DatePattern("yyyy").text(time)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("yy", "has yy: use yyyy, M or MM, and X to XXX"),
        ("MMM", "has MMM: use"),
        ("yyyy E", "has the letter E: use y M d H m s S X Z"),
        ("yyyy 'x", "has a quote that does not end"),
        ("-", "has no letter of a field"),
    ],
)
def test_a_pattern_that_is_not_supported_is_an_error(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}"):
        DatePattern(pattern)
