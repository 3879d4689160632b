"""Assembles an object's rows into parts. The end of a part depends on the records and the settings alone (P3).

A part ends at the first block end at or past the part size; in a container, whose blocks can be larger than parts, and
with `equal_parts`, at exactly the part size. Then a part may end inside a record or a block, and the remainder begins
there.

A `PartAssembler` serves one object in one task attempt. It may start in the middle of the object, with the staged bytes
of earlier rounds (`StagedPrefix`). Their size counts at once. They are read only when a part or a block needs them, so
a slow stream of records does not read its staged remainder again in every round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from sink_job.arrow.arrays import Integers
from sink_job.formats.base import ObjectEncoder
from sink_job.formats.datum_rows import DatumRows, split_indexes, with_length
from sink_job.formats.pending import NOTHING, Pending, PendingBytes, PendingDatums, PendingRows, StagedPrefix
from sink_job.formats.remainder import Remainder
from sink_job.formats.spill_buffer import SpillPool

LARGE_CHUNK: Final = 256 << 10
"""Bytes of a chunk from which on it is not copied. A request sends each chunk separately."""

MAX_JOINED: Final = 4 << 20
"""Maximum bytes of smaller chunks that are joined."""


class PartBody(tuple[bytes | memoryview, ...]):
    """The bytes of a part in chunks, which are not joined: that would copy every byte. `size` is in bytes."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return sum(map(len, self))

    def __bytes__(self) -> bytes:
        return b"".join(self)

    @classmethod
    def of(cls, chunks: Iterable[bytes | memoryview]) -> PartBody:
        """The chunks; adjacent small ones are joined.

        >>> PartBody.of([b"a", memoryview(b"bc")])
        (b'abc',)
        """
        body: list[bytes | memoryview] = []
        small: list[bytes | memoryview] = []
        size = 0
        for chunk in chunks:
            if len(chunk) >= LARGE_CHUNK or size >= MAX_JOINED:
                body += [b"".join(small)] if small else []
                small, size = [], 0
            if len(chunk) >= LARGE_CHUNK:
                body.append(chunk)
            else:
                small.append(chunk)
                size += len(chunk)
        return cls([*body, b"".join(small)] if small else body)


def _cut(chunks: Iterable[bytes | memoryview], size: int) -> Iterator[list[bytes | memoryview]]:
    """The chunks in groups of exactly `size` bytes. The last group has fewer bytes, or none.

    >>> [b"".join(group) for group in _cut([b"abc", b"defg"], 3)]
    [b'abc', b'def', b'g']
    """
    group: list[bytes | memoryview] = []
    missing = size
    for chunk in chunks:
        rest = memoryview(chunk)
        while len(rest) >= missing:
            yield [*group, rest[:missing]]
            group, rest, missing = [], rest[missing:], size
        if rest:
            group.append(rest)
            missing -= len(rest)
    yield group


class NewBytes(NamedTuple):
    """Bytes of a round. `keeps_staged`: whether the staged bytes of earlier rounds still precede them."""

    data: bytes
    keeps_staged: bool


NOTHING_STAGED = Remainder(NOTHING, NOTHING, NOTHING)


class PartAssembler:
    """Assembles the rows of one object into parts.

    `staged` is the remainder of earlier rounds. `position` is the size of their parts in bytes. `equal_parts`: all
    parts but the last have exactly `part_size` bytes.
    """

    def __init__(
        self,
        *,
        part_size: int,
        encoder: ObjectEncoder,
        spool: SpillPool,
        staged: Remainder[StagedPrefix] = NOTHING_STAGED,
        position: int = 0,
        equal_parts: bool = False,
    ) -> None:
        self._part_size = part_size
        self._equal_parts = equal_parts or encoder.is_container
        self._encoder = encoder
        self._position = position
        self._blocks = PendingBytes(spool, staged.blocks)
        self._prefix_bytes = DatumRows.prefix_bytes if encoder.is_container else 0
        rows = PendingDatums if encoder.is_container else PendingBytes
        self._partial_block: PendingRows = rows(spool, staged.partial_block)
        self._index = PendingBytes(spool, staged.index)
        self._pending: Remainder[Pending] = Remainder(self._blocks, self._partial_block, self._index)

    @property
    def encoded_bytes(self) -> int:
        """The bytes of the object so far, without rows of an incomplete block."""
        return self._position + self._blocks.size

    @property
    def index_bytes(self) -> int:
        """The bytes of the indexes of its blocks."""
        return self._index.size

    def append(self, rows: memoryview, ends: Integers) -> Iterator[PartBody]:
        """Adds rows and yields the parts that they fill.

        `rows`: the concatenated rows. `ends`: the end of each row (exclusive, ascending; the last is `len(rows)`).
        """
        prefix = self._prefix_bytes
        sizes = ends + prefix * np.arange(1, len(ends) + 1) if prefix else ends  # up to the end of each row
        row = start = size = 0  # the first row that is left, its position in `rows`, and the bytes before it
        total = int(sizes[-1]) if len(sizes) else 0
        block_size = self._encoder.block_size
        goal, limit = (self._partial_block, block_size) if block_size else (self._blocks, self._part_size)
        while size < total:
            last = int(np.searchsorted(sizes, size + limit - goal.size))
            if last == len(ends):
                goal.add(rows[start:], ends[row:], start)
                return
            end = int(ends[last])
            goal.add(rows[start:end], ends[row : last + 1], start)
            if block_size:
                self._complete_block()
            row, start, size = last + 1, end, int(sizes[last])
            yield from self._full_parts()

    def _complete_block(self) -> None:
        if not self._position and not self._blocks.size:
            self._blocks.buffer.add(self._encoder.header())
        block = self._encoder.block(self._partial_block.take(), self._position + self._blocks.size)
        self._blocks.buffer.add(block.data)
        self._index.buffer.add(with_length(block.index))

    def _full_parts(self) -> Iterator[PartBody]:
        if self._blocks.size < self._part_size:
            return
        if not self._equal_parts:
            self._position += self._blocks.size
            yield PartBody.of(self._blocks.take_chunks())
            return
        *parts, rest = _cut(self._blocks.take_chunks(), self._part_size)
        self._blocks.buffer.add(b"".join(rest))  # a copy: a view would keep a whole block in memory
        for part in parts:
            self._position += self._part_size
            yield PartBody.of(part)

    def finish(self) -> Iterator[PartBody]:
        """Yields the last parts; none if the records filled the parts exactly."""
        if self._partial_block.size:
            self._complete_block()
        self._blocks.buffer.add(self._encoder.footer(split_indexes(self._index.take().take())))
        yield from self._full_parts()
        if last := PartBody.of(self._blocks.take_chunks()):
            yield last

    def take_remainder(self) -> Remainder[NewBytes]:
        """Ends the round with an open object: removes and returns the bytes that fill no part, for staging."""
        return self._pending.map(lambda pending: NewBytes(pending.take_new(), pending.staged.size > 0))

    def compact(self) -> None:
        """Reads the staged bytes of earlier rounds. `take_remainder` then returns them together with the new ones."""
        for pending in self._pending:
            pending.load()
