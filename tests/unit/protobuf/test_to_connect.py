"""Protobuf schemas as Connect's, against io.confluent.connect.protobuf.ProtobufData.toConnectSchema."""

from __future__ import annotations

import pytest

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.json_encoder import json_text
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType, schema_id
from sink_job.protobuf.converter import compiled
from sink_job.protobuf.to_connect import connect_schema
from tests.unit.protobuf.protobuf_data import proto2, proto3, registered

PROTOBUF = "io.confluent.connect.protobuf"
IMPORTS = (
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
    "google/type/date.proto",
    "google/type/timeofday.proto",
    "confluent/type/decimal.proto",
    "confluent/meta.proto",
)


def translated(schema: RegisteredSchema, version: int | None = None) -> Schema:
    return connect_schema(compiled(schema).at((0,)), version)


def field_schema(declaration: str) -> Schema:
    """The schema of a message's field."""
    return translated(proto3(f"message M {{ {declaration} }}", *IMPORTS)).fields[0].schema


def tagged(number: int, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({f"{PROTOBUF}.Tag": str(number), **more}.items()))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("int32", SchemaType.INT32),
        ("int64", SchemaType.INT64),
        ("float", SchemaType.FLOAT32),
        ("double", SchemaType.FLOAT64),
        ("bool", SchemaType.BOOLEAN),
        ("string", SchemaType.STRING),
        ("bytes", SchemaType.BYTES),
    ],
)
def test_a_scalar_is_connects_type_and_optional(name: str, kind: SchemaType) -> None:
    assert field_schema(f"{name} f = 3;") == Schema(kind, optional=True, parameters=tagged(3))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, SchemaType.INT32) for name in ("sint32", "sfixed32")),
        *((name, SchemaType.INT64) for name in ("uint32", "fixed32", "uint64", "sint64", "fixed64", "sfixed64")),
    ],
)
def test_an_integer_of_another_encoding_has_it_as_a_parameter(name: str, kind: SchemaType) -> None:
    given = tagged(1, **{f"{PROTOBUF}.Type": name})
    assert field_schema(f"{name} f = 1;") == Schema(kind, optional=True, parameters=given)


@pytest.mark.parametrize(("annotated", "kind"), [("int8", SchemaType.INT8), ("int16", SchemaType.INT16)])
def test_an_int32_with_connect_type_is_smaller(annotated: str, kind: SchemaType) -> None:
    option = f'[(confluent.field_meta) = {{params: [{{key: "connect.type", value: "{annotated}"}}]}}]'
    assert field_schema(f"int32 f = 1 {option};") == Schema(kind, optional=True, parameters=tagged(1))


def test_an_enum_is_a_string_with_its_symbols_as_parameters() -> None:
    found = field_schema("enum E { A = 0; B = -2; } E f = 1;")
    symbols = {f"{PROTOBUF}.Enum": "E", f"{PROTOBUF}.Enum.A": "0", f"{PROTOBUF}.Enum.B": "-2"}
    assert found == Schema(SchemaType.STRING, "E", optional=True, parameters=tagged(1, **symbols))


def test_a_repeated_field_is_an_array_whose_items_have_no_tag() -> None:
    items = Schema(SchemaType.STRING, optional=True)
    assert field_schema("repeated string f = 2;") == Schema(
        SchemaType.ARRAY, optional=True, parameters=tagged(2), values=items
    )


@pytest.mark.parametrize(("name", "expected"), [("f", "f"), ("fooBar", "foo_bar"), ("foo_bar", "foo_bar")])
def test_a_map_has_the_name_of_its_entry(name: str, expected: str) -> None:
    found = field_schema(f"map<string, int64> {name} = 1;")
    assert found == Schema(
        SchemaType.MAP,
        expected,
        optional=True,
        parameters=tagged(1),
        keys=Schema(SchemaType.STRING, optional=True, parameters=tagged(1)),
        values=Schema(SchemaType.INT64, optional=True, parameters=tagged(2)),
    )


