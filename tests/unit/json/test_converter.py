"""JSON without a schema: accepted values, their converted form, and their fields."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow.arrays import Mask
from sink_job.converters.base import BatchSource, Converted
from sink_job.json.converter import JsonConverter
from sink_job.records.fields import MISSING

SOURCE = BatchSource("t")


def convert(values: list[bytes | None], *fields: str) -> Converted:
    return JsonConverter(fields).convert(pa.array(values, pa.binary()), SOURCE)


def kept(found: Converted) -> list[bytes | None]:
    """The value of each row; None for a null or rejected row."""
    gone = {row for row, _ in found.rejected} | {
        row for row, null in enumerate([] if found.nulls is None else found.nulls.tolist()) if null
    }
    return [None if row in gone else value for row, value in enumerate(found.values.to_pylist())]


def test_valid_values_pass_through_byte_for_byte() -> None:
    values: list[bytes | None] = [b'{"b": 1.0, "a":[1e3,-0]}', b"5", b'"x"', b"[ ]", b"true", '"ä\\u00e4"'.encode()]
    found = convert(values)
    assert found.values.to_pylist() == values
    assert (found.rejected, found.nulls) == ([], None)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", "the value is empty"),
        (b" \n", "the value is empty"),
        (b"nope", "the value is not JSON: invalid character (byte 1)"),
        (b'{"a":1', "the value is not JSON: Input data was truncated"),
        (b'{"a":1}}', "the value is not JSON: trailing characters (byte 8)"),
        (b"01", "the value is not JSON: invalid number (byte 1)"),
        (b"NaN", "the value is not JSON: invalid character (byte 0)"),
        (b'{"a":"\xff"}', "the value is not UTF-8 (byte 6)"),
        (b"\xef\xbb\xbf{}", "the value is not JSON: invalid character (byte 0)"),
        (b'{"a":"\n"}', "the value is not JSON: invalid character (byte 6)"),
        (b"[" * 100_000, "the value is JSON nested too deeply"),
    ],
)
def test_a_value_that_is_not_json_is_rejected(value: bytes, error: str) -> None:
    found = convert([b"1", value, b'{"a":1}'])
    assert found.rejected == [(1, error)]
    assert kept(found) == [b"1", None, b'{"a":1}']


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([b"1,2"], id="two values and a comma"),
        pytest.param([b"1 2"], id="two values and a space"),
        pytest.param([b"{}{}"], id="two values"),
        pytest.param([b"[1", b"2]"], id="an array split over two values"),
        pytest.param([b"[1", b",2]"], id="an array split over two values before its comma"),
        pytest.param([b"1 2", b"[1", b",2]"], id="two texts in one value and one text in two values"),
        pytest.param([b"{}{}", b'{"a":1', b"}"], id="two objects in one value and one object in two values"),
        pytest.param([b'"a', b'b"'], id="a string split over two values"),
        pytest.param([b"tr", b"ue"], id="a literal split over two values"),
        pytest.param([b"1", b"", b"[1", b"2]"], id="an empty value and an array split over two values"),
    ],
)
def test_each_value_of_a_batch_is_parsed_as_strictly_as_a_single_value(values: list[bytes | None]) -> None:
    for neighbours in ([], [b"7"]):
        found = convert([*neighbours, *values])
        assert kept(found) == [*neighbours, *(b"1" if value == b"1" else None for value in values)]


def test_a_tombstone_and_a_json_null_are_both_no_value() -> None:
    found = convert([b"1", None, b"null", b" null\n", b'{"a":null}'])
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, True, True, True, False]
    assert kept(found) == [b"1", None, None, None, b'{"a":null}']
    only = convert([b"null", b"2"])
    assert only.nulls is not None
    assert only.nulls.tolist() == [True, False]


def test_a_value_with_line_breaks_becomes_one_line() -> None:
    found = convert([b'{"a": 1}', b'{\n  "a": 1.0,\r\n  "b": "x\\n y"\n}', b'\n{"c": 1}'])
    assert found.values.to_pylist() == [b'{"a": 1}', b'{"a":1.0,"b":"x\\n y"}', b'{"c":1}']
    assert found.rejected == []


def test_white_space_around_a_value_is_kept() -> None:
    assert convert([b' {"a":1}\t', b"5"]).values.to_pylist() == [b' {"a":1}\t', b"5"]


def test_fields_are_extracted_and_absent_fields_are_missing() -> None:
    values: list[bytes | None] = [b'{"a":1,"b":{"c":"x","d":[1]}}', b'{"x":0}', b'{"a":null,"b":null}', b'{"b":5}']
    found = convert(values, "a", "b.c")
    assert found.fields == {"a": [1, MISSING, None, MISSING], "b.c": ["x", MISSING, None, MISSING]}


def test_values_other_than_objects_have_no_fields() -> None:
    found = convert([b'{"a":1}', b"5", b'"a"', b"[1]", b"null", None, b"nope"], "a")
    assert found.fields == {"a": [1, *[MISSING] * 6]}


def test_a_field_and_a_field_nested_in_it_can_both_be_extracted() -> None:
    found = convert([b'{"a":{"b":1}}', b'{"a":2}', b'{"a":null}'], "a", "a.b")
    assert found.fields == {"a": [{"b": 1}, 2, None], "a.b": [1, MISSING, None]}


@pytest.mark.parametrize("name", ['q"', "back\\slash", "ä", "with space", "$", "f0"])
def test_a_field_name_may_contain_any_character(name: str) -> None:
    text = json.dumps({name: 1, "other": {name: 2}}).encode()
    found = convert([text, text], name, f"other.{name}")
    assert found.fields == {name: [1, 1], f"other.{name}": [2, 2]}


def test_a_number_out_of_range_is_rejected_only_in_an_extracted_field() -> None:
    values: list[bytes | None] = [b'{"a":1e999}', b'{"b":1e999}']
    assert convert(values).rejected == []
    ((row, error),) = convert(values, "a").rejected
    assert row == 0
    assert error.startswith("a required field of the value cannot be read: Number out of range")


def test_a_slice_of_a_batch_is_converted_like_a_separate_batch() -> None:
    values = pa.array([b'{"a":0}', None, b'{"a":2}', b"x", b'{"a":\n4}', b'{"a":5}'], pa.binary())
    found = JsonConverter(("a",)).convert(values.slice(1, 4), SOURCE)
    assert kept(found) == [None, b'{"a":2}', None, b'{"a":4}']
    assert found.fields == {"a": [MISSING, 2, MISSING, 4]}


def test_a_batch_without_values_is_converted() -> None:
    assert convert([], "a").fields == {"a": []}
    assert kept(convert([None, None])) == [None, None]


fragments = st.sampled_from(
    [
        b"1",
        b"-",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b'"a"',
        b'"a":',
        b"null",
        b"true",
        b" ",
        b"\n",
        b"\xff",
        b"\\",
    ]
)
valid = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
).map(lambda value: json.dumps(value).encode())
values = st.none() | valid | valid | st.lists(fragments, max_size=5).map(b"".join)


@given(st.lists(values, max_size=8), st.sampled_from([("a", "b.c"), ()]))
def test_a_batch_has_the_same_result_as_its_values_one_by_one(
    batch: list[bytes | None], fields: tuple[str, ...]
) -> None:
    found = convert(batch, *fields)
    alone = [convert([value], *fields) for value in batch]
    assert found.rejected == [(row, one.rejected[0][1]) for row, one in enumerate(alone) if one.rejected]
    assert kept(found) == [kept(one)[0] for one in alone]
    assert found.fields == {name: [one.fields[name][0] for one in alone] for name in fields}


@given(st.lists(values, min_size=1, max_size=1))
def test_a_value_is_converted_as_pythons_own_parser_reads_it(batch: list[bytes | None]) -> None:
    found, value = convert(batch, "a", "b.c"), batch[0]
    read, is_valid = _read(value)
    assert bool(found.rejected) == (not is_valid)
    assert (found.nulls is not None and bool(found.nulls[0])) == (is_valid and read is None)
    if is_valid and read is not None and value is not None:
        assert found.values[0].as_py() == (msgspec.json.format(value, indent=-1) if b"\n" in value else value)
        assert found.fields["a"] == [read.get("a", MISSING) if isinstance(read, dict) else MISSING]


def _read(value: bytes | None) -> tuple[Any, bool]:
    """The value as Python's own parser reads it, and whether it is valid."""
    if value is None:
        return None, True
    try:
        return json.loads(value.decode(), parse_constant=_reject), True
    except ValueError:
        return None, False


