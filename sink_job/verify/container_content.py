"""The content of Avro and Parquet objects, compared record by record.

The bytes of a block depend on the version of a library, so a block is decoded and not encoded again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.avro.container import sync_marker
from sink_job.avro.from_connect import avro_schema
from sink_job.codecs.containers import datum_settings
from sink_job.connect.field_ids import FieldIds
from sink_job.connect.schema import Schema
from sink_job.formats.block_rows import BlockRows, lengths_of
from sink_job.formats.compression import Uncompressed
from sink_job.parquet.table_reader import ParquetTableReader
from sink_job.parquet.types import FIELD_ID
from sink_job.s3 import Head, NotFound, PreconditionFailed, S3Client
from sink_job.verify.avro_blocks import DAMAGED_SYNC, AvroBlockReader
from sink_job.verify.object_content import MORE, Difference, ObjectContent, difference_of
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from sink_job.writer.row_slices import RowSlice

PARQUET_BATCH: Final = 4096
"""Records of a Parquet object that are decoded together."""


def container_content(
    s3: S3Client, key: str, settings: FormatSpec, schema: Schema, step: int, ids: FieldIds | None = None
) -> ObjectContent:
    """The content of the container `key`. `step`: bytes per fetch; `ids` as of `ParquetTableReader`."""
    if settings.output is OutputFormat.PARQUET:
        return ParquetContent(s3, key, ParquetTableReader(schema, datum_settings(settings), ids), step=step)
    text = avro_schema(schema, datum_settings(settings))
    return AvroContent(ObjectReader(s3, key, Uncompressed(), step=step), key, text)


class AvroContent:
    """An Avro object container file. The datums of its blocks are compared byte by byte."""

    def __init__(self, reader: ObjectReader, key: str, schema: str) -> None:
        self._reader = AvroBlockReader(reader)
        self._sync = sync_marker(key)
        self._schema = schema
        self._blocks = self._read_blocks()
        self._stored = b""
        self._expected = self._counted = 0

    def compare(self, rows: RowSlice) -> Difference | None:
        self._expected += len(rows.ends)
        return difference_of(rows, self._read(len(rows.data)))

    def remaining(self) -> str | None:
        if self._read(1):
            return MORE
        if self._counted != self._expected:
            return f"the blocks of the object count {self._counted} records and not {self._expected}"
        return None

    def _read(self, size: int) -> bytes:
        chunks = [self._stored]
        missing = size - len(self._stored)
        while missing > 0 and (block := next(self._blocks, None)) is not None:
            chunks.append(block)
            missing -= len(block)
        data = b"".join(chunks)
        self._stored = data[size:]
        return data[:size]

    def _read_blocks(self) -> Iterator[bytes]:
        header = self._reader.header()
        if header.codec is None:  # s3sink always writes it
            raise ObjectUnreadable("the header of the object has no avro.codec")
        if header.schema != self._schema.encode():
            raise ObjectUnreadable("the object has another Avro schema than its records")
        if header.sync != self._sync:
            raise ObjectUnreadable(DAMAGED_SYNC)
        for count, content in self._reader.blocks():
            self._counted += count
            yield content


class ParquetContent:
    """A Parquet file. Its records are compared as columns of Arrow."""

    def __init__(self, s3: S3Client, key: str, reader: ParquetTableReader, *, step: int) -> None:
        self._file = ObjectFile(s3, key)
        self._step = step
        self._expected = reader
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._stored: pa.Table = pa.Table.from_batches([], reader.arrow_schema)

    def compare(self, rows: RowSlice) -> Difference | None:
        at = 0
        for batch in BlockRows([rows.data], lengths_of(np.concatenate(([0], rows.ends)))).take_batches():
            expected = self._expected.table(batch)
            stored = self._read(len(expected))
            row = first_different_row(expected, stored)
            if row is not None:
                return Difference(at + row, row >= len(stored))
            at += len(expected)
        return None

    def remaining(self) -> str | None:
        return MORE if len(self._read(1)) else None

    def _read(self, count: int) -> pa.Table:
        """The next records, fewer at the end."""
        try:
            while len(self._stored) < count and (batch := next(self._opened(), None)) is not None:
                self._stored = pa.concat_tables([self._stored, pa.Table.from_batches([batch])])
        except (NotFound, PreconditionFailed) as error:
            raise ObjectUnreadable(f"the object cannot be read: {error}") from error
        except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: a name that is not UTF-8
            raise ObjectUnreadable(f"the object is not a valid Parquet file: {error}") from error
        found, self._stored = self._stored.slice(0, count), self._stored.slice(count)
        return found

    def _opened(self) -> Iterator[pa.RecordBatch]:
        if self._batches is None:
            file = pq.ParquetFile(pa.PythonFile(self._file, mode="r"), pre_buffer=False, buffer_size=self._step)
            if not file.schema_arrow.equals(self._expected.arrow_schema):
                raise ObjectUnreadable("the object has another Parquet schema than its records")
            if _field_ids(file.schema_arrow) != _field_ids(self._expected.arrow_schema):
                raise ObjectUnreadable("the object has other field ids than the ledger")
            self._batches = file.iter_batches(batch_size=PARQUET_BATCH, use_threads=False)
        return self._batches


def _field_ids(fields: Iterable[pa.Field]) -> list[bytes | None]:
    """The field ids of columns in their order, each before those of the types in it."""
    found = []
    for each in fields:
        inner = [each.type.field(n) for n in range(each.type.num_fields)] if pa.types.is_nested(each.type) else []
        found += [(each.metadata or {}).get(FIELD_ID), *_field_ids(inner)]
    return found


def first_different_row(expected: pa.Table, stored: pa.Table) -> int | None:
    """The first row of `expected` that differs from that of `stored`, or that `stored` does not have; None if there is
    none. NaN is equal to NaN."""
    if expected.equals(stored):
        return None
    rows = zip(_shown(expected), _shown(stored), strict=False)
    different = (row for row, (one, other) in enumerate(rows) if one != other)
    return next(different, len(stored) if len(stored) < len(expected) else None)


def _shown(table: pa.Table) -> list[str]:
    """Each row as text, for a comparison. A row with a value that Python cannot represent is damaged."""
    try:
        return list(map(repr, table.to_pylist()))
    except (ValueError, OverflowError) as error:
        if len(table) <= 1:
            return [f"damaged: {error}"]
        middle = len(table) // 2
        return [*_shown(table.slice(0, middle)), *_shown(table.slice(middle))]


class ObjectFile(io.RawIOBase):
    """An object as a file for random reads, all of one version. Raises NotFound, PreconditionFailed and the errors of
    the store."""

    def __init__(self, s3: S3Client, key: str) -> None:
        self._s3 = s3
        self._key = key
        self._at = 0
        self._head: Head | None = None

    def _found(self) -> Head:
        if self._head is None:
            self._head = self._s3.head(self._key)
        if self._head is None:
            raise NotFound(f"{self._s3.url_of(self._key)}: no such object", self._key, "NoSuchKey")
        return self._head

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._found().size - self._at)
        data = self._s3.get_range(self._key, self._at, left if size < 0 else min(size, left), etag=self._found().etag)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        self._at = offset + (self._found().size if base is None else base)
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
