"""Avro object container files (Avro 1.12 specification, "Object Container Files").

The sync marker is derived from the object's key, so the bytes of an object do not depend on the task that writes it.
"""

from __future__ import annotations

import bz2
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa

from sink_job.api.enums import CompressionCodec
from sink_job.api.sections.format_section import FormatSpec
from sink_job.arrow.varints import encode_long
from sink_job.formats.base import Block
from sink_job.formats.block_rows import BlockRows
from sink_job.formats.compression import Zstd
from sink_job.formats.deflate import LIBRARY, RAW, deflate

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
BZIP2_LEVEL: Final = 9


class AvroCodec(NamedTuple):
    """A codec of Avro: its name in the header, the compression of the datums of a block (None: without one), and the
    library that compresses, with its version (None: without one, or its version is not known)."""

    name: str
    compress: Callable[[bytes], bytes] | None
    library: str | None = None


class AvroContainer:
    """Encodes an object as an Avro object container file."""

    is_container = True

    def __init__(self, schema: str, key: str, codec: AvroCodec, *, block_size: int) -> None:
        """`schema` is the Avro schema as JSON, `key` the key of the object. `block_size` counts the bytes of rows."""
        self.block_size = block_size
        self._codec = codec
        self._schema = schema
        self._sync = sync_marker(key)

    def header(self) -> bytes:
        metadata = {"avro.codec": self._codec.name.encode(), "avro.schema": self._schema.encode()}
        return MAGIC + _string_map(metadata) + self._sync

    def block(self, rows: BlockRows, position: int) -> Block:
        compress = self._codec.compress
        data = rows.take_chunks() if compress is None else [compress(rows.take())]
        sizes = encode_long(rows.count), encode_long(sum(map(len, data)))
        return Block(b"".join((*sizes, *data, self._sync)))

    def footer(self, indexes: Sequence[bytes]) -> bytes:
        return b""


def sync_marker(key: str) -> bytes:
    """The sync marker of the object with this key."""
    return hashlib.sha256(key.encode()).digest()[:SYNC_BYTES]


def avro_codec(settings: FormatSpec) -> AvroCodec:
    """The codec of the settings. Raises ValueError for a compression that Avro does not have."""
    codec = settings.compression.codec
    match codec:
        case CompressionCodec.NONE:
            return AvroCodec("null", None)
        case CompressionCodec.DEFLATE:
            return AvroCodec("deflate", partial(_deflate, settings.compression.chosen_level), LIBRARY)
        case CompressionCodec.SNAPPY:
            return AvroCodec("snappy", _snappy, f"pyarrow {pa.__version__}")
        case CompressionCodec.ZSTD:
            return AvroCodec("zstandard", Zstd(settings.compression.chosen_level).compress, Zstd.library)
        case CompressionCodec.BZIP2:
            return AvroCodec("bzip2", lambda data: bz2.compress(data, BZIP2_LEVEL))
    raise ValueError(f"the output Avro has no compression {codec}")


def _deflate(level: int, data: bytes) -> bytes:
    return deflate(data, level, RAW)


def _snappy(data: bytes) -> bytes:
    """A snappy block and the CRC-32 of the uncompressed data, big endian."""
    compressed: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return compressed + zlib.crc32(data).to_bytes(4, "big")


def _string_map(entries: Mapping[str, bytes]) -> bytes:
    content = b"".join(_sized(name.encode()) + _sized(value) for name, value in entries.items())
    return encode_long(len(entries)) + content + encode_long(0)


def _sized(data: bytes) -> bytes:
    return encode_long(len(data)) + data
