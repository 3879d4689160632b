"""Values in the wire format of a schema registry."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from random import Random
from typing import Final

from devtools.fuzz.mutation import mutated_bytes

LAYOUTS: Final = ("Confluent", "Confluent", "Confluent", "Apicurio", "Glue")
_IDS: Final = (*(1,) * 30, 2, 98)
"""Mostly the schema of the payload; rarely another one, or one that the registry does not know."""


def in_wire_format(payloads: Sequence[bytes], layout: str, random: Random) -> tuple[bytes | None, ...]:
    """The payloads in wire format, a few of them tombstones or with a mutated wire format. An empty `layout` is no wire
    format."""
    return tuple(_value(_in_wire_format(payload, layout, random), random) for payload in payloads)


def _value(value: bytes, random: Random) -> bytes | None:
    kind = random.randrange(40)
    return None if kind == 0 else mutated_bytes(value, random) if kind == 1 else value


def _in_wire_format(payload: bytes, layout: str, random: Random) -> bytes:
    if not layout:
        return payload
    schema_id = random.choice(_IDS)
    if layout != "Glue":
        return b"\0" + schema_id.to_bytes(random.choice((4, 8)) if layout == "Apicurio" else 4) + payload
    if random.random() < 0.5:
        return b"\3\0" + schema_id.to_bytes(16) + payload
    return b"\3\5" + schema_id.to_bytes(16) + zlib.compress(payload, 1)
