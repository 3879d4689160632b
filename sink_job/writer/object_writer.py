"""Writes objects in a task: uploads parts while records arrive, and stages the remainder at the end.

An upload starts when the first part is full, or when the object closes. An object that grows slowly therefore costs one
staging object per round and no upload. A few threads of the process send the parts. A semaphore bounds the number of
part buffers in memory, so a slow server slows the task down instead of filling its memory (P7).
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from functools import cache

import msgspec
import numpy as np

from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Integers
from sink_job.engine.thread_pools import pool
from sink_job.formats.base import ObjectEncoder
from sink_job.formats.compression import Uncompressed
from sink_job.formats.datum_rows import ConcatenatedBlocks
from sink_job.formats.part_assembler import PartAssembler, PartBody
from sink_job.formats.pending import StagedPrefix
from sink_job.formats.remainder import Remainder
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.staging import StagedDataLost, StagingReader, StagingWriter
from sink_job.ledger.state import NOTHING_STAGED, Extent, OffsetChecksum, OpenObject, Part, SourceRange
from sink_job.partitioning.object_keys import is_temporary
from sink_job.records.batch import DEAD_LETTERS
from sink_job.rotation.types import ObjectId, OpenObjectState
from sink_job.s3 import S3Client
from sink_job.writer.dead_letters import DeadLetterSources
from sink_job.writer.row_slices import RowSlice
from sink_job.writer.size_limits import EncodedSize
from sink_job.writer.task_attempt import TaskAttempt

MAX_STAGED_EXTENTS = 16
"""Maximum number of staged extents of an object before they are compacted into one (P6)."""


@cache
def _pool(threads: int) -> Executor:
    return pool(threads, "s3sink-upload")


class PartUploader:
    """Uploads the parts of one task's objects, with a bounded number of part buffers."""

    def __init__(self, s3: S3Client, *, threads: int, part_buffers: int) -> None:
        """`part_buffers` is the maximum number of part buffers in memory, queued or in transfer."""
        self.s3 = s3
        self.parts = 0
        self.bytes = 0
        self._pool = _pool(threads)
        self._permits = threading.BoundedSemaphore(part_buffers)

    def submit(self, send: Callable[[], Part], size: int) -> Future[Part]:
        self._permits.acquire()
        self.parts += 1
        self.bytes += size
        future = self._pool.submit(send)
        future.add_done_callback(lambda _: self._permits.release())
        return future


