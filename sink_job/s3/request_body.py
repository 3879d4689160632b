"""A request body from a sequence of buffers, without copying them.

A part consists of many Arrow buffers, and joining them would copy every byte. The HTTP client reads this file-like
object in chunks instead. A chunk is at most 4 MiB, because a socket's timeout applies to a whole `sendall`: on a new
connection a chunk of 25 MiB would have to be sent within the connect timeout.
"""

import io
from collections.abc import Iterator, Sequence

from typing_extensions import Buffer

from sink_job.s3.checksums import crc64nvme

__all__ = ["Body", "ChunkedBody"]

Body = Buffer | Sequence[Buffer]
"""Content to upload: one buffer (bytes, bytearray, memoryview, pyarrow.Buffer), or a sequence of consecutive
buffers."""

_CHUNK_BYTES = 4 << 20


def _slices(buffer: Buffer) -> Iterator[memoryview]:
    view = memoryview(buffer).cast("B")
    for start in range(0, len(view), _CHUNK_BYTES):
        yield view[start : start + _CHUNK_BYTES]


class ChunkedBody:
    """Reads the buffers in order, and can be rewound for a retry. Not thread-safe: use one per request."""

    def __init__(self, body: Body) -> None:
        buffers = [body] if isinstance(body, Buffer) or not isinstance(body, Sequence) else body
        self._chunks = [chunk for buffer in buffers for chunk in _slices(buffer)]
        self._size = sum(map(len, self._chunks))
        self._next = 0

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True  # botocore tests the truth of a body to find out if there is one

    def crc64nvme(self) -> int:
        """The CRC64NVME of the whole body."""
        crc = 0
        for chunk in self._chunks:
            crc = crc64nvme(chunk, crc)
        return crc

    def read(self, size: int | None = -1) -> bytes | memoryview:
        """The next chunk, whatever `size` is. For -1 or None all remaining bytes. Empty at the end."""
        if size is None or size < 0:
            rest, self._next = self._chunks[self._next :], len(self._chunks)
            return b"".join(rest)
        if self._next == len(self._chunks):
            return b""
        chunk = self._chunks[self._next]
        self._next += 1
        return chunk

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to the start or the end. Raises io.UnsupportedOperation for any other position."""
        if offset != 0 or whence == io.SEEK_CUR:
            raise io.UnsupportedOperation("a body can be positioned only at its start or its end")
        self._next = 0 if whence == io.SEEK_SET else len(self._chunks)
        return self.tell()

    def tell(self) -> int:  # words: allow
        """The number of bytes read so far."""
        return sum(map(len, self._chunks[: self._next]))
