"""A request's body out of buffers that lie where they lie.

A part is gathered from many Arrow buffers; joining them would copy every byte once more. The HTTP client is handed this
file-like object instead and sends piece by piece. Pieces are at most 4 MiB, because a socket's time-out bounds a whole
`sendall`: 25 MiB in one call would have to pass within the connect time-out on a new connection.
"""

import io
from collections.abc import Iterator, Sequence

from typing_extensions import Buffer

from sink_job.s3.checksums import crc64nvme

__all__ = ["Body", "ChunkedBody"]

Body = Buffer | Sequence[Buffer]
"""What is uploaded: one buffer (bytes, bytearray, memoryview, pyarrow.Buffer) or a sequence of them that follow
each other."""

_PIECE = 4 << 20


def _slices(buffer: Buffer) -> Iterator[memoryview]:
    view = memoryview(buffer).cast("B")
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]


class ChunkedBody:
    """Reads the buffers in order; rewinds for another try. Not thread-safe: one per request."""

    def __init__(self, body: Body) -> None:
        buffers = [body] if isinstance(body, Buffer) or not isinstance(body, Sequence) else body
        self._pieces = [piece for buffer in buffers for piece in _slices(buffer)]
        self._size = sum(map(len, self._pieces))
        self._at = 0

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True  # botocore asks the truth of a body when it means "is there one"

    def crc64nvme(self) -> int:
        """The checksum of the whole body."""
        crc = 0
        for piece in self._pieces:
            crc = crc64nvme(piece, crc)
        return crc

    def read(self, size: int | None = -1) -> bytes | memoryview:
        """The next piece, whatever `size` is; all that is left for -1 or None; empty at the end."""
        if size is None or size < 0:
            rest, self._at = self._pieces[self._at :], len(self._pieces)
            return b"".join(rest)
        if self._at == len(self._pieces):
            return b""
        piece = self._pieces[self._at]
        self._at += 1
        return piece

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """To the beginning or the end; nothing else is asked of a body."""
        if offset != 0 or whence == io.SEEK_CUR:
            raise io.UnsupportedOperation("a body is read from its beginning")
        self._at = 0 if whence == io.SEEK_SET else len(self._pieces)
        return self.tell()

    def tell(self) -> int:
        """Bytes read so far."""
        return sum(map(len, self._pieces[: self._at]))
