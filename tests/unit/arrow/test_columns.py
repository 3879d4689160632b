"""Columns of Arrow from and to Python and NumPy, and slices of them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.arrow import columns

INT64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=4)
Item = TypeVar("Item")


@st.composite
def sliced(draw: st.DrawFn, items: st.SearchStrategy[Item]) -> tuple[list[Item], int, int]:
    """Values, and the start and length of a slice of them."""
    values = draw(st.lists(items, max_size=20))
    start = draw(st.integers(0, len(values)))
    return values, start, draw(st.integers(0, len(values) - start))


@given(st.lists(st.none() | INT64, max_size=20))
def test_a_column_of_integers_has_the_nulls_of_the_mask(values: list[int | None]) -> None:
    nulls = np.array([value is None for value in values], np.bool_)
    column = columns.integers(np.array([value or 0 for value in values], np.int64), nulls)
    column.validate(full=True)
    assert column.to_pylist() == values


def test_integers_of_fewer_bits_become_integers_of_64_bits() -> None:
    assert columns.integers(np.array([-1, 2], np.int32)).to_pylist() == [-1, 2]


@given(sliced(INT64))
def test_the_numbers_of_a_slice_are_its_values(case: tuple[list[int], int, int]) -> None:
    values, start, size = case
    found = columns.numbers(columns.integers(np.array(values, np.int64)).slice(start, size))
    assert found.tolist() == values[start : start + size]


@given(sliced(st.booleans()))
def test_the_truths_of_a_slice_are_its_values(case: tuple[list[bool], int, int]) -> None:
    values, start, size = case
    found = columns.truths(columns.booleans(np.array(values, np.bool_)).slice(start, size))
    assert found.tolist() == values[start : start + size]


@given(st.lists(st.none() | BYTES, max_size=10))
def test_a_column_of_byte_strings_has_the_values_and_nulls(values: list[bytes | None]) -> None:
    column = columns.binaries(values)
    column.validate(full=True)
    assert column.to_pylist() == values


@given(sliced(st.none() | BYTES))
def test_content_and_bounds_of_a_slice_give_its_values(case: tuple[list[bytes | None], int, int]) -> None:
    values, start, size = case
    column = columns.binaries(values).slice(start, size)
    data, bounds = bytes(columns.content(column)), columns.bounds(column).tolist()
    expected = [value or b"" for value in values[start : start + size]]
    assert [data[left:right] for left, right in pairwise(bounds)] == expected


@given(sliced(BYTES))
def test_the_text_of_a_slice_is_its_values_without_the_others(case: tuple[list[bytes], int, int]) -> None:
    values, start, size = case
    assert columns.text(columns.binaries(values).slice(start, size)) == b"".join(values[start : start + size])


@given(st.lists(BYTES, max_size=5), BYTES, BYTES)
def test_each_value_is_between_before_and_after(values: list[bytes], before: bytes, after: bytes) -> None:
    found = columns.joined(columns.binaries(values), before=before, after=after)
    assert found.to_pylist() == [before + value + after for value in values]


def test_nulls_become_empty_values_and_other_values_stay() -> None:
    assert columns.without_nulls(columns.binaries([b"a", None, b""])).to_pylist() == [b"a", b"", b""]
    assert columns.without_nulls(columns.binaries([b"a"])).to_pylist() == [b"a"]


@settings(max_examples=20)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=3), max_size=5))
def test_texts_are_encoded_in_utf8(values: list[str]) -> None:
    assert columns.texts(values).to_pylist() == values


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        columns.texts(["\ud800"])


def test_a_column_can_have_two_gigabytes_and_the_error_says_what_to_do() -> None:
    columns.check_bytes(2**31 - 1)
    message = "the values of a batch have 2,147,483,648 bytes; the maximum is 2,147,483,647. Reduce spec.rounds"
    with pytest.raises(columns.ColumnTooLarge, match=re.escape(message)):
        columns.check_bytes(2**31)
