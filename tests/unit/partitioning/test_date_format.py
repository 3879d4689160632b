"""Date patterns, letter by letter. `test_joda` compares most of them with Joda-Time."""

from __future__ import annotations

import pytest

from sink_job.api.units.date_pattern import pattern_elements
from sink_job.partitioning.date_format import compile_elements
from sink_job.partitioning.time_zones import zone
from tests.unit.rotation.clocks import at

NOON = "2024-02-05T11:07:09.045"


def text(pattern: str, instant: str = NOON, *, zone_name: str = "UTC", locale: str = "en") -> str:
    return compile_elements(pattern_elements(pattern), zone=zone(zone_name), locale=locale)(at(instant))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "year=2024/month=02/day=05/hour=11"),
        ("yyyy YYYY yy YY y", "2024 2024 24 24 2024"),
        ("yyyyyy", "002024"),
        ("M MM MMM MMMM", "2 02 Feb February"),
        ("d dd D DDD", "5 05 36 036"),
        ("E EEE EEEE e", "Mon Mon Monday 1"),
        ("x xx xxxx w ww", "2024 24 2024 6 06"),
        ("H HH h hh a", "11 11 11 11 AM"),
        ("m mm s ss", "7 07 9 09"),
        ("S SS SSS SSSS SSSSSS", "0 04 045 0450 045000"),
        ("''yyyy'o''clock'", "'2024o'clock"),
        ("yyyy_MM-dd.HH", "2024_02-05.11"),
        ("'plain'", "plain"),
    ],
)
def test_a_pattern_formats_a_time(pattern: str, expected: str) -> None:
    assert text(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "utc", "kathmandu", "marquesas"),
    [
        ("Z", "+0000", "+0545", "-0930"),
        ("ZZ", "+00:00", "+05:45", "-09:30"),
        ("X", "Z", "+0545", "-0930"),
        ("XX", "Z", "+0545", "-0930"),
        ("XXX", "Z", "+05:45", "-09:30"),
    ],
)
def test_a_pattern_formats_an_offset(pattern: str, utc: str, kathmandu: str, marquesas: str) -> None:
    zones = ("UTC", "Asia/Kathmandu", "Pacific/Marquesas")
    assert [text(pattern, zone_name=name) for name in zones] == [utc, kathmandu, marquesas]


def test_one_x_formats_an_offset_of_full_hours_without_minutes() -> None:
    assert text("X", zone_name="Europe/Berlin") == "+01"


def test_four_or_more_x_format_the_seconds_of_an_offset() -> None:
    assert [text(x, "1960-01-01T00:00", zone_name="Africa/Monrovia") for x in ("XXX", "XXXX", "XXXXX")] == [
        "-00:44",
        "-004430",
        "-00:44:30",
    ]


def test_a_zone_is_formatted_by_its_id_or_its_name() -> None:
    summer = "2024-07-01T00:00"
    assert text("ZZZ z", summer, zone_name="Europe/Berlin") == "Europe/Berlin CEST"
    assert text("zzzz", summer, zone_name="America/New_York") == "Eastern Daylight Time"
    assert text("ZZZ z", zone_name="+05:30") == "+05:30 +05:30"


def test_names_are_in_the_language_of_the_locale() -> None:
    assert text("EEEE d. MMMM", locale="de") == "Montag 5. Februar"
    assert text("EEEE d MMMM", locale="fr-FR") == "lundi 5 février"


def test_hours_of_a_half_day_are_counted_from_twelve() -> None:
    assert [text("h a", f"2024-02-05T{hour}:00") for hour in ("00", "12", "13", "23")] == [
        "12 AM",
        "12 PM",
        "1 PM",
        "11 PM",
    ]


def test_the_week_year_can_differ_from_the_year_of_the_day() -> None:
    assert text("YYYY xxxx-'W'ww-e", "2024-12-30T00:00") == "2024 2025-W01-1"


def test_a_time_in_microseconds_that_is_read_as_milliseconds_is_in_a_distant_year() -> None:
    far = compile_elements(pattern_elements("'year'=YYYY/'month'=MM/'day'=dd"), zone=zone("Europe/Berlin"), locale="en")
    assert far(1_700_000_000_000_000) == "year=55840/month=11/day=08"


def test_a_year_before_the_common_era_is_negative_except_as_year_of_era() -> None:
    ancient = compile_elements(pattern_elements("yyyy YYYY yy"), zone=zone("UTC"), locale="en")
    assert ancient(-65_000_000_000_000) == "-0090 0091 90"


def test_an_unknown_locale_is_rejected() -> None:
    with pytest.raises(ValueError, match="not a known locale"):
        text("MMMM", locale="english")


def test_an_unknown_pattern_letter_is_rejected() -> None:
    with pytest.raises(ValueError, match="not a date pattern"):
        text("QQ")
