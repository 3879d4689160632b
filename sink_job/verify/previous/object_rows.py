"""The content of an object of another writer as rows, which are compared with Kafka's records one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.formats.compression import Compression, Uncompressed
from sink_job.s3 import NotFound, PreconditionFailed, S3Client
from sink_job.verify.container_content import ObjectFile
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from sink_job.verify.rows.container_rows import ContainerRows

STEP: Final = 1 << 20
"""Bytes per fetch of an object."""

MAX_ROW: Final = 64 << 20
"""Maximum length of a line of JSON in bytes. A record of Kafka is smaller."""


class ObjectRows(Protocol):
    """The rows of an object, from its beginning. Each method raises ObjectUnreadable."""

    def is_at_end(self) -> bool: ...

    def is_next(self, row: bytes) -> bool:
        """Takes the next row; returns whether it is equal to `row`, that of a record."""
        ...

    def remaining(self) -> int | None:
        """The number of rows up to the end of the object; None if it is unknown."""
        ...


def object_rows(s3: S3Client, key: str, output: OutputFormat, compression: Compression) -> ObjectRows:
    """The rows of an object with this output. Nothing is fetched before the first call."""
    if output.has_datums:
        return _ContainerRows(_containers(s3, key, output))
    reader = ObjectReader(s3, key, compression, step=STEP)
    return _Lines(reader) if output is OutputFormat.JSON else _Bytes(reader)


def _containers(s3: S3Client, key: str, output: OutputFormat) -> Iterator[Sequence[bytes]]:
    if output is OutputFormat.AVRO:
        yield from ContainerRows.of_avro(ObjectReader(s3, key, Uncompressed(), step=STEP)).batches
        return
    try:
        yield from ContainerRows.of_parquet(pa.PythonFile(ObjectFile(s3, key), mode="r"), buffer_size=STEP).batches
    except (NotFound, PreconditionFailed) as error:
        raise ObjectUnreadable(f"the object cannot be read: {error}") from error


class _ContainerRows:
    """Rows of Avro and Parquet as canonical values."""

    def __init__(self, batches: Iterator[Sequence[bytes]]) -> None:
        self._batches = batches
        self._batch: Sequence[bytes] = ()
        self._at = 0

    def is_at_end(self) -> bool:
        while self._at == len(self._batch):
            batch = next(self._batches, None)
            if batch is None:
                return True
            self._batch, self._at = batch, 0
        return False

    def is_next(self, row: bytes) -> bool:
        if self.is_at_end():
            return False
        self._at += 1
        return self._batch[self._at - 1] == row

    def remaining(self) -> int:
        rows = 0
        while not self.is_at_end():
            rows += len(self._batch) - self._at
            self._at = len(self._batch)
        return rows


class _Content:
    """The content of an object that is no container."""

    def __init__(self, reader: ObjectReader) -> None:
        self.reader = reader
        self.rest = b""
        self.at = 0

    def fill(self, size: int) -> bool:
        """Reads until `size` bytes are ahead; False if the object ends before."""
        while len(self.rest) - self.at < size:
            chunk = self.reader.read(max(STEP, size))
            if not chunk:
                return False
            self.rest, self.at = self.rest[self.at :] + chunk, 0
        return True

    def is_at_end(self) -> bool:
        return not self.fill(1)


class _Bytes(_Content):
    """Rows that are equal only with the same bytes."""

    def is_next(self, row: bytes) -> bool:
        self.fill(len(row))
        found = self.rest[self.at : self.at + len(row)]
        self.at += len(row)
        return found == row

    def remaining(self) -> None:
        return None  # a value may contain the separator


class _Lines(_Content):
    """Lines of JSON, which are equal with the same values."""

    def is_next(self, row: bytes) -> bool:
        line = self._line()
        return line == row.rstrip(b"\n") or _same_json(line, row)

    def remaining(self) -> int:
        lines = 0
        while not self.is_at_end():
            self._line()
            lines += 1
        return lines

    def _line(self) -> bytes:
        searched = self.at
        while (end := self.rest.find(b"\n", searched)) < 0:
            length = len(self.rest) - self.at
            if length > MAX_ROW or not self.fill(length + 1):
                end = len(self.rest)
                break
            searched = self.at + length
        line = self.rest[self.at : end]
        self.at = min(end + 1, len(self.rest))
        return line


def _same_json(left: bytes, right: bytes) -> bool:
    try:
        return same_value(json.loads(left), json.loads(right))
    except (ValueError, RecursionError):
        return False


def same_value(left: object, right: object) -> bool:
    """Whether two values of JSON are equal. A number equals another form of it; true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right
