"""Worker side of the first start after another writer: compares its objects with Kafka's records, value by value.

The objects of a topic-partition must follow each other (partitioner Default). The ledger does not know them, so a task
finds out where each one ends: it reads rows of an object and Kafka's accepted records side by side until the object
ends. JSON may have another order of fields, other white space and other forms of a number; rows of Avro and Parquet may
have another order of fields; delimited bytes must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import pyarrow as pa

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.s3 import S3Settings, connect
from sink_job.verify.object_reader import ObjectUnreadable
from sink_job.verify.previous.given_schemas import GivenSchemas
from sink_job.verify.previous.object_rows import ObjectRows, object_rows
from sink_job.verify.previous.record_rows import RecordRows
from sink_job.writer.large_batches import prepared_parts
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline
from sink_job.writer.schema_stores import SchemaStores


class PreviousObject(msgspec.Struct, frozen=True):
    """An object to compare: its key, and the first offset by the key. `is_required`: a difference is a fault, also of
    the offsets up to the next object. The others end below the committed offset, and may have been changed since."""

    key: str
    first: int
    is_required: bool = True


class PreviousObjects(msgspec.Struct, frozen=True):
    """The objects of a range, ascending. A record below `committed` that no object contains is reported as uncovered, a
    later one as a difference."""

    objects: tuple[PreviousObject, ...]
    committed: int


class ObjectEnd(msgspec.Struct, frozen=True):
    """The result for an object. `Equal`: all of its `records` are Kafka's, up to the offset `last`. `Incomplete`: as
    far as the range goes they are, and the object has more. `Different`: `message` says where; up to `last` its
    first `records` are Kafka's, and it has at least `rows` rows."""

    key: str
    status: Literal["Equal", "Incomplete", "Different"]
    last: int = -1
    records: int = 0
    message: str = ""
    rows: int = 0


@dataclass(frozen=True)
class PreviousSettings:
    """The settings of all tasks; picklable, without secrets. `settings` are the sink's `ObjectSettings` (JSON),
    `schemas` those of a registry that the driver knows so far."""

    s3: S3Settings
    settings: str
    errors: ErrorsSpec
    schemas: GivenSchemas = field(default_factory=GivenSchemas)


class PreviousResult(msgspec.Struct, frozen=True):
    """The results for objects, up to the first required one that differs. `unresolved`: the schema ids at which the
    comparison has stopped; it is repeated with their schemas, and the results do not count. `uncovered`: the offset of
    a record below the committed offset that no object contains (None: there is none as far as the range goes); the
    comparison ends there."""

    ends: list[ObjectEnd]
    unresolved: list[str] = []
    uncovered: int | None = None


def compare_previous(
    settings: PreviousSettings, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]
) -> bytes:
    """Compares the objects of one topic-partition. `task_input` are `PreviousObjects`, the result is a
    `PreviousResult` (both msgpack)."""
    objects = msgspec.msgpack.decode(task_input, type=PreviousObjects)
    comparer = _PreviousComparer(settings, tp, objects)
    for batch in batches:
        comparer.add(batch)
    return msgspec.msgpack.encode(comparer.result())


