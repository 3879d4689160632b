"""A synthetic log whose values have a schema, and drivers that resolve its ids with a real registry."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, Final

import cbor2
import fastavro
import msgpack
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from devtools.schema_registry.server import SchemaRegistryServer
from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.registry.bare_values import BareValueSchema, bare_value_schema
from sink_job.registry.base import SchemaRegistry
from tests.support.registry import registry_client
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.synthetic_log import SyntheticLog

SUBJECT: Final = "log-value"
UNKNOWN: Final = 9
"""An id that the registry does not know until a test registers its schema."""
TWIN: Final = 8
"""An id whose schema is equal to the one with the id 1."""
OPTIONAL: Final[dict[int, str]] = {1: "", 2: "seats", UNKNOWN: "gate", TWIN: ""}
"""The field that the schema with this id has in addition to `partition`, `offset` and `kind`."""
KEY_ID: Final = 7
"""The schema id of all keys."""
KEY_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "example.Key",
    "fields": [{"name": "id", "type": "long"}],
}
KEY_PROTOBUF: Final = 'syntax = "proto3"; message Other {} message Key { int64 id = 1; }'
TRANSFORMS: Final[list[dict[str, Any]]] = [
    {"type": "Filter", "when": {"field": "offset", "values": ["1"]}},
    {"type": "Cast", "casts": {"partition": "Text"}},
    {"type": "Insert", "field": "topic", "source": "Topic"},
    {"type": "Rename", "renames": {"kind": "of"}, "when": {"header": "absent", "not": True}},
]
"""The transforms of a log with `transformed`."""
_VERSIONS: Final = {1: 1, 2: 2, UNKNOWN: 3}
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_HEAD: Final = (("partition", "long"), ("offset", "long"), ("kind", "string"))
_CONNECT: Final = {"long": "int64", "string": "string"}
_JSON: Final = {"long": "integer", "string": "string"}
_PROTOBUF: Final = {"long": "int64", "string": "string"}
_PROTOBUF_TYPES: Final = {"long": FieldDescriptorProto.TYPE_INT64, "string": FieldDescriptorProto.TYPE_STRING}


@dataclass(frozen=True)
class SchemaLog(SyntheticLog):
    """Values in the form that `converter` reads. The schema ids of consecutive offsets are `ids`, over and over.

    ConnectJson has the same schemas without a registry, Cbor and MessagePack have the same values without schemas.
    Without `in_wire_format`, values have no wire format, and the manifest has the schema of the first id. With `keyed`,
    paths have a field of the keys, a header, and the name of the schema. Keys are Avro, or as `key_converter` says
    Protobuf. `output` is the format of the objects. With `envelope`, they have an envelope; without `keyed`, keys are
    bytes, and some records have neither a key nor headers. With `transformed`, transforms change values and leave some
    records out."""

    converter: ConverterType = ConverterType.AVRO
    ids: tuple[int, ...] = (1, 2)
    in_wire_format: bool = True
    keyed: bool = False
    key_converter: ConverterType = ConverterType.AVRO
    output: OutputFormat = OutputFormat.JSON
    envelope: bool = False
    transformed: bool = False
    padding: int = 0
    """Further bytes of a record, which do not compress well."""

    def id(self, offset: int) -> int:
        """The schema id of a record."""
        return self.ids[offset % len(self.ids)]

    def value(self, partition: int, offset: int) -> bytes:
        schema_id, item = self.id(offset), self.item(partition, offset)
        text = json.dumps(item).encode()
        match self.converter:
            case ConverterType.AVRO:
                out = io.BytesIO()
                fastavro.schemaless_writer(out, avro_schema(schema_id), item)
                return self._in_wire_format(schema_id, out.getvalue())
            case ConverterType.PROTOBUF:
                return self._in_wire_format(
                    schema_id, (b"\2\2" if self.in_wire_format else b"") + _protobuf(schema_id, item)
                )
            case ConverterType.JSON_SCHEMA:
                return self._in_wire_format(schema_id, text)
            case ConverterType.CONNECT_JSON:
                return json.dumps({"schema": connect_schema(schema_id), "payload": item}).encode()
            case ConverterType.CBOR:
                return cbor2.dumps(item)
            case ConverterType.MESSAGE_PACK:
                packed: bytes = msgpack.packb(item)
                return packed
        return text

    def _in_wire_format(self, schema_id: int, payload: bytes) -> bytes:
        return _in_wire_format(schema_id, payload) if self.in_wire_format else payload

    def item(self, partition: int, offset: int) -> dict[str, object]:
        """The content of a record."""
        item: dict[str, object] = {"partition": partition, "offset": offset, "kind": f"k{offset % self.paths}"}
        if self.padding:
            item["kind"] = Random(offset).randbytes(self.padding // 2).hex()
        name = OPTIONAL[self.id(offset)]
        return item | {name: None if offset % 3 else offset} if name else item

    def read(self, partition: int, offset: int) -> object:
        """The content of a record as an independent reader finds it: fastavro, Google's protobuf, or Python's JSON. For
        converters with schemas."""
        value, schema_id = replace(self, in_wire_format=True).value(partition, offset), self.id(offset)
        if self.converter is ConverterType.AVRO:
            return fastavro.schemaless_reader(io.BytesIO(value[5:]), avro_schema(schema_id), None)
        if self.converter is ConverterType.PROTOBUF:
            read = flight_class(schema_id).FromString(value[7:])
            return {field.name: _get(read, field) for field in read.DESCRIPTOR.fields}
        if self.converter is ConverterType.JSON_SCHEMA:
            return json.loads(value[5:])
        return json.loads(value)["payload"]

    def key(self, offset: int) -> bytes:
        """The key of a record with the field `id`, and the schema id `KEY_ID`."""
        if self.key_converter is ConverterType.PROTOBUF:
            return _in_wire_format(KEY_ID, b"\2\2\x08" + bytes([offset % 2]))
        out = io.BytesIO()
        fastavro.schemaless_writer(out, KEY_SCHEMA, {"id": offset % 2})
        return _in_wire_format(KEY_ID, out.getvalue())

    def batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for batch in super().batches(tp, start, end):
            offsets = batch.column("offset").to_pylist()
            keys, headers = zip(*map(self.key_and_headers, offsets), strict=True)
            with_keys = batch.append_column("key", pa.array(keys, pa.binary()))
            with_headers = with_keys.append_column("headers", pa.array(headers, _HEADERS))
            yield with_headers.append_column("timestamp_type", pa.array([n % 2 for n in offsets], pa.int8()))

    def key_and_headers(self, offset: int) -> tuple[bytes | None, list[dict[str, object]] | None]:
        """The key and the headers of a record."""
        if self.envelope and not self.keyed and offset % 2:
            return None, None
        return self.key(offset), [{"key": "tenant", "value": b"t%d" % (offset % 3)}]


def _in_wire_format(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + payload


def _protobuf(schema_id: int, item: dict[str, object]) -> bytes:
    given = {name: value for name, value in item.items() if value is not None}
    data: bytes = flight_class(schema_id)(**given).SerializeToString()
    return data


def _get(message: Any, field: Any) -> object:
    return None if field.has_presence and not message.HasField(field.name) else getattr(message, field.name)


@cache
def flight_class(schema_id: int) -> Any:
    """The class of the messages with this schema, as Google's protobuf has it."""
    file = FileDescriptorProto(name=f"flight{schema_id}.proto", package="example", syntax="proto3")
    message = file.message_type.add(name="Flight")
    for number, (name, of) in enumerate(_HEAD, 1):
        message.field.add(name=name, number=number, label=1, type=_PROTOBUF_TYPES[of])
    if OPTIONAL[schema_id]:
        message.field.add(name=OPTIONAL[schema_id], number=4, label=1, type=3, proto3_optional=True, oneof_index=0)
        message.oneof_decl.add(name="_optional")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("example.Flight"))


