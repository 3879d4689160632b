"""Making objects again whose upload or leftovers are gone, from their recorded members (P2).

What a round has cut is never cut anew: the task reads the recorded stretches again, under the clocks they had then,
takes the records whose path is the object's, and writes them to a new upload. The tally must come out as recorded;
otherwise Kafka no longer holds the records, and that is data loss: nothing is made then, or with `partial` what is
left, under the key of its first record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.state import ClosedObject, OffsetChecksum, OpenObject, SourceRange
from sink_job.s3 import NoSuchUpload
from sink_job.s3.checksums import combine_all
from sink_job.writer.object_writer import ObjectWriter, PartUploader
from sink_job.writer.record_pipeline import PreparedBatch
from sink_job.writer.row_selection import object_rows
from sink_job.writer.task_attempt import TaskAttempt

Object = TypeVar("Object", ClosedObject, OpenObject)


class RebuildInput(msgspec.Struct, frozen=True):
    """The objects of one topic-partition to make again, all begun under the same settings. `partial`: also those of
    which Kafka holds some records only."""

    closed: tuple[ClosedObject, ...] = ()
    open: tuple[OpenObject, ...] = ()
    partial: bool = False

    def offset_range(self) -> tuple[int, int]:
        """The offsets `[start, end)` to read."""
        objects: tuple[ClosedObject | OpenObject, ...] = (*self.closed, *self.open)
        return min(o.first for o in objects), max(o.last for o in objects) + 1


class MissingRecords(msgspec.Struct, frozen=True):
    """An object that cannot be made again as it was: how many of its records Kafka still holds."""

    path: str
    first: int
    last: int
    found: OffsetChecksum
    expected: OffsetChecksum

    @property
    def is_loss(self) -> bool:
        """Whether records are missing; otherwise they are others than those that were read."""
        return self.found.count < self.expected.count


class RebuildResult(msgspec.Struct, frozen=True):
    """The objects under their new uploads, and those of which records are missing. Without `partial` there is no other
    object then; with it there are those with any record left. With `lost` (a new upload is gone: which) there is none.

    `begun` are the uploads that this try began, as (key, upload id).
    """

    closed: tuple[ClosedObject, ...] = ()
    open: tuple[OpenObject, ...] = ()
    missing: tuple[MissingRecords, ...] = ()
    started_uploads: tuple[tuple[str, str], ...] = ()
    lost: str | None = None


def nothing_held(wanted: RebuildInput) -> RebuildResult:
    """What comes of objects of which Kafka holds nothing any more."""
    objects: tuple[ClosedObject | OpenObject, ...] = (*wanted.closed, *wanted.open)
    return RebuildResult(
        missing=tuple(MissingRecords(o.path, o.first, o.last, OffsetChecksum(), o.offsets) for o in objects)
    )


class RebuildTask(TaskAttempt):
    """A task's share of the rebuilding: takes a `RebuildInput` for each topic-partition and returns a `RebuildResult`,
    both msgpack."""

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        wanted = msgspec.msgpack.decode(given, type=RebuildInput)
        with SpillPool(self.settings.budget) as spool:
            rebuilder = _Rebuilder(self, tp, wanted, spool)
            try:
                result = rebuilder.run(batches)
            except NoSuchUpload as gone:
                result = RebuildResult(started_uploads=rebuilder.begun(), lost=str(gone))
        return msgspec.msgpack.encode(result)


class _Rebuilder:
    def __init__(self, share: TaskAttempt, tp: TopicPartition, wanted: RebuildInput, spool: SpillPool) -> None:
        settings = share.settings
        self._share = share
        self._tp = tp
        self._wanted = wanted
        self._spool = spool
        self._pipeline = share.pipeline
        self._uploads = PartUploader(share.s3, threads=settings.threads, bodies=settings.part_buffers)
        self._named = [_RebuiltObject(o) for o in wanted.closed]
        self._open = [_RebuiltObject(o) for o in wanted.open]
        self._again: Sequence[_RebuiltObject[ClosedObject] | _RebuiltObject[OpenObject]] = (*self._named, *self._open)

    def _writer(self, path: str, first: int) -> ObjectWriter:
        return ObjectWriter(
            key=self._pipeline.key(self._tp, path, first),
            uploads=self._uploads,
            staged=self._share.staged,
            spool=self._spool,
            compression=self._pipeline.compression,
            part_size=self._share.shaping.s3.part_size,
            was=None,
        )

    def begun(self) -> tuple[tuple[str, str], ...]:
        """The uploads that were begun, once nothing of them is on its way any more."""
        writers = [each.writer for each in self._again if each.writer is not None]
        for writer in writers:
            writer.drain()
        return tuple((writer.key, writer.started_upload) for writer in writers if writer.started_upload)

    def run(self, batches: Iterator[pa.RecordBatch]) -> RebuildResult:
        """Raises NoSuchUpload when an upload that it began is gone."""
        for batch in batches:
            self._append(batch)
        missing = tuple(each.missing() for each in self._again if each.found != each.o.offsets)
        if missing and not (self._wanted.partial and all(each.is_loss for each in missing)):
            return RebuildResult(missing=missing, started_uploads=self.begun())
        return RebuildResult(self._finished(), self._left_open(), missing, self.begun())

    def _append(self, batch: pa.RecordBatch) -> None:
        """Appends its rows of the batch to each object."""
        for each, _, rows in object_rows(self._again, batch, self._prepare):
            if each.writer is None:
                each.writer = self._writer(each.path, int(rows.offsets[0]))
            each.writer.append(rows)
            each.size += len(rows.data)

    def _prepare(self, batch: pa.RecordBatch, clock: int) -> PreparedBatch:
        return self._pipeline.prepare(batch, clock, self._tp)

    def _finished(self) -> tuple[ClosedObject, ...]:
        written = [each for each in self._named if each.writer is not None]
        for each in written:
            each.finish()
        return tuple(map(_renamed, written))

    def _left_open(self) -> tuple[OpenObject, ...]:
        staging = self._share.staging
        opened = []
        for each in self._open:
            writer = each.writer
            if writer is None or writer.start is None:
                continue
            left = writer.stage()
            upload, parts = writer.result()
            again = msgspec.structs.replace(
                each.o,
                first=writer.start,
                last=writer.last,
                size=each.size,
                offsets=writer.offsets,
                upload=upload,
                parts=parts,
                blocks=staging.add(left.blocks),
                partial_block=staging.add(left.partial_block),
            )
            opened.append(again)
        return tuple(opened)


class _RebuiltObject(Generic[Object]):
    """An object that is made again: its records go to the writer, which the first of them begins. `size` is in encoded,
    uncompressed bytes."""

    def __init__(self, o: Object) -> None:
        self.o: Object = o
        self.writer: ObjectWriter | None = None
        self.size = 0

    @property
    def path(self) -> str:
        return self.o.path

    @property
    def sources(self) -> tuple[SourceRange, ...]:
        return self.o.sources

    @property
    def found(self) -> OffsetChecksum:
        return self.writer.offsets if self.writer else OffsetChecksum()

    def finish(self) -> None:
        """Sends the last part."""
        if self.writer is not None:
            self.writer.finish()

    def missing(self) -> MissingRecords:
        return MissingRecords(self.o.path, self.o.first, self.o.last, self.found, self.o.offsets)


def _renamed(again: _RebuiltObject[ClosedObject]) -> ClosedObject:
    writer = again.writer
    assert writer is not None, "it has at least one record"
    assert writer.start is not None, "and so a first one"
    upload, parts = writer.result()
    assert upload is not None, "and so at least one part"
    return msgspec.structs.replace(
        again.o,
        key=writer.key,
        first=writer.start,
        last=writer.last,
        bytes=sum(p.size for p in parts),
        crc=combine_all((p.crc, p.size) for p in parts),
        upload=upload,
        parts=parts,
        offsets=writer.offsets,
    )