def test_a_repeated_message_with_the_form_of_an_entry_is_a_map_as_in_connect() -> None:
    found = field_schema("message PairEntry { double key = 1; int32 value = 2; } repeated PairEntry f = 1;")
    assert (found.type, found.name) == (SchemaType.MAP, "pair")


@pytest.mark.parametrize(
    ("name", "kind", "logical_name"),
    [
        ("google.protobuf.Timestamp", SchemaType.INT64, logical_types.TIMESTAMP),
        ("google.type.Date", SchemaType.INT32, logical_types.DATE),
        ("google.type.TimeOfDay", SchemaType.INT32, logical_types.TIME),
    ],
)
def test_times_are_logical_types(name: str, kind: SchemaType, logical_name: str) -> None:
    assert field_schema(f"{name} f = 1;") == Schema(kind, logical_name, True, 1, parameters=tagged(1))


def test_a_decimal_has_the_scale_and_precision_of_its_option() -> None:
    params = 'params: [{key: "scale", value: "2"}, {key: "precision", value: "9"}]'
    found = field_schema(f"confluent.type.Decimal f = 1 [(confluent.field_meta) = {{{params}}}];")
    given = {"scale": "2", "connect.decimal.precision": "9"}
    assert found == Schema(SchemaType.BYTES, logical_types.DECIMAL, True, 1, parameters=tagged(1, **given))
    assert field_schema("confluent.type.Decimal f = 1;").parameter["scale"] == "0"


def test_a_wrapper_in_a_field_is_a_struct() -> None:
    found = field_schema("google.protobuf.StringValue f = 4;")
    value = Schema(SchemaType.STRING, optional=True, parameters=tagged(1))
    assert found == Schema(
        SchemaType.STRUCT, "StringValue", optional=True, parameters=tagged(4), fields=(Field("value", value),)
    )


def test_a_message_is_a_struct_with_its_short_name_and_version() -> None:
    found = translated(
        registered("syntax = 'proto3'; package x.y; message M { int32 a = 1; N n = 2; } message N {}"), 7
    )
    inner = Schema(SchemaType.STRUCT, "N", optional=True, parameters=tagged(2))
    number = Schema(SchemaType.INT32, optional=True, parameters=tagged(1))
    assert found == Schema(SchemaType.STRUCT, "M", version=7, fields=(Field("a", number), Field("n", inner)))


def test_a_oneof_is_an_optional_struct_before_the_fields() -> None:
    found = translated(proto3("message M { int32 a = 1; oneof one { int32 x = 2; } optional int32 b = 3; }"))
    assert [field.name for field in found.fields] == ["one_0", "a", "b"]
    union = found.fields[0].schema
    member = Field("x", Schema(SchemaType.INT32, optional=True, parameters=tagged(2)))
    assert union == Schema(SchemaType.STRUCT, f"{PROTOBUF}.Union.one", optional=True, fields=(member,))


def test_a_recursive_message_refers_to_the_enclosing_one() -> None:
    found = translated(proto3("message M { M next = 1; }"))
    assert found.fields[0].schema == Schema(SchemaType.REFERENCE, "M", optional=True, parameters=tagged(1))


def test_messages_with_the_same_short_name_have_their_full_names() -> None:
    schema = proto3("message M { M.N n = 1; message N { message M { .M m = 1; } M inner = 1; } }")
    found = translated(schema)
    inner = found.fields[0].schema.fields[0].schema
    assert (found.name, inner.name) == ("M", "M.N.M")
    assert inner.fields[0].schema == Schema(SchemaType.REFERENCE, "M", optional=True, parameters=tagged(1))
    assert json_text(found, {"n": {"inner": {"m": {"n": None}}}}) == b'{"n":{"inner":{"m":{"n":null}}}}'


def test_a_message_that_is_used_twice_is_equal_in_both_places() -> None:
    found = translated(proto3("message M { N a = 1; N b = 1000; } message N { repeated N many = 1; }"))
    assert found.fields[0].schema.fields == found.fields[1].schema.fields


