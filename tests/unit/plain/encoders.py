"""Encoders of CBOR and MessagePack that share no code with the product, and the JSON that is expected of an item.

They choose among all forms of an item: longer lengths than necessary, and in CBOR indefinite lengths.

An item is None, a bool, int, float, str or bytes, a list of items, a `Pairs` or a `Time`.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from sink_job.api.enums import ConverterType

Choose = Callable[[int], int]
"""A number from 0 to below its argument."""


@dataclass(frozen=True)
class Pairs:
    """A map, in order."""

    items: list[tuple[Any, Any]]


@dataclass(frozen=True)
class Time:
    """A time, in seconds since the epoch."""

    seconds: int


def cbor(item: Any, choose: Choose) -> bytes:
    """`item` as CBOR (RFC 8949)."""
    match item:
        case None | True | False:
            return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[item]
        case int():
            return _cbor_integer(item, choose)
        case float():
            return b"\xfb" + struct.pack(">d", item)
        case str():
            return _cbor_string(3, item.encode(), choose)
        case bytes():
            return _cbor_string(2, item, choose)
        case list():
            content = b"".join(cbor(one, choose) for one in item)
            return _cbor_container(4, len(item), content, choose)
        case Pairs():
            content = b"".join(cbor(key, choose) + cbor(value, choose) for key, value in item.items)
            return _cbor_container(5, len(item.items), content, choose)
        case Time():
            return b"\xc1" + cbor(item.seconds, choose)
    raise TypeError(item)


def _cbor_head(major: int, number: int, choose: Choose) -> bytes:
    forms = [(24, "B"), (25, "H"), (26, "I"), (27, "Q")]
    least = 0 if number < 24 else next(i for i, bits in enumerate((8, 16, 32, 64), 1) if number < 2**bits)
    form = least + choose(5 - least)
    if form == 0:
        return bytes([major << 5 | number])
    code, layout = forms[form - 1]
    return bytes([major << 5 | code]) + struct.pack(">" + layout, number)


def _cbor_integer(number: int, choose: Choose) -> bytes:
    if -(2**64) <= number < 2**64:
        return _cbor_head(0, number, choose) if number >= 0 else _cbor_head(1, -1 - number, choose)
    size = number if number >= 0 else -1 - number
    tag = b"\xc2" if number >= 0 else b"\xc3"
    return tag + _cbor_string(2, size.to_bytes((size.bit_length() + 7) // 8), choose)


def _cbor_string(major: int, data: bytes, choose: Choose) -> bytes:
    if choose(4) or (major == 3 and not data.isascii()):
        return _cbor_head(major, len(data), choose) + data
    middle = choose(len(data) + 1)
    chunks = b"".join(_cbor_head(major, len(part), choose) + part for part in (data[:middle], data[middle:]))
    return bytes([major << 5 | 31]) + chunks + b"\xff"


def _cbor_container(major: int, count: int, content: bytes, choose: Choose) -> bytes:
    if choose(4):
        return _cbor_head(major, count, choose) + content
    return bytes([major << 5 | 31]) + content + b"\xff"


def message_pack(item: Any, choose: Choose) -> bytes:
    """`item` as MessagePack."""
    match item:
        case None | True | False:
            return {None: b"\xc0", True: b"\xc3", False: b"\xc2"}[item]
        case int():
            return _message_pack_integer(item, choose)
        case float():
            return b"\xcb" + struct.pack(">d", item)
        case str():
            data = item.encode()
            return _message_pack_head(len(data), (0xA0, 32), b"\xd9\xda\xdb", choose) + data
        case bytes():
            return _message_pack_head(len(item), None, b"\xc4\xc5\xc6", choose) + item
        case list():
            content = b"".join(message_pack(one, choose) for one in item)
            return _message_pack_head(len(item), (0x90, 16), b"\0\xdc\xdd", choose) + content
        case Pairs():
            content = b"".join(message_pack(key, choose) + message_pack(value, choose) for key, value in item.items)
            return _message_pack_head(len(item.items), (0x80, 16), b"\0\xde\xdf", choose) + content
        case Time():
            return b"\xc7\x0c\xff" + struct.pack(">Iq", 999_999, item.seconds)
    raise TypeError(item)


def _message_pack_integer(number: int, choose: Choose) -> bytes:
    fitting = [
        bytes([code]) + number.to_bytes(size, signed=signed)
        for code, size, signed in (
            *((0xCC + i, 1 << i, False) for i in range(4)),
            *((0xD0 + i, 1 << i, True) for i in range(4)),
        )
        if (-(2 ** (8 * size - 1)) <= number < 2 ** (8 * size - 1) if signed else 0 <= number < 2 ** (8 * size))
    ]
    if -32 <= number < 128:
        fitting.append(number.to_bytes(1, signed=number < 0))
    return fitting[choose(len(fitting))]


def _message_pack_head(count: int, small: tuple[int, int] | None, codes: bytes, choose: Choose) -> bytes:
    """The head of a text, byte string, array or map. `codes` are those of lengths of 1, 2 and 4 bytes, 0 for none."""
    forms = [bytes([code]) + count.to_bytes(1 << i) for i, code in enumerate(codes) if code and count < 2 ** (8 << i)]
    if small is not None and count < small[1]:
        forms.append(bytes([small[0] + count]))
    return forms[choose(len(forms))]


def expected(item: Any) -> Any:
    """The item as Python's parser of JSON reads the expected JSON."""
    match item:
        case float():
            if math.isnan(item):
                return "NaN"
            return item if math.isfinite(item) else "Infinity" if item > 0 else "-Infinity"
        case bytes():
            return base64.b64encode(item).decode()
        case list():
            return [expected(one) for one in item]
        case Pairs():
            if all(isinstance(key, str) for key, _ in item.items):
                return {key: expected(value) for key, value in item.items}
            return [[expected(key), expected(value)] for key, value in item.items]
        case Time():
            return item.seconds * 1000
    return item


def _unique(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """`pairs` without those whose key is equal to that of an earlier pair."""
    texts: dict[str, tuple[Any, Any]] = {}
    for pair in pairs:
        texts.setdefault(json.dumps(expected(pair[0])), pair)
    return list(texts.values())


def items(integers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Items with the given integers."""
    leaves = (
        st.none() | st.booleans() | integers | st.floats() | st.text(max_size=40) | st.binary(max_size=40)
    ) | st.builds(Time, st.integers(0, 2**40))
    keys = (
        st.text(max_size=3) | integers.filter(lambda number: number not in (0, 1)) | st.none() | st.binary(max_size=2)
    )

    def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        texts = st.lists(st.tuples(st.text(max_size=3), inner), max_size=20)
        mixed = st.lists(st.tuples(keys | st.lists(integers, max_size=2), inner), max_size=3)
        return st.lists(inner, max_size=20) | (texts | mixed).map(_unique).map(Pairs)

    return st.recursive(leaves, containers, max_leaves=30)


ENCODERS: dict[ConverterType, Callable[[Any, Choose], bytes]] = {
    ConverterType.CBOR: cbor,
    ConverterType.MESSAGE_PACK: message_pack,
}


def encoded(choice: ConverterType, item: Any, seed: int = 0) -> bytes:
    """`item` as the value of a record for the converter `choice`."""
    return ENCODERS[choice](item, Random(seed).randrange)
