"""Text: values in UTF-8 are accepted, others are rejected."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow import columns
from sink_job.converters.base import BatchSource, Converted
from sink_job.plain.text import TextConverter
from sink_job.records.fields import MISSING


def convert(values: list[bytes | None], fields: tuple[str, ...] = ()) -> Converted:
    return TextConverter(fields).convert(columns.binaries(values), BatchSource("t"))


def test_the_text_converter_rejects_values_that_are_not_utf8() -> None:
    found = convert(["ä".encode(), b"\xff", b"", None])
    assert found.values.to_pylist() == ["ä".encode(), b"", b"", b""]
    assert found.rejected == [(1, "the value is not UTF-8 (byte 0)")]
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, False, True]


def test_the_empty_name_is_the_text_and_other_fields_are_missing() -> None:
    found = convert(["ä".encode(), b"\xff", None], ("", "a"))
    assert found.fields == {"": ["ä", "", ""], "a": [MISSING] * 3}


@given(st.lists(st.none() | st.binary(max_size=4) | st.text(max_size=3).map(str.encode), max_size=6))
def test_exactly_the_values_that_python_cannot_decode_are_rejected(values: list[bytes | None]) -> None:
    found, invalid = convert(values), []
    for row, value in enumerate(values):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            invalid.append(row)
    assert [row for row, _ in found.rejected] == invalid
    kept = [b"" if row in invalid else value or b"" for row, value in enumerate(values)]
    assert found.values.to_pylist() == kept


def test_a_slice_of_a_column_is_converted_alone() -> None:
    values = pa.array([b"\xff", b"a", None, b"\xfe"], pa.binary()).slice(1, 2)
    found = TextConverter().convert(values, BatchSource("t"))
    assert (found.values.to_pylist(), found.rejected) == ([b"a", b""], [])
