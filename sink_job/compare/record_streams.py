"""The records of objects of one side as one sequence, read in small steps.

A record is bytes: a line of JSON, the bytes of a record of the output Bytes, or the canonical value of a row of Avro or
Parquet. The format of an object is that of its extension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from sink_job.compare.compared_objects import ComparedObject
from sink_job.formats.compression import Compression, Gzip, Uncompressed, Zstd
from sink_job.s3 import NotFound, PreconditionFailed, S3Client
from sink_job.verify.container_content import ObjectFile
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from sink_job.verify.rows.canonical_values import json_value
from sink_job.verify.rows.container_rows import ContainerRows

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
    rows = ContainerRows.of_avro(ObjectReader(s3, records.source.key, Uncompressed(), step=STEP))
    records.schema = rows.schema
    yield from rows.batches


def _parquet_rows(s3: S3Client, records: ObjectRecords, separator: bytes) -> Batches:
    try:
        rows = ContainerRows.of_parquet(pa.PythonFile(ObjectFile(s3, records.source.key), mode="r"), buffer_size=STEP)
        records.schema = rows.schema
        yield from rows.batches
    except (NotFound, PreconditionFailed) as error:
        raise ObjectUnreadable(f"the object cannot be read: {error}") from error
