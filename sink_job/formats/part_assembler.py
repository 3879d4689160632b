"""Assembles an object's rows into parts. The end of a part depends on the records and the settings alone (P3).

A `PartAssembler` serves one object in one task attempt. It may start in the middle of the object, with the staged bytes
of earlier rounds (`StagedPrefix`). Their size counts at once. They are read only when a part or a block needs them, so
a slow stream of records does not read its staged remainder again in every round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.formats.compression import Compression
from sink_job.formats.spill_buffer import SpillBuffer, SpillPool

Ends = npt.NDArray[np.int64]


class StagedPrefix(NamedTuple):
    """Staged bytes of earlier rounds: their size in bytes, and a function that reads them."""

    size: int
    load: Callable[[], bytes]


class Remainder(NamedTuple):
    """The bytes of an open object at the end of a round that fill no part.

    `blocks` and `partial_block`: new bytes to stage.
    `keeps_blocks` and `keeps_partial_block`: whether the staged bytes of earlier rounds still precede them.
    """

    blocks: bytes
    partial_block: bytes
    keeps_blocks: bool
    keeps_partial_block: bool


NOTHING = StagedPrefix(0, bytes)


class PartAssembler:
    """Assembles the rows of one object into parts.

    `blocks` are staged complete blocks that do not fill a part. `partial_block` are the staged uncompressed rows of the
    incomplete block.
    """

    def __init__(
        self,
        *,
        part_size: int,
        compression: Compression,
        spool: SpillPool,
        blocks: StagedPrefix = NOTHING,
        partial_block: StagedPrefix = NOTHING,
    ) -> None:
        self._part_size = part_size
        self._compression = compression
        self._blocks = _Pending(spool.hold(), blocks)
        self._partial_block = _Pending(spool.hold(), partial_block)

    def append(self, rows: memoryview, ends: Ends) -> Iterator[bytes]:
        """Adds rows and yields the parts that they fill.

        `rows`: the concatenated rows. `ends`: the end of each row (exclusive, ascending; the last is `len(rows)`).
        """
        start, size = 0, len(rows)
        while start < size:
            goal = self._blocks if not self._compression.block_size else self._partial_block
            limit = self._part_size if not self._compression.block_size else self._compression.block_size
            index = int(np.searchsorted(ends, start + limit - goal.size))
            if index == len(ends):
                goal.buffer.add(rows[start:])
                return
            end = int(ends[index])
            if self._compression.block_size:
                self._complete_block(rows[start:end])
            else:
                self._blocks.buffer.add(rows[start:end])
            start = end
            if self._blocks.size >= self._part_size:
                yield self._blocks.take()

    def _complete_block(self, rows: memoryview) -> None:
        self._partial_block.buffer.add(rows)
        self._blocks.buffer.add(self._compression.compress(self._partial_block.take()))

    def finish(self) -> bytes:
        """The last part; empty if the records filled the parts exactly."""
        if self._partial_block.size:
            self._complete_block(memoryview(b""))
        return self._blocks.take()

    def take_remainder(self) -> Remainder:
        """Ends the round with an open object: removes and returns the bytes that fill no part, for staging."""
        keeps = self._blocks.staged.size > 0, self._partial_block.staged.size > 0
        return Remainder(b"".join(self._blocks.buffer.take()), b"".join(self._partial_block.buffer.take()), *keeps)

    def compact(self) -> None:
        """Reads the staged bytes of earlier rounds. `take_remainder` then returns them together with the new ones."""
        self._blocks.load()
        self._partial_block.load()


class _Pending:
    """Pending bytes: the staged ones of earlier rounds, followed by those of this round."""

    def __init__(self, buffer: SpillBuffer, staged: StagedPrefix) -> None:
        self.buffer = buffer
        self.staged = staged

    @property
    def size(self) -> int:
        return self.staged.size + self.buffer.size

    def load(self) -> None:
        if self.staged.size:
            new = self.buffer.take()
            self.buffer.add(self.staged.load())
            for chunk in new:
                self.buffer.add(chunk)
            self.staged = NOTHING

    def take(self) -> bytes:
        self.load()
        return b"".join(self.buffer.take())
