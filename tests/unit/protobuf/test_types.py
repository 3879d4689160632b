"""Protobuf values: the JSON of each type, and invalid data."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.arrow import columnar
from sink_job.connect.json_encoder import JsonOptions
from tests.unit.avro.avro_data import texts
from tests.unit.protobuf.protobuf_data import (
    LINE,
    convert,
    convert_all,
    converter,
    in_wire_format,
    message,
    proto2,
    proto3,
    reason,
    set_text,
    written,
)
from tests.unit.protobuf.protobuf_samples import varint

TIMESTAMP, WRAPPERS, DATE, TIME = (
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
    "google/type/date.proto",
    "google/type/timeofday.proto",
)
DECIMAL, META = "confluent/type/decimal.proto", "confluent/meta.proto"
IMPORTS = (
    TIMESTAMP,
    WRAPPERS,
    DATE,
    TIME,
    DECIMAL,
    META,
    "google/protobuf/duration.proto",
    "google/protobuf/any.proto",
)
TREE = proto3("message M { oneof kind { M m = 1; int32 i = 2; } repeated M many = 3; map<string, M> by_name = 4; }")


@pytest.fixture(params=["column-wise", "row-wise"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each behaviour holds in both ways of decoding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", 0 if request.param == "column-wise" else 1 << 60)
        yield


# -- types -------------------------------------------------------------------------------------------------------------

TYPES = [
    ("int32 f = 1;", "f: -5", -5, 0),
    ("sint32 f = 1;", "f: -2147483648", -(2**31), 0),
    ("sfixed32 f = 1;", "f: -5", -5, 0),
    ("uint32 f = 1;", "f: 4294967295", 2**32 - 1, 0),
    ("fixed32 f = 1;", "f: 4294967295", 2**32 - 1, 0),
    ("int64 f = 1;", "f: -9223372036854775808", -(2**63), 0),
    ("sint64 f = 1;", "f: -9223372036854775808", -(2**63), 0),
    ("sfixed64 f = 1;", "f: -5", -5, 0),
    ("uint64 f = 1;", "f: 9223372036854775807", 2**63 - 1, 0),
    ("fixed64 f = 1;", "f: 5", 5, 0),
    ("float f = 1;", "f: 0.1", 0.1, 0.0),
    ("float f = 1;", "f: nan", "NaN", 0.0),
    ("double f = 1;", "f: 0.1", 0.1, 0.0),
    ("double f = 1;", "f: -inf", "-Infinity", 0.0),
    ("bool f = 1;", "f: true", True, False),
    ("string f = 1;", 'f: "ä\\"\\n"', 'ä"\n', ""),
    ("bytes f = 1;", 'f: "\\377\\000"', "/wA=", ""),
    ("enum E { A = 0; B = 2; } E f = 1;", "f: B", "B", "A"),
    ("enum E { option allow_alias = true; A = 0; B = 1; C = 1; } E f = 1;", "f: C", "B", "A"),
    ("enum E { A = 0; } E f = 1;", "f: 7", "UNKNOWN_ENUM_VALUE_E_7", "A"),
    ("optional int32 f = 1;", "f: 0", 0, None),
    ("optional string f = 1;", 'f: ""', "", None),
    ("repeated int32 f = 1;", "f: [1, 0, 2]", [1, 0, 2], []),
    ("repeated string f = 1;", 'f: ["a", ""]', ["a", ""], []),
    ("repeated bytes f = 1;", 'f: ["a", ""]', ["YQ==", ""], []),
    ("message N { int32 a = 1; } N f = 1;", "f: {}", {"a": 0}, None),
    ("message N { int32 a = 1; } repeated N f = 1;", "f: {} f: { a: 1 }", [{"a": 0}, {"a": 1}], []),
    ("message N {} N f = 1;", "f: {}", {}, None),
    ("map<string, int32> f = 1;", 'f: { key: "a" value: 1 } f: { key: "b" }', {"a": 1, "b": 0}, {}),
    ("map<string, int32> f = 1;", "f: { value: 1 }", {"": 1}, {}),
    ("map<int32, string> f = 1;", 'f: { key: 2 value: "a" }', [[2, "a"]], []),
    ("map<bool, double> f = 1;", "f: { key: true value: 0.5 }", [[True, 0.5]], []),
    ("message N { int32 a = 1; } map<string, N> f = 1;", 'f: { key: "a" }', {"a": {"a": 0}}, {}),
    ("google.protobuf.StringValue f = 1;", 'f: { value: "a" }', {"value": "a"}, None),
    ("google.protobuf.UInt32Value f = 1;", "f: {}", {"value": 0}, None),
    ("google.protobuf.Timestamp f = 1;", "f: { seconds: 1 nanos: 2999999 }", 1002, None),
    ("google.protobuf.Timestamp f = 1;", "f: { seconds: -1 nanos: 999999999 }", -1, None),
    ("google.protobuf.Duration f = 1;", "f: { seconds: 3 nanos: 4 }", {"seconds": 3, "nanos": 4}, None),
    ("google.type.Date f = 1;", "f: { year: 1970 month: 1 day: 11 }", 10, None),
    ("google.type.TimeOfDay f = 1;", "f: { hours: 1 minutes: 1 seconds: 1 nanos: 5000001 }", 3_661_005, None),
    ("confluent.type.Decimal f = 1;", 'f: { value: "\\004\\322" }', "BNI=", None),
    ("repeated google.protobuf.Timestamp f = 1;", "f: {} f: { seconds: 1 }", [0, 1000], []),
    ("map<string, google.protobuf.Timestamp> f = 1;", 'f: { key: "a" }', {"a": 0}, {}),
    ("google.protobuf.Any f = 1;", "f: { type_url: 't' }", {"type_url": "t", "value": ""}, None),
]


@pytest.mark.parametrize(("field", "text", "value", "unset"), TYPES)
def test_the_json_of_a_type(field: str, text: str, value: object, unset: object) -> None:
    schema = proto3(f"message M {{ {field} }}", *IMPORTS)
    assert written(schema, text) == {"f": value}
    assert written(schema, "") == {"f": unset}


def test_a_oneof_is_an_object_with_a_field_for_each_member_before_the_other_fields() -> None:
    schema = proto3("message M { int32 a = 1; oneof kind { int32 x = 2; string y = 3; M z = 4; } string b = 5; }")
    assert list(written(schema, "").items()) == [("kind_0", None), ("a", 0), ("b", "")]
    assert written(schema, "y: ''")["kind_0"] == {"x": None, "y": "", "z": None}
    assert written(schema, "z: {}")["kind_0"]["z"] == {"kind_0": None, "a": 0, "b": ""}


def test_the_last_member_of_a_oneof_counts() -> None:
    schema = proto3("message M { oneof kind { int32 x = 2; string y = 3; } }")
    found = convert(converter(schema), [in_wire_format(b"\x1a\x01a\x10\5"), in_wire_format(b"\x10\5\x1a\x01a")])
    assert texts(found) == [b'{"kind_0":{"x":5,"y":null}}', b'{"kind_0":{"x":null,"y":"a"}}']


def test_a_field_that_occurs_again_has_its_last_value_and_messages_are_merged() -> None:
    schema = proto3("message M { int32 a = 1; message N { int32 x = 1; int32 y = 2; } N n = 2; }")
    found = convert(converter(schema), [in_wire_format(b"\x08\1\x08\2\x12\2\x08\3\x12\2\x10\4")])
    assert texts(found) == [b'{"a":2,"n":{"x":3,"y":4}}']


def test_repeated_numbers_are_read_packed_and_unpacked() -> None:
    schema = proto3("message M { repeated int32 a = 1; }")
    assert texts(convert(converter(schema), [in_wire_format(b"\x0a\2\1\2\x08\3")])) == [b'{"a":[1,2,3]}']


def test_entries_of_a_map_keep_their_order_and_the_last_of_a_key_counts() -> None:
    schema = proto3("message M { map<string, int32> a = 1; map<int32, int32> b = 2; }")
    of_text = b"".join(
        b"\x0a\5\x0a\1" + key + b"\x10" + value for key, value in [(b"b", b"\1"), (b"a", b"\2"), (b"b", b"\3")]
    )
    of_int = b"\x12\4\x08\2\x10\1\x12\4\x08\1\x10\2\x12\4\x08\2\x10\3"
    assert texts(convert(converter(schema), [in_wire_format(of_text + of_int)])) == [
        b'{"a":{"b":3,"a":2},"b":[[2,3],[1,2]]}'
    ]


def test_unknown_fields_are_ignored() -> None:
    unknown = b"\x50\1" + b"\x5a\1x" + b"\x61" + b"\0" * 8 + b"\x6d" + b"\0" * 4 + b"\x73\x50\1\x74"
    assert texts(convert(converter(LINE), [in_wire_format(b"\x08\5" + unknown)])) == [b'{"a":5,"b":null}']


def test_a_recursive_message_is_read_to_the_depth_of_100() -> None:
    value = inner = message(TREE)
    for _ in range(99):
        inner = inner.m
    inner.i = 1
    found = convert_all(TREE, [value])
    assert found.rejected == []
    assert b'"m":null,"i":1}' in (texts(found)[0] or b"")


@pytest.mark.parametrize("field", [b"\x0a", b"\x1a"])
def test_a_message_that_is_nested_deeper_is_rejected(field: bytes) -> None:
    data = b""
    for _ in range(101):
        data = field + varint(len(data)) + data
    assert "MaxDepth" in reason(TREE, data)


# -- proto2 ------------------------------------------------------------------------------------------------------------


def test_an_unset_field_of_proto2_is_null_not_its_default() -> None:
    schema = proto2("message M { optional int32 a = 1 [default = 7]; required string b = 2; repeated int32 c = 3; }")
    assert written(schema, 'b: "x"') == {"a": None, "b": "x", "c": []}
    assert written(schema, 'a: 7 b: "x"')["a"] == 7


def test_a_missing_required_field_is_rejected() -> None:
    schema = proto2("message M { repeated N n = 1; } message N { required int32 x = 1; }")
    found = convert(converter(schema), [in_wire_format(b"\x0a\2\x08\1"), in_wire_format(b"\x0a\2\x08\1\x0a\0")])
    assert found.rejected == [(1, "schema 1: the value is a Protobuf message without required fields: n[1].x")]


def test_a_value_that_a_closed_enum_lacks_is_unset() -> None:
    schema = proto2("message M { enum E { A = 1; B = 2; } optional E e = 1; repeated E es = 2; }")
    assert texts(convert(converter(schema), [in_wire_format(b"\x08\7\x10\2\x10\7")])) == [b'{"e":null,"es":["B"]}']


def test_a_string_of_proto2_that_is_not_utf8_is_rejected() -> None:
    assert "UTF-8" in reason(proto2("message M { optional string s = 1; }"), b"\x0a\1\xff")


def test_a_group_is_not_supported() -> None:
    schema = proto2("message M { optional group G = 1 { optional int32 x = 1; } }")
    ((_, why),) = convert(converter(schema), [in_wire_format(b"")]).rejected
    assert why == "schema 1 cannot be used: it has no equivalent in Kafka Connect: the group M.g is not supported"


def test_fields_with_names_of_pythons_methods_are_read() -> None:
    names = ["Clear", "DESCRIPTOR", "HasField", "WhichOneof", "IsInitialized", "FromString", "ListFields", "class"]
    fields = " ".join(f"optional int32 {name} = {number};" for number, name in enumerate(names, 1))
    schema = proto3(f"message M {{ {fields} oneof FindInitializationErrors {{ int32 SerializeToString = 50; }} }}")
    data = b"".join(bytes([number << 3, number]) for number in range(1, 8)) + b"\x90\3\1"
    found = json.loads(texts(convert(converter(schema), [in_wire_format(data)]))[0] or b"")
    union = {"FindInitializationErrors_0": {"SerializeToString": 1}}
    assert found == union | dict(zip(names, range(1, 8), strict=False)) | {"class": None}


# -- forms -------------------------------------------------------------------------------------------------------------


def test_decimals_are_numbers_or_the_bytes_of_the_scale_in_the_schema() -> None:
    option = '[(confluent.field_meta) = {params: [{key: "scale", value: "3"}]}]'
    schema = proto3(f"message M {{ confluent.type.Decimal f = 1 {option}; }}", *IMPORTS)
    text = "f: { value: '\\004\\322' scale: 2 }"
    assert written(schema, text) == {"f": "MDQ="}
    assert written(schema, text, JsonOptions(decimals=DecimalFormat.NUMERIC)) == {"f": 12.34}


def test_a_decimal_is_rounded_to_its_precision() -> None:
    schema = proto3("message M { confluent.type.Decimal f = 1; }", *IMPORTS)
    text = "f: { value: '\\004\\323' scale: 2 precision: 3 }"
    assert written(schema, text, JsonOptions(decimals=DecimalFormat.NUMERIC)) == {"f": 12.4}


def test_times_are_iso_texts_if_asked_for() -> None:
    body = "message M { google.protobuf.Timestamp t = 1; google.type.Date d = 2; google.type.TimeOfDay o = 3; }"
    text = "t: { seconds: 1 } d: { year: 2026 month: 11 day: 22 } o: { hours: 23 }"
    found = written(proto3(body, *IMPORTS), text, JsonOptions(timestamps=TimestampFormat.ISO))
    assert found == {"t": "1970-01-01T00:00:01.000Z", "d": "2026-11-22", "o": "23:00:00.000"}


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("google.protobuf.Timestamp", "seconds: 253402300800", "Timestamp of 253402300800 s and 0 ns is not valid"),
        ("google.protobuf.Timestamp", "nanos: -1", "Timestamp of 0 s and -1 ns is not valid"),
        ("google.protobuf.Timestamp", "nanos: 1000000000", "is not valid"),
        ("google.type.Date", "year: 2026", "2026-0-0, which is not a complete, valid date"),
        ("google.type.Date", "year: 2026 month: 2 day: 29", "2026-2-29, which is not a complete, valid date"),
        ("google.type.TimeOfDay", "hours: 24", "24:0:0, which is not a time of the day"),
        ("google.type.TimeOfDay", "seconds: 60", "0:0:60, which is not a time of the day"),
        ("google.type.TimeOfDay", "nanos: -1", "TimeOfDay has -1 ns"),
        ("confluent.type.Decimal", "scale: 1", "a decimal has no bytes"),
        ("confluent.type.Decimal", "value: '1' scale: 1", "a decimal does not have the scale 0"),
        ("confluent.type.Decimal", "value: '1' scale: 2147483647", "has the scale 2147483647, which is too large"),
        ("uint64", "18446744073709551615", "18446744073709551615 is outside the range of int64"),
    ],
)
def test_a_value_that_its_type_cannot_have_is_rejected(field: str, text: str, why: str) -> None:
    schema = proto3(f"message M {{ {field} f = 1; }}", *IMPORTS)
    value = set_text(message(schema), f"f: {{ {text} }}" if "." in field else f"f: {text}")
    assert why in reason(schema, value.SerializeToString())


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # truncated varint
        b"\x08" + b"\xff" * 10 + b"\1",  # a varint of 11 bytes
        b"\x12\5ab",  # truncated string
        b"\x12\xff\xff\xff\xff\x07",  # a length of 2 GiB
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",  # a length of -1
        b"\x12\2\xff\xfe",  # not UTF-8
        b"\0\1",  # field number 0
        b"\x0c",  # the end of a group without its start
        b"\x0b" * 1_000_000,  # groups within groups
        b"\x0e\1",  # wire type 6
        b"\x0b\x14",  # the end of another group
    ],
)
def test_damaged_data_is_rejected(data: bytes) -> None:
    assert reason(LINE, data).startswith("schema 1: the value is not a valid Protobuf message: ")
