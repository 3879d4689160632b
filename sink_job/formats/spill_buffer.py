"""Buffers for incomplete parts: in memory up to a task's limit, beyond it on local disk (P7).

Spilling moves bytes and never changes a part. Each task has one spill file. Extents are appended to it and read back by
position. The file has no directory entry, so a killed process leaves no file behind.
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
    """A byte buffer that keeps the order of its chunks. `size` and `in_memory` are in bytes."""

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
        """Removes and returns all chunks."""
        chunks = [self._spool.read(c) if isinstance(c, _Spilled) else c for c in self._chunks]
        self._spool.shrunk(self)
        self._chunks, self.size, self.in_memory = [], 0, 0
        return chunks

    def spill(self) -> None:
        """Moves the chunks in memory to disk. Adjacent chunks become one extent."""
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
    """Keeps the buffers of one task within `limit` bytes of memory. A context manager: it closes the spill file.

    In bytes: `used` is the current memory, `peak` its maximum, `spilled` the total written to disk.
    """

    def __init__(self, limit: int, directory: str | None = None) -> None:
        """`directory`: directory of the spill file (default: the system's temporary directory)."""
        self.limit = limit
        self.used = 0
        self.peak = 0
        self.spilled = 0
        self._directory = directory
        self._open = ExitStack()
        self._file: IO[bytes] | None = None
        self._in_memory: dict[int, SpillBuffer] = {}

    def hold(self) -> SpillBuffer:
        """A new, empty buffer."""
        return SpillBuffer(self)

    def grown(self, buffer: SpillBuffer, by: int) -> None:
        """Accounts for `by` bytes added to `buffer`, and spills if the limit is exceeded."""
        self._in_memory[id(buffer)] = buffer
        self.used += by
        self.peak = max(self.peak, self.used)
        if self.used > self.limit:
            self._spill()

    def shrunk(self, buffer: SpillBuffer) -> None:
        """Accounts for the removal of the bytes that `buffer` has in memory."""
        self.used -= buffer.in_memory
        self._in_memory.pop(id(buffer), None)

    def _spill(self) -> None:
        """Spills the largest buffers until half of the limit is free. This results in few, long writes."""
        for buffer in sorted(self._in_memory.values(), key=lambda each: each.in_memory, reverse=True):
            if self.used <= self.limit // 2:
                return
            self.used -= buffer.in_memory
            buffer.spill()
            self._in_memory.pop(id(buffer))

    def write(self, chunks: list[bytes | memoryview]) -> _Spilled:
        """Appends `chunks` to the spill file as one extent."""
        if self._file is None:
            unnamed = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115 (closed with the pool)
            self._file = self._open.enter_context(unnamed)
        offset = self._file.seek(0, os.SEEK_END)
        length = sum(len(c) for c in chunks)
        data = memoryview(b"".join(chunks))
        while data:
            data = data[self._file.write(data) :]
        self.spilled += length
        return _Spilled(offset, length)

    def read(self, extent: _Spilled) -> bytes:
        """The bytes of an extent."""
        assert self._file is not None, "no extent has been spilled yet"
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
