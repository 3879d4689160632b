"""Random changes of JSON documents and of bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

MAX_COPIED: Final = 3000
"""The maximum length in characters of a document in which a part is copied into another one. It grows each time."""

_INTEGERS: Final = (0, 1, -1, 5, 100, 10**9, 2**31, -(2**31) - 1, 2**62, 2**63, -(2**63), 10**19, 10**30)
_WORDS: Final = (
    *("record", "enum", "fixed", "array", "map", "int", "long", "bytes", "string", "null", "decimal", "date", "R"),
    *("object", "integer", "number", "#", "#/definitions/A", "x.json", "struct", "int32", "float", "MapEntry", "int8"),
    *("io.confluent.connect.avro.MapEntry", "org.apache.kafka.connect.data.Decimal", "key", "value", "n.R", ""),
    *("boolean", "double", "int64", "timestamp-millis", "time-millis", "1", "2", "1000000000", "scale", "NaN", "AP8="),
)
_BYTES: Final = (
    *(b"\xff" * 9 + b"\1", b"\xfe" * 9 + b"\1", b"\x80" * 12),  # variable-length integers
    *(b"\xfe\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\xff\xff\x7f"),
    *(b"\x9b\x7f" + b"\xff" * 7, b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"),  # lengths of CBOR and MessagePack
    *(b"[" * 300, b'{"a":' * 300, b"1e999999999", b"\\ud800", b"\n", b"\xef\xbb\xbf"),
)


def mutated_json(document: Any, keys: Sequence[str], random: Random) -> Any:
    """`document` with up to three random changes. `keys` are keywords of its language."""
    document = json.loads(json.dumps(document))
    for _ in range(random.randint(0, 3)):
        nodes = _nodes(document)
        if nodes:
            _change(random.choice(nodes), _content(document, nodes, random), keys, random)
    return document


def _nodes(document: object) -> list[Any]:
    """The objects and arrays in a document."""
    found: list[Any] = []
    pending = [document]
    while pending:
        node = pending.pop()
        if isinstance(node, (dict, list)):
            found.append(node)
            pending.extend(node.values() if isinstance(node, dict) else node)
    return found


def _content(document: object, nodes: list[Any], random: Random) -> Any:
    """A scalar, or a copy of a part of the document."""
    if random.random() < 0.3 and len(json.dumps(document)) < MAX_COPIED:
        return json.loads(json.dumps(random.choice(nodes)))
    return scalar(random)


def scalar(random: Random) -> Any:
    """A scalar of JSON, or an empty object or array."""
    kind = random.randrange(5)
    if kind < 2:
        return random.choice(_WORDS)
    if kind == 2:
        return random.choice(_INTEGERS)
    return random.choice((None, True, False, random.random(), 1e300, "ü" * 3, [], {}))


def _change(node: Any, content: Any, keys: Sequence[str], random: Random) -> None:
    """Removes, replaces or adds an element."""
    change = random.random()
    if isinstance(node, dict):
        if change < 0.25 and node:
            node.pop(random.choice(list(node)))
        else:
            node[random.choice(list(node) if node and change > 0.6 else list(keys))] = content
    elif change < 0.3 and node:
        node.pop(random.randrange(len(node)))
    elif change < 0.6 and node:
        node[random.randrange(len(node))] = content
    else:
        node.append(content)


def mutated_bytes(data: bytes, random: Random) -> bytes:
    """`data` with up to three random changes."""
    found = bytearray(data)
    for _ in range(random.randint(0, 3)):
        at, change = random.randrange(len(found) + 1), random.random()
        if change < 0.3:
            found[at : at + random.randint(0, 4)] = random.choice((*_BYTES, random.randbytes(random.randint(0, 9))))
        elif change < 0.6 and at < len(found):
            found[at] ^= 1 << random.randrange(8)
        elif change < 0.8:
            del found[at:]
        else:
            found[at:at] = bytes(found[: random.randint(0, 20)])
    return bytes(found)


def arbitrary_bytes(random: Random) -> bytes:
    return random.randbytes(random.randint(0, 40))


def some_mutated(rows: Sequence[bytes], random: Random) -> list[bytes]:
    """`rows` as they are, with some of them mutated, or all of them mutated."""
    share = random.choice((0.0, 0.2, 1.0))
    return [
        row
        if random.random() >= share
        else mutated_bytes(row, random)
        if random.random() < 0.9
        else arbitrary_bytes(random)
        for row in rows
    ]
