"""Protobuf values: the messages of a schema, their schemas and fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from sink_job.api.enums import OutputFormat, SchemaIdLocation
from sink_job.arrow import columnar
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.protobuf.converter import ProtobufConverter, ProtobufRowDecoder, compiled, decoder_of
from sink_job.protobuf.to_connect import connect_schema
from sink_job.records.fields import MISSING
from tests.unit.avro.avro_data import Table, texts
from tests.unit.protobuf.protobuf_data import (
    LINE,
    SOURCE,
    classes,
    convert,
    converter,
    in_wire_format,
    message,
    proto3,
    registered,
    set_text,
)


@pytest.fixture(params=["column-wise", "row-wise"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each behaviour holds in both ways of decoding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", 0 if request.param == "column-wise" else 1 << 60)
        yield


def line(a: int, b: str | None = None) -> bytes:
    value = message(LINE)
    value.a = a
    if b is not None:
        value.b = b
    return in_wire_format(value.SerializeToString())


# -- projection --------------------------------------------------------------------------------------------------------


def test_values_of_any_message_are_written_under_another_schema() -> None:
    old = proto3("message N { int32 n = 1; } message M { int32 a = 1; }")
    new = msgspec.structs.replace(proto3("message M { int64 a = 1; optional string b = 2; }"), id="2")
    found = converter(old, new)
    values = pa.array([in_wire_format(b"\x08\5", indexes=b"\2\2"), in_wire_format(b"\x08\7\x12\1x", 2)], pa.binary())
    target = connect_schema(compiled(new).named("M"), 2)
    assert found.project(values, SOURCE, target).to_pylist() == [b'{"a":5,"b":null}', b'{"a":7,"b":"x"}']


# -- schemas and messages ----------------------------------------------------------------------------------------------

SEVERAL = proto3(
    """
    package x;
    message A { map<string, int32> counts = 1; message C { int32 c = 1; } message D { int32 d = 1; } }
    message B { int32 b = 1; }
    """
)


@pytest.mark.parametrize(
    ("indexes", "data", "text", "name"),
    [
        (b"\0", b"", b'{"counts":{}}', "A"),
        (b"\2\2", b"\x08\5", b'{"b":5}', "B"),
        (b"\4\0\0", b"\x08\5", b'{"c":5}', "C"),
        (b"\4\0\2", b"\x08\5", b'{"d":5}', "D"),
    ],
)
def test_message_indexes_choose_the_message(indexes: bytes, data: bytes, text: bytes, name: str) -> None:
    found = convert(converter(SEVERAL), [in_wire_format(data, indexes=indexes)])
    assert texts(found) == [text]
    assert found.schemas is not None
    assert [schema.name for schema in found.schemas.schemas] == [name]


def test_each_message_of_a_schema_is_a_schema_of_its_records() -> None:
    values = [
        in_wire_format(b""),
        in_wire_format(b"", indexes=b"\2\2"),
        None,
        in_wire_format(b""),
        b"",
        in_wire_format(b"", indexes=b"\2\6"),
    ]
    found = convert(converter(SEVERAL), values)
    assert found.schemas is not None
    assert found.schemas.codes.tolist() == [0, 1, -1, 0, -1, -1]
    assert [row for row, _ in found.rejected] == [4, 5]
    assert found.rejected[1][1] == "schema 1: the schema has no message with the message indexes [3]"


def test_message_indexes_can_be_in_a_header_behind_the_guid() -> None:
    guid = "00000000-0000-0000-0000-000000000007"
    table = Table({guid: SEVERAL})
    wire_format = WireFormat(Layout.CONFLUENT, SchemaIdLocation.EITHER, chooses_message=True)
    found = ProtobufConverter((), SchemaSettings(table, wire_format))
    header = {"key": "__value_schema_id", "value": b"\1" + bytes(15) + b"\7\2\2"}
    headers = pa.array([[header], []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    values = pa.array([b"\x08\5", in_wire_format(b"")], pa.binary())
    converted = found.convert(values, protobuf_source(headers))
    assert converted.unresolved == [(1, "1")]
    assert texts(converted)[0] == b'{"b":5}'


def protobuf_source(headers: pa.ListArray) -> Any:
    return type(SOURCE)("t", headers)


def test_a_schema_of_another_language_is_rejected() -> None:
    schema = RegisteredSchema("1", "AVRO", '"long"')
    ((_, why),) = convert(converter(schema), [in_wire_format(b"")]).rejected
    assert why == "schema 1 is AVRO, but format.converter is Protobuf"


def test_a_text_that_does_not_compile_is_a_data_error_of_its_records() -> None:
    found = convert(converter(registered("message M {", 2), LINE), [in_wire_format(b"", 2), line(1)])
    assert [(row, why.partition(" valid: ")[0]) for row, why in found.rejected] == [
        (0, "schema 2 cannot be used: its text is not")
    ]
    assert texts(found)[1] == b'{"a":1,"b":null}'


def test_a_schema_without_a_message_is_rejected() -> None:
    ((_, why),) = convert(converter(registered("syntax = 'proto3'; enum E { A = 0; }")), [in_wire_format(b"")]).rejected
    assert why == "schema 1 cannot be used: it has no message"


def test_with_bytes_output_the_values_are_as_they_came() -> None:
    values = [line(1), in_wire_format(b"\x08"), None]
    found = convert(converter(LINE, output=OutputFormat.BYTES), values)
    assert texts(found) == [line(1), None, None] or found.nulls is not None
    assert found.values[0].as_py() == line(1)
    assert [row for row, _ in found.rejected] == [1]


def test_an_empty_value_has_no_wire_format_and_a_tombstone_no_value() -> None:
    found = convert(converter(LINE), [None, b""])
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, False]
    assert [row for row, _ in found.rejected] == [1]


def test_an_empty_message_has_the_default_of_each_field() -> None:
    assert texts(convert(converter(LINE), [in_wire_format(b"")])) == [b'{"a":0,"b":null}']


def test_a_wrapper_as_the_whole_message_is_its_value() -> None:
    text = "syntax = 'proto3'; package google.protobuf; message StringValue { string value = 1; }"
    assert texts(convert(converter(registered(text)), [in_wire_format(b"\x0a\1x"), in_wire_format(b"")])) == [
        b'"x"',
        b'""',
    ]


# -- fields ------------------------------------------------------------------------------------------------------------


def test_fields_are_those_of_the_schema() -> None:
    schema = proto3(
        "message M { int32 a = 1; optional string b = 2; N n = 3; oneof k { int32 o = 4; } } message N { int32 x = 1; }"
    )
    names = ("a", "b", "n.x", "k_0.o", "o", "missing")
    values = [set_text(message(schema), text) for text in ("a: 1 b: 'x' n { x: 2 } o: 3", "")]
    found = convert(converter(schema, fields=names), [in_wire_format(each.SerializeToString()) for each in values])
    assert found.fields == {
        "a": [1, 0],
        "b": ["x", None],
        "n.x": [2, None],
        "k_0.o": [3, None],
        "o": [MISSING, MISSING],
        "missing": [MISSING, MISSING],
    }


def test_fields_are_the_same_by_column() -> None:
    names = ("a", "n.x", "missing")
    schema = proto3("message M { int32 a = 1; N n = 2; } message N { int32 x = 1; }")
    value = in_wire_format(set_text(message(schema), "a: 1 n { x: 2 }").SerializeToString())
    found = convert(converter(schema, fields=names), [value] * 20)
    assert found.fields == {"a": [1] * 20, "n.x": [2] * 20, "missing": [MISSING] * 20}


def test_the_whole_value_is_no_field_by_column() -> None:
    schema = proto3("message M { int32 a = 1; }")
    found = convert(converter(schema, fields=("",)), [in_wire_format(b"\x08\1")] * 20)
    assert found.fields == {"": [{"a": 1}] * 20}


# -- without wire format -----------------------------------------------------------------------------------------------


def test_bare_values_have_the_message_that_is_named() -> None:
    decoder = decoder_of(SEVERAL, "x.B", ("b",), DEFAULT_OPTIONS)
    found = decoder.decode(pa.array([b"\x08\5"], pa.binary()))
    assert (found.texts.to_pylist(), found.fields) == ([b'{"b":5}'], {"b": [5]})
    assert decoder_of(SEVERAL, "x.A.D", (), DEFAULT_OPTIONS).schema.name == "D"
    assert decoder_of(SEVERAL, None, (), DEFAULT_OPTIONS).schema.name == "A"


def test_a_converter_without_wire_format_has_the_message_of_its_settings() -> None:
    settings = SchemaSettings(Table({SEVERAL.id: SEVERAL}), bare_values=SEVERAL.id, message="x.B")
    found = convert(ProtobufConverter(("b",), settings), [b"\x08\5", None, b"\x08"])
    assert (texts(found)[0], found.fields["b"][0]) == (b'{"b":5}', 5)
    assert [row for row, _ in found.rejected] == [2]


def test_values_of_connect_are_read_for_projection() -> None:
    descriptor = compiled(SEVERAL).at((1,))
    rows = ProtobufRowDecoder(descriptor, connect_schema(descriptor), (), DEFAULT_OPTIONS)
    assert list(rows.values(pa.array([b"\x08\5", b""], pa.binary()))) == [{"b": 5}, {"b": 0}]


@pytest.mark.parametrize("name", ["B", "x.E", "", "google.protobuf.Timestamp"])
def test_a_message_that_the_schema_lacks_is_invalid(name: str) -> None:
    with pytest.raises(InvalidSchema, match=f"schema 1 cannot be used: it has no message {name}"):
        decoder_of(SEVERAL, name, (), DEFAULT_OPTIONS)


def test_the_test_writes_maps_as_protobuf_has_them() -> None:
    assert classes(SEVERAL)["x.A"]().counts == {}
