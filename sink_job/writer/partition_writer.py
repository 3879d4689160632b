"""What a task does with one topic-partition in a round: cut, encode, upload, stage, and say what it did.

It runs on the executors. All it changes is invisible: parts of unfinished uploads and staging objects under names that
are its own (P1). What it did comes back as one `TaskResult`; data errors and lost uploads too, because an exception
would throw away what the round's other topic-partitions have done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.formats.spill_buffer import Spool
from sink_job.ledger.offset_checksum import holes
from sink_job.ledger.staging import StagingLost
from sink_job.ledger.state import NamedObject, OpenObject, PartitionState, Rotation, Seen, Tally
from sink_job.rotation.rotator import Cutter
from sink_job.rotation.types import Append, Close, CutState, OpenCut
from sink_job.s3 import NoSuchUpload
from sink_job.s3.checksums import combine_all
from sink_job.writer.object_writer import ObjectWriter, Uploads, extend_seen
from sink_job.writer.record_pipeline import Prepared
from sink_job.writer.row_slices import Piece, pieces
from sink_job.writer.task_attempt import TaskShare


class TaskInput(msgspec.Struct, frozen=True):
    """A topic-partition's state and the range `[state.next, end)` to read; `close`: whatever is open then is closed."""

    state: PartitionState
    end: int
    close: bool = False


class BadRecord(msgspec.Struct, frozen=True):
    """A record that was refused: its offset, and what was wrong with it."""

    offset: int
    message: str


class Counts(msgspec.Struct):
    """What a task did, in numbers. `records` and `bytes` (uncompressed) were written, `ignored` are nulls that the
    policy drops, `refused` bad records that are tolerated."""

    records: int = 0
    bytes: int = 0
    ignored: int = 0
    refused: int = 0
    parts: int = 0
    part_bytes: int = 0
    staged_bytes: int = 0
    spilled_bytes: int = 0
    buffered_bytes: int = 0
    requests: dict[str, int] = {}
    retries: int = 0


class TaskResult(msgspec.Struct, frozen=True):
    """What one task did. With `lost` (an upload or a staging object is gone: which) nothing else of it holds.

    `begun` are the uploads that this attempt began, as (key, upload id). `error` is the record before which the sink
    has to stop; of `refused` records, which are tolerated, the first few are told.
    """

    state: PartitionState
    counts: Counts
    named: tuple[NamedObject, ...] = ()
    rotations: tuple[Rotation, ...] = ()
    error: BadRecord | None = None
    refused: tuple[BadRecord, ...] = ()
    begun: tuple[tuple[str, str], ...] = ()
    lost: str | None = None


class WriteShare(TaskShare):
    """A task's share of a round: a `TaskInput` comes for each topic-partition, a `TaskResult` goes out, as msgpack."""

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        task = _INPUT.decode(given)
        with Spool(self.settings.budget) as spool:
            writer = RangeWriter(self, tp, task, spool)
            try:
                result = writer.run(batches)
            except (NoSuchUpload, StagingLost) as gone:
                result = TaskResult(task.state, Counts(), begun=writer.begun(), lost=str(gone))
        return msgspec.msgpack.encode(result)


_INPUT = msgspec.msgpack.Decoder(TaskInput)


