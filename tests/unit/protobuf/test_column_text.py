"""JSON texts and field values of columns of Protobuf messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, JsonOptions
from sink_job.connect.schema import RegisteredSchema
from sink_job.protobuf.column_decoder import ProtobufColumnDecoder
from sink_job.protobuf.column_text import READERS, field_values, message_texts, parts_of
from sink_job.protobuf.converter import compiled
from sink_job.protobuf.to_connect import connect_schema
from sink_job.records.fields import MISSING
from tests.unit.protobuf.protobuf_data import message, proto2, proto3, set_text

ISO = JsonOptions(DecimalFormat.BASE64, TimestampFormat.ISO)
IMPORTS = ("google/protobuf/timestamp.proto", "google/type/date.proto", "google/type/timeofday.proto")


def decoder(schema: RegisteredSchema, fields: Sequence[str] = (), options: JsonOptions = DEFAULT_OPTIONS) -> Any:
    descriptor = compiled(schema).at((0,))
    return ProtobufColumnDecoder(descriptor, connect_schema(descriptor), tuple(fields), options)


def data_of(schema: RegisteredSchema, *values: str) -> pa.BinaryArray:
    """The data of messages in Protobuf's text format."""
    return pa.array([set_text(message(schema), value).SerializeToString() for value in values], pa.binary())


def texts(schema: RegisteredSchema, *values: str, options: JsonOptions = DEFAULT_OPTIONS) -> list[Any]:
    """The JSON texts of messages, parsed."""
    return [
        json.loads(each) for each in decoder(schema, (), options).decode(data_of(schema, *values)).texts.to_pylist()
    ]


def fields(schema: RegisteredSchema, names: Sequence[str], *values: str) -> dict[str, Sequence[object]]:
    found: dict[str, Sequence[object]] = decoder(schema, names).decode(data_of(schema, *values)).fields
    return found


# -- texts -----------------------------------------------------------------------------------------------------------


def test_a_oneof_is_an_object_before_the_other_fields_and_null_without_a_member() -> None:
    schema = proto3("message M { int64 a = 1; oneof kind { string x = 2; int32 y = 3; } }")
    assert texts(schema, "a: 1 y: 0", "a: 2") == [
        {"kind_0": {"x": None, "y": 0}, "a": 1},
        {"kind_0": None, "a": 2},
    ]
    assert [name for name, _, _ in parts_of(compiled(schema).at((0,)))] == ["kind_0", "a"]


def test_fields_are_in_the_order_of_the_schema_and_not_of_their_numbers() -> None:
    schema = proto3("message M { int64 a = 9; string b = 2; bool c = 5; }")
    (found,) = decoder(schema).decode(data_of(schema, "a: 1 b: 'x' c: true")).texts.to_pylist()
    assert found == b'{"a":1,"b":"x","c":true}'


def test_fields_with_presence_are_null_if_they_are_not_set_and_others_have_their_default() -> None:
    schema = proto3("message M { int64 a = 1; optional int64 b = 2; N c = 3; } message N { int32 d = 1; }")
    assert texts(schema, "", "b: 0 c {}") == [{"a": 0, "b": None, "c": None}, {"a": 0, "b": 0, "c": {"d": 0}}]


@pytest.mark.parametrize(
    ("kind", "given_", "expected"),
    [
        ("map<string, int32>", "f { key: 'b' value: 1 } f { key: 'a' value: 2 }", {"b": 1, "a": 2}),
        ("map<int32, string>", "f { key: 5 value: 'x' }", [[5, "x"]]),
        ("map<bool, int64>", "f { key: true value: 1 }", [[True, 1]]),
        ("map<string, N>", "f { key: 'k' value {} } f { key: 'l' }", {"k": {"d": 0}, "l": {"d": 0}}),
    ],
)
def test_a_map_with_text_keys_is_an_object_and_another_one_an_array_of_pairs(
    kind: str, given_: str, expected: Any
) -> None:
    schema = proto3(f"message M {{ {kind} f = 1; }} message N {{ int32 d = 1; }}")
    assert texts(schema, given_, "") == [{"f": expected}, {"f": {} if isinstance(expected, dict) else []}]


def test_a_key_that_occurs_twice_is_decided_row_wise() -> None:
    schema = proto3("message M { map<int32, string> f = 1; }")
    (one,) = data_of(schema, "f { key: 5 value: 'x' }").to_pylist()
    with pytest.raises(UnusualValues):
        decoder(schema).decode(pa.array([one * 2], pa.binary()))


