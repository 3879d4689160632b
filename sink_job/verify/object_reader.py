"""Reading an object's rows back from the bucket: a little at a time, decompressed, as they were before compression."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Any, Final

from isal import igzip, isal_zlib

from sink_job.formats.compression import Compression, Gzip
from sink_job.s3 import ChecksumMismatch, NotFound, PreconditionFailed, S3Client

_BUFFER: Final = 128 << 10

_igzip: Any = igzip  # its annotations are not complete
_isal_error: Any = isal_zlib.error
_DAMAGED: Final[tuple[type[Exception], ...]] = (EOFError, OSError, zlib.error, _isal_error)


class ObjectUnreadable(Exception):
    """The body is not what the lists say: it is gone or replaced, or its compressed bytes are damaged."""


class ObjectReader:
    """The uncompressed body of an object, from its beginning to its end."""

    def __init__(self, s3: S3Client, key: str, compression: Compression, *, step: int) -> None:
        """`step`: bytes fetched at a time. Nothing is fetched before the first `read`."""
        self._pieces = _Pieces(s3.stream(key, step=step))
        raw = io.BufferedReader(self._pieces, min(step, _BUFFER))
        self._stream: io.BufferedIOBase = _igzip.IGzipFile(fileobj=raw) if isinstance(compression, Gzip) else raw

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end. Raises NotReadable, instead of an end that is not a right one."""
        pieces = []
        try:
            while size > 0 and (piece := self._stream.read(size)):
                pieces.append(piece)
                size -= len(piece)
        except (NotFound, PreconditionFailed) as error:
            raise ObjectUnreadable(f"the object cannot be read: {error}") from error
        except _DAMAGED as error:
            raise ObjectUnreadable(f"the object is not valid gzip: {error}") from error
        if size > 0 and not pieces and self._pieces.failed is not None:
            raise ObjectUnreadable(f"the object is damaged: {self._pieces.failed}")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a stream. A checksum that does not fit ends it: what its bytes say is told first."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.failed: ChecksumMismatch | None = None
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            try:
                piece = next(self._pieces, None)
            except ChecksumMismatch as error:
                self.failed = error
                return 0
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
