"""JSON texts of columns: those that msgspec writes of each value, or UnusualValues."""

from __future__ import annotations

import base64
import math
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.arrow import columns, json_columns
from sink_job.arrow.columnar import UnusualValues
from sink_job.arrow.json_columns import ProjectedField, Texts

INT64 = st.integers(-(2**63), 2**63 - 1)
STRINGS = st.text(st.characters(codec="utf-8"), max_size=6)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = {
    "integers": (pa.int64(), INT64, json_columns.integers),
    "booleans": (pa.bool_(), st.booleans(), json_columns.booleans),
    "doubles": (pa.float64(), FINITE, json_columns.doubles),
    "strings": (pa.string(), STRINGS, json_columns.strings),
    "lists": (pa.list_(pa.string()), st.lists(STRINGS, max_size=3), json_columns.lists(json_columns.strings)),
    "maps": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(STRINGS, INT64, max_size=3),
        json_columns.maps(json_columns.integers),
    ),
    "structs": (
        pa.struct({"n": pa.int64(), 'quoted"': pa.string()}),
        st.builds(lambda n, text: {"n": n, 'quoted"': text}, INT64, STRINGS),
        json_columns.structs([("n", json_columns.integers), ('quoted"', json_columns.strings)]),
    ),
    "nullable": (pa.int64(), st.none() | INT64, json_columns.nullable(json_columns.integers, b"null")),
}


def arrow(values: list[Any], kind: pa.DataType) -> pa.Array:
    items = [list(each.items()) for each in values] if pa.types.is_map(kind) else values
    return pa.array(items, kind)


@settings(max_examples=30)
@pytest.mark.parametrize("name", ROWS)
@given(st.data())
def test_the_texts_are_those_of_msgspec_also_in_a_slice(name: str, data: st.DataObject) -> None:
    kind, items, texts = ROWS[name]
    values = data.draw(st.lists(items, max_size=6))
    start = data.draw(st.integers(0, len(values)))
    found = texts(arrow(values, kind).slice(start))
    assert found.to_pylist() == list(map(msgspec.json.encode, values[start:]))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=4))
def test_a_float_is_the_shortest_number_that_reads_as_it(values: list[float]) -> None:
    texts = json_columns.floats(pa.array(values, pa.float32())).to_pylist()
    assert np.array(list(map(float, texts)), np.float32).tolist() == values
    assert all(float(text) == float(str(np.float32(value))) for text, value in zip(texts, values, strict=True))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_has_no_text(value: float) -> None:
    with pytest.raises(UnusualValues, match="not finite"):
        json_columns.doubles(pa.array([1.0, value]))


def test_a_string_that_is_not_utf8_has_no_text() -> None:
    column = columns.binaries([b"a", b"\xff"])
    with pytest.raises(UnusualValues, match="not UTF-8"):
        json_columns.strings(column)


@given(st.lists(st.binary(max_size=5), max_size=4))
def test_bytes_become_base64(values: list[bytes]) -> None:
    found = json_columns.base64_texts(columns.binaries(values)).to_pylist()
    assert [base64.b64decode(msgspec.json.decode(text), validate=True) for text in found] == values


def test_an_index_becomes_its_symbol() -> None:
    texts = json_columns.symbols(["A", 'b"'])
    assert texts(columns.integers(np.array([1, 0, 1]))).to_pylist() == [b'"b\\""', b'"A"', b'"b\\""']


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_without_a_symbol_has_no_text(index: int) -> None:
    with pytest.raises(UnusualValues, match="outside its range"):
        json_columns.symbols(["A", "B"])(columns.integers(np.array([0, index])))


@pytest.mark.parametrize(("values", "fits"), [([], True), ([-1, 3], True), ([-2], False), ([4], False)])
def test_a_range_contains_both_its_ends(values: list[int], fits: bool) -> None:
    column = columns.integers(np.array(values, np.int64))
    if fits:
        json_columns.check_range(column, -1, 3)
    else:
        with pytest.raises(UnusualValues):
            json_columns.check_range(column, -1, 3)


def test_converted_values_have_their_texts() -> None:
    texts = json_columns.converted(lambda value: Decimal(value) / 10)
    assert texts(columns.integers(np.array([15, -2]))).to_pylist() == [b"1.5", b"-0.2"]


@pytest.mark.parametrize("error", [ValueError("odd"), ZeroDivisionError("odd")])
def test_a_value_that_cannot_be_converted_has_no_text(error: Exception) -> None:
    def convert(value: object) -> object:
        raise error

    with pytest.raises(UnusualValues, match="odd"):
        json_columns.converted(convert)(columns.integers(np.array([1])))


def test_a_projected_struct_takes_its_fields_by_position_and_fills_the_others() -> None:
    texts = json_columns.projected_structs(
        [
            ProjectedField("new", None, constant=b"5"),
            ProjectedField("b", 1, json_columns.integers),
            ProjectedField("none", None),
            ProjectedField("a", 0, json_columns.strings),
        ]
    )
    column = pa.array([{"a": "x", "b": 1}, {"a": "", "b": 2}])
    assert texts(column).to_pylist() == [
        b'{"new":5,"b":1,"none":null,"a":"x"}',
        b'{"new":5,"b":2,"none":null,"a":""}',
    ]


@pytest.mark.parametrize(
    ("keys", "counts", "twice"),
    [
        ("ab", [2], False),
        ("aa", [1, 1], False),
        ("aa", [2], True),
        ("abcb", [1, 3], True),
        ("abab", [2, 2], False),
        ("ba", [0, 1, 1], False),
        ("", [], False),
    ],
)
def test_a_key_may_occur_once_in_a_map(keys: str, counts: list[int], twice: bool) -> None:
    column = columns.binaries([key.encode() for key in keys])
    if twice:
        with pytest.raises(UnusualValues, match="a key twice"):
            json_columns.check_keys(column, np.array(counts, np.int64))
    else:
        json_columns.check_keys(column, np.array(counts, np.int64))


def test_a_map_with_a_key_twice_has_no_text() -> None:
    column = pa.array([[("a", 1)], [("b", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64()))
    texts: Texts = json_columns.maps(json_columns.integers)
    with pytest.raises(UnusualValues, match="a key twice"):
        texts(column)
    assert texts(column.slice(0, 1)).to_pylist() == [b'{"a":1}']
