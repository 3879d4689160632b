"""CPU time of converters and of their JSON lines, in one process on one core: no Kafka, no Spark, no S3.

`python -m bench.converters [--only Avro] [--repeat 5]` prints a table. A batch has about 1 MB, as those of the sink's
reader. Each figure is the best of several turns: other processes on the machine can only make a turn slower.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import cbor2
import fastavro
import msgpack
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bench import data
from sink_job.api.enums import ConverterType
from sink_job.arrow import columnar
from sink_job.codecs.converters import converter_for
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.lines import JsonLines
from sink_job.protobuf.compiler import compile_schema

BATCH_BYTES: Final = 1_000_000
BATCHES: Final = 10
_MEASURED: Final = (
    ConverterType.JSON,
    ConverterType.TEXT,
    ConverterType.BYTES,
    ConverterType.CBOR,
    ConverterType.MESSAGE_PACK,
    ConverterType.AVRO,
    ConverterType.PROTOBUF,
    ConverterType.JSON_SCHEMA,
    ConverterType.CONNECT_JSON,
)
ROW_WISE: Final = "Avro, row-wise"
PROTOBUF_ROW_WISE: Final = "Protobuf, row-wise"


class Row(NamedTuple):
    """A row of the table: a converter, the mean size of its values in bytes, and their rate on one core."""

    converter: str
    size: int
    mb_per_s: float
    k_records_per_s: float
    cpu_s_per_gb: float


SMALL_SCHEMA: Final[list[tuple[str, Any]]] = [
    ("id", "long"),
    ("user", "string"),
    ("active", "boolean"),
    ("price", "double"),
    ("note", ["null", "string"]),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
]
LARGE_SCHEMA: Final[list[tuple[str, Any]]] = [
    *((f"text{n}", "string") for n in range(8)),
    *((f"count{n}", ["null", "long"]) for n in range(6)),
    *((f"rate{n}", "double") for n in range(3)),
    ("state", {"type": "enum", "name": "State", "symbols": ["NEW", "OPEN", "CLOSED"]}),
    ("tags", {"type": "array", "items": "string"}),
    ("attributes", {"type": "map", "values": "string"}),
]
_PROTO: Final = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Value {{ {} }}
enum State {{ NEW = 0; OPEN = 1; CLOSED = 2; }}
"""
SMALL_PROTOBUF: Final = """
int64 id = 1; string user = 2; bool active = 3; double price = 4; optional string note = 5;
google.protobuf.Timestamp at = 6;
"""
LARGE_PROTOBUF: Final = " ".join(
    [
        *(f"string text{n} = {n + 1};" for n in range(8)),
        *(f"optional int64 count{n} = {n + 9};" for n in range(6)),
        *(f"double rate{n} = {n + 15};" for n in range(3)),
        "State state = 18; repeated string tags = 19; map<string, string> attributes = 20;",
    ]
)
JSON_SCHEMA: Final = json.dumps({"title": "Value", "type": "object", "properties": {"n": {"type": "integer"}}})
"""Values are not validated against it: its size has no effect."""


