"""Compression of an object's rows in *blocks*, whose boundaries depend on the records alone (P3).

Without compression every row is a block. With Gzip a block is one member, with Zstd one frame: it ends with the first
row at which the block's uncompressed bytes reach `block_size`. A part ends at the first block end at or past the part
size. So rounds, batches and memory have no effect on an object's bytes. The library and its version have an effect:
they belong to the settings of an object (P8).
"""

from __future__ import annotations

import sys
from typing import Protocol

from sink_job.api.enums import CompressionCodec
from sink_job.api.sections.format_section import FormatSpec
from sink_job.formats.deflate import GZIP, LIBRARY, deflate

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

BLOCK_BYTES = 1 << 20
"""Uncompressed bytes at which a block ends. A few blocks fill a part; each has an overhead of about 20 bytes. Zstd
compresses blocks of 4 MiB at most 5 % better, and slower; every open object would stage and spill four times the bytes
(docs/adr/0029)."""


class Compression(Protocol):
    """Compresses the rows of one block."""

    extension: str
    """Suffix of the format's own extension, e.g. `.gz`; empty without compression."""
    block_size: int
    """Uncompressed bytes at which a block ends, with the first row at or past them; 0: every row is a block."""
    library: str | None
    """The library that compresses, with its version: another one may write other bytes. None without compression."""

    def compress(self, rows: bytes) -> bytes:
        """The block's bytes in the object. They depend on `rows` and `library` alone."""
        ...


class Uncompressed:
    """No compression."""

    extension = ""
    block_size = 0
    library: str | None = None

    def compress(self, rows: bytes) -> bytes:
        return rows


class Gzip:
    """Gzip members by ISA-L, which is 7 to 10 times as fast as zlib at a similar ratio (docs/semantics.md)."""

    extension = ".gz"
    block_size = BLOCK_BYTES
    library: str | None = LIBRARY

    def __init__(self, level: int) -> None:
        """`level` is ISA-L's compression level: 0 (fastest) to 3."""
        self.level = level

    def compress(self, rows: bytes) -> bytes:
        return deflate(rows, self.level, GZIP)


class Zstd:
    """Zstandard frames by libzstd in one thread, each with its content size and a checksum."""

    extension = ".zst"
    block_size = BLOCK_BYTES
    library: str | None = f"zstd {zstd.zstd_version}"

    def __init__(self, level: int) -> None:
        """`level` is a level of Zstandard: 1 (fastest) to 19."""
        parameters = zstd.CompressionParameter
        self._options: dict[int, int] = {parameters.compression_level: level, parameters.checksum_flag: 1}

    def compress(self, rows: bytes) -> bytes:
        return zstd.compress(rows, options=self._options)


def compression_of(settings: FormatSpec) -> Compression:
    """The compression of the settings' rows. Raises ValueError for a codec that rows cannot have."""
    codec = settings.compression.codec
    match codec:
        case CompressionCodec.NONE:
            return Uncompressed()
        case CompressionCodec.GZIP:
            return Gzip(settings.compression.chosen_level)
        case CompressionCodec.ZSTD:
            return Zstd(settings.compression.chosen_level)
    raise ValueError(f"compression {codec} is not supported with the output {settings.output}")
