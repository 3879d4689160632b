"""Items of CBOR and MessagePack, in random forms."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from devtools.fuzz.case import Case
from devtools.fuzz.mutation import arbitrary_bytes, mutated_bytes
from tests.unit.plain import encoders

Encode = Callable[[Any, encoders.Choose], bytes]

_HEADS: Final = b"\xc1\xc2\xc3\xc4\xc5\xd8\x5f\x81\x91\x9f\xbf"
"""First bytes of tags and containers, which are repeated for deep nesting."""


def cbor_case(random: Random) -> Case:
    return Case("Cbor", _rows(encoders.cbor, random), fields=random.choice(((), ("k0", "k1.k2"))))


def message_pack_case(random: Random) -> Case:
    return Case("MessagePack", _rows(encoders.message_pack, random), fields=random.choice(((), ("k0", "k1.k2"))))


def _rows(encode: Encode, random: Random) -> tuple[bytes | None, ...]:
    return tuple(None if random.randrange(40) == 0 else _row(encode, random) for _ in range(8))


def _row(encode: Encode, random: Random) -> bytes:
    value = encode(_item(4, random), random.randrange)
    if random.random() < 0.1:
        value = bytes([random.choice(_HEADS)]) * random.randint(1, 600) + value
    if random.random() < 0.1:
        return arbitrary_bytes(random)
    return mutated_bytes(value, random) if random.random() < 0.7 else value


def _item(depth: int, random: Random) -> Any:
    if depth and random.random() < 0.5:
        items = [_item(depth - 1, random) for _ in range(random.randint(0, 4))]
        if random.random() < 0.5:
            return items
        return encoders.Pairs([(f"k{n}" if random.random() < 0.8 else n + 2, item) for n, item in enumerate(items)])
    integer = random.randint(-(2**63), 2**63 - 1)
    return random.choice(
        (None, True, integer, random.random(), "ab", "", b"\0\1", encoders.Time(random.randrange(2**40)))
    )
