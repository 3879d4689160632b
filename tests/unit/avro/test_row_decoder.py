"""Avro data are read strictly: any data that are not one datum are rejected, and nothing else happens."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.arrow.varints import encode_long
from sink_job.avro.row_decoder import DatumReader, can_be_empty
from sink_job.avro.schema import parse_avro
from sink_job.connect.errors import InvalidSchema
from tests.unit.avro.avro_data import datum, encode, record, samples

EMPTY = record(name="E")
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=70),
    "string": st.text(st.characters(codec="utf-8"), max_size=70),
}


def reader(schema: Any) -> DatumReader:
    return DatumReader(parse_avro(json.dumps(schema)))


def reason(schema: Any, data: bytes) -> str:
    with pytest.raises(ValueError, match=r"^the value ") as caught:
        reader(schema).read(data)
    return str(caught.value).removeprefix("the value is not valid Avro data: ")


@pytest.mark.parametrize("kind", PRIMITIVES)
@settings(max_examples=40)
@given(st.data())
def test_what_fastavro_writes_is_read_again(kind: str, data: st.DataObject) -> None:
    value = data.draw(PRIMITIVES[kind])
    assert reader(kind).read(datum(kind, value)) == value


@settings(max_examples=60)
@given(samples(depth=2, max_size=1), st.data())
def test_a_part_of_a_datum_and_a_longer_one_are_rejected(sample: tuple[Any, list[Any]], data: st.DataObject) -> None:
    schema, values = sample
    for encoded in encode(schema, values):
        found = reader(schema)
        found.read(encoded)
        cut = data.draw(st.integers(0, max(0, len(encoded) - 1)))
        if cut < len(encoded):
            with pytest.raises(ValueError, match=r"the value ends within its Avro data|is not valid Avro data"):
                found.read(encoded[:cut])
        with pytest.raises(ValueError, match="the value has 1 bytes after its Avro data"):
            found.read(encoded + b"\0")


@settings(max_examples=60)
@given(samples(depth=2, max_size=0), st.binary(max_size=30))
def test_any_bytes_are_a_datum_or_rejected_with_a_reason(sample: tuple[Any, list[Any]], data: bytes) -> None:
    try:
        reader(sample[0]).read(data)
    except ValueError as error:
        assert str(error).startswith("the value ")  # noqa: PT017 (a value may be valid)


@pytest.mark.parametrize(
    ("schema", "data", "expected"),
    [
        ("boolean", b"\x02", "2 is not a boolean"),
        ("int", encode_long(2**31), "2147483648 is outside the range of an int"),
        ("int", encode_long(-(2**31) - 1), "-2147483649 is outside the range of an int"),
        ("bytes", encode_long(-1), "-1 is not a length"),
        ("string", b"\x02\xff", "a string is not UTF-8"),
        (["null", "int"], encode_long(2), "a union has no branch 2"),
        (["null", "int"], encode_long(-1), "a union has no branch -1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, encode_long(1), "an enum has no symbol 1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, encode_long(-1), "an enum has no symbol -1"),
        ("bytes", encode_long(5) + b"abcd", "the value ends within its Avro data, after 5 bytes"),
        ("double", b"1234567", "the value ends within its Avro data, after 7 bytes"),
        ("long", b"", "the value ends within its Avro data, after 0 bytes"),
    ],
)
def test_invalid_data_are_rejected_with_the_reason(schema: Any, data: bytes, expected: str) -> None:
    assert reason(schema, data) == expected


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_block_with_its_size_in_bytes_is_read_like_one_without(count: int) -> None:
    items = b"".join(encode_long(item) for item in range(count))
    sized = (encode_long(-count) + encode_long(len(items)) + items if count else b"") + b"\0"
    assert reader({"type": "array", "items": "int"}).read(sized) == list(range(count))


def test_the_blocks_of_a_map_are_one_map_in_which_the_last_of_equal_keys_counts() -> None:
    data = b"\x02\x02a\x02" + b"\x04\x02b\x04\x02a\x06" + b"\0"
    assert reader({"type": "map", "values": "int"}).read(data) == {"a": 3, "b": 2}


def test_a_member_of_several_types_has_its_name_and_of_null_and_one_type_has_not() -> None:
    schema = ["null", "int", {"type": "fixed", "name": "a.F", "size": 1}]
    found = reader(schema)
    assert [found.read(data) for data in (b"\0", b"\x02\x02", b"\x04x")] == [None, {"int": 1}, {"F": b"x"}]
    assert reader(["int", "null"]).read(b"\0\x02") == 1
    assert reader(["int"]).read(b"\0\x02") == 1


def test_nested_records_are_rejected_before_the_stack_ends() -> None:
    node = record(("next", ["null", "R"]))
    value: Any = None
    for _ in range(20):
        value = {"next": value}
    expected = fastavro.schemaless_reader(io.BytesIO(datum(node, value)), fastavro.parse_schema(node), None)
    assert reader(node).read(datum(node, value)) == expected
    assert "nested deeper than" in reason(node, b"\x02" * 100_000 + b"\0")


@pytest.mark.parametrize(
    "items",
    ["null", EMPTY, {"type": "fixed", "name": "F", "size": 0}, record(("n", "null"), name="N")],
)
def test_an_array_whose_items_have_no_bytes_is_no_type_to_read(items: Any) -> None:
    with pytest.raises(InvalidSchema, match="an array whose items have no bytes"):
        reader({"type": "array", "items": items})


@pytest.mark.parametrize(
    ("schema", "empty"),
    [
        ("null", True),
        ("int", False),
        (EMPTY, True),
        (record(("a", "null"), ("b", "int")), False),
        ({"type": "fixed", "name": "F", "size": 1}, False),
        ({"type": "array", "items": "int"}, False),
        (["null"], False),
        (record(("next", "R")), False),
    ],
)
def test_a_type_without_bytes_is_recognised(schema: Any, empty: bool) -> None:
    assert can_be_empty(parse_avro(json.dumps(schema))) is empty
