"""Columns of Avro data as those of Parquet's types."""

from __future__ import annotations

import uuid
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow.columnar import UnusualValues
from sink_job.avro.schema import AvroType
from sink_job.avro.to_connect import parse_registered
from sink_job.parquet.columns import column_types, raw_type, symbols_size, typed, with_dictionaries
from tests.unit.avro.avro_data import record, registered


def avro(kind: Any) -> AvroType:
    """The type of a field."""
    return parse_registered(registered(record(("f", kind)))).fields[0].type


def converted(kind: Any, values: list[Any], target: pa.DataType, *, nullable: bool = True) -> list[Any]:
    """Values that were read row-wise, as a column of `target`."""
    column = pa.array(values, raw_type(avro(kind)))
    found = typed(avro(kind), pa.field("f", target, nullable))(column)
    found.validate(full=True)
    assert found.type == target
    return list(found.to_pylist())


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
ENTRY = record(("key", "long"), ("value", "string"), name="MapEntry")
UUIDS = [uuid.UUID(int=number) for number in (0, 1, 2**128 - 1)]


@pytest.mark.parametrize(
    ("kind", "values", "target", "expected"),
    [
        ("int", [1, None, -5], pa.int32(), [1, None, -5]),
        ("long", [1, None], pa.int64(), [1, None]),
        ("string", ["ä", None, ""], pa.string(), ["ä", None, ""]),
        ("bytes", [b"\xff", None], pa.binary(), [b"\xff", None]),
        ("boolean", [True, None], pa.bool_(), [True, None]),
        ({"type": "fixed", "name": "F", "size": 2}, [b"ab", None], pa.binary(2), [b"ab", None]),
        ({"type": "array", "items": "int"}, [[1, 2], None, []], pa.list_(pa.int32()), [[1, 2], None, []]),
        (ENUM, ["B", None, "A"], pa.string(), ["B", None, "A"]),
        (ENUM, ["B", None, "A"], pa.dictionary(pa.int8(), pa.string()), ["B", None, "A"]),
        (ENUM, [None, None], pa.dictionary(pa.int8(), pa.string()), [None, None]),
        (ENUM, [], pa.string(), []),
        ({"type": "string", "logicalType": "uuid"}, [str(each) for each in UUIDS], pa.uuid(), UUIDS),
        ({"type": "string", "logicalType": "uuid"}, [UUIDS[1].hex, None], pa.uuid(), [UUIDS[1], None]),
    ],
    ids=str,
)
def test_values_keep_their_meaning(kind: Any, values: list[Any], target: pa.DataType, expected: list[Any]) -> None:
    assert converted(kind, values, target) == expected


def test_milliseconds_become_microseconds() -> None:
    kind = {"type": "long", "logicalType": "timestamp-millis"}
    micros = converted(kind, [1, None, -1], pa.timestamp("us", "UTC"))
    assert micros == converted(kind, [1, None, -1], pa.timestamp("ms", "UTC"))


# -- decimals --------------------------------------------------------------------------------------------------------


@given(st.lists(st.none() | st.tuples(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 20)), max_size=20))
def test_decimals_of_each_size_are_those_of_their_integers(given_: list[tuple[int, int] | None]) -> None:
    """A longer integer has more bytes with its sign before it."""
    values = [
        None if each is None else each[0].to_bytes(17 + each[1] if each[1] > 10 else 17, "big", signed=True)
        for each in given_
    ]
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 3}
    with localcontext() as context:
        context.prec = 60
        expected = [None if each is None else Decimal(each[0]).scaleb(-3) for each in given_]
        assert converted(kind, values, pa.decimal128(38, 3)) == expected


@pytest.mark.parametrize("size", range(1, 18))
def test_a_decimal_has_the_sign_of_its_first_byte(size: int) -> None:
    kind = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": 2, "scale": 0}
    values = [number.to_bytes(size, "big", signed=True) for number in (0, 1, -1, 99, -99, 127, -128)]
    assert converted(kind, values, pa.decimal128(38, 0)) == [Decimal(n) for n in (0, 1, -1, 99, -99, 127, -128)]


@pytest.mark.parametrize("values", [[], [None], [None, None]])
def test_a_column_of_decimals_without_content_is_null(values: list[None]) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    assert converted(kind, values, pa.decimal128(5, 2)) == values


# -- maps ------------------------------------------------------------------------------------------------------------


def test_a_map_keeps_its_entries_and_their_order() -> None:
    kind = {"type": "map", "values": ["null", "long"]}
    values = [[("b", 1), ("a", None)], None, []]
    assert converted(kind, values, pa.map_(pa.string(), pa.int64())) == values


