"""The messages that ptars gets: the same binary form, and only types that are read column-wise."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from sink_job.arrow.columnar import MAX_DEPTH, NotColumnar
from sink_job.connect.schema import RegisteredSchema
from sink_job.protobuf import column_types
from sink_job.protobuf.column_types import columns_of, has_required, reading_message
from sink_job.protobuf.compiler import compile_schema
from sink_job.protobuf.files import ProtobufFiles, message_class
from tests.unit.protobuf.protobuf_data import proto2, proto3


def descriptor(schema: RegisteredSchema) -> Descriptor:
    return ProtobufFiles(compile_schema(schema)).at((0,))


ALL = proto3(
    """
    message M {
      string text = 9; E symbol = 2; repeated N many = 5; optional int64 maybe = 3; map<string, N> by_name = 7;
      oneof kind { bytes x = 11; N y = 4; }
    }
    message N { double d = 1; N2 inner = 2; }
    message N2 { bool b = 1; }
    enum E { A = 0; B = 5; }
    """
)


def test_the_columns_are_in_the_order_of_the_numbers() -> None:
    assert [field.name for field in columns_of(descriptor(ALL))] == [
        *("symbol", "maybe", "y", "many", "by_name", "text", "x")
    ]


def test_the_reading_message_has_the_same_numbers_in_the_same_order() -> None:
    message = descriptor(ALL)
    reading = reading_message(message)
    assert [field.number for field in columns_of(reading)] == [field.number for field in columns_of(message)]
    assert [field.name for field in columns_of(reading)] == [f"f{position}" for position in range(7)]


def test_data_of_the_message_are_read_as_the_reading_message() -> None:
    message = descriptor(ALL)
    written = message_class(message)(text="ä", symbol=5, maybe=0, x=b"")
    written.many.add(d=1.5).inner.b = True
    written.by_name.add(key="k").value.d = 2.5
    read = message_class(reading_message(message)).FromString(written.SerializeToString())
    assert (read.f5, read.f0, read.f1, read.f6) == ("ä".encode(), 5, 0, b"")
    assert (read.f3[0].f0, read.f3[0].f1.f0) == (1.5, True)
    assert (read.f4[0].f0, read.f4[0].f1.f0) == (b"k", 2.5)
    assert [read.HasField(name) for name in ("f1", "f2", "f6")] == [True, False, True]


def test_texts_become_bytes_and_enums_numbers_because_both_are_checked_later() -> None:
    reading = reading_message(descriptor(ALL))
    kinds = {field.name: field.type for field in reading.fields}
    assert (kinds["f0"], kinds["f5"]) == (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_BYTES)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (proto3("message M { M next = 1; }"), "recursive or deep"),
        (proto3("message M { N n = 1; } message N { repeated M m = 1; }"), "recursive or deep"),
        (proto3("message M {}"), "a message has no fields"),
        (proto3("message M { N n = 1; } message N {}"), "a message has no fields"),
        (
            proto2("message M { repeated NEntry n = 1; } message NEntry { optional int32 key = 1 [default = 5]; "
                   "optional int32 value = 2; }"),
            "an entry of a map has a default",
        ),
    ],
)  # fmt: skip
def test_another_type_is_not_read_column_wise(schema: RegisteredSchema, reason: str) -> None:
    with pytest.raises(NotColumnar, match=reason):
        reading_message(descriptor(schema))


def nested(levels: int) -> RegisteredSchema:
    inner = "int32 x = 1;"
    for number in range(levels):
        inner = f"message N{number} {{ {inner} }} N{number} n = 1;"
    return proto3(f"message M {{ {inner} }}")


def test_messages_are_nested_up_to_the_maximum() -> None:
    reading_message(descriptor(nested(MAX_DEPTH)))
    with pytest.raises(NotColumnar, match="recursive or deep"):
        reading_message(descriptor(nested(MAX_DEPTH + 1)))


def test_the_columns_of_inner_messages_count(monkeypatch: pytest.MonkeyPatch) -> None:
    message = descriptor(proto3("message M { N a = 1; N b = 2; } message N { int32 x = 1; int32 y = 2; }"))
    monkeypatch.setattr(column_types, "MAX_COLUMNS", 6)
    reading_message(message)
    monkeypatch.setattr(column_types, "MAX_COLUMNS", 5)
    with pytest.raises(NotColumnar, match="too many columns"):
        reading_message(message)


def test_a_required_field_is_found_in_inner_messages() -> None:
    assert has_required(descriptor(proto2("message M { optional N n = 1; } message N { required int32 x = 1; }")))
    assert has_required(descriptor(proto2("message M { required int32 x = 1; }")))
    assert not has_required(descriptor(ALL))