class RangeWriter:
    """Drives the cutter over a range and carries out what it says."""

    def __init__(self, share: TaskShare, tp: TopicPartition, task: TaskInput, spool: Spool) -> None:
        settings = share.settings
        self._share = share
        self._settings = settings
        self._tp = tp
        self._task = task
        self._spool = spool
        self._pipeline = share.pipeline
        self._uploads = Uploads(share.s3, threads=settings.threads, bodies=settings.bodies)
        self._cutter = Cutter(share.pipeline.cut_settings, cut_state(task.state, settings.settings), settings.now)
        before = task.state.path_clock if task.state.settings == settings.settings else None
        self._path_clock = share.pipeline.path_clock(before, settings.now)
        self._inherited = {o.path: o for o in task.state.open}
        self._writers: dict[str, ObjectWriter] = {}
        self._closed: list[tuple[OpenCut, ObjectWriter, OpenObject | None]] = []
        self._rotations: list[Rotation] = []
        self._rotation_start = task.state.rotation_start
        self._written = task.state.written
        self._written_to = task.state.written_to
        self._counts = Counts()
        self._refused: list[BadRecord] = []

    def run(self, batches: Iterable[pa.RecordBatch]) -> TaskResult:
        """Raises NoSuchUpload or StagingLost when what the ledger names is gone."""
        self._carry_out(self._cutter.start_round(), None)
        error = self._feed(batches)
        if error is None:
            self._carry_out(self._cutter.end_round(self._task.end), None)
        else:
            self._cutter.stop_at(error.offset)
        if self._task.close:
            self._carry_out(self._cutter.close_all(), None)
        return self._result(error)

    def _feed(self, batches: Iterable[pa.RecordBatch]) -> BadRecord | None:
        """Cuts the batches; returns the record to stop before."""
        for batch in batches:
            prepared = self._pipeline.prepare(batch, self._settings.now, self._tp)
            self._counts.ignored += prepared.ignored
            stop = prepared.errors[0] if prepared.errors and not self._settings.tolerant else None
            if stop is None:
                self._counts.refused += len(prepared.errors)
                self._refused += [BadRecord(e.offset, e.message) for e in prepared.errors[: 10 - len(self._refused)]]
            rows = prepared.rows if stop is None else prepared.rows.between(0, stop.row)
            self._carry_out(self._cutter.feed(rows), prepared)
            if stop is not None:
                return BadRecord(stop.offset, stop.message)
        return None

    def _carry_out(self, steps: Iterable[Append | Close], prepared: Prepared | None) -> None:
        steps = list(steps)
        choices = [step.rows for step in steps if isinstance(step, Append)]
        taken = pieces(prepared, choices) if prepared is not None and choices else iter(())
        ahead = _first_ahead(steps, prepared)
        for step, first in zip(steps, ahead, strict=True):
            if isinstance(step, Close):
                self._close(step.objects)
                if not self._writers and not self._inherited and (first is None or first >= self._written_to):
                    self._end_rotation()
            else:
                self._append(step.path, next(taken))

    def _append(self, path: str, piece: Piece) -> None:
        self._writer(path, int(piece.offsets[0])).append(piece)
        self._written += piece.tally
        self._written_to = max(self._written_to, int(piece.offsets[-1]) + 1)
        self._counts.records += len(piece.offsets)
        self._counts.bytes += len(piece.data)

    def _writer(self, path: str, first: int) -> ObjectWriter:
        if path not in self._writers:
            was = self._inherited.get(path)
            assert was is None or was.settings == self._settings.settings, (
                "an object is written under one set of settings"
            )
            self._writers[path] = ObjectWriter(
                key=self._pipeline.key(self._tp, path, was.first if was else first),
                uploads=self._uploads,
                staged=self._share.staged,
                spool=self._spool,
                compression=self._pipeline.compression,
                part_size=self._share.shaping.s3.part_size,
                was=was,
            )
        return self._writers[path]

    def _close(self, objects: Iterable[OpenCut]) -> None:
        for cut in objects:
            writer = self._writer(cut.path, cut.first)
            writer.finish()
            self._closed.append((cut, writer, self._inherited.pop(cut.path, None)))
            del self._writers[cut.path]

    def _end_rotation(self) -> None:
        """Nothing is open: from the last rotation's end to the last record, each offset is in an object or a hole."""
        start, end = self._rotation_start, self._written_to
        gaps = holes(start, end, self._written)
        self._rotations.append(Rotation(self._tp.topic, self._tp.partition, start, end, gaps))
        self._rotation_start, self._written = end, Tally()

    def _result(self, error: BadRecord | None) -> TaskResult:
        named = tuple(self._named(*closed) for closed in self._closed)
        open_ = self._leave_open()
        cut = self._cutter.state
        state = PartitionState(
            next=cut.next,
            committable=self._cutter.committable,
            rotation_start=self._rotation_start,
            written=self._written,
            written_to=self._written_to,
            settings=self._settings.settings,
            n=cut.n,
            last_time=cut.last_time,
            base=cut.base,
            current_path=cut.current_path,
            next_schedule=cut.next_schedule,
            path_clock=self._path_clock,
            open=open_,
        )
        counts = self._counts
        counts.parts, counts.part_bytes = self._uploads.parts, self._uploads.bytes
        counts.spilled_bytes, counts.buffered_bytes = self._spool.spilled, self._spool.peak
        counts.requests, counts.retries = self._share.asked()
        return TaskResult(
            state=state,
            counts=counts,
            named=named,
            rotations=tuple(self._rotations),
            error=error,
            refused=tuple(self._refused),
            begun=self.begun(),
        )

    def begun(self) -> tuple[tuple[str, str], ...]:
        """The uploads that this attempt has begun, once nothing of them is on its way any more."""
        writers = [*(writer for _, writer, _ in self._closed), *self._writers.values()]
        for writer in writers:
            writer.settle()
        return tuple((w.key, w.begun) for w in writers if w.begun)

    def _named(self, cut: OpenCut, writer: ObjectWriter, was: OpenObject | None) -> NamedObject:
        upload, parts = writer.result()
        assert upload is not None, "a closed object has sent its last part"
        return NamedObject(
            key=writer.key,
            topic=self._tp.topic,
            partition=self._tp.partition,
            path=cut.path,
            first=cut.first,
            last=cut.last,
            bytes=sum(p.size for p in parts),
            crc=combine_all((p.crc, p.size) for p in parts),
            upload=upload,
            parts=parts,
            seen=self._seen(cut, writer, was),
            offsets=writer.offsets,
            settings=self._settings.settings,
        )

    def _seen(self, cut: OpenCut, writer: ObjectWriter, was: OpenObject | None) -> tuple[Seen, ...]:
        seen = was.seen if was else ()
        if writer.start is None:
            return seen
        return extend_seen(seen, writer.start, cut.last + 1, self._path_clock or 0)

    def _leave_open(self) -> tuple[OpenObject, ...]:
        staging = self._share.staging
        before = staging.bytes
        objects = []
        for path, cut in self._cutter.state.open.items():
            was = self._inherited.get(path)
            writer = self._writers.get(path)
            if writer is None:
                assert was is not None, "an open object was inherited or written to"
                objects.append(was)
                continue
            left = writer.leave()
            sealed = (was.sealed if was and left.keeps_sealed else ()) + staging.add(left.sealed)
            loose = (was.loose if was and left.keeps_loose else ()) + staging.add(left.loose)
            seen = self._seen(cut, writer, was)
            objects.append(writer.opened(cut, settings=self._settings.settings, seen=seen, sealed=sealed, loose=loose))
        self._counts.staged_bytes = staging.bytes - before
        return tuple(objects)


