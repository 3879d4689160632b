"""Frames as Frame.java writes them, built in Python, and a socket that sends them to a FrameReader."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from sink_job.engine.types import Columns
from sink_job.spark.frames import END, ERROR, HEAD, FrameReader

VALUES = Columns()
_NO_SECTIONS = (0,) * 30


class ConsumedRecord(NamedTuple):
    """A record as a consumer returns it."""

    offset: int
    value: bytes | None = b"v"
    timestamp: int = -1
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_type: int = 0


def frame(number: int, records: Sequence[ConsumedRecord], columns: Columns = VALUES) -> bytes:
    """The frame with records of the range `number`."""
    sections = [
        _longs(record.offset for record in records),
        *_strings([record.value if record.value is None else record.value + columns.separator for record in records]),
        _longs(record.timestamp for record in records) if columns.timestamp else b"",
        *(_strings([record.key for record in records]) if columns.key else [b""] * 3),
        *(_headers(records) if columns.headers else [b""] * 8),
        np.array([record.timestamp_type for record in records], np.int8).tobytes() if columns.timestamp_type else b"",
    ]
    sizes = [*map(len, sections), *_NO_SECTIONS][: len(_NO_SECTIONS)]
    return HEAD.pack(number, len(records), *sizes) + b"".join(map(_filled, sections))


def end() -> bytes:
    return _control(END, "")


def error(text: str) -> bytes:
    """`text`: the range or an empty line, then a line for each exception."""
    return _control(ERROR, text)


@contextmanager
def reader_of(sent: bytes, columns: Columns = VALUES, *, chunk: int = 1 << 20) -> Iterator[FrameReader]:
    """A reader of a socket to which `sent` is written in parts of `chunk` bytes, and which is then closed."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder) / "s.sock"
        server.bind(str(path))
        server.listen()
        sender = threading.Thread(target=_send, args=(server, sent, chunk))
        sender.start()
        try:
            with FrameReader(path, columns) as reader:
                yield reader
        finally:
            sender.join()


def _send(server: socket.socket, sent: bytes, chunk: int) -> None:
    channel, _ = server.accept()
    with channel, suppress(OSError):  # the reader has closed its end
        for start in range(0, len(sent), chunk):
            channel.sendall(sent[start : start + chunk])


def _control(meaning: int, text: str) -> bytes:
    content = text.encode()
    return HEAD.pack(meaning, 0, len(content), *_NO_SECTIONS[1:]) + _filled(content)


def _filled(section: bytes) -> bytes:
    return section + bytes(-len(section) % 8)


def _headers(records: Sequence[ConsumedRecord]) -> list[bytes]:
    pairs = list(chain.from_iterable(record.headers for record in records))
    return [
        _bits([bool(record.headers) for record in records]),
        _bounds(len(record.headers) for record in records),
        *_strings([name.encode() for name, _ in pairs]),
        *_strings([value for _, value in pairs]),
    ]


def _strings(values: Sequence[bytes | None]) -> list[bytes]:
    return [
        _bits([value is not None for value in values]),
        _bounds(len(value or b"") for value in values),
        b"".join(value or b"" for value in values),
    ]


def _longs(numbers: Iterable[int]) -> bytes:
    return np.array(list(numbers), np.int64).tobytes()


def _bounds(sizes: Iterable[int]) -> bytes:
    return np.cumsum([0, *sizes], dtype=np.int32).tobytes()


def _bits(valid: Sequence[bool]) -> bytes:
    return b"" if all(valid) else np.packbits(valid, bitorder="little").tobytes()
