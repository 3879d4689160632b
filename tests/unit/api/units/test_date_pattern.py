"""Date patterns: letters, literals, and formatting of every accepted pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.units.date_pattern import LETTERS, PatternElement, check_path_format, pattern_elements

LETTER_RUNS = st.builds(lambda letter, width: letter * width, st.sampled_from(LETTERS), st.integers(1, 6))
TEXTS = st.text(st.sampled_from("abcyear=-_'é "), min_size=1, max_size=8).filter(lambda text: text.strip("'"))


"""Not quotes alone: Joda reads them as pairs between quotes."""


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("YYYYMM", [PatternElement("YYYY", False), PatternElement("MM", False)]),
        ("'year'=YYYY", [PatternElement("year=", True), PatternElement("YYYY", False)]),
        ("HH 'o''clock'", [PatternElement("HH", False), PatternElement(" o'clock", True)]),
        ("''HH''", [PatternElement("'", True), PatternElement("HH", False), PatternElement("'", True)]),
        ("ÄYY", [PatternElement("Ä", True), PatternElement("YY", False)]),
    ],
)
def test_a_pattern_is_split_into_letters_and_literals(pattern: str, expected: list[PatternElement]) -> None:
    assert pattern_elements(pattern) == expected


@given(st.lists(st.tuples(TEXTS, LETTER_RUNS), min_size=1, max_size=4))
def test_quoted_text_is_unchanged(parts: list[tuple[str, str]]) -> None:
    pattern = "".join(quoted(text) + run for text, run in parts)
    assert pattern_elements(pattern) == [
        PatternElement(each, at % 2 == 0) for part in parts for at, each in enumerate(part)
    ]


@given(st.text(st.sampled_from("'/." + LETTERS + "=- é"), max_size=24))
def test_a_pattern_is_rejected_or_keeps_records_in_their_directory(pattern: str) -> None:
    try:
        check_path_format(pattern)
    except ValueError:
        return
    printed = "".join(element.text if element.literal else "7" for element in pattern_elements(pattern))
    assert not {"", ".", ".."} & set(printed.removesuffix("/").split("/"))
