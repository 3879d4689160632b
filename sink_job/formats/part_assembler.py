"""An object's rows become parts: where a part ends depends on the records and the settings alone (P3).

A `PartStream` is the writing end of one object in one task. It may start in the middle of the object: what earlier
rounds left over (`Inherited`) is counted at once and read only when a part or a block needs it, so a trickle of records
does not read its leftovers again every round.
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
    """Leftover bytes of earlier rounds, elsewhere until they are needed."""

    size: int
    load: Callable[[], bytes]


class Remainder(NamedTuple):
    """What a round leaves of an object: bytes to stage, and whether the inherited ones still stand before them."""

    blocks: bytes
    partial_block: bytes
    keeps_blocks: bool
    keeps_partial_block: bool


NOTHING = StagedPrefix(0, bytes)


class PartAssembler:
    """Rows in, parts out, for one object.

    `sealed` bytes are complete blocks that do not fill a part; `loose` ones the rows of the block that is not complete.
    """

    def __init__(
        self,
        *,
        part_size: int,
        compression: Compression,
        spool: SpillPool,
        sealed: StagedPrefix = NOTHING,
        loose: StagedPrefix = NOTHING,
    ) -> None:
        self._part_size = part_size
        self._compression = compression
        self._blocks = _Pending(spool.hold(), sealed)
        self._partial_block = _Pending(spool.hold(), loose)

    def append(self, rows: memoryview, ends: Ends) -> Iterator[bytes]:
        """Takes rows and yields the parts they fill.

        `rows` are the rows' bytes one behind the other, `ends` where each ends (ascending, the last is `len(rows)`).
        """
        start, size = 0, len(rows)
        while start < size:
            goal = self._blocks if not self._compression.block_size else self._partial_block
            limit = self._part_size if not self._compression.block_size else self._compression.block_size
            index = int(np.searchsorted(ends, start + limit - goal.size))
            if index == len(ends):
                goal.held.add(rows[start:])
                return
            cut = int(ends[index])
            if self._compression.block_size:
                self._seal(rows[start:cut])
            else:
                self._blocks.held.add(rows[start:cut])
            start = cut
            if self._blocks.size >= self._part_size:
                yield self._blocks.take()

    def _seal(self, rows: memoryview) -> None:
        self._partial_block.held.add(rows)
        self._blocks.held.add(self._compression.compress(self._partial_block.take()))

    def finish(self) -> bytes:
        """The last part; empty when the records filled the parts exactly."""
        if self._partial_block.size:
            self._seal(memoryview(b""))
        return self._blocks.take()

    def take_remainder(self) -> Remainder:
        """Ends the round with the object open: what is not in a part is handed over to be staged."""
        keeps = self._blocks.inherited.size > 0, self._partial_block.inherited.size > 0
        return Remainder(b"".join(self._blocks.held.take()), b"".join(self._partial_block.held.take()), *keeps)

    def compact(self) -> None:
        """Reads the inherited leftovers, so that `leave` hands over all of them as one."""
        self._blocks.load()
        self._partial_block.load()


class _Pending:
    """Bytes waiting: inherited ones, which stand first, and those of this round."""

    def __init__(self, held: SpillBuffer, inherited: StagedPrefix) -> None:
        self.held = held
        self.inherited = inherited

    @property
    def size(self) -> int:
        return self.inherited.size + self.held.size

    def load(self) -> None:
        if self.inherited.size:
            fresh = self.held.take()
            self.held.add(self.inherited.load())
            for chunk in fresh:
                self.held.add(chunk)
            self.inherited = NOTHING

    def take(self) -> bytes:
        self.load()
        return b"".join(self.held.take())
