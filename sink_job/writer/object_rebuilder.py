"""Rebuilds objects whose upload or staged remainder is lost, from the source ranges in the ledger (P2).

A rebuild makes no new rotation decisions. The task reads the recorded source ranges again, under their recorded
clocks, selects the records whose path is the object's, and writes them to a new upload. The offset checksum must equal
the recorded one. Records that Kafka no longer returns are data loss: the task rebuilds no object then, or with
`partial` the remaining records under the key of the first of them. Records that Kafka returns and that are not selected
are no loss: another version of a library may compute other paths or reject other values (`ObjectSettings.rules`). Then
no object is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.formats import selecting_libraries
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.state import ClosedObject, OffsetChecksum, OpenObject, SourceRange
from sink_job.rotation.types import ObjectId
from sink_job.s3 import NoSuchUpload
from sink_job.s3.checksums import combine_all
from sink_job.tasks.rebuild import MissingRecords, RebuildInput, RebuildResult
from sink_job.writer.dead_letters import DeadLetterLines
from sink_job.writer.object_writer import ObjectWriter, ObjectWriters
from sink_job.writer.record_pipeline import PreparedBatch
from sink_job.writer.row_selection import object_rows
from sink_job.writer.task_attempt import TaskAttempt

Object = TypeVar("Object", ClosedObject, OpenObject)


class RebuildTask(TaskAttempt):
    """Rebuilds the objects of a task's topic-partitions: takes a `RebuildInput` for each and returns a `RebuildResult`,
    both as msgpack."""

    def __call__(self, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        rebuild_input = msgspec.msgpack.decode(task_input, type=RebuildInput)
        with SpillPool(self.settings.budget) as spill:
            rebuilder = _Rebuilder(self, tp, rebuild_input, spill)
            try:
                result = rebuilder.run(batches)
            except NoSuchUpload as gone:
                result = RebuildResult(started_uploads=rebuilder.writers.started_uploads(), lost=str(gone))
        return msgspec.msgpack.encode(result)


class _Rebuilder:
    def __init__(self, attempt: TaskAttempt, tp: TopicPartition, rebuild_input: RebuildInput, spill: SpillPool) -> None:
        self.writers = ObjectWriters(attempt, tp, spill)
        self._attempt = attempt
        self._tp = tp
        self._input = rebuild_input
        self._lines = DeadLetterLines.under(attempt.object_settings, tp)
        self._closed = [_RebuiltObject(o) for o in rebuild_input.closed]
        self._open = [_RebuiltObject(o) for o in rebuild_input.open]
        self._objects: Sequence[_RebuiltObject[ClosedObject] | _RebuiltObject[OpenObject]] = (
            *self._closed,
            *self._open,
        )

    def run(self, batches: Iterator[pa.RecordBatch]) -> RebuildResult:
        """Raises NoSuchUpload when an upload of this attempt no longer exists."""
        self._attempt.pipeline.prefetch_schemas(each.id for each in self._objects)
        for batch in batches:
            self._append(batch)
        rules = self._other_rules()
        missing = tuple(each.missing(rules) for each in self._objects if each.found != each.o.offsets)
        if missing and not (self._input.partial and all(each.is_loss for each in missing)):
            return RebuildResult(missing=missing, started_uploads=self.writers.started_uploads())
        return RebuildResult(self._finish_closed(), self._stage_open(), missing, self.writers.started_uploads())

    def _other_rules(self) -> tuple[str, ...]:
        recorded, installed = self._attempt.object_settings.rules, selecting_libraries(self._attempt.object_settings)
        return () if recorded == installed else (", ".join(recorded) or "not recorded", ", ".join(installed))

    def _append(self, batch: pa.RecordBatch) -> None:
        """Appends to each object its rows of the batch."""
        offsets = batch.column("offset").to_numpy()
        for each in self._objects:
            each.returned += sum(int(np.diff(np.searchsorted(offsets, [s.start, s.end]))[0]) for s in each.sources)
        for each, _, rows in object_rows(self._objects, batch, self._prepare, self._lines):
            if each.writer is None:
                each.writer = self.writers.new(each.id, int(rows.offsets[0]))
            each.writer.append(rows)
            each.size += rows.size

    def _prepare(self, batch: pa.RecordBatch, clock: int) -> PreparedBatch:
        return self._attempt.pipeline.prepare(batch, clock, self._tp)

    def _finish_closed(self) -> tuple[ClosedObject, ...]:
        finished = [each for each in self._closed if each.writer is not None]
        for each in finished:
            each.finish()
        return tuple(map(_closed_object, finished))

    def _stage_open(self) -> tuple[OpenObject, ...]:
        staging = self._attempt.staging
        opened = []
        for each in self._open:
            writer = each.writer
            if writer is None or writer.rows.first is None:
                continue
            staged = writer.stage(staging)
            upload, parts = writer.result()
            rebuilt = msgspec.structs.replace(
                each.o,
                state=msgspec.structs.replace(
                    each.o.state,
                    first=writer.rows.first,
                    last=writer.rows.last,
                    count=writer.offsets.count,
                    size=each.size,
                ),
                offsets=writer.offsets,
                upload=upload,
                parts=parts,
                **staged.as_dict(),
            )
            opened.append(rebuilt)
        return tuple(opened)


class _RebuiltObject(Generic[Object]):
    """An object under rebuild. Its first record creates the writer. `size` is in encoded, uncompressed bytes."""

    def __init__(self, o: Object) -> None:
        self.o: Object = o
        self.writer: ObjectWriter | None = None
        self.size = 0
        self.returned = 0

    @property
    def id(self) -> ObjectId:
        return self.o.id

    @property
    def sources(self) -> tuple[SourceRange, ...]:
        return self.o.sources

    @property
    def found(self) -> OffsetChecksum:
        return self.writer.offsets if self.writer else OffsetChecksum()

    def finish(self) -> None:
        """Sends the last parts."""
        if self.writer is not None:
            self.writer.finish()

    def missing(self, other_rules: tuple[str, ...]) -> MissingRecords:
        return MissingRecords(
            self.o.path,
            self.o.first,
            self.o.last,
            self.found,
            self.o.offsets,
            returned=self.returned,
            absent=_length(self.sources) - self.returned,
            other_rules=other_rules,
        )


def _length(sources: Sequence[SourceRange]) -> int:
    """The number of offsets in ranges that do not overlap."""
    return sum(each.end - each.start for each in sources)


def _closed_object(rebuilt: _RebuiltObject[ClosedObject]) -> ClosedObject:
    writer = rebuilt.writer
    assert writer is not None, "a rebuilt object has a record"
    assert writer.rows.first is not None, "a rebuilt object has a first record"
    upload, parts = writer.result()
    assert upload is not None, "a rebuilt object has a part"
    return msgspec.structs.replace(
        rebuilt.o,
        key=writer.key,
        first=writer.rows.first,
        last=writer.rows.last,
        bytes=sum(p.size for p in parts),
        crc=combine_all((p.crc, p.size) for p in parts),
        upload=upload,
        parts=parts,
        offsets=writer.offsets,
    )
