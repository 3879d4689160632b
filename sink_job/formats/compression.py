"""How an object's rows are compressed: into *blocks* that can be told from the records alone (P3).

Without compression every row is a block. With gzip a block is one member: the rows up to the first one at which the
member's uncompressed bytes reach `block_size`. A part ends at the first block end at or past the part size, so neither
rounds nor batches nor memory show in an object's bytes.
"""

from __future__ import annotations

from typing import Protocol

from isal import igzip

MEMBER_BYTES = 1 << 20
"""Uncompressed bytes at which a gzip member ends. A few members fill a part, and each costs some 20 bytes."""


class Compression(Protocol):
    """Turns the rows of one block into the bytes that stand in the object."""

    extension: str
    """What stands behind the format's own extension, e.g. `.gz`; empty without compression."""
    block_size: int
    """A block ends at the first row at or past this many uncompressed bytes; 0: every row is a block."""

    def compress(self, rows: bytes) -> bytes:
        """The block's bytes in the object: a function of `rows` alone."""
        ...


class Uncompressed:
    """Rows as they are."""

    extension = ""
    block_size = 0

    def compress(self, rows: bytes) -> bytes:
        return rows


class Gzip:
    """Gzip members by ISA-L, which is 7 to 10 times as fast as zlib at a like ratio (docs/semantics.md)."""

    extension = ".gz"
    block_size = MEMBER_BYTES

    def __init__(self, level: int) -> None:
        """`level` is ISA-L's: 0 (fastest) to 3."""
        self.level = level

    def compress(self, rows: bytes) -> bytes:
        return igzip.compress(rows, compresslevel=self.level, mtime=0)
