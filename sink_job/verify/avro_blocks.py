"""Reads the header and the blocks of an Avro object container file, strictly: no length is trusted.

fastavro.block_reader does not read Avro objects here. It needs a file that it can seek in, and it trusts lengths: a
damaged length of a snappy block ends the process, because memory for it is allocated first.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from sink_job.arrow.varints import MAX_BYTES, read_varint, signed
from sink_job.avro.container import MAGIC, SYNC_BYTES
from sink_job.formats.compression import zstd
from sink_job.verify.object_reader import ObjectUnreadable

MAX_BLOCK: Final = 1 << 31
SNAPPY_RATIO: Final = 32
"""Snappy's content is at most 21.3 times as long as the data: 64 bytes for 3 (format_description.txt)."""
_SNAPPY_LENGTH: Final = 5
"""The maximum length of the uncompressed length of a block."""
DAMAGED_SYNC: Final = "a sync marker of the object is damaged"


class AvroHeader(NamedTuple):
    """The header: the codec (None if it is not there), the text of the schema, and the sync marker."""

    codec: str | None
    schema: bytes | None
    sync: bytes


class BlockSource(Protocol):
    """The bytes of a file, in their order."""

    def read(self, size: int, /) -> bytes: ...


class AvroBlockReader:
    """A sequential reader. Each method raises ObjectUnreadable if the object is damaged or cannot be read."""

    def __init__(self, reader: BlockSource) -> None:
        """`reader` reads the object without decompression. Nothing is fetched before `header`."""
        self._reader = reader
        self._header: AvroHeader | None = None

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end."""
        return self._reader.read(size)

    def header(self) -> AvroHeader:
        """The header; the first call reads it."""
        if self._header is None:
            self._header = self._read_header()
        return self._header

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The number of datums of each block, and their bytes."""
        header = self.header()
        codec = "null" if header.codec is None else header.codec
        decompress = _DECOMPRESS[codec]
        while (count := self._long(at_end=True)) is not None:
            data = self._exactly(self._size())
            try:
                content = decompress(data)
            except _DAMAGED as error:
                raise ObjectUnreadable(f"a block of the object is damaged: {error}") from error
            if self._exactly(SYNC_BYTES) != header.sync:
                raise ObjectUnreadable(DAMAGED_SYNC)
            yield count, content

    def _read_header(self) -> AvroHeader:
        if self._exactly(len(MAGIC)) != MAGIC:
            raise ObjectUnreadable("the object is not an Avro object container file")
        metadata: dict[str, bytes] = {}
        while count := self._size():
            for _ in range(count):
                name = self._exactly(self._size()).decode(errors="replace")
                metadata[name] = self._exactly(self._size())
        codec = metadata["avro.codec"].decode(errors="replace") if "avro.codec" in metadata else None
        if codec is not None and codec not in _DECOMPRESS:
            raise ObjectUnreadable(f"the object has the unknown Avro codec {codec}")
        return AvroHeader(codec, metadata.get("avro.schema"), self._exactly(SYNC_BYTES))

    def _size(self) -> int:
        size = self._long()
        if size is None or not 0 <= size < MAX_BLOCK:
            raise ObjectUnreadable("a length in the object is damaged")
        return size

    def _long(self, *, at_end: bool = False) -> int | None:
        """The next long. `at_end`: None at the end of the object."""
        data = b""
        while not data or data[-1] >= 0x80:
            byte = self._reader.read(1)
            if not byte and at_end and not data:
                return None
            if not byte or len(data) == MAX_BYTES:
                raise ObjectUnreadable("the object ends within a block, or a length in it is damaged")
            data += byte
        return signed(read_varint(data, 0)[0])

    def _exactly(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) < size:
            raise ObjectUnreadable("the object ends within a block")
        return data


_DAMAGED: Final[tuple[type[Exception], ...]] = (ValueError, OSError, EOFError, zlib.error, zstd.ZstdError)


def _snappy(data: bytes) -> bytes:
    """Raises ValueError if the checksum does not match."""
    try:
        size, _ = read_varint(data, 0, _SNAPPY_LENGTH)
    except (ValueError, IndexError):
        size = -1
    if not 0 <= size <= SNAPPY_RATIO * len(data):
        raise ValueError("its uncompressed length is damaged")
    content: bytes = pa.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    if zlib.crc32(content).to_bytes(4, "big") != data[-4:]:
        raise ValueError("its checksum does not match")
    return content


_DECOMPRESS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": bytes,
    "deflate": lambda data: zlib.decompress(data, -zlib.MAX_WBITS),
    "snappy": _snappy,
    "zstandard": zstd.decompress,
    "bzip2": bz2.decompress,
}