@pytest.mark.parametrize(("number", "is_unusual"), [(2**63 - 1, False), (2**63, True), (2**64 - 1, True)])
def test_an_unsigned_number_beyond_64_bits_with_a_sign_is_decided_row_wise(number: int, is_unusual: bool) -> None:
    schema = proto3("message M { uint64 f = 1; fixed64 g = 2; }")
    for name in ("f", "g"):
        if is_unusual:
            with pytest.raises(UnusualValues, match="an integer is outside its range"):
                texts(schema, f"{name}: {number}")
        else:
            assert texts(schema, f"{name}: {number}")[0][name] == number


def test_an_enum_is_the_name_of_its_number_and_an_unknown_one_is_decided_row_wise() -> None:
    schema = proto3("message M { E f = 1; repeated E g = 2; } enum E { A = 0; B = 7; }")
    assert texts(schema, "f: B g: A g: B", "") == [{"f": "B", "g": ["A", "B"]}, {"f": "A", "g": []}]
    for unknown in (b"\x08\x05", b"\x08\x64"):
        with pytest.raises(UnusualValues, match="an enum lacks a value"):
            decoder(schema).decode(pa.array([unknown], pa.binary()))


def test_dates_and_times_are_numbers_or_iso_texts() -> None:
    schema = proto3(
        "message M { google.protobuf.Timestamp a = 1; google.type.Date b = 2; google.type.TimeOfDay c = 3; }", *IMPORTS
    )
    value = "a { seconds: 1 nanos: 500000000 } b { year: 1970 month: 1 day: 2 } c { hours: 1 nanos: 1000000 }"
    assert texts(schema, value, "") == [{"a": 1500, "b": 1, "c": 3_600_001}, {"a": None, "b": None, "c": None}]
    (iso,) = texts(schema, value, options=ISO)
    assert iso["a"].startswith("1970-01-01T00:00:01.5")
    assert iso["b"] == "1970-01-02"


def test_a_map_of_dates_or_times_is_not_read_column_wise() -> None:
    schema = proto3("message M { map<string, google.protobuf.Timestamp> f = 1; }", *IMPORTS)
    descriptor = compiled(schema).at((0,))
    with pytest.raises(NotColumnar, match="a logical type in a map is not read column-wise"):
        message_texts(descriptor, connect_schema(descriptor), DEFAULT_OPTIONS)


def test_a_map_of_messages_with_dates_is() -> None:
    schema = proto3("message M { map<string, N> f = 1; } message N { google.type.Date d = 1; }", *IMPORTS)
    assert texts(schema, "f { key: 'k' }") == [{"f": {"k": {"d": None}}}]


def test_a_message_that_is_invalid_when_it_is_not_set_is_no_value_of_a_columnar_map() -> None:
    imports = "import 'google/type/date.proto';"
    schema = proto2(f"{imports} message M {{ map<string, N> n = 1; }} message N {{ required google.type.Date d = 1; }}")
    descriptor = compiled(schema).at((0,))
    with pytest.raises(NotColumnar, match="a message that is not set is not valid"):
        message_texts(descriptor, connect_schema(descriptor), DEFAULT_OPTIONS)


# -- dates and times -------------------------------------------------------------------------------------------------


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


@given(st.lists(st.dates(), min_size=1, max_size=20))
def test_a_date_is_the_days_since_the_epoch(days: list[date]) -> None:
    columns = {name: ints(*(getattr(each, name) for each in days)) for name in ("year", "month", "day")}
    expected = [(each - date(1970, 1, 1)).days for each in days]
    assert READERS["google.type.Date"](columns).to_pylist() == expected


@pytest.mark.parametrize(
    ("year", "month", "day"),
    [(2023, 2, 29), (2024, 4, 31), (2024, 13, 1), (2024, 0, 1), (2024, 1, 0), (2024, 1, 32), (0, 1, 1), (10_000, 1, 1)],
)
def test_a_day_that_does_not_exist_is_decided_row_wise(year: int, month: int, day: int) -> None:
    columns = {"year": ints(2024, year), "month": ints(1, month), "day": ints(1, day)}
    with pytest.raises(UnusualValues, match="outside its"):
        READERS["google.type.Date"](columns)