def _reject(_: str) -> None:
    raise ValueError("not JSON")


TEXTS = st.one_of(
    st.none(),
    st.sampled_from(
        [b"{}", b"null", b" null", b"1\n2", b"{\n}", b"{\r}", b'{"a":\t1}', b"", b"1 2", b"{}{}", b"\n1", b"1\n", b"{",
         b'"\xc3\xa4"', b'"\xff"', b'{"a":"\n"}', b'{"a":{"b":2}}', b"[1,\n2]", b"1\n\n2", b"\xef\xbb\xbf{}"]
    ),
    st.binary(max_size=6),
    st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists, max_leaves=4).map(
        lambda value: json.dumps(value).encode()
    ),
)  # fmt: skip


OBJECTS = st.sampled_from(
    [b"{}", b'{"a":1}', b'{"a":{"b":2}}', b"{} ", b"{}{}", b"{},{}", b"{\n}", b"{}\n{}", b'{"a":', b"}",
     b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1e999}', b'{"a":\xff}', b'{"a":"\xc3\xa4"}', b'{"a":"\xff"}',
     b'{"a":"\x01"}', b"{\t}", b"null"]
)  # fmt: skip


@given(st.lists(TEXTS, max_size=8) | st.lists(OBJECTS, max_size=8), st.sampled_from([("a", "a.b", ""), ()]))
def test_values_with_a_newline_after_them_are_converted_as_those_without(
    values: list[bytes | None], fields: tuple[str, ...]
) -> None:
    rows = pa.array([None if each is None else each + b"\n" for each in values], pa.binary())
    expected, found = convert(values, *fields), JsonConverter(fields).convert_rows(rows, SOURCE)
    lines = found.rows if found.rows is not None else found.values
    gone = {row for row, _ in expected.rejected} | set(np.flatnonzero(_mask(expected, len(values))))
    end = b"\n" if found.rows is not None else b""
    assert [None if row in gone else each for row, each in enumerate(lines.to_pylist())] == [
        None if row in gone else each + end for row, each in enumerate(expected.values.to_pylist())
    ]
    assert found.rejected == expected.rejected
    assert found.fields == expected.fields
    assert np.array_equal(_mask(found, len(values)), _mask(expected, len(values)))


def _mask(converted: Converted, count: int) -> Mask:
    return np.zeros(count, np.bool_) if converted.nulls is None else converted.nulls


def test_plain_values_with_a_newline_after_them_are_not_copied() -> None:
    rows = pa.array([b'{"a":1}\n', b'"\xc3\xa4"\n', b'{"a":\t2}\n'], pa.binary())
    found = JsonConverter(("a",)).convert_rows(rows, SOURCE)
    assert found.rows is rows
    assert found.fields == {"a": [1, MISSING, 2]}


def test_rows_of_a_slice_are_converted() -> None:
    rows = pa.array([b"1\n", b"null\n", b"3\n", b"4\n"], pa.binary())[1:3]
    found = JsonConverter().convert_rows(rows, SOURCE)
    assert found.rows is not None
    assert found.rows.to_pylist() == [b"null\n", b"3\n"]
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, False]
