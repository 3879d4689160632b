"""Protobuf schemas with messages that Google's protobuf writes, which is independent of the converter's descriptors."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from sink_job.api.enums import OutputFormat
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, JsonOptions
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.protobuf.compiler import compile_schema
from sink_job.protobuf.converter import ProtobufConverter
from tests.unit.avro.avro_data import Table, texts

SOURCE = BatchSource("t")


def registered(text: str, schema_id: int | str = 1, references: dict[str, str] | None = None) -> RegisteredSchema:
    others = tuple(SchemaReference(name, name, 1, of) for name, of in (references or {}).items())
    return RegisteredSchema(str(schema_id), "PROTOBUF", text, others)


def proto3(body: str, *imports: str) -> RegisteredSchema:
    """A schema of proto3 whose messages are `body`."""
    lines = ["syntax = 'proto3';", *(f"import '{name}';" for name in imports), body]
    return registered("\n".join(lines))


def proto2(body: str) -> RegisteredSchema:
    return registered(f"syntax = 'proto2';\n{body}")


@cache
def classes(schema: RegisteredSchema) -> dict[str, Any]:
    """The classes of the messages of a schema, by full name, as Google's protobuf has them."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compile_schema(schema)).file:
        pool.AddSerializedFile(file.SerializeToString())
    found: dict[str, Any] = message_factory.GetMessageClassesForFiles([file.name], pool)
    return found


def message(schema: RegisteredSchema, name: str = "M") -> Any:
    """An empty message."""
    return classes(schema)[name]()


def in_wire_format(data: bytes, schema_id: int = 1, indexes: bytes = b"\0") -> bytes:
    return b"\0" + schema_id.to_bytes(4) + indexes + data


def converter(
    *schemas: RegisteredSchema,
    fields: tuple[str, ...] = (),
    output: OutputFormat = OutputFormat.JSON,
    options: JsonOptions = DEFAULT_OPTIONS,
) -> ProtobufConverter:
    table = Table({schema.id: schema for schema in schemas})
    wire_format = WireFormat(Layout.CONFLUENT, chooses_message=True)
    return ProtobufConverter(fields, SchemaSettings(table, wire_format, output=output, options=options))


def convert(found: ProtobufConverter, values: list[bytes | None]) -> Converted:
    return found.convert(pa.array(values, pa.binary()), SOURCE)


def convert_all(schema: RegisteredSchema, messages: list[Any], options: JsonOptions = DEFAULT_OPTIONS) -> Converted:
    """Converts messages of the first type of a schema."""
    return convert(converter(schema, options=options), [in_wire_format(each.SerializeToString()) for each in messages])


LINE = proto3("message M { int64 a = 1; optional string b = 2; }")


def set_text(value: Any, text: str) -> Any:
    """Parses Protobuf's text format into a message. Not for fields with names of its attributes."""
    return text_format.Parse(text, value)


def written(schema: RegisteredSchema, text: str, options: JsonOptions = DEFAULT_OPTIONS) -> Any:
    """The JSON of the message M with the content `text` in Protobuf's text format."""
    value = set_text(message(schema), text)
    found = convert_all(schema, [value, value], options)
    assert found.rejected == []
    first, second = texts(found)
    assert first == second
    return json.loads(first or b"")


def reason(schema: RegisteredSchema, data: bytes) -> str:
    """The reason for which a message is rejected, alone among others."""
    found = convert(converter(schema), [in_wire_format(b""), in_wire_format(data), in_wire_format(b"")])
    assert [row for row, _ in found.rejected] == [1]
    return found.rejected[0][1]
