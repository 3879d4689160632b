"""The messages of a Protobuf schema, by index, position and name."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.schema import RegisteredSchema
from sink_job.protobuf.compiler import compile_schema
from sink_job.protobuf.files import ProtobufFiles, is_map, message_class, real_oneofs, union_name
from tests.unit.protobuf.protobuf_data import proto2, proto3, registered

SCHEMA = registered(
    """
    syntax = 'proto3';
    package example;
    import 'other.proto';
    message B { map<string, int32> counts = 1; message Second { message Inner {} } message First {} }
    message A { oneof kind { int32 x = 1; string y = 2; } optional int32 z = 3; Other other = 4; }
    """,
    references={"other.proto": "syntax = 'proto3'; package example; message Other {}"},
)
GROUP = proto2("message M { optional group G = 1 { optional int32 a = 1; } message N {} }")


def files(schema: RegisteredSchema = SCHEMA) -> ProtobufFiles:
    return ProtobufFiles(compile_schema(schema))


@pytest.mark.parametrize(
    ("indexes", "name"),
    [
        ((0,), "example.B"),
        ((1,), "example.A"),
        ((0, 0), "example.B.Second"),  # the entry of the map comes first and is not counted
        ((0, 1), "example.B.First"),
        ((0, 0, 0), "example.B.Second.Inner"),
    ],
)
def test_message_indexes_count_the_messages_as_they_are_written(indexes: tuple[int, ...], name: str) -> None:
    assert files().selected(indexes).full_name == name


def test_a_group_is_not_counted() -> None:
    assert files(GROUP).selected((0, 0)).full_name == "M.N"


@pytest.mark.parametrize("indexes", [(2,), (-1,), (0, 2), (1, 0), (0, 0, 0, 0)])
def test_message_indexes_without_a_message_are_an_invalid_value(indexes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="the schema has no message with the message indexes"):
        files().selected(indexes)


def test_a_position_counts_all_messages_by_their_full_names() -> None:
    found = [files().selected(position).full_name for position in range(6)]
    assert found == [
        *("example.A", "example.B", "example.B.CountsEntry"),
        *("example.B.First", "example.B.Second", "example.B.Second.Inner"),
    ]


@pytest.mark.parametrize("position", [-1, 6])
def test_a_position_without_a_message_is_an_invalid_value(position: int) -> None:
    with pytest.raises(InvalidValue, match=f"message index {position} of AWS Glue"):
        files().selected(position)


def test_a_simple_name_is_that_of_a_message_in_no_other() -> None:
    assert files().selected("A").full_name == "example.A"
    assert files(GROUP).selected("M").full_name == "M"
    for name in ("First", "example.A", "Other", ""):
        with pytest.raises(InvalidValue, match=f"the schema has no message '{name}' outside of other messages"):
            files().selected(name)


def test_a_full_name_is_that_of_any_message_of_the_schema() -> None:
    assert files().named("example.B.Second.Inner").name == "Inner"


@pytest.mark.parametrize("name", ["A", "example.Other", "example.Gone", ""])
def test_another_full_name_is_an_invalid_schema_that_lists_the_messages(name: str) -> None:
    with pytest.raises(InvalidSchema, match=rf"it has no message {name}; its messages: example\.A, example\.B, "):
        files().named(name)


def test_at_most_ten_messages_are_listed() -> None:
    many = "\n".join(f"message M{number} {{}}" for number in range(11))
    with pytest.raises(InvalidSchema, match=r"M0, M1, M10, M2, .*, M8, …$"):
        files(proto3(many)).named("Gone")


def test_a_schema_without_a_message_is_invalid() -> None:
    with pytest.raises(InvalidSchema, match="it has no message"):
        files(proto3("enum E { A = 0; }"))


def test_a_file_that_is_not_valid_is_named() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="bad.proto", dependency=["gone.proto"])
    file.message_type.add(name="M")
    with pytest.raises(InvalidSchema, match=r"its file bad.proto is not valid"):
        ProtobufFiles(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def test_a_larger_schema_has_a_larger_size() -> None:
    assert files().size > files(proto3("message M {}")).size > 4096


def test_the_entries_of_a_map_keep_their_order() -> None:
    message = message_class(files().at((0,)))()
    for key in ("b", "a", "b"):
        message.counts.add(key=key)
    assert [entry.key for entry in type(message).FromString(message.SerializeToString()).counts] == ["b", "a", "b"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("map<string, int32> f = 1;", True),
        ("repeated Entry f = 1; message Entry { string key = 1; int32 value = 2; }", True),
        ("Entry f = 1; message Entry { string key = 1; int32 value = 2; }", False),
        ("repeated Pair f = 1; message Pair { string key = 1; int32 value = 2; }", False),
        ("repeated Entry f = 1; message Entry { string key = 1; repeated int32 value = 2; }", False),
        ("repeated Entry f = 1; message Entry { string key = 1; int32 value = 2; int32 more = 3; }", False),
        ("repeated int32 f = 1;", False),
    ],
)
def test_a_map_is_recognised_by_its_names_as_by_the_connector(body: str, expected: bool) -> None:
    field = files(proto3(f"message M {{ {body} }}")).at((0,)).fields_by_name["f"]
    assert is_map(field) is expected


def test_an_optional_field_is_no_oneof() -> None:
    oneofs = real_oneofs(files().at((1,)))
    assert [union_name(each) for each in oneofs] == ["kind_0"]