def _first_ahead(steps: Sequence[Append | Close], prepared: Prepared | None) -> list[int | None]:
    """For each step the lowest offset that a later one appends; None where none does. With `scope: Object` a step may
    append what lies before another path's records that are closed already: it was open when they were."""
    found: list[int | None] = []
    lowest: int | None = None
    for step in reversed(steps):
        found.append(lowest)
        if isinstance(step, Append) and prepared is not None:
            row = (step.rows.start or 0) if isinstance(step.rows, slice) else step.rows[0]
            offset = int(prepared.rows.offsets[row])
            lowest = offset if lowest is None else min(lowest, offset)
    return found[::-1]


def cut_state(state: PartitionState, settings: int) -> CutState:
    """The cutter's half of a partition's state, to be cut under the settings of claim `settings`.

    Other settings begin afresh: what the old ones opened is closed by then, and their schedule says nothing any more.
    """
    if state.settings != settings and not state.open:
        return CutState(next=state.next, committable=state.committable)
    return CutState(
        next=state.next,
        committable=state.committable,
        last_time=state.last_time,
        base=state.base,
        n=state.n,
        current_path=state.current_path,
        next_schedule=state.next_schedule,
        open={
            o.path: OpenCut(
                path=o.path, first=o.first, last=o.last, count=o.count, size=o.size, opened_at=o.opened_at, base=o.base
            )
            for o in state.open
        },
    )