class _PreviousComparer:
    def __init__(self, settings: PreviousSettings, tp: TopicPartition, given: PreviousObjects) -> None:
        object_settings = ObjectSettings.model_validate_json(settings.settings)
        self.tp = tp
        self.committed = given.committed
        self.pipeline = RecordPipeline.of(object_settings, settings.errors, SchemaStores(settings.schemas))
        self.ends: list[ObjectEnd] = []
        self.is_done = False
        self.unresolved: list[str] = []
        self.uncovered: int | None = None
        self._uncompared: int | None = 0  # rows of the last object that may be records; None: unknown
        self._s3 = connect(settings.s3)
        self._ahead = list(reversed(given.objects))
        self._current: _ReadObject | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Compares the accepted records of a batch."""
        for _, _, prepared in prepared_parts(batch, 0, lambda part, clock: self.pipeline.prepare(part, clock, self.tp)):
            if not self.is_done:
                self._prepared(prepared)

    def _prepared(self, prepared: PreparedBatch) -> None:
        records = RecordRows(self.pipeline, self.tp.topic, prepared)
        for row, offset in records:
            self._record(offset, row, records)
            if self.is_done:
                return
        if prepared.unresolved:
            self.unresolved, self.is_done = [*prepared.unresolved], True

    def _record(self, offset: int, row: int, records: RecordRows) -> None:
        while self._ahead and self._ahead[-1].first <= offset and not self.is_done:
            if self._current is not None:
                self._current.end_before(self._ahead[-1].first, offset, row, records)
            self._end_current()
            if not self.is_done:
                following = self._ahead.pop()
                self._current = _ReadObject(following, self._rows(following.key), records.schema_id(row))
        if self.is_done:
            return
        if self._current is not None and not self._current.is_at_end():
            self._current.compare(offset, row, records)
            if not self._current.message:
                return
        self._between(offset)

    def _between(self, offset: int) -> None:
        """A record behind the end of the current object or its first difference, and before the next one."""
        self._end_current()
        if self.is_done:
            return
        if offset < self.committed:
            if self._uncompared == 0:
                self.uncovered, self.is_done = offset, True
            elif self._uncompared is not None:
                self._uncompared -= 1
        elif not self._ahead:
            self.is_done = True
        else:
            following = self._ahead[-1]
            message = f"the record at offset {offset} is in no object before it"
            self._add(ObjectEnd(following.key, "Different", message=message), is_required=True)

    def _end_current(self) -> None:
        """Completes the current object."""
        o, self._current = self._current, None
        if o is None:
            return
        if not o.message and not o.is_at_end() and not o.message:
            self._add(ObjectEnd(o.given.key, "Incomplete", o.last, o.records), is_required=True)
            return
        if not o.message and not o.records:
            o.message = "it has no record"
        if o.message:
            self._uncompared = o.remaining_rows()
            rows = o.records + (self._uncompared or 0)
            end = ObjectEnd(o.given.key, "Different", o.last, o.records, o.message, rows)
        else:
            self._uncompared = 0
            end = ObjectEnd(o.given.key, "Equal", o.last, o.records, rows=o.records)
        self._add(end, is_required=o.given.is_required)

    def _add(self, end: ObjectEnd, *, is_required: bool) -> None:
        self.ends.append(end)
        if is_required and end.status != "Equal":
            self.is_done = True

    def _rows(self, key: str) -> ObjectRows:
        return object_rows(self._s3, key, self.pipeline.object_settings.format.output, self.pipeline.compression)

    def result(self) -> PreviousResult:
        """The results, after the last batch."""
        if not self.is_done:
            self._end_current()
        if not self.is_done and self._ahead:
            o = self._ahead[-1]
            message = f"Kafka has no record from offset {o.first} on"
            self._add(ObjectEnd(o.key, "Different", message=message), is_required=True)
        return PreviousResult(self.ends, self.unresolved, self.uncovered)


class _ReadObject:
    """The comparison of one object. `message`: the first difference."""

    def __init__(self, given: PreviousObject, rows: ObjectRows, schema: str | None) -> None:
        """`schema`: the id of the schema of its first record."""
        self.given = given
        self.last = -1
        self.records = 0
        self.message = ""
        self.has_different_row = False
        self._rows = rows
        self._schema = schema

    def is_at_end(self) -> bool:
        """Whether all rows were compared. False for an unreadable object, which has a message then."""
        try:
            return self._rows.is_at_end()
        except ObjectUnreadable as error:
            self.message = self.message or str(error)
            return False

    def end_before(self, following: int, offset: int, row: int, records: RecordRows) -> None:
        """Ends the object where the next one begins, with the record at `offset`. An object with more rows differs. It
        reaches up to this record if the record is its next row; else Kafka may have deleted records of it."""
        if self.message or self.is_at_end() or self.message:
            return
        try:
            self.has_different_row = not self._is_next(row, records)
        except ObjectUnreadable:
            self.has_different_row = True
        self.last = self.last if self.has_different_row else offset
        self.message = f"it has more records than Kafka has below offset {following}, where the next object begins"

    def remaining_rows(self) -> int | None:
        """After a difference: the number of rows that were not compared or differ; None if it is unknown."""
        try:
            remaining = self._rows.remaining()
        except ObjectUnreadable:
            return None
        return None if remaining is None else self.has_different_row + remaining

    def compare(self, offset: int, row: int, records: RecordRows) -> None:
        """Compares the next row with the record at `offset`."""
        if not self.records and offset != self.given.first:
            self.message = f"its key begins at offset {self.given.first}, and Kafka's next record is at offset {offset}"
        elif not self.message:
            try:
                self.has_different_row = not self._is_next(row, records)
                if self.has_different_row:
                    self.message = f"the record at offset {offset} differs from the one in Kafka"
            except ObjectUnreadable as error:
                self.message = str(error)
        if not self.message:
            self.last, self.records = offset, self.records + 1

    def _is_next(self, row: int, records: RecordRows) -> bool:
        """Takes the next row of the object; returns whether it is that of the record."""
        value = records.value(row, self._schema)
        return self._rows.is_next(b"" if value is None else value) and value is not None
