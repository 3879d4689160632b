"""The part of HTTP/1.1 that a proxy needs: read a head, forward a body, detect its end.

The proxy forwards the raw bytes of a body, so chunked ones and their trailers match the client's signature.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

_CHUNK = 256 << 10


@dataclass(frozen=True)
class Head:
    """The first line and the header lines of a message; `first` is split at blanks, names are unchanged."""

    first: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str | None:
        """The value of a header by its lower-case name; None if it is missing."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    def without(self, *names: str) -> Head:
        return Head(self.first, tuple((key, value) for key, value in self.headers if key.lower() not in names))

    def adding(self, name: str, value: str) -> Head:
        return Head(self.first, (*self.headers, (name, value)))

    def encode(self) -> bytes:
        lines = [" ".join(self.first), *(f"{key}: {value}" for key, value in self.headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The head of the next message; None if the peer has closed the connection."""
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = text[:-4].split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(tuple(first.split(" ", 2)), tuple((name, value.strip()) for name, _, value in pairs))


async def body_of(reader: asyncio.StreamReader, head: Head, *, until_close: bool = False) -> AsyncIterator[bytes]:
    """The raw chunks of the body after `head`; with `until_close` a body without a length ends with the connection."""
    if (head.get("transfer-encoding") or "").lower() == "chunked":
        async for chunk in _chunks(reader):
            yield chunk
    elif (length := head.get("content-length")) is not None:
        left = int(length)
        while left:
            chunk = await reader.read(min(left, _CHUNK))
            if not chunk:
                raise ConnectionResetError("the body ended early")
            left -= len(chunk)
            yield chunk
    elif until_close:
        while chunk := await reader.read(_CHUNK):
            yield chunk


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        line = await reader.readuntil(b"\r\n")
        yield line
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        yield await reader.readexactly(size + 2)
    while True:  # trailers, up to an empty line
        line = await reader.readuntil(b"\r\n")
        yield line
        if line == b"\r\n":
            return
