"""Variable-length integers: 7 bits a byte, the lowest first, and the upper bit of each byte but the last is set.

Protobuf and snappy have them as they are. Avro has signed ones: zigzag turns 0, -1, 1, -2 into 0, 1, 2, 3.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sink_job.arrow.arrays import Bytes, Integers, Mask

MAX_BYTES: Final = 10
"""The maximum length of an integer of 64 bits."""


def encode_varint(value: int) -> bytes:
    """The bytes of an integer that is not negative.

    >>> [encode_varint(value).hex() for value in (1, 127, 300)]
    ['01', '7f', 'ac02']
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_long(value: int) -> bytes:
    """The bytes of a signed integer of 64 bits.

    >>> [encode_long(value).hex() for value in (-1, 1, 300)]
    ['01', '02', 'd804']
    """
    zigzag = value << 1 if value >= 0 else (~value << 1) | 1
    return _SHORT[zigzag] if zigzag < len(_SHORT) else encode_varint(zigzag)


_SHORT: Final = [encode_varint(value) for value in range(0x4000)]
"""The forms of at most two bytes. Most lengths, counts and small numbers are among them."""


def read_varint(data: bytes, at: int, max_bytes: int = MAX_BYTES) -> tuple[int, int]:
    """The integer at the position `at`, and the position after it. Raises IndexError if `data` ends within it, and
    ValueError if it has more than `max_bytes` bytes.

    >>> read_varint(bytes.fromhex("01 ac02 7f"), 1)
    (300, 3)
    """
    value = 0
    for shift in range(0, 7 * max_bytes, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError(f"an integer has more than {max_bytes} bytes")


def signed(zigzag: int) -> int:
    """The integer that has this zigzag form.

    >>> [signed(zigzag) for zigzag in (0, 1, 2, 3)]
    [0, -1, 1, -2]
    """
    return (zigzag >> 1) ^ -(zigzag & 1)


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """As `read_varint`, a signed integer. One of more than 64 bits loses its upper bits, as in Avro's Java decoder.

    >>> read_long(bytes.fromhex("d804 01"), 0)
    (300, 2)
    """
    byte = data[at]
    at += 1
    if byte < 0x80:  # most lengths, and all indexes of branches
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while byte > 0x7F:  # not by read_varint: its call takes a tenth of the time of a datum
        if shift > 63:
            raise ValueError(f"an integer has more than {MAX_BYTES} bytes")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), at


def encode_longs(values: Integers) -> tuple[Bytes, Mask]:
    """The bytes of a column of signed integers: row r has those of `data[r]` that `used[r]` marks. The matrices have as
    many columns as the longest integer has bytes.

    >>> data, used = encode_longs(np.array([-1, 1, 300]))
    >>> data.tolist()
    [[1, 0], [2, 0], [216, 4]]
    >>> used.astype(int).tolist()
    [[1, 0], [1, 0], [1, 1]]
    """
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    highest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-highest.bit_length() // 7))
    if width == 1:
        return zigzag.astype(np.uint8)[:, None], np.ones((len(values), 1), np.bool_)
    if width <= _NARROW:
        rest: npt.NDArray[np.unsignedinteger[Any]] = zigzag.astype(np.uint32) >> _SHIFTS[:width].astype(np.uint32)
    else:
        rest = zigzag >> _SHIFTS[:width]
    used = rest > 0
    used[0] = True  # 0 has a byte, too
    data = rest.astype(np.uint8) & np.uint8(0x7F)
    data[:-1] |= used[1:].view(np.uint8) << np.uint8(7)  # another byte follows
    return data.T, used.T


_SHIFTS: Final = np.arange(0, 7 * MAX_BYTES, 7, dtype=np.uint64)[:, None]
"""The first bit of each byte."""
_NARROW: Final = 4
"""The maximum length of an integer whose bits fit into 32."""
