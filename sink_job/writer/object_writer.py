"""Writes objects in a task: uploads parts while records arrive, and stages the remainder at the end.

An upload starts when the first part is full, or when the object closes. An object that grows slowly therefore costs one
staging object per round and no upload. A few threads of the process send the parts. A semaphore bounds the number of
part buffers in memory, so a slow server slows the task down instead of filling its memory (P7).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from functools import cache

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.thread_pools import pool
from sink_job.formats.compression import Compression
from sink_job.formats.part_assembler import PartAssembler, Remainder, StagedPrefix
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.staging import StagedDataLost, StagingReader
from sink_job.ledger.state import Extent, OffsetChecksum, OpenObject, Part, SourceRange
from sink_job.rotation.types import OpenObjectState
from sink_job.s3 import S3Client
from sink_job.s3.checksums import crc64nvme
from sink_job.writer.row_slices import RowSlice
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


class ObjectWriter:
    """One object in one task: takes rows, gives uploaded parts and a remainder."""

    def __init__(
        self,
        *,
        key: str,
        uploads: PartUploader,
        staged: StagingReader,
        spill: SpillPool,
        compression: Compression,
        part_size: int,
        previous: OpenObject | None,
    ) -> None:
        """`previous` is the object as the ledger has it, None for one that this task opens.

        Raises StagedDataLost for an object whose bytes were discarded after a data loss.
        """
        if previous and previous.size and not previous.parts and not previous.staged:
            raise StagedDataLost(f"the bytes of s3://{uploads.s3.bucket}/{key} were discarded")
        self.key = key
        self.offsets = previous.offsets if previous else OffsetChecksum()
        self.start: int | None = None
        self.last = -1
        self._previous = previous
        self._uploads = uploads
        self._staged = staged
        self._upload = previous.upload if previous else None
        self._upload_lock = threading.Lock()
        self._parts: list[Part] = list(previous.parts) if previous else []
        self._sent: list[Future[Part]] = []
        self._assembler = PartAssembler(
            part_size=part_size,
            compression=compression,
            spool=spill,
            blocks=self._inherited(previous.blocks if previous else ()),
            partial_block=self._inherited(previous.partial_block if previous else ()),
        )
        if previous and len(previous.staged) > MAX_STAGED_EXTENTS:
            self._assembler.compact()

    def append(self, rows: RowSlice) -> None:
        """Takes rows, and sends the parts that they fill."""
        if self.start is None:
            self.start = int(rows.offsets[0])
        self.last = int(rows.offsets[-1])
        self.offsets += rows.checksum
        for body in self._assembler.append(rows.data, rows.ends):
            self._send(body)

    def _send(self, body: bytes) -> None:
        number = len(self._parts) + len(self._sent) + 1
        self._sent.append(self._uploads.submit(lambda: self._put(number, body), len(body)))

    def _put(self, number: int, body: bytes) -> Part:
        with self._upload_lock:
            if self._upload is None:
                self._upload = self._uploads.s3.create_upload(self.key)
        sent = self._uploads.s3.upload_part(self.key, self._upload, number, body, crc64nvme(body))
        return Part(sent.number, sent.etag, sent.crc, sent.size)

    def drain(self) -> None:
        """Waits until no part is in transfer, whether or not its request succeeds."""
        if self._sent:
            wait(self._sent)

    def finish(self) -> None:
        """Sends the last part."""
        body = self._assembler.finish()
        if body:
            self._send(body)

    def stage(self) -> Remainder:
        return self._assembler.take_remainder()

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

    def to_open_object(
        self,
        state: OpenObjectState,
        *,
        settings: int,
        sources: tuple[SourceRange, ...],
        blocks: tuple[Extent, ...],
        partial_block: tuple[Extent, ...],
    ) -> OpenObject:
        """The object as the ledger stores it, with its remainder staged in `blocks` and `partial_block`."""
        assert state.count == self.offsets.count, "the rotation counts the appended records"
        upload, parts = self.result()
        return OpenObject(
            state=state,
            settings=settings,
            offsets=self.offsets,
            upload=upload,
            parts=parts,
            sources=sources,
            blocks=blocks,
            partial_block=partial_block,
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

    def new(self, path: str, first: int, previous: OpenObject | None = None) -> ObjectWriter:
        """A writer for the object of `path` with the first offset `first`. Raises as `ObjectWriter`."""
        pipeline = self._attempt.pipeline
        writer = ObjectWriter(
            key=pipeline.key(self._tp, path, first),
            uploads=self.uploads,
            staged=self._attempt.staged,
            spill=self._spill,
            compression=pipeline.compression,
            part_size=self._attempt.shaping.s3.part_size,
            previous=previous,
        )
        self._writers.append(writer)
        return writer

    def started_uploads(self) -> tuple[tuple[str, str], ...]:
        """Key and upload id of the uploads that the writers have started, after all their requests have ended."""
        for writer in self._writers:
            writer.drain()
        return tuple((w.key, w.started_upload) for w in self._writers if w.started_upload)


def extend_sources(sources: Iterable[SourceRange], start: int, end: int, clock: int) -> tuple[SourceRange, ...]:
    """The source ranges of an object with `[start, end)` under `clock` added; extends the last range if it has the same
    clock."""
    ranges = tuple(sources)
    if ranges and ranges[-1].clock == clock:
        return (*ranges[:-1], msgspec.structs.replace(ranges[-1], end=end))
    return (*ranges, SourceRange(start, end, clock))
