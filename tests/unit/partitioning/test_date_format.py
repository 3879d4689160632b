"""Date patterns, letter by letter. `test_joda` holds most of them against Joda-Time."""

from __future__ import annotations

import pytest

from sink_job.api.date_pattern import pattern_elements
from sink_job.partitioning.date_format import compile_pieces
from sink_job.partitioning.time_zones import zone
from tests.unit.rotation.clocks import at

NOON = "2024-02-05T11:07:09.045"


def text(pattern: str, instant: str = NOON, *, zone_name: str = "UTC", locale: str = "en") -> str:
    return compile_pieces(pattern_elements(pattern), zone=zone(zone_name), locale=locale)(at(instant))


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
def test_a_pattern_prints(pattern: str, expected: str) -> None:
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
def test_offsets_print(pattern: str, utc: str, kathmandu: str, marquesas: str) -> None:
    zones = ("UTC", "Asia/Kathmandu", "Pacific/Marquesas")
    assert [text(pattern, zone_name=name) for name in zones] == [utc, kathmandu, marquesas]


def test_an_offset_of_full_hours_is_short_with_one_x() -> None:
    assert text("X", zone_name="Europe/Berlin") == "+01"


def test_an_offset_with_seconds_shows_them_from_four_x_on() -> None:
    assert [text(x, "1960-01-01T00:00", zone_name="Africa/Monrovia") for x in ("XXX", "XXXX", "XXXXX")] == [
        "-00:44",
        "-004430",
        "-00:44:30",
    ]


def test_zones_print_by_id_and_by_name() -> None:
    summer = "2024-07-01T00:00"
    assert text("ZZZ z", summer, zone_name="Europe/Berlin") == "Europe/Berlin CEST"
    assert text("zzzz", summer, zone_name="America/New_York") == "Eastern Daylight Time"
    assert text("ZZZ z", zone_name="+05:30") == "+05:30 +05:30"


def test_names_are_those_of_the_locale() -> None:
    assert text("EEEE d. MMMM", locale="de") == "Montag 5. Februar"
    assert text("EEEE d MMMM", locale="fr-FR") == "lundi 5 février"


def test_the_afternoon_counts_from_twelve() -> None:
    assert [text("h a", f"2024-02-05T{hour}:00") for hour in ("00", "12", "13", "23")] == [
        "12 AM",
        "12 PM",
        "1 PM",
        "11 PM",
    ]


def test_the_year_of_the_week_may_be_another_than_the_days() -> None:
    assert text("YYYY xxxx-'W'ww-e", "2024-12-30T00:00") == "2024 2025-W01-1"


def test_a_time_in_microseconds_taken_for_milliseconds_is_a_far_year() -> None:
    far = compile_pieces(pattern_elements("'year'=YYYY/'month'=MM/'day'=dd"), zone=zone("Europe/Berlin"), locale="en")
    assert far(1_700_000_000_000_000) == "year=55840/month=11/day=08"


def test_years_before_christ_are_negative_but_in_their_era() -> None:
    ancient = compile_pieces(pattern_elements("yyyy YYYY yy"), zone=zone("UTC"), locale="en")
    assert ancient(-65_000_000_000_000) == "-0090 0091 90"


def test_the_first_letters_of_a_locale_do_not_decide() -> None:
    with pytest.raises(ValueError, match="not a known locale"):
        text("MMMM", locale="english")


def test_an_unknown_letter_is_refused() -> None:
    with pytest.raises(ValueError, match="no date pattern"):
        text("QQ")
