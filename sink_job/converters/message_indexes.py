"""The message indexes in front of a Protobuf message: which message of its schema it is.

A count and the indexes follow as zigzag varints: the index of a message in the file, then of one in it, and so on. The
single byte 0 is short for the first message. Source: io.confluent.kafka.schemaregistry.protobuf.MessageIndexes.
"""

from __future__ import annotations

from typing import Final

Indexes = tuple[int, ...]
FIRST: Final[Indexes] = (0,)

_MAX_DEPTH: Final = 100
"""More messages are not nested in one another."""
_MAX_BYTES: Final = 5
"""The length of a varint of 32 bits."""


def read_indexes(data: bytes) -> tuple[Indexes, int]:
    """The message indexes at the start of `data`, and the position after them. Raises ValueError."""
    count, at = _read_varint(data, 0)
    if count == 0:
        return FIRST, at
    if not 0 < count <= _MAX_DEPTH:
        raise ValueError(f"the value has {count} message indexes")
    indexes: list[int] = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        indexes.append(index)
    return tuple(indexes), at


def read_uint32(data: bytes, at: int) -> tuple[int, int]:
    """The varint at the position `at`, and the position after it. Raises ValueError. Bits above the lowest 32 are
    ignored, as protobuf-java's readUInt32 does."""
    value = 0
    for position in range(_MAX_BYTES):
        if at + position >= len(data):
            raise ValueError(f"the value ends within its message indexes, after {len(data)} bytes")
        byte = data[at + position]
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value & 0xFFFFFFFF, at + position + 1
    raise ValueError("the value has a message index of more than 5 bytes")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value, end = read_uint32(data, at)
    return (value >> 1) ^ -(value & 1), end