def protobuf_schema(schema_id: int, before: str = 'import "airport.proto"; message Leg { Airport start = 1; }') -> str:
    """The same schema as the text of a .proto file, in which it is the second message. `before` is what precedes it."""
    names = [f"{_PROTOBUF[of]} {name} = {number};" for number, (name, of) in enumerate(_HEAD, 1)]
    if OPTIONAL[schema_id]:
        names.append(f"optional int64 {OPTIONAL[schema_id]} = 4;")
    return f"""
        syntax = "proto3";
        package example;
        {before}
        message Flight {{ {" ".join(names)} }}
    """


AIRPORT: Final = 'syntax = "proto3"; package example; message Airport { string code = 1; }'
"""The file that the Protobuf schemas import."""


def avro_schema(schema_id: int) -> dict[str, Any]:
    """The Avro schema with this id."""
    fields: list[dict[str, Any]] = [{"name": name, "type": of} for name, of in _HEAD]
    if OPTIONAL[schema_id]:
        fields.append({"name": OPTIONAL[schema_id], "type": ["null", "long"], "default": None})
    return {"type": "record", "name": "example.Flight", "fields": fields}


def connect_schema(schema_id: int) -> dict[str, Any]:
    """The same schema in Connect's envelope."""
    fields: list[dict[str, Any]] = [{"field": name, "type": _CONNECT[of], "optional": False} for name, of in _HEAD]
    if OPTIONAL[schema_id]:
        fields.append({"field": OPTIONAL[schema_id], "type": "int64", "optional": True})
    version = _VERSIONS[schema_id]
    return {"type": "struct", "name": "example.Flight", "version": version, "optional": False, "fields": fields}


