"""The records of objects of one side as one sequence, read in small steps.

A record is bytes: a line of JSON, the bytes of a record of the output Bytes, or the canonical value of a row of Avro or
Parquet. The format of an object is that of its extension.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.avro.row_decoder import DatumReader
from sink_job.avro.schema import AvroType, parse_avro
from sink_job.compare.canonical_values import canonical, json_value
from sink_job.compare.compared_objects import ComparedObject
from sink_job.connect.errors import InvalidSchema
from sink_job.formats.compression import Compression, Gzip, Uncompressed, Zstd
from sink_job.s3 import NotFound, PreconditionFailed, S3Client
from sink_job.verify.avro_blocks import AvroBlockReader
from sink_job.verify.container_content import PARQUET_BATCH, ObjectFile
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable

STEP: Final = 1 << 20
"""Bytes per fetch of an object, and of lines that are split together."""
BATCH: Final = 4096
"""Maximum number of records of a batch."""

Batches = Iterator[Sequence[bytes]]


@dataclass
class ObjectRecords:
    """What was read of an object: the number of its records so far, its schema as text (None without one), and why it
    cannot be read to its end."""

    source: ComparedObject
    count: int = 0
    schema: str | None = None
    damage: str | None = None


@dataclass
class RecordStream:
    """The records of objects, in their order. A damaged object ends at its damage."""

    s3: S3Client
    objects: Sequence[ComparedObject]
    separator: bytes
    read: list[ObjectRecords] = field(default_factory=list)

    def batches(self) -> Batches:
        """The records. Raises the errors of the store."""
        for each in self.objects:
            records = ObjectRecords(each)
            self.read.append(records)
            try:
                for batch in _reader(each.key)(self.s3, records, self.separator):
                    records.count += len(batch)
                    yield batch
            except ObjectUnreadable as error:
                records.damage = str(error)

    @property
    def canonical(self) -> Callable[[bytes], bytes]:
        """The value of a record; equal for equal records."""
        return json_value if all(_plain(each.key).endswith(".json") for each in self.objects) else bytes


Reader = Callable[[S3Client, ObjectRecords, bytes], Batches]


def _reader(key: str) -> Reader:
    if key.endswith(".parquet"):
        return _parquet_rows
    return _avro_rows if key.endswith(".avro") else _lines


def _plain(key: str) -> str:
    """The key without the extension of its compression."""
    return key.removesuffix(".gz").removesuffix(".zst")


def counts_records(key: str) -> bool:
    """Whether the records that are read of an object are those that were written: a value of the output Bytes may
    contain the separator."""
    return _plain(key).endswith((".json", ".avro", ".parquet"))


def _compression(key: str) -> Compression:
    if key.endswith(".gz"):
        return Gzip(1)
    return Zstd(1) if key.endswith(".zst") else Uncompressed()


def _lines(s3: S3Client, records: ObjectRecords, separator: bytes) -> Batches:
    """The records between separators. Without a separator the bytes of an object are one record for each STEP."""
    key = records.source.key
    reader = ObjectReader(s3, key, _compression(key), step=STEP)
    mark = b"\n" if _plain(key).endswith(".json") else separator
    rest = b""
    while data := reader.read(STEP):
        if not mark:
            yield [data]
            continue
        *lines, rest = (rest + data).split(mark)
        yield from _batches(lines)
    if rest:
        yield [rest]


def _batches(lines: Sequence[bytes]) -> Batches:
    for start in range(0, len(lines), BATCH):
        yield lines[start : start + BATCH]


def _avro_rows(s3: S3Client, records: ObjectRecords, separator: bytes) -> Batches:
    blocks = AvroBlockReader(ObjectReader(s3, records.source.key, Uncompressed(), step=STEP))
    try:
        avro = parse_avro((blocks.header().schema or b"").decode())
        reader = DatumReader(avro)
    except (InvalidSchema, ValueError) as error:
        raise ObjectUnreadable(f"its Avro schema cannot be used: {error}") from error
    records.schema = avro_text(avro)
    for count, data in blocks.blocks():
        rows = _datums(reader, count, data)
        while batch := list(islice(rows, BATCH)):
            yield batch


def _datums(reader: DatumReader, count: int, data: bytes) -> Iterator[bytes]:
    at = 0
    try:
        for _ in range(count):
            value, at = reader.read_at(data, at)
            yield canonical(value)
    except (ValueError, RecursionError) as error:
        raise ObjectUnreadable(f"a block of the object is damaged: {error}") from error
    if at != len(data):
        raise ObjectUnreadable("a block of the object has more bytes than its records")


def avro_text(avro: AvroType) -> str:
    """A type without what changes no value: documentation, defaults, properties of Connect and the order of fields."""
    return json.dumps(_avro_type(avro, {}), sort_keys=True)


def _avro_type(avro: AvroType, named: dict[str, AvroType]) -> object:
    if avro.name:
        if named.get(avro.name) is avro:
            return avro.name
        named[avro.name] = avro
    logical = {name: avro.properties[name] for name in ("logicalType", "precision", "scale") if name in avro.properties}
    fields = {each.name: _avro_type(each.type, named) for each in sorted(avro.fields, key=lambda each: each.name)}
    element = None if avro.element is None else _avro_type(avro.element, named)
    members = [_avro_type(each, named) for each in avro.members]
    return [avro.kind, avro.name, logical, fields, avro.symbols, avro.size, element, members]


def _parquet_rows(s3: S3Client, records: ObjectRecords, separator: bytes) -> Batches:
    try:
        stored = pa.PythonFile(ObjectFile(s3, records.source.key), mode="r")
        file = pq.ParquetFile(stored, pre_buffer=False, buffer_size=STEP)
        schema = with_enums(file.schema_arrow, file.schema)
        records.schema = parquet_text(schema)
        for batch in file.iter_batches(batch_size=PARQUET_BATCH, use_threads=False):
            rows = batch if schema is file.schema_arrow else batch.cast(schema)
            yield list(map(canonical, rows.to_pylist()))
    except (NotFound, PreconditionFailed) as error:
        raise ObjectUnreadable(f"the object cannot be read: {error}") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise ObjectUnreadable(f"the object is not a valid Parquet file: {error}") from error


def with_enums(schema: pa.Schema, columns: pq.ParquetSchema) -> pa.Schema:
    """The schema with strings in place of enums. parquet-java writes them with the type ENUM, which pyarrow reads as
    bytes; the sink writes strings."""
    leaves = [columns.column(number) for number in range(len(columns.names))]
    enums = [each.path for each in leaves if each.logical_type.type == "ENUM"]
    return pa.schema([_with_enums(each, each.name, enums) for each in schema]) if enums else schema


def _with_enums(each: pa.Field, path: str, enums: Sequence[str]) -> pa.Field:
    """`path` is that of the column, or the beginning of it: the levels of lists have names of the writer."""
    kind = each.type
    if pa.types.is_struct(kind):
        return each.with_type(pa.struct([_with_enums(child, f"{path}.{child.name}", enums) for child in kind]))
    if pa.types.is_list(kind):
        return each.with_type(pa.list_(_with_enums(kind.value_field, path, enums)))
    is_enum = any(enum == path or enum.startswith(f"{path}.") for enum in enums)
    return each.with_type(pa.string()) if is_enum and pa.types.is_binary(kind) else each


def parquet_text(schema: pa.Schema) -> str:
    """The names and types of columns, without metadata and their order."""
    return json.dumps({each.name: _arrow_type(each) for each in schema}, sort_keys=True)


def _arrow_type(each: pa.Field) -> object:
    kind, optional = each.type, "" if each.nullable else " not null"
    if pa.types.is_struct(kind):
        inner: object = {child.name: _arrow_type(child) for child in kind}
    elif pa.types.is_map(kind):
        inner = [_arrow_type(kind.key_field), _arrow_type(kind.item_field)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = [_arrow_type(kind.value_field)]  # its name depends on the writer
    else:
        return f"{kind}{optional}"
    return [f"{kind.id}{optional}", inner]
