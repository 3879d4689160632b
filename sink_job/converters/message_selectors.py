"""What chooses the message of a Protobuf schema: it is between the schema id of a value and the message.

| layout | selector |
|---|---|
| Confluent | message indexes (`sink_job.converters.message_indexes`) |
| Glue | a varint: the position of the message among all messages of the schema, sorted by full name |
| Apicurio | a message with the simple name of the message, after its length |

Sources: Glue's `ProtobufWireFormatEncoder` and `MessageIndexFinder` (schema-registry-serde 1.1.20); Apicurio's
`ProtobufSerializer` and `ref.proto` (`message Ref { string name = 1; }`, 3.1.7) and `ProtobufKafkaSerializer` (2.6.13).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.converters.message_indexes import read_indexes, read_uint32
from sink_job.partitioning import arrow_columns
from sink_job.partitioning.field_values import Rejections

Selector = tuple[int, ...] | int | str
"""Message indexes, a position, or a name."""
ReadSelector = Callable[[bytes], tuple[Selector, int]]
"""Returns the selector at the start of a payload, and the position after it. Raises ValueError."""


class Selected(NamedTuple):
    """Rows with equal selectors: their numbers, ascending, and their messages."""

    selector: Selector
    rows: npt.NDArray[np.int64]
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
    text = _NAME_TAG + _varint(len(name)) + name
    return _varint(len(text)) + text


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


_NAME_TAG: Final = b"\x0a"
"""The key of the field 1 with a text, in Protobuf's binary form."""
