"""Objects with columns of all types, and what their readers find.

Runs of records have the first and the second value of each column in turn, so that some row groups have one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Protocol
from uuid import UUID

import fastavro
import pyarrow as pa

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from sink_job.avro.converter import AvroDecoder
from sink_job.avro.from_connect import avro_schema
from sink_job.codecs.containers import container_encoder
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.formats.datum_rows import DatumRows
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.protobuf.converter import ProtobufConverter
from tests.support.format_settings import with_blocks
from tests.unit.avro.avro_data import Table, encode, record, registered
from tests.unit.codecs.typed_cases import CASES, Case
from tests.unit.formats.test_datum_rows import parts_of
from tests.unit.protobuf.protobuf_data import in_wire_format, message, proto3, set_text

RECORDS: Final = 40
RUN: Final = 10
BLOCK_BYTES: Final = 2_000
"""Several row groups and Avro blocks."""
PARQUET_CODECS: Final = ("None", "Snappy", "Gzip", "Zstd", "Lz4", "Brotli")
AVRO_CODECS: Final = ("None", "Deflate", "Snappy", "Zstd", "Bzip2")


def turn(record_number: int) -> int:
    """Which of the two values of its columns a record has."""
    return record_number // RUN % 2


class Columns(Protocol):
    """Columns with their values, from values of a converter."""

    @property
    def cases(self) -> Sequence[Case]: ...

    def datums(self, settings: DatumSettings) -> tuple[Schema, pa.BinaryArray]:
        """The schema of the object, and the data of its records."""
        ...

    def __hash__(self) -> int: ...


class AvroColumns:
    """Columns of Avro values."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases

    def datums(self, settings: DatumSettings) -> tuple[Schema, pa.BinaryArray]:
        schema = record(*((each.name, each.avro) for each in self.cases))
        values = [{each.name: each.values[turn(n)] for each in self.cases} for n in range(RECORDS)]
        decoder = AvroDecoder(registered(schema), (), DEFAULT_OPTIONS, settings)
        decoded = decoder.decode(pa.array(encode(schema, values), pa.binary()))
        assert not decoded.rejected, decoded.rejected
        return decoder.schema, decoded.texts


ALL: Final = AvroColumns(CASES)
INFERRED_BY_SPARK: Final = AvroColumns([each for each in CASES if each.spark_infers])


def _column(
    name: str, read: tuple[Any, ...], types: tuple[str, str, str, str], footer: str, in_avro: Any = None
) -> Case:
    return Case(name, None, (), read, *types, footer=footer, in_avro=in_avro)


_INT32, _INT64 = ("INTEGER", "Int32", "int", "int32"), ("BIGINT", "Int64", "bigint", "int64")
_TEXT = ("VARCHAR", "String", "string", "string")
_MICROS = (
    "TIMESTAMP WITH TIME ZONE",
    "Datetime(time_unit='us', time_zone='UTC')",
    "timestamp",
    "timestamp[us, tz=UTC]",
)
_AT = (datetime(1970, 1, 1, 0, 0, 1, 2000, UTC), datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC))
"""1.002 s after the epoch, and 1 ms before it."""


class ProtobufColumns:
    """Columns of Protobuf messages: what Avro values do not have."""

    cases: Sequence[Case] = (
        _column(
            "kind_0",
            ({"name": "n", "code": None}, {"name": None, "code": -1}),
            (
                'STRUCT("name" VARCHAR, code INTEGER)',
                "Struct({'name': String, 'code': Int32})",
                "struct<name:string,code:int>",
                "struct<name: string, code: int32>",
            ),
            "optional group _ { optional binary name (STRING); optional int32 code; }",
        ),
        _column("small", (2**32 - 1, 0), _INT64, "optional int64 _"),
        _column("large", (2**63 - 1, 0), _INT64, "optional int64 _"),
        _column("state", ("ON", "OFF"), _TEXT, "optional binary _ (STRING)"),
        _column(
            "wrapped",
            ({"value": 5}, None),
            ('STRUCT("value" BIGINT)', "Struct({'value': Int64})", "struct<value:bigint>", "struct<value: int64>"),
            "optional group _ { optional int64 value; }",
        ),
        _column("at", _AT, _MICROS, "optional int64 _ (TIMESTAMP(MICROS,true))"),
        _column(
            "took",
            ({"seconds": 3, "nanos": 4}, None),
            (
                'STRUCT("seconds" BIGINT, nanos INTEGER)',
                "Struct({'seconds': Int64, 'nanos': Int32})",
                "struct<seconds:bigint,nanos:int>",
                "struct<seconds: int64, nanos: int32>",
            ),
            "optional group _ { optional int64 seconds; optional int32 nanos; }",
        ),
    )

    def datums(self, settings: DatumSettings) -> tuple[Schema, pa.BinaryArray]:
        wire_format = WireFormat(Layout.CONFLUENT, chooses_message=True)
        found = ProtobufConverter(
            (), SchemaSettings(Table({"1": _PROTOBUF}), wire_format, output=settings.output, datums=settings)
        )
        values = [in_wire_format(set_text(message(_PROTOBUF), text).SerializeToString()) for text in _MESSAGES]
        return _converted(found.convert(pa.array(_in_turns(values), pa.binary()), BatchSource("t")))


