"""Writes one topic-partition's range of a round: rotate, encode, upload, stage, and return a `TaskResult`.

It runs on the executors. Its effects are invisible to readers: parts of unfinished uploads, and staging objects with
names of their own (P1). Data errors and lost uploads are part of the `TaskResult`, because an exception would discard
the results of the round's other topic-partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import msgspec
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Indices
from sink_job.connect.schema import Schema
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.offset_checksum import gap_checksum
from sink_job.ledger.staging import StagedDataLost
from sink_job.ledger.state import ClosedObject, OffsetChecksum, OpenObject, PartitionState, RotationRange
from sink_job.records.batch import Rows
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import Append, Close, ObjectId, OpenObjectState, RotationState
from sink_job.s3 import NoSuchUpload
from sink_job.s3.checksums import combine_all
from sink_job.tasks.write import MAX_UNRESOLVED, RejectedRecord, TaskCounters, TaskInput, TaskResult
from sink_job.writer.large_batches import prepared_parts
from sink_job.writer.object_writer import ObjectWriter, ObjectWriters
from sink_job.writer.record_pipeline import PreparedBatch
from sink_job.writer.row_slices import RowSelection, RowSlice, row_slices
from sink_job.writer.schema_sample import SchemaSample
from sink_job.writer.size_limits import EncodedSize, SizeLimits, check_ranges, is_checked
from sink_job.writer.task_attempt import TaskAttempt


class WriteTask(TaskAttempt):
    """Writes the ranges of a task's topic-partitions: takes a `TaskInput` for each and returns a `TaskResult`, both as
    msgpack."""

    def __call__(self, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        task = _INPUT.decode(task_input)
        with SpillPool(self.settings.budget) as spill:
            writer = PartitionWriter(self, tp, task, spill)
            try:
                result = writer.run(batches)
            except (NoSuchUpload, StagedDataLost) as gone:
                result = TaskResult(
                    task.state, TaskCounters(), started_uploads=writer.objects.started_uploads(), lost=str(gone)
                )
        return msgspec.msgpack.encode(result)


_INPUT = msgspec.msgpack.Decoder(TaskInput)


class PartitionWriter:
    """Runs the rotator over a range and applies its steps."""

    def __init__(self, attempt: TaskAttempt, tp: TopicPartition, task: TaskInput, spill: SpillPool) -> None:
        settings = attempt.settings
        self.objects = ObjectWriters(attempt, tp, spill)
        self._attempt = attempt
        self._settings = settings
        self._tp = tp
        self._task = task
        self._spill = spill
        self._pipeline = attempt.pipeline
        self._rotator = Rotator(
            attempt.pipeline.rotation_policy,
            rotation_state(task.state, settings.settings_record),
            [o.state for o in task.state.open],
            settings.now,
        )
        before = task.state.path_clock if task.state.settings == settings.settings_record else None
        self._path_clock = attempt.pipeline.path_clock(before, settings.now)
        self._inherited = {o.id: o for o in task.state.open}
        self._limits = SizeLimits.of(attempt.object_settings)
        self._writers: dict[ObjectId, ObjectWriter] = {}
        self._closed: list[tuple[OpenObjectState, ObjectWriter]] = []
        self._rotations: list[RotationRange] = []
        self._rotation_start = task.state.rotation_start
        self._accepted = task.state.accepted
        self._accepted_end = task.state.accepted_end
        self._counts = TaskCounters()
        self._rejected: list[RejectedRecord] = []
        self._unresolved: dict[str, None] = {}
        self._sample = SchemaSample()
        self._unknown = [] if task.state.last_unknown is None else [task.state.last_unknown]
        self._kept: set[str | None] = set()

    def run(self, batches: Iterable[pa.RecordBatch]) -> TaskResult:
        """Raises NoSuchUpload or StagedDataLost when an upload or staged data of the ledger no longer exists."""
        self._apply_steps(self._rotator.open_round(), None)
        remaining = iter(batches)
        stop = self._write_batches(remaining)
        if stop is None:
            self._apply_steps(self._rotator.close_round(self._task.end), None)
        else:
            self._rotator.stop_at(stop.offset)
        error = None if self._unresolved else stop
        while 0 < len(self._unresolved) < MAX_UNRESOLVED and (batch := next(remaining, None)) is not None:
            self._unresolved |= dict.fromkeys(self._pipeline.unresolved(batch, self._tp))
            self._sample.add(batch.column("value"), self._unresolved)
        if self._task.close and not self._unresolved:
            self._apply_steps(self._rotator.close_all(), None)
        return self._result(error)

    def _write_batches(self, batches: Iterable[pa.RecordBatch]) -> RejectedRecord | None:
        """Writes the batches; returns the record before which the range ends early, if any: at a data error, or where
        an unresolved schema id occurs (then `_unresolved` is set)."""
        for batch, prepared in self._prepared(batches):
            self._counts.ignored += prepared.ignored
            self._counts.dropped_properties += prepared.dropped_properties
            stop = prepared.errors[0] if prepared.errors and not self._settings.tolerant else None
            if stop is None:
                self._counts.rejected += len(prepared.errors)
                self._rejected += [
                    RejectedRecord(e.offset, e.message) for e in prepared.errors[: 10 - len(self._rejected)]
                ]
                self._unknown += prepared.unknown
            rows = prepared.rows if stop is None else prepared.rows.between(0, stop.row)
            self._add(rows, prepared)
            if stop is not None:
                return RejectedRecord(stop.offset, stop.message)
            if prepared.unresolved:
                self._unresolved |= dict.fromkeys(prepared.unresolved)
                self._sample.add(batch.column("value").slice(len(rows)), self._unresolved)
                return RejectedRecord(batch.column("offset")[len(rows)].as_py(), "its schema is not resolved yet")
        return None

    def _add(self, rows: Rows, prepared: PreparedBatch) -> None:
        """Writes the rows of a batch, and closes objects whose encoded bytes have reached a limit."""
        if self._limits is None or not any(map(self._limits.is_near, self._encoded().values())):
            self._apply_steps(self._rotator.add(rows), prepared)
            return
        for start, end in check_ranges(rows.offsets):
            self._close_large(self._limits, int(rows.offsets[start]))
            self._apply_steps(moved(self._rotator.add(rows.between(start, end)), start), prepared)

    def _close_large(self, limits: SizeLimits, next_offset: int) -> None:
        """Closes the objects that have reached a limit before the record `next_offset`."""
        sizes = self._encoded()
        large = [o for o in self._rotator.open.values() if is_checked(o.last, next_offset)]
        self._apply_steps(self._rotator.close([o for o in large if limits.is_reached(sizes[o.id])]), None)

    def _encoded(self) -> dict[ObjectId, EncodedSize]:
        """The encoded sizes of the open objects."""
        inherited = {id_: EncodedSize.of(o) for id_, o in self._inherited.items() if id_ not in self._writers}
        return inherited | {id_: writer.encoded for id_, writer in self._writers.items()}

    def _prepared(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, PreparedBatch]]:
        """The batches, in parts where they are too large. Raises ColumnTooLarge."""
        for batch in batches:
            for _, part, prepared in prepared_parts(batch, self._settings.now, self._prepare):
                yield part, prepared

    def _prepare(self, batch: pa.RecordBatch, clock: int) -> PreparedBatch:
        return self._pipeline.prepare(batch, clock, self._tp)

    def _apply_steps(self, steps: Iterable[Append | Close], prepared: PreparedBatch | None) -> None:
        steps = list(steps)
        self._load_schemas(steps, {} if prepared is None else prepared.schemas)
        choices = [RowSelection(step.target.schema, step.rows) for step in steps if isinstance(step, Append)]
        taken = row_slices(prepared, choices) if prepared is not None and choices else iter(())
        for step in steps:
            if isinstance(step, Close):
                self._close(step.objects)
                if step.ends_rotation:
                    self._end_rotation()
            else:
                self._append(step.target, next(taken))

    def _load_schemas(self, steps: Sequence[Append | Close], schemas: Mapping[str, Schema]) -> None:
        """Stores and reads the schemas that the steps need, all together: each alone costs a round trip. New schemas
        are stored in the order of their first records, so that field ids do not depend on the sizes of batches."""
        appended = sorted((step for step in steps if isinstance(step, Append)), key=_first_row)
        targets = dict.fromkeys(step.target for step in appended)
        opened = [each for each in targets if each not in self._writers and each not in self._inherited]
        new = [each for each in opened if each.schema not in self._kept]
        self._pipeline.keep_schemas(self._tp.topic, new, schemas)
        self._kept.update(each.schema for each in new)
        closed = (o.id for step in steps if isinstance(step, Close) for o in step.objects)
        used = dict.fromkeys((*targets, *closed))
        self._pipeline.prefetch_schemas(each for each in used if each not in self._writers and each in self._inherited)

    def _append(self, target: ObjectId, rows: RowSlice) -> None:
        self._writer(target, int(rows.offsets[0])).append(rows, self._unknown)
        self._accepted += rows.checksum
        self._accepted_end = max(self._accepted_end, int(rows.offsets[-1]) + 1)
        self._counts.records += len(rows.offsets)
        self._counts.bytes += len(rows.data)

    def _writer(self, target: ObjectId, first: int) -> ObjectWriter:
        """The writer of an object, whose schema `_load_schemas` has stored or read."""
        if target not in self._writers:
            previous = self._inherited.get(target)
            assert previous is None or previous.settings == self._settings.settings_record, (
                "an object is written under one number of settings"
            )
            self._writers[target] = self.objects.new(target, previous.first if previous else first, previous)
        return self._writers[target]

    def _close(self, objects: Iterable[OpenObjectState]) -> None:
        for state in objects:
            writer = self._writer(state.id, state.first)
            writer.finish()
            self._inherited.pop(state.id, None)
            self._closed.append((state, writer))
            del self._writers[state.id]

    def _end_rotation(self) -> None:
        """No object is open: from the end of the last rotation to the last record, each offset is in an object or is a
        gap."""
        start, end = self._rotation_start, self._accepted_end
        gaps = gap_checksum(start, end, self._accepted)
        self._rotations.append(RotationRange(self._tp.topic, self._tp.partition, start, end, gaps))
        self._rotation_start, self._accepted = end, OffsetChecksum()

    def _result(self, error: RejectedRecord | None) -> TaskResult:
        named = tuple(self._closed_object(*closed) for closed in self._closed)
        open_ = self._stage_open()
        rotation = self._rotator.state
        state = PartitionState(
            msgspec.structs.replace(rotation, committable=self._rotator.committable),
            rotation_start=self._rotation_start,
            accepted=self._accepted,
            accepted_end=self._accepted_end,
            settings=self._settings.settings_record,
            path_clock=self._path_clock,
            last_unknown=self._unknown[-1] if self._unknown else None,
            open=open_,
        )
        counts = self._counts
        counts.parts, counts.part_bytes = self.objects.uploads.parts, self.objects.uploads.bytes
        counts.spilled_bytes, counts.buffered_bytes = self._spill.spilled, self._spill.peak
        counts.requests, counts.retries = self._attempt.request_counts()
        return TaskResult(
            state=state,
            counts=counts,
            closed=named,
            rotations=tuple(self._rotations),
            error=error,
            rejected=tuple(self._rejected),
            started_uploads=self.objects.started_uploads(),
            unresolved=tuple((self._tp.topic, schema) for schema in islice(self._unresolved, MAX_UNRESOLVED)),
            observed=self._sample.observed,
        )

    def _closed_object(self, state: OpenObjectState, writer: ObjectWriter) -> ClosedObject:
        upload, parts = writer.result()
        assert upload is not None, "a closed object has sent its last part"
        return ClosedObject(
            key=writer.key,
            topic=self._tp.topic,
            partition=self._tp.partition,
            path=state.path,
            first=state.first,
            last=state.last,
            bytes=sum(p.size for p in parts),
            crc=combine_all((p.crc, p.size) for p in parts),
            upload=upload,
            parts=parts,
            sources=writer.sources(self._path_clock or 0, self._unknown),
            offsets=writer.offsets,
            settings=self._settings.settings_record,
            schema=state.schema,
        )

    def _stage_open(self) -> tuple[OpenObject, ...]:
        staging = self._attempt.staging
        before = staging.bytes
        objects = []
        for id_, state in self._rotator.open.items():
            previous = self._inherited.get(id_)
            writer = self._writers.get(id_)
            if writer is None:
                assert previous is not None, "an open object was inherited or written to"
                objects.append(previous)
                continue
            objects.append(
                writer.to_open_object(
                    state,
                    settings=self._settings.settings_record,
                    sources=writer.sources(self._path_clock or 0, self._unknown),
                    remainder=writer.stage(staging),
                )
            )
        self._counts.staged_bytes = staging.bytes - before
        return tuple(objects)


def _first_row(step: Append) -> int:
    return int(step.rows.start or 0) if isinstance(step.rows, slice) else int(step.rows[0])


def moved(steps: Iterable[Append | Close], start: int) -> list[Append | Close]:
    """The steps of the rows of a batch from `start` on, as steps of the batch."""
    return [replace(step, rows=_moved(step.rows, start)) if isinstance(step, Append) else step for step in steps]


def _moved(rows: slice | Indices, start: int) -> slice | Indices:
    return slice((rows.start or 0) + start, rows.stop + start) if isinstance(rows, slice) else rows + start


def rotation_state(state: PartitionState, settings: int) -> RotationState:
    """The rotation state of a topic-partition, under the settings of claim `settings`.

    Other settings start with an empty state: the objects of the previous ones are closed, and their schedule is void.
    """
    if state.settings != settings and not state.open:
        return RotationState(next=state.next, committable=state.committable)
    return state.rotation