class AppendedRows:
    """Which rows a writer has got: their first and last offset, and their offset ranges."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.last = -1
        self._ranges: list[tuple[int, int]] = []

    def add(self, offsets: Integers, breaks: Sequence[int]) -> None:
        """No range contains an offset of `breaks`, which ascend."""
        first, self.last = int(offsets[0]), int(offsets[-1])
        if self.first is None:
            self.first = first
        inside = breaks[bisect_left(breaks, first) : bisect_left(breaks, self.last)]
        start, *others = spans(offsets, inside) if inside else [(first, self.last + 1)]
        if self._ranges and bisect_left(breaks, self._ranges[-1][1]) == bisect_left(breaks, start[0]):
            start = (self._ranges.pop()[0], start[1])
        self._ranges += [start, *others]

    def extend(self, previous: tuple[SourceRange, ...], clock: int, breaks: Sequence[int]) -> tuple[SourceRange, ...]:
        """The source ranges `previous` and those of these rows, under the path clock `clock`. No range contains an
        offset of `breaks`, which ascend."""
        if not self._ranges:
            return previous
        first, *others = self._ranges
        extended = extend_sources(previous, *first, clock, breaks)
        return (*extended, *(SourceRange(start, end, clock) for start, end in others))


class ObjectWriter:
    """One object in one task: takes rows, gives uploaded parts and a remainder."""

    def __init__(
        self,
        *,
        key: str,
        uploads: PartUploader,
        staged: StagingReader,
        spill: SpillPool,
        encoder: ObjectEncoder,
        part_size: int,
        equal_parts: bool = False,
        previous: OpenObject | None,
        rows: DeadLetterSources | None = None,
    ) -> None:
        """`part_size`, `equal_parts`: see `PartAssembler`. `previous` is the object as the ledger has it, None for one
        that this task opens. `rows`: that of a dead-letter object.

        Raises StagedDataLost for an object whose bytes were discarded after a data loss.
        """
        if previous and previous.size and not previous.parts and not previous.staged:
            raise StagedDataLost(f"the bytes of {uploads.s3.url_of(key)} were discarded")
        self.key = key
        self.offsets = previous.offsets if previous else OffsetChecksum()
        self.rows: AppendedRows | DeadLetterSources = rows or AppendedRows()
        self._previous = previous
        self._staged_before = previous.remainder if previous else NOTHING_STAGED
        self._uploads = uploads
        self._staged = staged
        self._upload = previous.upload if previous else None
        self._upload_lock = threading.Lock()
        self._parts: list[Part] = list(previous.parts) if previous else []
        self._sent: list[Future[Part]] = []
        self._assembler = PartAssembler(
            part_size=part_size,
            equal_parts=equal_parts,
            encoder=encoder,
            spool=spill,
            staged=self._staged_before.map(self._inherited),
            position=sum(part.size for part in self._parts),
        )
        if previous and len(previous.staged) > MAX_STAGED_EXTENTS:
            self._assembler.compact()

    def append(self, rows: RowSlice, breaks: Sequence[int] = ()) -> None:
        """Takes rows, and sends the parts that they fill. `breaks`: see `AppendedRows.add`."""
        self.rows.add(rows.offsets, breaks)
        self.offsets += rows.checksum
        for body in self._assembler.append(rows.data, rows.ends):
            self._send(body)

    def _send(self, body: PartBody) -> None:
        number = len(self._parts) + len(self._sent) + 1
        self._sent.append(self._uploads.submit(lambda: self._put(number, body), body.size))

    def _put(self, number: int, body: PartBody) -> Part:
        with self._upload_lock:
            if self._upload is None:
                self._upload = self._uploads.s3.create_upload(self.key, temporary=self._is_temporary)
        sent = self._uploads.s3.upload_part(self.key, self._upload, number, body)
        return Part(sent.number, sent.etag, sent.crc, sent.size)

    @property
    def _is_temporary(self) -> bool:
        return isinstance(self.rows, DeadLetterSources) and is_temporary(DEAD_LETTERS, self.key)

    @property
    def encoded(self) -> EncodedSize:
        """The encoded bytes of the object so far."""
        return EncodedSize(self._assembler.encoded_bytes, self._assembler.index_bytes)

    def drain(self) -> None:
        """Waits until no part is in transfer, whether or not its request succeeds."""
        if self._sent:
            wait(self._sent)

    def finish(self) -> None:
        """Sends the last parts."""
        for body in self._assembler.finish():
            self._send(body)

    def stage(self, staging: StagingWriter) -> Remainder[tuple[Extent, ...]]:
        """Stages the new bytes of the remainder; returns the extents of the whole remainder."""
        return self._assembler.take_remainder().combine(
            self._staged_before, lambda new, before: (before if new.keeps_staged else ()) + staging.add(new.data)
        )

    @property
    def started_upload(self) -> str | None:
        """The upload that this writer has started, if any."""
        return self._upload if not (self._previous and self._previous.upload) else None

    def result(self) -> tuple[str | None, tuple[Part, ...]]:
        """Waits for all parts; returns the upload and its parts.

        Raises the errors of the requests, such as NoSuchUpload when the upload no longer exists.
        """
        parts = (*self._parts, *(future.result() for future in self._sent))
        return self._upload, parts

    def sources(self, clock: int, breaks: Sequence[int]) -> tuple[SourceRange, ...]:
        """The object's source ranges: the previous ones and those of the appended rows, under the path clock `clock`.
        No range contains an offset of `breaks`, which ascend."""
        return self.rows.extend(self._previous.sources if self._previous else (), clock, breaks)

    def to_open_object(
        self,
        state: OpenObjectState,
        *,
        settings: int,
        sources: tuple[SourceRange, ...],
        remainder: Remainder[tuple[Extent, ...]],
    ) -> OpenObject:
        """The object as the ledger stores it."""
        assert state.count == self.offsets.count, "the rotation counts the appended records"
        upload, parts = self.result()
        return OpenObject(
            state=state,
            settings=settings,
            offsets=self.offsets,
            upload=upload,
            parts=parts,
            sources=sources,
            **remainder.as_dict(),
        )

    def _inherited(self, extents: tuple[Extent, ...]) -> StagedPrefix:
        return StagedPrefix(sum(e.length for e in extents), lambda: self._staged.read(extents))


class ObjectWriters:
    """Creates the writers of one topic-partition's objects in a task attempt."""

    def __init__(self, attempt: TaskAttempt, tp: TopicPartition, spill: SpillPool) -> None:
        settings = attempt.settings
        self.uploads = PartUploader(attempt.s3, threads=settings.threads, part_buffers=settings.part_buffers)
        self._attempt = attempt
        self._tp = tp
        self._spill = spill
        self._writers: list[ObjectWriter] = []

    def new(self, id_: ObjectId, first: int, previous: OpenObject | None = None) -> ObjectWriter:
        """A writer for the object `id_` with the first offset `first`. Raises as `ObjectWriter`, and the errors of the
        store."""
        pipeline, is_dead_letters = self._attempt.pipeline, id_.path == DEAD_LETTERS
        key = pipeline.key(self._tp, id_.path, first)
        plain = ConcatenatedBlocks(Uncompressed()) if is_dead_letters else None
        writer = ObjectWriter(
            key=key,
            uploads=self.uploads,
            staged=self._attempt.staged,
            spill=self._spill,
            encoder=plain or pipeline.object_encoder(key, self._tp.topic, id_.schema),
            part_size=self._attempt.object_settings.s3.part_size,
            equal_parts=self._attempt.object_settings.s3.equal_parts
            or (previous is None and self._attempt.settings.equal_parts),
            previous=previous,
            rows=DeadLetterSources(self._attempt.settings.now) if is_dead_letters else None,
        )
        self._writers.append(writer)
        return writer

    def started_uploads(self) -> tuple[tuple[str, str], ...]:
        """Key and upload id of the uploads that the writers have started, after all their requests have ended."""
        for writer in self._writers:
            writer.drain()
        return tuple((w.key, w.started_upload) for w in self._writers if w.started_upload)


def extend_sources(
    sources: Iterable[SourceRange], start: int, end: int, clock: int, breaks: Sequence[int] = ()
) -> tuple[SourceRange, ...]:
    """The source ranges of an object with `[start, end)` under `clock` added; extends the last range if it has the same
    clock. No range contains an offset of `breaks`, which ascend and are not in `[start, end)`."""
    ranges = tuple(sources)
    if ranges and ranges[-1].clock == clock and bisect_left(breaks, ranges[-1].end) == bisect_left(breaks, start):
        return (*ranges[:-1], msgspec.structs.replace(ranges[-1], end=end))
    return (*ranges, SourceRange(start, end, clock))


def spans(offsets: Integers, breaks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The ranges `[start, end)` from the first to the last of `offsets` without the offsets `breaks`; both ascend."""
    cuts = np.unique(np.searchsorted(offsets, np.array(breaks, np.int64)))
    cuts = cuts[(cuts > 0) & (cuts < len(offsets))]
    starts = offsets[np.concatenate(([0], cuts))]
    ends = offsets[np.concatenate((cuts - 1, [len(offsets) - 1]))] + 1
    yield from zip(starts.tolist(), ends.tolist(), strict=True)