_PROTOBUF = proto3(
    """
    message M {
      oneof kind { string name = 1; int32 code = 2; }
      uint32 small = 3;
      uint64 large = 4;
      State state = 5;
      google.protobuf.Int64Value wrapped = 6;
      google.protobuf.Timestamp at = 7;
      google.protobuf.Duration took = 8;
    }
    enum State { OFF = 0; ON = 1; }
    """,
    "google/protobuf/timestamp.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/wrappers.proto",
)
_MESSAGES = (
    """name: "n" small: 4294967295 large: 9223372036854775807 state: ON wrapped {value: 5}
    at {seconds: 1 nanos: 2000000} took {seconds: 3 nanos: 4}""",
    "code: -1 at {seconds: -1 nanos: 999000000}",
)
PROTOBUF: Final = ProtobufColumns()


class EnvelopeColumns:
    """Columns of Connect's own types, in envelopes."""

    cases: Sequence[Case] = (
        _column("tiny", (-128, None), _INT32, "optional int32 _"),
        _column("short", (-32_768, 32_767), _INT32, "required int32 _"),
        _column("at", _AT, _MICROS, "required int64 _ (TIMESTAMP(MICROS,true))"),
        _column("raw", (b"\0\xff", b""), ("BLOB", "Binary", "binary", "binary"), "required binary _"),
        _column(
            "by_number",
            ([(1, "a")], []),
            ("MAP(INTEGER, VARCHAR)", "Map(Int32, String)", "map<int,string>", "map<int32, string ('by_number')>"),
            "required group _ (MAP) "
            "{ repeated group key_value { required int32 key; required binary value (STRING); } }",
            ([{"key": 1, "value": "a"}], []),
        ),
    )

    def datums(self, settings: DatumSettings) -> tuple[Schema, pa.BinaryArray]:
        values = [json.dumps({"schema": _CONNECT, "payload": each}).encode() for each in _PAYLOADS]
        found = ConnectJsonConverter((), settings.output, datums=settings)
        return _converted(found.convert(pa.array(_in_turns(values), pa.binary())))


_CONNECT = {
    "type": "struct",
    "fields": [
        {"field": "tiny", "type": "int8", "optional": True},
        {"field": "short", "type": "int16"},
        {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
        {"field": "raw", "type": "bytes"},
        {"field": "by_number", "type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}},
    ],
}
_PAYLOADS: Final[Sequence[dict[str, Any]]] = (
    {"tiny": -128, "short": -32_768, "at": 1_002, "raw": "AP8=", "by_number": [[1, "a"]]},
    {"tiny": None, "short": 32_767, "at": -1, "raw": "", "by_number": []},
)
ENVELOPE: Final = EnvelopeColumns()
SOURCES: Final[dict[str, Columns]] = {"Avro": ALL, "Protobuf": PROTOBUF, "ConnectJson": ENVELOPE}


def _in_turns(values: Sequence[bytes]) -> list[bytes]:
    return [values[turn(n)] for n in range(RECORDS)]


def _converted(found: Converted) -> tuple[Schema, pa.BinaryArray]:
    assert found.rejected == []
    assert found.schemas is not None
    (schema,) = found.schemas.schemas
    return schema, found.values


def settings_of(output: OutputFormat, codec: str) -> FormatSpec:
    """Settings with small blocks, which a manifest cannot have."""
    chosen = FormatSpec(output=output, compression=CompressionSpec(codec=CompressionCodec(codec)))
    return with_blocks(chosen, BLOCK_BYTES)


@cache
def object_of(columns: Columns, output: OutputFormat, codec: str) -> bytes:
    """An object with these columns."""
    settings = settings_of(output, codec)
    datums = DatumSettings.of(settings)
    assert datums is not None
    schema, data = columns.datums(datums)
    rows = DatumRows().encode(data).to_pylist()
    return b"".join(parts_of(rows, container_encoder(settings, schema)("topics/t/x"), 1_000))


def avro_schema_of(columns: Columns) -> Any:
    """The schema that an Avro object must contain."""
    settings = DatumSettings()
    return fastavro.parse_schema(json.loads(avro_schema(columns.datums(settings)[0], settings)))


def expected(columns: Columns, *, in_avro: bool = False) -> list[dict[str, Any]]:
    """The records of an object, comparable."""
    found = {each.name: (each.in_avro if in_avro else None) or each.read for each in columns.cases}
    return [{name: comparable(values[turn(n)]) for name, values in found.items()} for n in range(RECORDS)]


def rows(found: pa.Table | Iterable[dict[str, Any]], columns: Columns) -> list[dict[str, Any]]:
    """The records that a reader has found, comparable. UUIDs may be bytes or texts."""
    uuids = {each.name for each in columns.cases if isinstance((each.read or (None,))[0], UUID)}
    read = found.to_pylist() if isinstance(found, pa.Table) else found
    return [{name: comparable(_uuid(of) if name in uuids else of) for name, of in row.items()} for row in read]


def _uuid(value: UUID | str | bytes) -> UUID:
    if isinstance(value, UUID):
        return value
    return UUID(bytes=value) if isinstance(value, bytes) else UUID(value)


def comparable(value: Any) -> Any:
    """A value that is equal to another one only if both have the same type, NaN and −0 included."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, tuple):
        return tuple(map(comparable, value))
    if isinstance(value, datetime):  # also of pandas, with nanoseconds
        return f"{value.isoformat()} {getattr(value, 'nanosecond', 0)} {value.tzinfo is None}"
    return f"{type(value).__name__} {value!r}"
