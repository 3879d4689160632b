"""Compression of an object's rows in *blocks*, whose boundaries depend on the records alone (P3).

Without compression every row is a block. With gzip a block is one member: it ends with the first row at which the
member's uncompressed bytes reach `block_size`. A part ends at the first block end at or past the part size. So rounds,
batches and memory have no effect on an object's bytes.
"""

from __future__ import annotations

from typing import Protocol

from isal import igzip

MEMBER_BYTES = 1 << 20
"""Uncompressed bytes at which a gzip member ends. A few members fill a part; each has an overhead of about 20 bytes."""


class Compression(Protocol):
    """Compresses the rows of one block."""

    extension: str
    """Suffix of the format's own extension, e.g. `.gz`; empty without compression."""
    block_size: int
    """Uncompressed bytes at which a block ends, with the first row at or past them; 0: every row is a block."""

    def compress(self, rows: bytes) -> bytes:
        """The block's bytes in the object. They depend on `rows` alone."""
        ...


class Uncompressed:
    """No compression."""

    extension = ""
    block_size = 0

    def compress(self, rows: bytes) -> bytes:
        return rows


class Gzip:
    """Gzip members by ISA-L, which is 7 to 10 times as fast as zlib at a similar ratio (docs/semantics.md)."""

    extension = ".gz"
    block_size = MEMBER_BYTES

    def __init__(self, level: int) -> None:
        """`level` is ISA-L's compression level: 0 (fastest) to 3."""
        self.level = level

    def compress(self, rows: bytes) -> bytes:
        return igzip.compress(rows, compresslevel=self.level, mtime=0)
