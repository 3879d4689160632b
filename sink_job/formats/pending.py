"""Bytes and rows of an object that fill no part or block yet: those that earlier rounds have staged, followed by those
of this round.

Staged bytes are read only when a part or a block needs them. Rows of containers are staged as the concatenation of
their datums, each after its `LENGTH`, and are apart from their lengths in memory (`BlockRows`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers
from sink_job.formats.block_rows import LENGTH, BlockRows, lengths_of
from sink_job.formats.datum_rows import datums, with_lengths
from sink_job.formats.spill_buffer import SpillPool


class StagedPrefix(NamedTuple):
    """Staged bytes of earlier rounds: their size in bytes, and a function that reads them."""

    size: int
    load: Callable[[], bytes]


NOTHING = StagedPrefix(0, bytes)


class Pending(Protocol):
    """What is pending. `staged` are the bytes of earlier rounds that were not read yet."""

    staged: StagedPrefix

    @property
    def size(self) -> int:
        """All pending bytes, as they would be staged."""
        ...

    def load(self) -> None:
        """Reads the staged bytes."""
        ...

    def take_new(self) -> bytes:
        """Removes and returns what was added or read in this round, as it is staged."""
        ...


class PendingRows(Pending, Protocol):
    """Pending rows of a block."""

    def add(self, rows: memoryview, ends: Integers, start: int) -> None:
        """Adds rows, which begin at `start` of a larger buffer, and end at `ends` in it."""
        ...

    def take(self) -> BlockRows:
        """Removes and returns all rows."""
        ...


class PendingBytes:
    """Pending bytes, or rows without lengths."""

    def __init__(self, spool: SpillPool, staged: StagedPrefix) -> None:
        self.buffer = spool.hold()
        self.staged = staged

    @property
    def size(self) -> int:
        return self.staged.size + self.buffer.size

    def add(self, rows: memoryview, ends: Integers, start: int) -> None:
        self.buffer.add(rows)

    def load(self) -> None:
        if self.staged.size:
            new = self.buffer.take()
            self.buffer.add(self.staged.load())
            for chunk in new:
                self.buffer.add(chunk)
            self.staged = NOTHING

    def take(self) -> BlockRows:
        return BlockRows(self.take_chunks())

    def take_chunks(self) -> list[bytes | memoryview]:
        """Removes and returns all bytes."""
        staged, self.staged = self.staged, NOTHING
        chunks = self.buffer.take()
        return [staged.load(), *chunks] if staged.size else chunks

    def take_new(self) -> bytes:
        return b"".join(self.buffer.take())


class PendingDatums:
    """Pending rows of a container."""

    def __init__(self, spool: SpillPool, staged: StagedPrefix) -> None:
        self._content, self._lengths = spool.hold(), spool.hold()
        self.staged = staged

    @property
    def size(self) -> int:
        return self.staged.size + self._content.size + self._lengths.size

    def add(self, rows: memoryview, ends: Integers, start: int) -> None:
        self._content.add(rows)
        one = LENGTH.pack(len(rows)) if len(ends) == 1 else None  # often, with many open objects
        self._lengths.add(one or lengths_of(np.concatenate(([start], ends))))

    def load(self) -> None:
        if self.staged.size:
            content, lengths = self._content.take(), self._lengths.take()
            for batch in datums(self.staged.load()):
                self._content.add(arrow_columns.text(batch))
                self._lengths.add(lengths_of(arrow_columns.bounds(batch)))
            self.staged = NOTHING
            for chunk in content:
                self._content.add(chunk)
            for chunk in lengths:
                self._lengths.add(chunk)

    def take(self) -> BlockRows:
        self.load()
        return BlockRows(self._content.take(), b"".join(self._lengths.take()))

    def take_new(self) -> bytes:
        rows = BlockRows(self._content.take(), b"".join(self._lengths.take()))
        return b"".join(arrow_columns.text(with_lengths(batch)) for batch in rows.take_batches())
