"""The writing end of objects in a task: parts go up while records come in, leftovers are staged at the end.

An upload is begun when its first part is full, or at the close: an object that grows slowly costs a staging object a
round and no upload. Parts are sent by a few threads of the process; how many bodies are in memory is bounded by a
semaphore, so a slow server slows the task down instead of filling its memory (P7).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from functools import cache

import msgspec

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

MAX_TAIL = 16
"""Staged extents an object may refer to before they are gathered into one (P6)."""


@cache
def _pool(threads: int) -> Executor:
    return pool(threads, "s3sink-upload")


class PartUploader:
    """Sends the parts of one task's objects, a bounded number of bodies at a time."""

    def __init__(self, s3: S3Client, *, threads: int, bodies: int) -> None:
        """`bodies` is how many part bodies may be in memory at once, waiting or on their way."""
        self.s3 = s3
        self.parts = 0
        self.bytes = 0
        self._pool = _pool(threads)
        self._room = threading.BoundedSemaphore(bodies)

    def submit(self, send: Callable[[], Part], size: int) -> Future[Part]:
        self._room.acquire()
        self.parts += 1
        self.bytes += size
        future = self._pool.submit(send)
        future.add_done_callback(lambda _: self._room.release())
        return future


class ObjectWriter:
    """One object in one task: rows in, recorded parts and leftovers out."""

    def __init__(
        self,
        *,
        key: str,
        uploads: PartUploader,
        staged: StagingReader,
        spool: SpillPool,
        compression: Compression,
        part_size: int,
        was: OpenObject | None,
    ) -> None:
        """`was` is the object as the ledger has it, None for one that this task opens.

        Raises StagingLost for one whose bytes were given up.
        """
        if was and was.size and not was.parts and not was.staged:
            raise StagedDataLost(f"what s3://{uploads.s3.bucket}/{key} held was given up")
        self.key = key
        self.offsets = was.offsets if was else OffsetChecksum()
        self.start: int | None = None
        self.last = -1
        self._previous = was
        self._uploads = uploads
        self._staged = staged
        self._upload = was.upload if was else None
        self._begin = threading.Lock()
        self._parts: list[Part] = list(was.parts) if was else []
        self._sent: list[Future[Part]] = []
        self._stream = PartAssembler(
            part_size=part_size,
            compression=compression,
            spool=spool,
            blocks=self._inherited(was.blocks if was else ()),
            partial_block=self._inherited(was.partial_block if was else ()),
        )
        if was and len(was.staged) > MAX_TAIL:
            self._stream.compact()

    def append(self, piece: RowSlice) -> None:
        """Takes rows, and sends the parts that they fill."""
        if self.start is None:
            self.start = int(piece.offsets[0])
        self.last = int(piece.offsets[-1])
        self.offsets += piece.tally
        for body in self._stream.append(piece.data, piece.ends):
            self._send(body)

    def _send(self, body: bytes) -> None:
        number = len(self._parts) + len(self._sent) + 1
        self._sent.append(self._uploads.submit(lambda: self._put(number, body), len(body)))

    def _put(self, number: int, body: bytes) -> Part:
        with self._begin:
            if self._upload is None:
                self._upload = self._uploads.s3.create_upload(self.key)
        sent = self._uploads.s3.upload_part(self.key, self._upload, number, body, crc64nvme(body))
        return Part(sent.number, sent.etag, sent.crc, sent.size)

    def drain(self) -> None:
        """Waits until no part is on its way any more, whatever becomes of them."""
        if self._sent:
            wait(self._sent)

    def finish(self) -> None:
        """Sends the last part."""
        body = self._stream.finish()
        if body:
            self._send(body)

    def stage(self) -> Remainder:
        return self._stream.take_remainder()

    @property
    def started_upload(self) -> str | None:
        """The upload that this writer has begun itself, if any."""
        return self._upload if not (self._previous and self._previous.upload) else None

    def result(self) -> tuple[str | None, tuple[Part, ...]]:
        """The upload and all its parts, once they are there.

        Raises what sending raised: NoSuchUpload when the upload is gone.
        """
        parts = (*self._parts, *(future.result() for future in self._sent))
        return self._upload, parts

    def to_open_object(
        self,
        cut: OpenObjectState,
        *,
        settings: int,
        seen: tuple[SourceRange, ...],
        sealed: tuple[Extent, ...],
        loose: tuple[Extent, ...],
    ) -> OpenObject:
        """The object as the ledger keeps it, its leftovers staged at `sealed` and `loose`."""
        upload, parts = self.result()
        return OpenObject(
            path=cut.path,
            first=cut.first,
            last=cut.last,
            size=cut.size,
            opened_at=cut.opened_at,
            settings=settings,
            offsets=self.offsets,
            interval_start=cut.interval_start,
            upload=upload,
            parts=parts,
            sources=seen,
            blocks=sealed,
            partial_block=loose,
        )

    def _inherited(self, extents: tuple[Extent, ...]) -> StagedPrefix:
        return StagedPrefix(sum(e.length for e in extents), lambda: self._staged.read(extents))


def extend_sources(seen: Iterable[SourceRange], start: int, end: int, clock: int) -> tuple[SourceRange, ...]:
    """The stretches that an object's records came from, `[start, end)` under `clock` added; a stretch under the same
    clock goes on."""
    stretches = tuple(seen)
    if stretches and stretches[-1].clock == clock:
        return (*stretches[:-1], msgspec.structs.replace(stretches[-1], end=end))
    return (*stretches, SourceRange(start, end, clock))
