"""Limits of an answer of a schema registry in time and size.

The timeout of an HTTP client counts from one byte to the next, and its size has no limit: a server that sends a byte
every ten seconds, or a compressed answer of gigabytes, would stop or exhaust the driver.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from typing import Any, Final

import httpx2

MAX_SIZE: Final = 64 * 1024**2
"""Maximum size of an answer in bytes, after it is decompressed. A schema of a registry is far smaller."""
MAX_TIMEOUTS: Final = 4
"""Maximum time for the body of an answer, in timeouts of the client."""
_CHUNK: Final = 1024**2


def limit_answers(client: Any, timeout_s: float) -> None:
    """Limits all answers to a client of httpx. A larger or slower answer raises httpx2.ReadError."""
    client.headers["Accept-Encoding"] = "gzip"
    client.event_hooks["response"].append(lambda response: _limit(response, timeout_s * MAX_TIMEOUTS))


def _limit(response: Any, max_s: float) -> None:
    encoding = response.headers.pop("Content-Encoding", "").strip().lower()
    response.stream = _LimitedStream(response.stream, max_s, encoding)


class _LimitedStream(httpx2.SyncByteStream):
    """The decompressed bytes of a stream."""

    def __init__(self, stream: Any, max_s: float, encoding: str) -> None:
        self._stream = stream
        self._max_s = max_s
        self._encoding = encoding

    def __iter__(self) -> Iterator[bytes]:
        end, size = time.monotonic() + self._max_s, 0
        for chunk in _decompressed(self._stream, self._encoding):
            size += len(chunk)
            if size > MAX_SIZE:
                raise httpx2.ReadError(f"the answer is larger than {MAX_SIZE:,} bytes")
            yield chunk
            if time.monotonic() > end:
                raise httpx2.ReadError(f"the answer takes longer than {self._max_s:.0f} s")

    def close(self) -> None:
        self._stream.close()


def _decompressed(stream: Any, encoding: str) -> Iterator[bytes]:
    if encoding in ("", "identity"):
        yield from stream
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise httpx2.DecodingError(f"the answer has the encoding {encoding[:20]!r}, which was not requested")
    decoder = zlib.decompressobj(32 + zlib.MAX_WBITS)  # gzip or zlib, by its first bytes
    started = False
    for chunk in stream:
        started = True
        yield from _inflated(decoder, chunk)
    if started and not decoder.eof:
        raise httpx2.DecodingError("the compressed answer ends too early")


def _inflated(decoder: Any, chunk: bytes) -> Iterator[bytes]:
    try:
        while chunk:
            yield decoder.decompress(chunk, _CHUNK)
            chunk = decoder.unconsumed_tail
    except zlib.error as error:
        raise httpx2.DecodingError(f"the answer cannot be decompressed: {error}") from None