def test_an_array_of_entries_is_a_map_with_other_keys() -> None:
    values = [[{"key": 7, "value": "x"}, {"key": 5, "value": "y"}], [], [{"key": 7, "value": "z"}]]
    target = pa.map_(pa.int64(), pa.string())
    assert converted({"type": "array", "items": ENTRY}, values, target) == [[(7, "x"), (5, "y")], [], [(7, "z")]]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ({"type": "map", "values": "long"}, [[("a", 1)], [("b", 1), ("a", 2), ("b", 3)]]),
        ({"type": "array", "items": ENTRY}, [[{"key": 1, "value": "x"}, {"key": 1, "value": "y"}]]),
    ],
    ids=["texts", "entries"],
)
def test_a_map_with_a_key_twice_is_decided_row_wise(kind: Any, values: list[Any]) -> None:
    keys = pa.string() if kind["type"] == "map" else pa.int64()
    items = pa.int64() if kind["type"] == "map" else pa.string()
    with pytest.raises(UnusualValues, match="a map has a key twice"):
        converted(kind, values, pa.map_(keys, items))


def test_equal_keys_of_different_maps_are_no_duplicates() -> None:
    values = [[("a", 1)], [("a", 2)], None, [("a", 3)]]
    assert converted({"type": "map", "values": "long"}, values, pa.map_(pa.string(), pa.int64())) == values


# -- required values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "target", "value"),
    [
        ("long", pa.int64(), 5),
        ("string", pa.string(), "x"),
        (ENUM, pa.dictionary(pa.int8(), pa.string()), "B"),
        ({"type": "string", "logicalType": "uuid"}, pa.uuid(), str(UUIDS[1])),
        ({"type": "array", "items": "long"}, pa.list_(pa.int64()), [1]),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        (record(("g", "long"), name="S"), pa.struct([pa.field("g", pa.int64(), nullable=False)]), {"g": 1}),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 0}, pa.decimal128(5, 0), b"\5"),
    ],
    ids=str,
)
def test_a_required_value_below_a_null_struct_is_any_value_and_not_null(
    kind: Any, target: pa.DataType, value: Any
) -> None:
    outer = record(("f", kind), name="Outer")
    column = pa.array([{"f": value}, None, {"f": value}], raw_type(avro(outer)))
    made = typed(avro(["null", outer]), pa.field("o", pa.struct([pa.field("f", target, nullable=False)])))(column)
    made.validate(full=True)
    assert made.field(0).null_count == 0
    first, null, last = made.to_pylist()
    assert null is None
    assert first == last
    assert first["f"] is not None


def test_a_union_is_a_struct_with_the_member_that_is_set() -> None:
    kind = ["int", "string"]
    target = pa.struct([("int", pa.int32()), ("string", pa.string())])
    values = [{"int": 1, "string": None}, {"int": None, "string": "x"}]
    assert converted(kind, values, target) == values


# -- schemas of dictionaries -----------------------------------------------------------------------------------------


def enum(count: int, name: str = "E") -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": [f"S{number}" for number in range(count)]}


@pytest.mark.parametrize(("count", "index"), [(1, pa.int8()), (128, pa.int8()), (129, pa.int16())])
def test_the_indexes_of_a_dictionary_have_the_smallest_type(count: int, index: pa.DataType) -> None:
    whole = parse_registered(registered(record(("f", enum(count)))))
    found = with_dictionaries(whole, pa.schema([("f", pa.string())]))
    assert found.field("f").type == pa.dictionary(index, pa.string())


def test_enums_within_other_types_have_dictionaries_and_other_types_stay() -> None:
    fields = (
        ("list", {"type": "array", "items": enum(2, "A")}),
        ("map", {"type": "map", "values": ["null", enum(2, "B")]}),
        ("record", record(("g", enum(2, "C")), ("h", "string"), name="S")),
        ("n", "long"),
    )
    schema = pa.schema([
        ("list", pa.list_(pa.string())),
        ("map", pa.map_(pa.string(), pa.string())),
        ("record", pa.struct([("g", pa.string()), ("h", pa.string())])),
        pa.field("n", pa.int64(), nullable=False, metadata={"a": "b"}),
    ])  # fmt: skip
    dictionary = pa.dictionary(pa.int8(), pa.string())
    found = with_dictionaries(parse_registered(registered(record(*fields))), schema)
    assert found.field("list").type == pa.list_(dictionary)
    assert found.field("map").type == pa.map_(pa.string(), dictionary)
    assert found.field("record").type == pa.struct([("g", dictionary), ("h", pa.string())])
    assert found.field("n").equals(schema.field("n"), check_metadata=True)


def test_the_columns_of_a_whole_value_are_its_fields_or_members() -> None:
    whole = parse_registered(registered(record(("a", "int"), ("b", "string"))))
    assert [each.kind for each in column_types(whole)] == ["int", "string"]
    union = parse_registered(registered(["null", "int", "string"]))
    assert [each.kind for each in column_types(union)] == ["int", "string"]


def test_the_size_of_symbols_is_that_of_the_largest_enum_with_their_lengths() -> None:
    whole = record(("a", enum(2, "A")), ("b", ["null", {"type": "array", "items": enum(3, "B")}]), ("c", "string"))
    assert symbols_size(parse_registered(registered(whole))) == 3 * (4 + 2)
    assert symbols_size(parse_registered(registered(record(("c", "string"))))) == 0
