"""A task's byte budget: what objects hold back until a part is full, in memory up to a limit, else on local disk (P7).

Spilling moves bytes and never changes a part. One file a task, appended to and read back by extent; it has no name from
the moment it is opened, so a killed process leaves nothing behind.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from types import TracebackType
from typing import IO, NamedTuple, Self


class _Spilled(NamedTuple):
    offset: int
    length: int


class SpillBuffer:
    """Bytes that belong together, in the order in which they were added."""

    def __init__(self, spool: SpillPool) -> None:
        self._spool = spool
        self._chunks: list[bytes | memoryview | _Spilled] = []
        self.size = 0
        self.in_memory = 0

    def add(self, data: bytes | memoryview) -> None:
        length = len(data)
        if length:
            self._chunks.append(data)
            self.size += length
            self.in_memory += length
            self._spool.grown(self, length)

    def take(self) -> list[bytes | memoryview]:
        """All of it, which is then forgotten here."""
        chunks = [self._spool.read(c) if isinstance(c, _Spilled) else c for c in self._chunks]
        self._spool.shrunk(self)
        self._chunks, self.size, self.in_memory = [], 0, 0
        return chunks

    def spill(self) -> None:
        """Moves what is in memory to disk, neighbouring chunks as one."""
        chunks: list[bytes | memoryview | _Spilled] = []
        run: list[bytes | memoryview] = []
        for chunk in self._chunks:
            if isinstance(chunk, _Spilled):
                self._flush(run, chunks)
                chunks.append(chunk)
            else:
                run.append(chunk)
        self._flush(run, chunks)
        self._chunks, self.in_memory = chunks, 0

    def _flush(self, run: list[bytes | memoryview], chunks: list[bytes | memoryview | _Spilled]) -> None:
        if run:
            chunks.append(self._spool.write(run))
            run.clear()


class SpillPool:
    """Holds the bytes of all objects of one task within `limit` bytes of memory; a context manager."""

    def __init__(self, limit: int, directory: str | None = None) -> None:
        """`directory` is where the file goes when the limit is reached (default: the system's temporary folder)."""
        self.limit = limit
        self.used = 0
        self.peak = 0
        self.spilled = 0
        self._directory = directory
        self._open = ExitStack()
        self._file: IO[bytes] | None = None
        self._held: dict[int, SpillBuffer] = {}

    def hold(self) -> SpillBuffer:
        return SpillBuffer(self)

    def grown(self, held: SpillBuffer, by: int) -> None:
        self._held[id(held)] = held
        self.used += by
        self.peak = max(self.peak, self.used)
        if self.used > self.limit:
            self._make_room()

    def shrunk(self, held: SpillBuffer) -> None:
        self.used -= held.in_memory
        self._held.pop(id(held), None)

    def _make_room(self) -> None:
        """Spills the largest holders until half of the limit is free: few, long writes."""
        for held in sorted(self._held.values(), key=lambda h: h.in_memory, reverse=True):
            if self.used <= self.limit // 2:
                return
            self.used -= held.in_memory
            held.spill()
            self._held.pop(id(held))

    def write(self, chunks: list[bytes | memoryview]) -> _Spilled:
        if self._file is None:
            unnamed = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115 (closed with the spool)
            self._file = self._open.enter_context(unnamed)
        offset = self._file.seek(0, os.SEEK_END)
        length = sum(len(c) for c in chunks)
        body = memoryview(b"".join(chunks))
        while body:
            body = body[self._file.write(body) :]
        self.spilled += length
        return _Spilled(offset, length)

    def read(self, extent: _Spilled) -> bytes:
        assert self._file is not None, "an extent was spilled before it is read"
        data = bytearray()
        while len(data) < extent.length:
            data += os.pread(self._file.fileno(), extent.length - len(data), extent.offset + len(data))
        return bytes(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
