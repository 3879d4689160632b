"""Fields of JSON texts, in both ways of reading them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.arrow import columns
from sink_job.json.field_extraction import Extraction
from sink_job.records.fields import MISSING

NAMES = st.sampled_from(["a", "b", "a.b", "a.b.c", 'q"', "a.q\\", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c", 'q"', "q\\"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def expected(value: Any, name: str) -> Any:
    """A field by plain lookups: null below a null within a field, MISSING below anything else that is no object."""
    found = value
    for depth, segment in enumerate(name.split(".") if name else []):
        if found is None:
            found = None if depth else MISSING
        else:
            found = found.get(segment, MISSING) if isinstance(found, dict) else MISSING
    return found


def plain(value: Any) -> Any:
    return MISSING if value is MISSING else msgspec.to_builtins(value)


@settings(max_examples=60)
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.lists(VALUES, max_size=4))
def test_a_field_is_found_as_by_plain_lookups_in_both_ways(names: list[str], values: list[Any]) -> None:
    extraction = Extraction(tuple(names))
    texts = [msgspec.json.encode(value) for value in values]
    one_by_one = [extraction.read(text) for text in texts]
    together = extraction.read_lines(columns.binaries([text + b"\n" for text in texts]))
    assert together is not None
    for records in (one_by_one, together):
        found = extraction.columns(records)
        leaves = [name for name in names if not any(_is_below(other, name) for other in names)]
        for name in leaves:
            assert list(map(plain, found[name])) == [expected(value, name) for value in values]


def _is_below(other: str, name: str) -> bool:
    """A field around another one is read as a struct of the fields that are needed, unless it is one itself."""
    return other != name and (not name or other.startswith(f"{name}."))


def test_the_whole_value_and_a_field_in_it_can_both_be_read() -> None:
    extraction = Extraction(("", "a", "a.b"))
    records = [extraction.read(b'{"a": {"b": 1}, "c": 2}')]
    assert extraction.columns(records) == {"": [{"a": {"b": 1}, "c": 2}], "a": [{"b": 1}], "a.b": [1]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "the value is not JSON: "),
        (b"", "the value is not JSON: "),
        (b"1 2", "the value is not JSON: "),
        (b'"\\ud800a"', "the value is not JSON: a string has a surrogate that is not part of a pair"),
        (b"[" * 100_000, "the value is JSON nested too deeply"),
    ],
)
def test_an_invalid_text_is_rejected_with_the_reason(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        Extraction(("a",)).read(text)


def test_a_number_that_python_cannot_read_is_rejected_only_in_a_field_that_is_needed() -> None:
    text = b'{"a": 1e999, "b": 1}'
    with pytest.raises(ValueError, match="a required field of the value cannot be read: "):
        Extraction(("a",)).read(text)
    extraction = Extraction(("b",))
    assert extraction.columns([extraction.read(text)]) == {"b": [1]}


@pytest.mark.parametrize("lines", [[b"{}\n", b"{\n"], [b"{} {}\n"], [b"\n"], [b"{}\n{}\n"], [b"[" * 100_000 + b"\n"]])
def test_lines_that_are_not_one_text_each_are_not_read_together(lines: list[bytes]) -> None:
    assert Extraction(("a",)).read_lines(columns.binaries(lines)) is None


def test_without_fields_a_text_is_only_checked() -> None:
    extraction = Extraction(())
    extraction.read(b'{"a": 1}')
    with pytest.raises(ValueError, match="the value is not JSON"):
        extraction.read(b"{")
    assert extraction.columns([]) == {}


FRAGMENTS = st.sampled_from(
    [
        "{", "}", "[", "]", ",", ":", " ", "\t", '"', '"a"', '"a":', '"a":1', '"\\u00e4"', '"\\ud800"',
        '"\\ud83d\\ude00"', '"\\x"', '"\\"', "\x00", "\x1f", "\x7f", "é", "null", "true", "tru",
        "NaN", "Infinity", "0", "01", "-", "-0", "1.", "1e5", "1e999", "9" * 30, "'a'", "/**/", "{}", "},{",
    ]
)  # fmt: skip
OBJECTS = st.one_of(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=3).map(lambda value: msgspec.json.encode(value).decode()),
    st.lists(FRAGMENTS, max_size=6).map(lambda found: f"{{{''.join(found)}}}"),
    st.sampled_from(
        ['{"a":1,"a":2}', '{"a":"\\ud800"}', "{}{}", "{},{}", "{} {}", "{}" * 3, '{"a":' * 900 + "1" + "}" * 900]
    ),
)  # fmt: skip


@given(st.lists(OBJECTS, min_size=1, max_size=5))
def test_lines_of_objects_are_read_exactly_if_each_is_one_json_text(objects: list[str]) -> None:
    extraction = Extraction(())
    lines = columns.binaries([f"{each}\n".encode() for each in objects])
    together = extraction.read_lines(lines, are_objects=True)
    assert (together is not None) == all(_is_valid(extraction, each.encode()) for each in objects)
    assert together is None or len(together) == len(objects)


def _is_valid(extraction: Extraction, text: bytes) -> bool:
    try:
        extraction.read(text)
    except ValueError:
        return False
    return True