@pytest.mark.parametrize(
    ("kind", "columns", "expected"),
    [
        ("google.protobuf.Timestamp", {"seconds": 0, "nanos": 0}, 0),
        ("google.protobuf.Timestamp", {"seconds": -1, "nanos": 999_999_999}, -1),
        ("google.protobuf.Timestamp", {"seconds": -62_135_596_800, "nanos": 0}, -62_135_596_800_000),
        ("google.protobuf.Timestamp", {"seconds": 253_402_300_799, "nanos": 999_999_999}, 253_402_300_799_999),
        ("google.type.TimeOfDay", {"hours": 23, "minutes": 59, "seconds": 59, "nanos": 999_999_999}, 86_399_999),
        ("google.type.TimeOfDay", {"hours": 0, "minutes": 0, "seconds": 0, "nanos": 999_999}, 0),
    ],
)
def test_a_time_is_in_milliseconds_without_a_rest(kind: str, columns: dict[str, int], expected: int) -> None:
    assert READERS[kind]({name: ints(value) for name, value in columns.items()}).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("kind", "columns", "name"),
    [
        ("google.protobuf.Timestamp", {"seconds": 253_402_300_800, "nanos": 0}, "seconds"),
        ("google.protobuf.Timestamp", {"seconds": -62_135_596_801, "nanos": 0}, "seconds"),
        ("google.protobuf.Timestamp", {"seconds": 0, "nanos": 10**9}, "nanos"),
        ("google.protobuf.Timestamp", {"seconds": 0, "nanos": -1}, "nanos"),
        ("google.type.TimeOfDay", {"hours": 24, "minutes": 0, "seconds": 0, "nanos": 0}, "hours"),
        ("google.type.TimeOfDay", {"hours": 0, "minutes": 60, "seconds": 0, "nanos": 0}, "minutes"),
        ("google.type.TimeOfDay", {"hours": 0, "minutes": 0, "seconds": 60, "nanos": 0}, "seconds"),
    ],
)
def test_a_part_of_a_time_outside_its_range_is_decided_row_wise(kind: str, columns: dict[str, int], name: str) -> None:
    with pytest.raises(UnusualValues, match=f"{name} is outside its range"):
        READERS[kind]({key: ints(value) for key, value in columns.items()})


@pytest.mark.parametrize("kind", list(READERS))
def test_no_dates_and_times_are_read_from_no_rows(kind: str) -> None:
    names = ("year", "month", "day", "hours", "minutes", "seconds", "nanos")
    assert READERS[kind]({name: ints() for name in names}).to_pylist() == []


# -- fields ----------------------------------------------------------------------------------------------------------


FIELDS = proto3(
    """
    message M { N n = 4; string s = 3; E e = 2; google.protobuf.Timestamp at = 1;
      oneof kind { int32 x = 5; N y = 6; } repeated int32 many = 7; bytes raw = 8; }
    message N { uint32 d = 2; optional bool b = 1; }
    enum E { A = 0; B = 7; }
    """,
    *IMPORTS,
)


def test_a_field_is_found_by_its_path_also_in_messages_and_oneofs() -> None:
    names = ["n.d", "n.b", "s", "e", "at", "kind_0.x", "kind_0.y.d"]
    one, two = "n { d: 3 b: false } s: 'ä' e: B at { seconds: 1 } x: 5", "y { d: 9 }"
    assert fields(FIELDS, names, one, two) == {
        "n.d": [3, None],
        "n.b": [False, None],
        "s": ["ä", ""],
        "e": ["B", "A"],
        "at": [1000, None],
        "kind_0.x": [5, None],
        "kind_0.y.d": [None, 9],
    }


@pytest.mark.parametrize("name", ["absent", "n.absent", "s.d", "kind_0.absent", "x", "at.seconds"])
def test_a_field_that_the_schema_lacks_is_missing_in_each_row(name: str) -> None:
    """Members of a oneof are fields of the oneof, and logical types have no fields."""
    assert fields(FIELDS, [name], "s: 'a'", "")[name] == [MISSING, MISSING]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ([], "a whole message"),
        (["kind_0"], "a field that is a oneof"),
        (["many"], "a field that is repeated"),
        (["raw"], "such a field"),
        (["n"], "such a field"),
    ],
)
def test_a_field_of_another_kind_is_not_read_column_wise(path: list[str], reason: str) -> None:
    with pytest.raises(NotColumnar, match=f"{reason}.* is not read"):
        field_values(compiled(FIELDS).at((0,)), path)
