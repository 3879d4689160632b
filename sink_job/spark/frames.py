"""Receives batches of records from the reader in the JVM of the task, over a Unix socket (RangeSender.java).

A frame is a head of 128 bytes and sections, all in the byte order of the machine (Frame.java). The head has int32
numbers: the number of the range in the task, the number of records, and the sizes in bytes of all possible sections in
a fixed order; 0 for one that was not requested. A section is filled up to a multiple of 8 bytes. `bounds` are int32
offsets into `bytes`, one more than values; `valid` has one bit per value, and is empty if no value is null.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

import pyarrow as pa

from sink_job.engine.types import ROW, Columns

HEAD = Struct("=32i")
END, ERROR = -1, -2
"""Numbers in the place of a range: the end of all ranges; an error of the reader, whose text is the first section."""

_SECTIONS = 17
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


class ReadError(Exception):
    """The reader could not read a range. The message has the chain of Java exceptions, a line for each."""


class RangeBatch(NamedTuple):
    """Records of the range with this number, at least one. `sink_job.engine.types.PartitionFunction` describes the
    columns."""

    number: int
    records: pa.RecordBatch


def socket_prefix(directory: str) -> str:
    """A new beginning of the paths of sockets. With a directory of at most `conf.SOCKET_DIR_LENGTH` bytes all paths are
    within the operating system's limit of 107."""
    return f"{directory}/s3sink-{uuid4().hex[:12]}"


def socket_path(sockets: str, attempt_id: int) -> Path:
    """The socket of a task attempt. `sockets`: the beginning of its path. `attempt_id`: Spark's id of the attempt."""
    return Path(f"{sockets}-{attempt_id}.sock")


class FrameReader:
    """Reads the frames of a task. To be closed: an open one keeps the reader in the JVM waiting."""

    def __init__(self, path: Path, columns: Columns) -> None:
        """Raises OSError if there is no such socket."""
        self._columns = columns
        self._head = bytearray(HEAD.size)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def next(self) -> RangeBatch | None:
        """The next batch; None at the end of all ranges. Raises ReadError for an error of the reader, and if it has
        ended early."""
        self._receive(memoryview(self._head))
        number, records, *sizes = HEAD.unpack(self._head)
        if number == END:
            return None
        sizes = sizes[:_SECTIONS]
        starts = [0, *accumulate((size + 7) // 8 * 8 for size in sizes)]
        content = pa.allocate_buffer(starts[-1])
        self._receive(memoryview(content))
        if number == ERROR:
            raise ReadError(_description(content[: sizes[0]].to_pybytes().decode()))
        return RangeBatch(number, _Frame(content, starts, sizes, records).batch(self._columns))

    def _receive(self, into: memoryview) -> None:
        while into:
            received = self._socket.recv_into(into, len(into), socket.MSG_WAITALL)
            if received == 0:
                raise ReadError("the reader of the task has ended before it has sent all records")
            into = into[received:]


def _description(text: str) -> str:
    """The message for the reader's description of an error: the range (topic-partition, start, end), or nothing if it
    may be about another range of those that are fetched together; then the exceptions."""
    place, *chain = text.split("\n")
    what = "ranges that are fetched together cannot be read"
    if place:
        partition, start, _ = place.rsplit(" ", 2)
        what = f"the range from offset {start} of partition {partition} cannot be read"
    return "\n".join([what, *(f"Caused by: {exception}" for exception in chain)])


class _Frame:
    """The sections of a frame, as views of its buffer."""

    def __init__(self, content: pa.Buffer, starts: list[int], sizes: list[int], records: int) -> None:
        self._content = content
        self._starts = starts
        self._sizes = sizes
        self._records = records

    def batch(self, columns: Columns) -> pa.RecordBatch:
        name = ROW if columns.separator else "value"
        arrays = {"offset": self._numbers(0, pa.int64()), name: self._strings(1, self._records)}
        readers: dict[str, Callable[[], pa.Array]] = {
            "timestamp": lambda: self._numbers(4, pa.int64()),
            "key": lambda: self._strings(5, self._records),
            "headers": self._headers,
            "timestamp_type": lambda: self._numbers(16, pa.int8()),
        }
        arrays |= {name: read() for name, read in readers.items() if getattr(columns, name)}
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _numbers(self, section: int, kind: pa.DataType) -> pa.Array:
        return pa.Array.from_buffers(kind, self._records, [None, self._buffer(section)])

    def _strings(self, section: int, count: int, kind: pa.DataType | None = None) -> pa.Array:
        buffers = [self._valid(section), self._buffer(section + 1), self._buffer(section + 2)]
        return pa.Array.from_buffers(kind or pa.binary(), count, buffers)

    def _headers(self) -> pa.Array:
        count = self._sizes[11] // 4 - 1
        pair = [self._strings(10, count, pa.string()), self._strings(13, count)]
        headers = pa.StructArray.from_arrays(pair, fields=list(_HEADER))
        buffers = [self._valid(8), self._buffer(9)]
        return pa.Array.from_buffers(pa.list_(_HEADER), self._records, buffers, children=[headers])

    def _valid(self, section: int) -> pa.Buffer | None:
        return self._buffer(section) if self._sizes[section] else None

    def _buffer(self, section: int) -> pa.Buffer:
        return self._content.slice(self._starts[section], self._sizes[section])
