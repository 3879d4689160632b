"""What chooses the message of a Protobuf schema: it is between the schema id of a value and the message.

| layout | selector |
|---|---|
| Confluent | the message index: positions from the outermost message in, after their number (varints) |
| Glue | a varint: the position of the message among all messages of the schema, sorted by full name |
| Apicurio | a message with the simple name of the message, after its length |

Sources: Glue's `ProtobufWireFormatEncoder` and `MessageIndexFinder` (schema-registry-serde 1.1.20); Apicurio's
`ProtobufSerializer` and `ref.proto` (`message Ref { string name = 1; }`, 3.1.7) and `ProtobufKafkaSerializer` (2.6.13).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers
from sink_job.arrow.varints import encode_varint, read_varint, signed
from sink_job.records.fields import Rejections

Indexes = tuple[int, ...]
FIRST: Final[Indexes] = (0,)

_MAX_DEPTH: Final = 100
"""More messages are not nested in one another."""
_MAX_BYTES: Final = 5
"""The length of a varint of 32 bits."""


def read_indexes(data: bytes) -> tuple[Indexes, int]:
    """The message indexes at the start of `data`, and the position after them. Raises ValueError."""
    count, at = _read_index(data, 0)
    if count == 0:
        return FIRST, at
    if not 0 < count <= _MAX_DEPTH:
        raise ValueError(f"the value has {count} message indexes")
    indexes: list[int] = []
    for _ in range(count):
        index, at = _read_index(data, at)
        indexes.append(index)
    return tuple(indexes), at


def read_uint32(data: bytes, at: int) -> tuple[int, int]:
    """The varint at the position `at`, and the position after it. Raises ValueError. Bits above the lowest 32 are
    ignored, as protobuf-java's readUInt32 does."""
    try:
        value, end = read_varint(data, at, _MAX_BYTES)
    except IndexError:
        raise ValueError(f"the value ends within its message indexes, after {len(data)} bytes") from None
    except ValueError:
        raise ValueError(f"the value has a message index of more than {_MAX_BYTES} bytes") from None
    return value & 0xFFFFFFFF, end


def _read_index(data: bytes, at: int) -> tuple[int, int]:
    value, end = read_uint32(data, at)
    return signed(value), end


Selector = tuple[int, ...] | int | str
"""Message indexes, a position, or a name."""
ReadSelector = Callable[[bytes], tuple[Selector, int]]
"""Returns the selector at the start of a payload, and the position after it. Raises ValueError."""


class Selected(NamedTuple):
    """Rows with equal selectors: their numbers, ascending, and their messages."""

    selector: Selector
    rows: Integers
    messages: pa.BinaryArray


def split(payload: pa.BinaryArray, read: ReadSelector = read_indexes) -> tuple[list[Selected], Rejections]:
    """The rows of `payload` by selector, in the order of their first rows, and the rejected rows."""
    one = _all_as_first(payload, read)
    if one is not None:
        return [one], []
    rows: dict[Selector, list[int]] = {}
    messages: dict[Selector, list[bytes]] = {}
    rejected: Rejections = []
    for row, data in enumerate(payload.to_pylist()):
        try:
            selector, end = read(data)
        except ValueError as error:
            rejected.append((row, str(error)))
            continue
        rows.setdefault(selector, []).append(row)
        messages.setdefault(selector, []).append(data[end:])
    return [Selected(of, np.array(rows[of]), arrow_columns.binaries(messages[of])) for of in rows], rejected


def _all_as_first(payload: pa.BinaryArray, read: ReadSelector) -> Selected | None:
    """All rows, if they have the selector of the first one in the same form."""
    if not len(payload):
        return None
    first: bytes = payload[0].as_py()
    try:
        selector, end = read(first)
    except ValueError:
        return None
    if not pc.all(pc.starts_with(payload, first[:end])).as_py():
        return None
    return Selected(selector, np.arange(len(payload)), pc.binary_slice(payload, end, 2**31 - 1))


def read_position(data: bytes) -> tuple[int, int]:
    """A position of AWS Glue. See `ReadSelector`."""
    return read_uint32(data, 0)


def read_name(data: bytes) -> tuple[str, int]:
    """A name of Apicurio. See `ReadSelector`.

    A name that does not fill its message exactly is none: Apicurio's serializers write nothing else.
    """
    try:
        size, at = read_uint32(data, 0)
        length, start = read_uint32(data, at + 1)
        end = start + length
        if data[at : at + 1] == _NAME_TAG and end == at + size <= len(data):
            return data[start:end].decode(), end
    except ValueError:
        pass
    raise ValueError("the value does not start with the name of its message, which Apicurio's serializers write")


def name_selector(name: bytes) -> bytes:
    """The selector of Apicurio for a message with this name."""
    text = _NAME_TAG + encode_varint(len(name)) + name
    return encode_varint(len(text)) + text


_NAME_TAG: Final = b"\x0a"
"""The key of the field 1 with a text, in Protobuf's binary form."""
