"""Protobuf schema texts: what compiles, with references and well-known imports, and the reasons of what does not."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.protobuf.compiler import compile_schema
from sink_job.protobuf.files import ProtobufFiles
from tests.unit.protobuf.protobuf_data import proto3, registered


def files(descriptor_set: bytes) -> list[str]:
    return [file.name for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file]


@pytest.mark.parametrize(
    "name",
    [
        "google/protobuf/timestamp.proto",
        "google/protobuf/wrappers.proto",
        "google/protobuf/descriptor.proto",
        "google/type/date.proto",
        "google/type/money.proto",
        "confluent/meta.proto",
        "confluent/type/decimal.proto",
    ],
)
def test_a_well_known_file_needs_no_reference(name: str) -> None:
    assert name in files(compile_schema(proto3("message M {}", name)))


def test_a_map_that_is_written_as_a_repeated_message_is_a_map() -> None:
    entry = "message NEntry { option map_entry = true; string key = 1; int32 value = 2; }"
    written = proto3(f"message M {{ repeated NEntry n = 1; message N {{ }} {entry} }}")
    meant = proto3("message M { map<string, int32> n = 1; message N { } }")
    assert messages(written) == messages(meant)
    assert ProtobufFiles(compile_schema(written)).at((0, 0)).name == "N"


def test_a_reference_can_have_such_a_map() -> None:
    entry = "message NEntry { option map_entry = true; string key = 1; int32 value = 2; }"
    other = f"syntax = 'proto3'; message O {{ repeated NEntry n = 1; {entry} }}"
    schema = registered("syntax = 'proto3'; import 'o.proto'; message M { O o = 1; }", references={"o.proto": other})
    assert files(compile_schema(schema))[0] == "o.proto"


def messages(schema: RegisteredSchema) -> list[str]:
    """The messages in the first message."""
    (first, *_) = descriptor_pb2.FileDescriptorSet.FromString(compile_schema(schema)).file[-1].message_type
    return sorted(f"{each.name} {each.options} {each.field}" for each in first.nested_type)


def test_references_are_imported_by_their_names() -> None:
    text = "syntax = 'proto3'; import 'a/b.proto'; message M { x.Inner inner = 1; }"
    inner = "syntax = 'proto3'; package x; import 'c.proto'; message Inner { C c = 1; }"
    found = compile_schema(registered(text, references={"c.proto": "message C {}", "a/b.proto": inner}))
    assert files(found) == ["c.proto", "a/b.proto", "s3sink-root.proto"]


def test_a_reference_replaces_a_well_known_file() -> None:
    own = "syntax = 'proto3'; package google.type; message Date { string text = 1; }"
    text = "import 'google/type/date.proto'; message M { optional google.type.Date date = 1; }"
    found = compile_schema(registered(text, references={"google/type/date.proto": own}))
    assert b"\n\4text" in found


def test_a_text_and_its_references_can_be_descriptors_in_base64() -> None:
    inner, outer = descriptor_pb2.FileDescriptorProto(), descriptor_pb2.FileDescriptorProto()
    inner.name, outer.name = "in.proto", "out.proto"
    inner.message_type.add(name="Inner")
    outer.dependency[:] = ["a/in.proto", "google/protobuf/timestamp.proto", "b.proto"]
    message = outer.message_type.add(name="Outer")
    for number, name in enumerate(["Inner", "google.protobuf.Timestamp", "B"], 1):
        message.field.add(name=f"f{number}", number=number, label=1, type=11, type_name=f".{name}")
    encoded = [base64.b64encode(file.SerializeToString()).decode() for file in (outer, inner)]
    references = {"a/in.proto": encoded[1], "b.proto": "message B {}"}
    found = compile_schema(registered(encoded[0], references=references))
    assert sorted(files(found))[:2] == ["a/in.proto", "b.proto"]
    assert files(found)[-1] == "s3sink-root.proto"


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x08", b"\x0a\1a\x22\0"])
def test_base64_of_anything_else_is_invalid(data: bytes) -> None:
    with pytest.raises(InvalidSchema):
        ProtobufFiles(compile_schema(registered(base64.b64encode(data).decode())))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message M { optional int32 a = 1 }", '1:34: Expected ";".'),
        ("syntax = 'proto3'; message M { N n = 1; }", '1:32: "N" is not defined.'),
        ("import 'x.proto'; message M {}", "x.proto: File not found."),
        ('{"type": "record"}', 'Expected top-level statement (e.g. "message").'),
        ("message M {" * 1_000, "Reached maximum recursion limit for nested messages."),
        ("message M { \0 }", "1:13: Invalid control characters encountered in text."),
        ("\ud800", "its text is not Unicode"),
    ],
)
def test_an_invalid_text_is_rejected_with_the_compilers_first_error(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        compile_schema(registered(text))
    assert reason in str(raised.value)
    assert "/tmp" not in str(raised.value)


@pytest.mark.parametrize("name", ["../x.proto", "/etc/x.proto", "a/../../x.proto", "", "a\0b"])
def test_a_reference_cannot_leave_its_folder(name: str) -> None:
    with pytest.raises(InvalidSchema, match="which is not the path of a file"):
        compile_schema(registered("message M {}", references={name: "message N {}"}))


def test_a_reference_with_a_name_that_is_too_long_is_invalid() -> None:
    with pytest.raises(InvalidSchema, match="the name is too long"):
        compile_schema(registered("message M {}", references={"a" * 5_000: "message N {}"}))


def test_references_whose_names_are_a_folder_and_a_file_are_invalid() -> None:
    with pytest.raises(InvalidSchema, match="which is a folder and a file"):
        compile_schema(registered("message M {}", references={"a": "", "a/b.proto": ""}))
