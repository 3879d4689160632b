"""Writes one topic-partition's range of a round: rotate, encode, upload, stage, and return a `TaskResult`.

It runs on the executors. Its effects are invisible to readers: parts of unfinished uploads, and staging objects with
names of their own (P1). Data errors and lost uploads are part of the `TaskResult`, because an exception would discard
the results of the round's other topic-partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import msgspec
import pyarrow as pa

from sink_job.api.enums import SchemaInference
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Indices
from sink_job.engine.types import payload
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.offset_checksum import gap_checksum
from sink_job.ledger.staging import StagedDataLost
from sink_job.ledger.state import OffsetChecksum, PartitionState, RotationRange
from sink_job.records.batch import DEAD_LETTERS, Rows
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import Append, Close, ObjectId, OpenObjectState, RotationState
from sink_job.s3 import NoSuchUpload
from sink_job.tasks.write import MAX_UNRESOLVED, RejectedRecord, TaskCounters, TaskInput, TaskResult
from sink_job.writer.dead_letter_object import DeadLetterObject
from sink_job.writer.dead_letters import DeadLetterLines
from sink_job.writer.large_batches import prepared_parts
from sink_job.writer.record_pipeline import PreparedBatch, RejectedRow, RejectionReason
from sink_job.writer.row_slices import RowSelection, RowSlice, row_slices
from sink_job.writer.schema_sample import MAX_RECORDS, SchemaSample
from sink_job.writer.size_limits import SizeLimits, check_ranges, is_checked
from sink_job.writer.skipped_records import SkippedRecords, last_skipped
from sink_job.writer.task_attempt import TaskAttempt
from sink_job.writer.task_objects import TaskObjects

LOOK_AHEAD = 4 << 20
"""Bytes of values that are searched for a further unresolved schema id: two batches of the reader."""

MAX_REJECTED = 10
"""Maximum number of rejected records that a task reports with their messages."""


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


class RotationRanges:
    """The rotations that end in a task, and the accepted offsets since the last one."""

    def __init__(self, tp: TopicPartition, state: PartitionState) -> None:
        self._tp = tp
        self.start = state.rotation_start
        self.accepted = state.accepted
        self.accepted_end = state.accepted_end
        self.ended: list[RotationRange] = []

    def add(self, rows: RowSlice) -> None:
        self.accepted += rows.checksum
        self.accepted_end = max(self.accepted_end, int(rows.offsets[-1]) + 1)

    def end_rotation(self) -> None:
        """No object is open: from the end of the last rotation to the last record, each offset is in an object or is a
        gap."""
        gaps = gap_checksum(self.start, self.accepted_end, self.accepted)
        self.ended.append(RotationRange(self._tp.topic, self._tp.partition, self.start, self.accepted_end, gaps))
        self.start, self.accepted = self.accepted_end, OffsetChecksum()


class RecordReport:
    """What a task reports about the records that it has read: counters, rejected records, and schema ids."""

    def __init__(self, state: PartitionState) -> None:
        """`left_out` are the offsets that are in no source range of accepted records, ascending: of records with an
        unknown schema id, and of skipped ones. Of those of earlier tasks it has the last ones."""
        self.counts = TaskCounters()
        self.rejected: list[RejectedRecord] = []
        self.unresolved: dict[str, None] = {}
        self.last_unknown = state.last_unknown
        self.left_out = sorted(each for each in (state.last_unknown, last_skipped(state)) if each is not None)
        self.sample = SchemaSample()

    def add(self, prepared: PreparedBatch, stop: RejectedRow | None, *, keeps_nulls: bool) -> None:
        """Adds a batch, whose records from `stop` on are not accepted. `keeps_nulls`: null values are no errors."""
        self.counts.ignored += prepared.ignored
        self.counts.filtered += prepared.filtered
        self.counts.dropped_properties += prepared.dropped_properties
        if stop is None:
            errors = prepared.errors
            if keeps_nulls:
                errors = [each for each in errors if each.reason is not RejectionReason.NULL_VALUE]
            self.counts.rejected += len(prepared.errors)
            self.counts.kept_nulls += len(prepared.errors) - len(errors)
            self.rejected += [RejectedRecord(e.offset, e.message) for e in errors[: MAX_REJECTED - len(self.rejected)]]
            self.left_out += prepared.unknown
            self.last_unknown = prepared.unknown[-1] if prepared.unknown else self.last_unknown

    def add_rows(self, rows: RowSlice) -> None:
        self.counts.records += len(rows.offsets)
        self.counts.bytes += rows.size

    def add_unresolved(self, ids: Iterable[str], values: pa.Array) -> None:
        """Adds schema ids that are not resolved yet, and a sample of the values from the first of them on."""
        self.unresolved |= dict.fromkeys(ids)
        self.sample.add(values, self.unresolved)


class PartitionWriter:
    """Runs the rotator over a range and applies its steps."""

    def __init__(self, attempt: TaskAttempt, tp: TopicPartition, task: TaskInput, spill: SpillPool) -> None:
        settings = attempt.settings
        self.objects = TaskObjects(attempt, tp, spill, task.state.open)
        self._attempt = attempt
        self._tp = tp
        self._task = task
        self._spill = spill
        policy = attempt.pipeline.rotation_policy
        self._dead_letters: DeadLetterObject | None = None
        chosen = attempt.object_settings.dead_letters
        if chosen is not None:
            lines = DeadLetterLines.under(attempt.object_settings, tp)
            inherited = [o.state for o in task.state.open if o.path == DEAD_LETTERS]
            self._dead_letters = DeadLetterObject(lines, policy, settings.now, inherited, every_round=chosen.staged)
        self._rotator = Rotator(
            policy,
            rotation_state(task.state, settings.settings_record),
            [o.state for o in task.state.open if o.path != DEAD_LETTERS],
            settings.now,
        )
        before = task.state.path_clock if task.state.settings == settings.settings_record else None
        self._path_clock = attempt.pipeline.path_clock(before, settings.now)
        self._limits = SizeLimits.of(attempt.object_settings)
        self._rotations = RotationRanges(tp, task.state)
        self._report = RecordReport(task.state)
        self._skipped = SkippedRecords(task.state, task.skip)

    def run(self, batches: Iterable[pa.RecordBatch]) -> TaskResult:
        """Raises NoSuchUpload or StagedDataLost when an upload or staged data of the ledger no longer exists."""
        self._apply_steps(self._rotator.open_round(), None)
        remaining = self._skipped.without(batches, self._report.left_out.append)
        stop = self._write_batches(remaining)
        self._write_dead_letters(None)
        if stop is None:
            self._apply_steps(self._rotator.close_round(self._task.end), None)
        else:
            self._rotator.stop_at(stop.offset)
        unresolved = self._report.unresolved
        error = None if unresolved else stop
        if unresolved:
            self._look_ahead(remaining)
        if self._task.close and not unresolved:
            self._apply_steps(self._rotator.close_all(), None)
        self._close_dead_letters()
        return self._result(error)

    def _look_ahead(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Reports the unresolved schema ids of the rest of the range, so that not each of them costs a round. Ends
        where `LOOK_AHEAD` bytes of values had no further one, since all of these are read again."""
        report = self._report
        known, seen = len(report.unresolved), 0
        while known < MAX_UNRESOLVED and (seen < LOOK_AHEAD or report.sample.is_open):
            batch = next(batches, None)
            if batch is None:
                return
            sampled = self._sampled(batch)
            report.add_unresolved(self._attempt.pipeline.unresolved(sampled, self._tp), payload(sampled))
            seen = seen + payload(batch).nbytes if len(report.unresolved) == known else 0
            known = len(report.unresolved)

    def _write_batches(self, batches: Iterable[pa.RecordBatch]) -> RejectedRecord | None:
        """Writes the batches; returns the record before which the range ends early, if any: at a data error, or where
        an unresolved schema id occurs (then the report has it)."""
        for batch, prepared in self._prepared(batches):
            stop = prepared.errors[0] if prepared.errors and not self._attempt.settings.tolerant else None
            self._report.add(prepared, stop, keeps_nulls=self._attempt.pipeline.null_policy.kept)
            rows = prepared.rows if stop is None else prepared.rows.between(0, stop.row)
            if self._dead_letters is not None and stop is None:
                self._dead_letters.add(batch, prepared.errors)
            self._add(rows, prepared)
            self._write_dead_letters(self._rotations.accepted_end)
            if self._dead_letters is not None and self._dead_letters.has_many_deferred:
                self._write_dead_letters(None)
            if stop is not None:
                return RejectedRecord(stop.offset, stop.message)
            if prepared.unresolved:
                sampled = self._sampled(batch.slice(len(rows)))
                self._report.add_unresolved(prepared.unresolved, payload(sampled))
                return RejectedRecord(batch.column("offset")[len(rows)].as_py(), "its schema is not resolved yet")
        return None

    def _sampled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The records from which a schema can be inferred, with transformed values."""
        pipeline = self._attempt.pipeline
        infers = pipeline.object_settings.format.inference is SchemaInference.ONCE
        if pipeline.transforms is None or not infers:
            return batch
        return pipeline.transforms.apply(batch.slice(0, MAX_RECORDS), self._tp).batch

    def _prepared(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, PreparedBatch]]:
        """The batches, in parts where they are too large. Raises ColumnTooLarge."""
        for batch in batches:
            for _, part, prepared in prepared_parts(batch, self._attempt.settings.now, self._prepare):
                yield part, prepared

    def _prepare(self, batch: pa.RecordBatch, clock: int) -> PreparedBatch:
        return self._attempt.pipeline.prepare(batch, clock, self._tp)

    def _add(self, rows: Rows, prepared: PreparedBatch) -> None:
        """Writes the rows of a batch, and closes objects whose encoded bytes have reached a limit."""
        if self._limits is None or not any(map(self._limits.is_near, self.objects.encoded().values())):
            self._apply_steps(self._rotator.add(rows), prepared)
            return
        for start, end in check_ranges(rows.offsets):
            self._close_large(self._limits, int(rows.offsets[start]))
            self._apply_steps(moved(self._rotator.add(rows.between(start, end)), start), prepared)

    def _close_large(self, limits: SizeLimits, next_offset: int) -> None:
        """Closes the objects that have reached a limit before the record `next_offset`."""
        sizes = self.objects.encoded()
        large = [o for o in self._rotator.open.values() if is_checked(o.last, next_offset)]
        self._apply_steps(self._rotator.close([o for o in large if limits.is_reached(sizes[o.id])]), None)

    def _apply_steps(self, steps: Iterable[Append | Close], prepared: PreparedBatch | None) -> None:
        steps = list(steps)
        self.objects.load_schemas(steps, {} if prepared is None else prepared.schemas)
        last = self._rotator.state.last_schema
        if prepared is not None and last is not None and last in prepared.schemas:
            self._attempt.pipeline.keep_last_schema(prepared.schemas[last])
        choices = [RowSelection(step.target.schema, step.rows) for step in steps if isinstance(step, Append)]
        slices = row_slices(prepared, choices) if prepared is not None and choices else iter(())
        for step in steps:
            if isinstance(step, Close):
                self._close(step)
            else:
                rows = next(slices)
                self.objects.append(step.target, rows, self._report.left_out)
                self._rotations.add(rows)
                self._report.add_rows(rows)

    def _close(self, step: Close) -> None:
        """Closes objects. At the end of a rotation the dead-letter object closes, too: it holds the rejected records
        before the last accepted one."""
        self.objects.close(step.objects, step.reason)
        if self._dead_letters is not None:
            self._dead_letters.others_closed()
            if step.ends_rotation:
                self._write_dead_letters(self._rotations.accepted_end)
                self._dead_letters.close(self.objects)
        if step.ends_rotation:
            self._rotations.end_rotation()

    def _write_dead_letters(self, before: int | None) -> None:
        """Writes the rejected records before this offset; None: all that the task has read."""
        if self._dead_letters is not None:
            for rows in self._dead_letters.take_before(before):
                self.objects.append(ObjectId(DEAD_LETTERS), rows, self._report.left_out)
                self._rotations.add(rows)
                self._report.counts.dead_letters += len(rows.offsets)

    def _close_dead_letters(self) -> None:
        """Closes the dead-letter object at the end of the round, if it does not stay open beside others."""
        alone = not self._rotator.open
        if self._dead_letters is not None and self._dead_letters.is_due(alone=alone):
            self._dead_letters.close(self.objects)
            if alone:
                self._rotations.end_rotation()

    def _open_objects(self) -> dict[ObjectId, OpenObjectState]:
        """The open objects, ordered by first offset."""
        found = dict(self._rotator.open)
        if self._dead_letters is not None and self._dead_letters.state is not None:
            found[ObjectId(DEAD_LETTERS)] = self._dead_letters.state
        return dict(sorted(found.items(), key=lambda each: each[1].first))

    def _result(self, error: RejectedRecord | None) -> TaskResult:
        report, rotations, clock = self._report, self._rotations, self._path_clock or 0
        closed = self.objects.closed_objects(clock, report.left_out)
        staged_before = self._attempt.staging.bytes
        opened = self._open_objects()
        open_ = self.objects.stage(opened, clock, report.left_out)
        committable = min([self._rotator.committable, *(o.first for o in opened.values() if o.path == DEAD_LETTERS)])
        state = PartitionState(
            msgspec.structs.replace(self._rotator.state, committable=committable),
            rotation_start=rotations.start,
            accepted=rotations.accepted,
            accepted_end=rotations.accepted_end,
            settings=self._attempt.settings.settings_record,
            path_clock=self._path_clock,
            last_unknown=report.last_unknown,
            skipped=self._skipped.before(self._rotator.state.next),
            open=open_,
        )
        counts = report.counts
        counts.skipped = len(self._skipped.passed(state.next))
        counts.staged_bytes = self._attempt.staging.bytes - staged_before
        counts.parts, counts.part_bytes = self.objects.uploaded()
        counts.spilled_bytes, counts.buffered_bytes = self._spill.spilled, self._spill.peak
        counts.requests, counts.retries = self._attempt.request_counts()
        return TaskResult(
            state=state,
            counts=counts,
            closed=closed,
            reasons=tuple(self.objects.reasons),
            rotations=tuple(rotations.ended),
            error=error,
            rejected=tuple(report.rejected),
            started_uploads=self.objects.started_uploads(),
            unresolved=tuple((self._tp.topic, schema) for schema in islice(report.unresolved, MAX_UNRESOLVED)),
            observed=report.sample.observed,
        )


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
