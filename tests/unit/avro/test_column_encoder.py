"""Avro data of columns: those that fastavro writes of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow import columns
from sink_job.arrow.columnar import UnusualValues
from sink_job.avro import column_encoder
from sink_job.avro.column_encoder import (
    Parts,
    binaries,
    booleans,
    branches,
    constant,
    doubles,
    floats,
    joined,
    lists,
    longs,
    spread,
    texts,
)
from tests.unit.avro.avro_data import datum

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=5)


def encoded(parts: Parts, rows: int) -> list[bytes]:
    found = joined(parts, rows)
    found.validate(full=True)
    return list(found.to_pylist())


def expected(kind: Any, values: list[Any]) -> list[bytes]:
    return [datum(kind, value) for value in values]


@given(st.lists(INT64, max_size=8))
def test_longs(values: list[int]) -> None:
    assert encoded([longs(np.array(values, np.int64))], len(values)) == expected("long", values)


@given(st.lists(st.floats(allow_nan=False), max_size=5), st.lists(st.booleans(), max_size=5))
def test_doubles_and_booleans(numbers: list[float], truths: list[bool]) -> None:
    assert encoded([doubles(np.array(numbers, np.float64))], len(numbers)) == expected("double", numbers)
    assert encoded([booleans(np.array(truths, np.bool_))], len(truths)) == expected("boolean", truths)


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=5))
def test_floats(values: list[float]) -> None:
    assert encoded([floats(np.array(values, np.float64))], len(values)) == expected("float", values)


def test_a_number_that_is_too_large_for_a_float_is_infinite() -> None:
    found = encoded([floats(np.array([1e300, -1e300]))], 2)
    assert found == expected("float", [float("inf"), float("-inf")])


@given(st.lists(st.binary(max_size=5), max_size=6), st.integers(0, 3))
def test_byte_strings_also_of_a_slice(values: list[bytes], start: int) -> None:
    column = columns.binaries(values).slice(min(start, len(values)))
    assert encoded(binaries(column), len(column)) == expected("bytes", values[start:])


@given(st.lists(TEXT, max_size=6))
def test_texts(values: list[str]) -> None:
    assert encoded(texts(values), len(values)) == expected("string", values)


@given(st.lists(st.lists(INT64, max_size=3), max_size=5))
def test_lists(values: list[list[int]]) -> None:
    items = [item for value in values for item in value]
    inner = joined([longs(np.array(items, np.int64))], len(items))
    found = encoded(lists(np.array(list(map(len, values)), np.int64), inner), len(values))
    assert found == expected({"type": "array", "items": "long"}, values)


@given(st.lists(st.none() | TEXT, max_size=6), st.booleans())
def test_a_union_with_null_has_the_parts_of_the_present_rows(values: list[str | None], null_first: bool) -> None:
    present = np.array([value is not None for value in values], np.bool_)
    null, other = (0, 1) if null_first else (1, 0)
    parts = texts([value for value in values if value is not None])
    found = encoded([branches(present, null, other), *spread(parts, present)], len(values))
    assert found == expected(["null", "string"] if null_first else ["string", "null"], values)


@given(st.lists(st.tuples(INT64, TEXT, st.booleans()), max_size=5))
def test_a_record_is_the_concatenation_of_its_fields(rows: list[tuple[int, str, bool]]) -> None:
    numbers, strings, truths = ([row[at] for row in rows] for at in range(3))
    parts = [
        longs(np.array(numbers, np.int64)),
        *texts(strings),  # type: ignore[arg-type]
        booleans(np.array(truths, np.bool_)),
        constant(b"<>", len(rows)),
    ]
    found = encoded(parts, len(rows))
    assert found == [datum("long", a) + datum("string", b) + datum("boolean", c) + b"<>" for a, b, c in rows]


def test_rows_without_parts_are_empty() -> None:
    assert encoded([], 2) == [b"", b""]


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        texts(["\ud800"])


def test_values_that_are_too_large_for_a_column_are_encoded_row_wise(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array([b"abc", b"de"], pa.binary())
    monkeypatch.setattr(column_encoder, "MAX_BYTES", 10)
    assert encoded([column, column], 2) == [b"abcabc", b"dede"]
    monkeypatch.setattr(column_encoder, "MAX_BYTES", 9)
    for encode in (lambda: joined([column, column], 2), lambda: texts(["12345", "67890"])):
        with pytest.raises(UnusualValues, match="too large to be encoded column-wise"):
            encode()
