"""The rows of Avro and Parquet objects of any writer, as canonical values in small steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.avro.row_decoder import DatumReader
from sink_job.avro.schema import AvroType, parse_avro
from sink_job.connect.errors import InvalidSchema
from sink_job.verify.avro_blocks import AvroBlockReader, BlockSource
from sink_job.verify.container_content import PARQUET_BATCH
from sink_job.verify.object_reader import ObjectUnreadable
from sink_job.verify.rows.canonical_values import canonical

BATCH: Final = 4096
"""Maximum number of rows of a batch."""


@dataclass(frozen=True)
class ContainerRows:
    """The rows of an object as canonical values, and its schema as a text that is equal for equal types. Reading the
    batches raises ObjectUnreadable and the errors of the store."""

    schema: str
    batches: Iterator[Sequence[bytes]]

    @classmethod
    def of_avro(cls, source: BlockSource) -> Self:
        """The rows of an Avro file. Raises ObjectUnreadable."""
        blocks = AvroBlockReader(source)
        try:
            avro = parse_avro((blocks.header().schema or b"").decode())
            reader = DatumReader(avro)
        except (InvalidSchema, ValueError) as error:
            raise ObjectUnreadable(f"its Avro schema cannot be used: {error}") from error
        return cls(avro_text(avro), _avro_batches(blocks, reader))

    @classmethod
    def of_parquet(cls, source: Any, *, buffer_size: int = 0) -> Self:
        """The rows of a Parquet file; `source` is a file of Arrow. Raises ObjectUnreadable and the errors of the
        store."""
        try:
            file = pq.ParquetFile(source, pre_buffer=False, buffer_size=buffer_size)
            schema = with_enums(file.schema_arrow, file.schema)
            return cls(parquet_text(schema), _parquet_batches(file, schema))
        except _PARQUET_ERRORS as error:
            raise _not_parquet(error) from error


_PARQUET_ERRORS: Final = (pa.ArrowException, OSError, ValueError, OverflowError)


def _not_parquet(error: Exception) -> ObjectUnreadable:
    return ObjectUnreadable(f"the object is not a valid Parquet file: {error}")


def _avro_batches(blocks: AvroBlockReader, reader: DatumReader) -> Iterator[Sequence[bytes]]:
    for count, data in blocks.blocks():
        rows = _datums(reader, count, data)
        while batch := list(islice(rows, BATCH)):
            yield batch


def _parquet_batches(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[Sequence[bytes]]:
    try:
        for batch in file.iter_batches(batch_size=PARQUET_BATCH, use_threads=False):
            rows = batch if schema is file.schema_arrow else batch.cast(schema)
            yield list(map(canonical, rows.to_pylist()))
    except _PARQUET_ERRORS as error:
        raise _not_parquet(error) from error


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
