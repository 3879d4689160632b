"""Delimited bytes: each value and the separator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow import columns
from sink_job.plain.delimited import DelimitedBytes


@pytest.mark.parametrize("separator", ["", "\n", "§", "\r\n"])
@given(st.lists(st.binary(max_size=5), max_size=5))
def test_a_row_is_the_value_and_the_separator_in_utf8(separator: str, values: list[bytes]) -> None:
    rows = DelimitedBytes(separator).encode(columns.binaries(values)).to_pylist()
    assert rows == [value + separator.encode() for value in values]
