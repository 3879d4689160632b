"""Values of fields as elements of a path."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.records.fields import MISSING, elements, safe, segments, shortened, unexpected_type, value_text

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([1.0, 0.0, 2.5, Decimal(1), Decimal("0.5"), MISSING, b"x", [1], {}, "1", "true", "null", "a/b"]),
    st.text(max_size=3),
)


@settings(max_examples=200)
@given(st.lists(VALUES, max_size=8))
def test_a_value_has_the_same_element_or_rejection_in_a_batch_and_alone(values: list[Any]) -> None:
    codes, labels, rejected = elements("k", values, delimiter="/")
    reasons = dict(rejected)
    for row, value in enumerate(values):
        alone, own, reason = elements("k", [value], delimiter="/")
        if reason:
            assert (codes[row], alone[0], reasons[row]) == (-1, -1, reason[0][1])
        else:
            assert labels[codes[row]] == own[alone[0]]
            assert row not in reasons


@given(st.lists(VALUES, max_size=8))
def test_the_elements_are_distinct_values_and_the_rejections_ascend(values: list[Any]) -> None:
    codes, labels, rejected = elements("k", values, delimiter="/")
    assert set(codes[codes >= 0].tolist()) == set(range(len(labels)))
    assert [row for row, _ in rejected] == [row for row, code in enumerate(codes.tolist()) if code == -1]


def test_values_that_python_takes_for_equal_are_apart() -> None:
    codes, labels, rejected = elements("k", [1, True, 1.0, "1", Decimal(1), 1], delimiter="/")
    assert [labels[code] if code >= 0 else None for code in codes.tolist()] == [
        "k=1",
        "k=true",
        None,
        "k=1",
        None,
        "k=1",
    ]
    assert [row for row, _ in rejected] == [2, 4]


def test_the_label_is_in_the_path_and_the_name_in_the_rejection() -> None:
    _, labels, rejected = elements("$key.a", ["x", 1.5], delimiter="/", label="a")
    assert labels == ["a=x"]
    assert rejected == [(1, 'field "$key.a" holds a number with a fraction, not text, an integer or a boolean')]


@pytest.mark.parametrize(
    ("value", "text"),
    [("ä", "ä"), ("", ""), (True, "true"), (False, "false"), (-(2**70), str(-(2**70))), (None, "null")],
)
def test_a_value_has_a_text(value: object, text: str) -> None:
    assert value_text(value, type(value)) == text


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.0, "holds a number with a fraction"),
        (Decimal(1), "holds a decimal number"),
        ([], "holds an array"),
        ({}, "holds an object"),
        (b"", "holds bytes"),
        (object(), "holds another value"),
    ],
)
def test_another_value_is_rejected_by_the_name_of_its_type(value: object, found: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{found}, not text, an integer or a boolean")):
        value_text(value, type(value))


def test_a_missing_value_is_rejected_as_missing() -> None:
    assert unexpected_type(type(MISSING), "text") == "is missing"
    assert unexpected_type(type(None), "a number") == "holds null, not a number"
    assert unexpected_type(bool, "a number") == "holds a boolean, not a number"
    assert MISSING is msgspec.UNSET


@pytest.mark.parametrize(("name", "parts"), [("", []), ("a", ["a"]), ("a.b.c", ["a", "b", "c"])])
def test_a_name_has_segments_between_its_dots(name: str, parts: list[str]) -> None:
    assert segments(name) == parts


def test_a_long_text_is_shortened_to_60_characters() -> None:
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == "x" * 59 + "…"


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("..", "%2E%2E"),
        (".", "."),
        ("...", "..."),
        ("50%", "50%"),
        ("a/50%", "a%2F50%25"),
        ("a\nb", "a%0Ab"),
        ("\x7f", "%7F"),
        ("\x9f", "%C2%9F"),
        ("\uffff", "%EF%BF%BF"),
        (" ", " "),
        ("ä", "ä"),
    ],
)
def test_a_text_that_could_change_the_directory_is_percent_encoded(text: str, element: str) -> None:
    assert safe(text, "/") == element


@given(st.text(), st.sampled_from(["/", "|", "//", "ab", "="]))
def test_an_element_never_has_the_delimiter_or_a_control_character(text: str, delimiter: str) -> None:
    found = safe(text, delimiter)
    assert delimiter not in found
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in found)
    assert found == text or unquote(found) == text