def test_equal_schemas_of_different_texts_are_equal() -> None:
    texts = ("message M { optional int32 a = 1; }", "// comment\nmessage M {\n  required int32 a = 1;\n}")
    first, second = (schema_id(translated(proto2(text))) for text in texts)
    assert first == second


def test_a_wrapper_as_the_whole_message_is_its_type() -> None:
    text = "syntax = 'proto3'; package google.protobuf; message UInt32Value { uint32 value = 1; }"
    assert translated(registered(text), 3) == Schema(SchemaType.INT64, version=3)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (proto2("message M { repeated group G = 1 {} }"), "the group M.g is not supported"),
        (
            proto3("message M { oneof one { int32 x = 1; } int32 one_0 = 2; }"),
            "message M with a field that has the name of the union of a oneof is not supported",
        ),
        (
            registered(
                "syntax = 'proto3'; package google.type; message M { Date d = 1; } message Date { int32 x = 1; }"
            ),
            "google.type.Date without the fields year, month, day of their usual types is not supported",
        ),
    ],
)
def test_what_connect_cannot_represent_is_invalid(schema: RegisteredSchema, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=f"it has no equivalent in Kafka Connect: {reason}"):
        translated(schema)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("google.protobuf.Timestamp", "double seconds = 1; int32 nanos = 2;"),
        ("google.protobuf.Timestamp", "int64 seconds = 1; repeated int32 nanos = 2;"),
        ("google.type.Date", "string year = 1; string month = 2; string day = 3;"),
        ("google.type.TimeOfDay", "int32 hours = 1; int32 minutes = 2; int32 seconds = 3; bytes nanos = 4;"),
        ("confluent.type.Decimal", "string value = 1; uint32 precision = 2; int32 scale = 3;"),
    ],
)
def test_a_logical_type_whose_fields_have_other_types_is_invalid(name: str, fields: str) -> None:
    package, _, short = name.rpartition(".")
    other = f"syntax = 'proto3'; package {package}; message {short} {{ {fields} }}"
    text = f"syntax = 'proto3'; import 'other.proto'; message M {{ {name} a = 1; }}"
    with pytest.raises(InvalidSchema, match=f"{name} without the fields .* of their usual types is not supported"):
        translated(registered(text, references={"other.proto": other}))


@pytest.mark.parametrize("field", ["string text = 1;", "repeated string value = 1;", "StringValue value = 1;"])
def test_a_wrapper_without_a_scalar_value_is_invalid(field: str) -> None:
    text = f"syntax = 'proto3'; package google.protobuf; message StringValue {{ {field} }}"
    with pytest.raises(InvalidSchema, match="StringValue without a field value of its usual type is not supported"):
        translated(registered(text))


def test_messages_that_use_each_other_many_times_are_limited() -> None:
    messages = [f"message M{n} {{ {' '.join(f'M{n + 1} f{m} = {m};' for m in range(1, 9))} }}" for n in range(9)]
    with pytest.raises(InvalidSchema, match="more than 100,000 types"):
        translated(proto3("\n".join([*messages, "message M9 {}"])))


def test_messages_within_messages_are_limited() -> None:
    messages = [f"message M{n} {{ M{n + 1} f = 1; }}" for n in range(120)]
    with pytest.raises(InvalidSchema, match="nested deeper than 100"):
        translated(proto3("\n".join([*messages, "message M120 {}"])))


@pytest.mark.parametrize("indexes", [(1,), (-1,), (0, 1), (0, 0, 0)])
def test_message_indexes_of_no_message_are_invalid(indexes: tuple[int, ...]) -> None:
    files = compiled(proto3("message M { message N {} map<string, int32> counts = 1; }"))
    with pytest.raises(InvalidValue, match="no message with the message indexes"):
        files.at(indexes)


def test_groups_and_entries_of_maps_are_not_counted_by_message_indexes() -> None:
    body = "optional group G = 1 {} map<string, int32> counts = 2; message N {}"
    assert compiled(proto2(f"message M {{ {body} }}")).at((0, 0)).full_name == "M.N"
