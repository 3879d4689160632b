"""Protobuf messages as values of Connect, for transforms."""

from __future__ import annotations

import pyarrow as pa

from sink_job.connect.json_encoder import json_text
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.transforms.decoded.protobuf_values import whole_value_converter
from sink_job.transforms.decoded.whole_values import WHOLE
from tests.unit.avro.avro_data import Table, texts
from tests.unit.protobuf.protobuf_data import LINE, SOURCE, converter, in_wire_format, message, proto3


def whole(schema: RegisteredSchema, *values: bytes) -> Converted:
    table = Table({schema.id: schema})
    found = whole_value_converter(SchemaSettings(table, WireFormat(Layout.CONFLUENT, chooses_message=True)))
    return found.convert(pa.array(values, pa.binary()), SOURCE)


def test_values_are_those_that_the_converter_writes() -> None:
    value = message(LINE)
    value.a = 7
    data = in_wire_format(value.SerializeToString())
    found, written = whole(LINE, data), converter(LINE).convert(pa.array([data], pa.binary()), SOURCE)
    assert (found.schemas, written.schemas) != (None, None)
    assert found.schemas is not None
    assert written.schemas is not None
    assert found.schemas.schemas == written.schemas.schemas
    assert [json_text(found.schemas.schemas[0], each) for each in found.fields[WHOLE]] == texts(written)


def test_each_record_chooses_its_message() -> None:
    schema = proto3("message A { int32 a = 1; } message B { int32 b = 1; }")
    found = whole(schema, in_wire_format(b"\x08\5"), in_wire_format(b"\x08\7", indexes=b"\2\2"))
    assert found.fields[WHOLE] == [{"a": 5}, {"b": 7}]
    assert found.schemas is not None
    assert [each.name for each in found.schemas.schemas] == ["A", "B"]


def test_invalid_messages_and_recursive_ones_are_rejected() -> None:
    schema = proto3("message A { int32 a = 1; } message N { N next = 1; }")
    found = whole(schema, in_wire_format(b"\x08"), in_wire_format(b"", indexes=b"\2\2"))
    assert [row for row, _ in found.rejected] == [0, 1]
    assert "not a valid Protobuf message" in found.rejected[0][1]
    assert "it is recursive" in found.rejected[1][1]


def test_a_bare_value_has_the_message_of_the_manifest() -> None:
    schema = proto3("message A { int32 a = 1; } message B { int32 b = 1; }")
    settings = SchemaSettings(Table({"1": schema}), bare_values="1", message="B")
    found = whole_value_converter(settings).convert(pa.array([b"\x08\7"], pa.binary()), SOURCE)
    assert found.fields[WHOLE] == [{"b": 7}]