class Table:
    """One schema, whatever the id."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._schema = schema

    def find(self, topic: str, schema_id: str) -> RegisteredSchema:
        return self._schema


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", help="converters whose names start with this")
    arguments.add_argument("--repeat", type=int, default=5)
    given = arguments.parse_args()
    print("| values | converter | B a value | MB/s | k records/s | CPU-s/GB |\n|---|---|---|---|---|---|")
    for size, (name, kind) in itertools.product(("100 B", "1 KB"), _converters()):
        if name.startswith(given.only or ""):
            row = measure(name, kind, large=size == "1 KB", repeat=given.repeat)
            print(
                f"| {size} | {row.converter} | {row.size} | {row.mb_per_s:.0f} | {row.k_records_per_s:.0f} "
                f"| {row.cpu_s_per_gb:.1f} |",
                flush=True,
            )


def _converters() -> list[tuple[str, ConverterType]]:
    return [
        *((kind.value, kind) for kind in _MEASURED),
        (ROW_WISE, ConverterType.AVRO),
        (PROTOBUF_ROW_WISE, ConverterType.PROTOBUF),
    ]


def measure(name: str, kind: ConverterType, *, large: bool, repeat: int) -> Row:
    """Converts the same batches `repeat` times, to JSON lines."""
    columnar.MIN_ROWS = 1 << 60 if name in (ROW_WISE, PROTOBUF_ROW_WISE) else 16
    batches, schemas = batches_of(kind, large=large)
    converter, lines, source = converter_for(kind, (), schemas=schemas), JsonLines(kind), BatchSource("bench")

    def convert() -> None:
        for batch in batches:
            found = converter.convert(batch, source)
            assert not found.rejected, "the values are valid"
            if found.lines is None:
                lines.encode(found.values)

    seconds = min(cpu_seconds(convert) for _ in range(repeat))
    records, size = sum(map(len, batches)), sum(batch.nbytes - 4 * (len(batch) + 1) for batch in batches)
    return Row(name, size // records, size / 1e6 / seconds, records / 1e3 / seconds, seconds / (size / 1e9))


def cpu_seconds(function: Callable[[], None]) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


def batches_of(kind: ConverterType, *, large: bool) -> tuple[list[pa.BinaryArray], SchemaSettings | None]:
    count = BATCH_BYTES // (1_000 if large else 100)
    values: Iterator[bytes] = data.values(1_000 if large else 100)
    value, settings = large_value if large else small_value, None
    if kind in _ENCODERS:
        encode, rng = _ENCODERS[kind], random.Random(1)
        values = (encode(value(rng, number)) for number in itertools.count())
    if kind is ConverterType.AVRO:
        fields = LARGE_SCHEMA if large else SMALL_SCHEMA
        schema = {"type": "record", "name": "Value", "fields": [{"name": name, "type": of} for name, of in fields]}
        settings = SchemaSettings(
            Table(RegisteredSchema("1", "AVRO", json.dumps(schema))), WireFormat(Layout.CONFLUENT)
        )
        values = _avro_values(schema, value)
    if kind is ConverterType.PROTOBUF:
        registered = RegisteredSchema("1", "PROTOBUF", _PROTO.format(LARGE_PROTOBUF if large else SMALL_PROTOBUF))
        settings = SchemaSettings(Table(registered), WireFormat(Layout.CONFLUENT, chooses_message=True))
        values = _protobuf_values(registered, value)
    if kind is ConverterType.JSON_SCHEMA:
        settings = SchemaSettings(Table(RegisteredSchema("1", "JSON", JSON_SCHEMA)), WireFormat(Layout.CONFLUENT))
        values = (b"\0\0\0\0\1" + text for text in values)
    if kind is ConverterType.CONNECT_JSON:
        values = _enveloped(_connect_schema(LARGE_SCHEMA if large else SMALL_SCHEMA), value)
    return [pa.array(list(itertools.islice(values, count)), pa.binary()) for _ in range(BATCHES)], settings


_ENCODERS: Final[dict[ConverterType, Callable[[Any], bytes]]] = {
    ConverterType.CBOR: cbor2.dumps,
    ConverterType.MESSAGE_PACK: msgpack.dumps,
}


def _avro_values(schema: dict[str, Any], value: Callable[[random.Random, int], dict[str, Any]]) -> Iterator[bytes]:
    """Endless values in Confluent's wire format."""
    parsed, rng = fastavro.parse_schema(schema), random.Random(1)
    for number in itertools.count():
        out = io.BytesIO(b"\0\0\0\0\1")
        out.seek(5)
        fastavro.schemaless_writer(out, parsed, value(rng, number))
        yield out.getvalue()


def _protobuf_values(
    schema: RegisteredSchema, value: Callable[[random.Random, int], dict[str, Any]]
) -> Iterator[bytes]:
    """Endless values in Confluent's wire format."""
    rng, kind = random.Random(1), _protobuf_class(schema)
    for number in itertools.count():
        item = value(rng, number)
        if "at" in item:
            seconds, ms = divmod(item["at"], 1000)
            item["at"] = {"seconds": seconds, "nanos": ms * 1_000_000}
        present = {name: each for name, each in item.items() if each is not None}
        yield b"\0\0\0\0\1\0" + kind(**present).SerializeToString()


def _protobuf_class(schema: RegisteredSchema) -> Any:
    """The class of the schema's message, as Google's protobuf has it."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compile_schema(schema)).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Value"))


def _enveloped(schema: dict[str, Any], value: Callable[[random.Random, int], dict[str, Any]]) -> Iterator[bytes]:
    """Endless values in Connect's envelope, as JsonConverter writes them."""
    rng = random.Random(1)
    for number in itertools.count():
        payload = value(rng, number)
        yield json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


def _connect_schema(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The schema of Avro fields in Connect's envelope."""
    return {
        "type": "struct",
        "name": "Value",
        "optional": False,
        "fields": [{"field": name, **_connect_type(of)} for name, of in fields],
    }


def _connect_type(avro: Any) -> dict[str, Any]:
    match avro:
        case ["null", other]:
            return {**_connect_type(other), "optional": True}
        case {"logicalType": "timestamp-millis"}:
            logical = {"name": "org.apache.kafka.connect.data.Timestamp", "version": 1}
            return {"type": "int64", "optional": False, **logical}
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _connect_type(items), "optional": False}
        case {"type": "map", "values": values}:
            keys = _connect_type("string")
            return {"type": "map", "keys": keys, "values": _connect_type(values), "optional": False}
        case {"type": "enum"}:
            return _connect_type("string")
    return {"type": {"long": "int64"}.get(avro, avro), "optional": False}


def small_value(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "user": _text(rng, 22),
        "active": number % 2 == 0,
        "price": rng.random() * 100,
        "note": None if number % 4 == 0 else _text(rng, 62),
        "at": data.FIRST_MS + number,
    }


def large_value(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        **{f"text{n}": _text(rng, 105) for n in range(8)},
        **{f"count{n}": None if (number + n) % 4 == 0 else rng.getrandbits(40) for n in range(6)},
        **{f"rate{n}": rng.random() for n in range(3)},
        "state": rng.choice(["NEW", "OPEN", "CLOSED"]),
        "tags": [_text(rng, 6) for _ in range(4)],
        "attributes": {"color": _text(rng, 8), "size": _text(rng, 5)},
    }


def _text(rng: random.Random, size: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=size))


if __name__ == "__main__":
    main()