def json_schema(schema_id: int) -> dict[str, Any]:
    """The same schema as a JSON Schema."""
    properties: dict[str, Any] = {name: {"type": _JSON[of]} for name, of in _HEAD}
    if OPTIONAL[schema_id]:
        properties[OPTIONAL[schema_id]] = {"oneOf": [{"type": "null"}, {"type": "integer"}]}
    required = [name for name, _ in _HEAD]
    return {"title": "Flight", "type": "object", "properties": properties, "required": required}


def seed(server: SchemaRegistryServer, log: SchemaLog, *ids: int) -> None:
    """Registers the schemas with these ids, by default those of the log that are not unknown."""
    for schema_id in ids or sorted({*log.ids} - {UNKNOWN}):
        register(server, log, schema_id, like=schema_id)
    if log.keyed:
        _register_key(server, log)


def _register_key(server: SchemaRegistryServer, log: SchemaLog) -> None:
    if log.key_converter is ConverterType.PROTOBUF:
        server.seed("log-key", 1, KEY_ID, KEY_PROTOBUF, language="PROTOBUF")
    else:
        server.seed("log-key", 1, KEY_ID, KEY_SCHEMA)


def register(server: SchemaRegistryServer, log: SchemaLog, schema_id: int, *, like: int) -> None:
    """Registers under the id `schema_id` the schema that `SchemaLog` has for the id `like`."""
    version = _VERSIONS[schema_id]
    if log.converter is ConverterType.AVRO:
        server.seed(SUBJECT, version, schema_id, avro_schema(like))
    elif log.converter is ConverterType.JSON_SCHEMA:
        server.seed(SUBJECT, version, schema_id, json_schema(like), language="JSON")
    elif log.converter is ConverterType.PROTOBUF:
        if schema_id == 1:
            server.seed("airport.proto", 1, 100, AIRPORT, language="PROTOBUF")
        reference = ("airport.proto", "airport.proto", 1)
        server.seed(SUBJECT, version, schema_id, protobuf_schema(like), language="PROTOBUF", references=[reference])


def bare_value_text(log: SchemaLog) -> str:
    """The schema of a log without wire format."""
    if log.converter is ConverterType.PROTOBUF:
        return protobuf_schema(log.ids[0], before="message Leg {}")
    schema = avro_schema if log.converter is ConverterType.AVRO else json_schema
    return json.dumps(schema(log.ids[0]))


def schemas_of(log: SchemaLog, registry: SchemaRegistry | None) -> SchemaRegistry | None:
    """The schemas of a log as its driver has them. `registry` is the client of the registry."""
    if log.in_wire_format:
        return registry if log.keyed or log.converter.needs_registry else None
    sink = load_sink(manifest("archive", "http://127.0.0.1:9", **settings(log, "http://127.0.0.1:9")))
    found = bare_value_schema(sink.spec.format)
    assert found is not None
    return BareValueSchema(found, registry if log.keyed else None)


def settings(
    log: SchemaLog, url: str, compatibility: str = "Separate", unknown_ids: str = "Fail", **given: Any
) -> dict[str, Any]:
    """The settings of a sink of the log, for `SinkFixture`; `given` are further ones."""
    chosen: dict[str, Any] = {"converter": str(log.converter), "output": str(log.output)}
    if log.envelope:
        chosen["envelope"] = True
    if log.output.has_datums:
        is_avro = log.output is OutputFormat.AVRO
        chosen |= {"avro": {"block": "1Ki"}} if is_avro else {"parquet": {"rowGroup": "1Mi"}}
    if not log.in_wire_format:
        chosen["schema"] = {"text": bare_value_text(log)}
        if log.converter is ConverterType.PROTOBUF:
            chosen["schema"]["message"] = "example.Flight"
    elif log.converter.needs_registry:
        chosen["registry"] = {"url": [url], "unknownIds": unknown_ids}
    spec: dict[str, Any] = {"format": chosen}
    if log.keyed:
        registry = {"url": [url], "unknownIds": unknown_ids}
        chosen |= {"keyConverter": str(log.key_converter), "registry": registry}
        fields = ["$key.id", "$header.tenant"]
        spec["partitioner"] = {"type": "Field", "fields": fields, "schemaName": "Prefix"}
    if log.converter.has_schemas and log.in_wire_format:
        spec["schemaCompatibility"] = compatibility
    if log.transformed:
        spec["transforms"] = TRANSFORMS
    return {"flush_size": 10, "spec": spec, **given}


def run(sink_fixture: SinkFixture, log: SchemaLog, goal: StopCondition, url: str, **given: Any) -> None:
    """Runs the sink with a client of the registry at `url`. Another process can call it."""
    context = given.pop("context", {})
    with registry_client(urls=(url,)) as registry:
        context = {"registry": schemas_of(log, registry), **context}
        sink_fixture.run(log, goal, context=context, **settings(log, url, **given))
