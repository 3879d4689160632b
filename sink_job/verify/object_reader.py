"""Reads the rows of an object from the bucket in small steps, decompressed."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Any, Final

from isal import igzip, isal_zlib

from sink_job.formats.compression import Compression, Gzip, Zstd, zstd
from sink_job.s3 import ChecksumMismatch, NotFound, PreconditionFailed, S3Client

_BUFFER: Final = 128 << 10

_igzip: Any = igzip  # its annotations are not complete
_isal_error: Any = isal_zlib.error
_DAMAGED: Final[tuple[type[Exception], ...]] = (EOFError, OSError, zlib.error, _isal_error, zstd.ZstdError)
_NAMES: Final = {".gz": "gzip", ".zst": "zstd"}
_ZSTD_WINDOW: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
"""Zstd's levels up to 19 have windows of at most 8 MiB (zstd_compress/clevels.h). Frames with larger ones are not the
sink's, and are rejected before memory is allocated for them."""


class ObjectUnreadable(Exception):
    """The object was deleted or replaced, or its compressed content is damaged."""


class ObjectReader:
    """A sequential reader of the uncompressed content of an object."""

    def __init__(self, s3: S3Client, key: str, compression: Compression, *, step: int) -> None:
        """`step`: bytes per fetch. Nothing is fetched before the first `read`."""
        self._chunks = _ChunkStream(s3.stream(key, step=step))
        raw = io.BufferedReader(self._chunks, min(step, _BUFFER))
        self._extension = compression.extension
        self._stream = _decompressed(raw, compression)

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end. Raises ObjectUnreadable, also at the end of damaged content."""
        chunks = []
        try:
            while size > 0 and (chunk := self._stream.read(size)):
                chunks.append(chunk)
                size -= len(chunk)
        except (NotFound, PreconditionFailed) as error:
            raise ObjectUnreadable(f"the object cannot be read: {error}") from error
        except _DAMAGED as error:
            raise ObjectUnreadable(f"the object is not valid {_NAMES[self._extension]}: {error}") from error
        if size > 0 and not chunks and self._chunks.failed is not None:
            raise ObjectUnreadable(f"the object is damaged: {self._chunks.failed}")
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _decompressed(raw: io.BufferedIOBase, compression: Compression) -> io.BufferedIOBase:
    """The uncompressed content of `raw`, of any number of gzip members or zstd frames."""
    if isinstance(compression, Gzip):
        stream: io.BufferedIOBase = _igzip.IGzipFile(fileobj=raw)
        return stream
    return zstd.ZstdFile(raw, options=_ZSTD_WINDOW) if isinstance(compression, Zstd) else raw


class _ChunkStream(io.RawIOBase):
    """Chunks of bytes as a stream. A checksum mismatch ends the stream and is kept in `failed`: differences in the
    bytes are reported first."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.failed: ChecksumMismatch | None = None
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            try:
                chunk = next(self._chunks, None)
            except ChecksumMismatch as error:
                self.failed = error
                return 0
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
