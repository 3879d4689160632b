"""The maximum length of the JSON text of a value.

The names of fields and the symbols of enums are in the schema, not in the value. So an array of one-byte items can have
a text that is many thousand times longer than the value. The length is bounded from the schema and the size of the
value; only where the bound is above the maximum the text's length is computed, before the text is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from sink_job.connect.errors import InvalidValue
from sink_job.connect.schema import Schema, SchemaType
from sink_job.connect.visitor import all_types, is_recursive

MAX_TEXT: Final = 64 * 1024**2
"""The maximum length of the JSON text of a value in bytes."""

TOO_LARGE: Final = f"its text would be larger than {MAX_TEXT >> 20} MiB: the names in its schema are repeated too often"

_ESCAPED: Final = 6
"""The maximum length of a byte of a value in a text: a control character is written as six."""
_SCALAR: Final = 26
"""The maximum length of a number, a boolean, a null, the quotes of a text, and the brackets of an array."""
_LOGICAL: Final = 40
"""The maximum length of a date, a time or a number with a logical type."""

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class TextLimit:
    """The limit for values of one schema."""

    def __init__(self, schema: Schema, *, is_avro: bool = False) -> None:
        """`is_avro`: the values are Avro data, in which each field of a struct has at least one byte."""
        self._fixed = _fixed(schema)
        self._per_byte = _ESCAPED + max(_items(schema, is_avro=is_avro, everything=is_recursive(schema)), default=0)

    def bound(self, size: int) -> int:
        """An upper bound of the length of the text of a value with `size` bytes, each of which can be an item."""
        return self._fixed + self._per_byte * size

    def encode(self, value: object, size: int) -> bytes:
        """The JSON text of a value with `size` bytes, which has the form that msgspec encodes. Raises InvalidValue if
        it would be longer than MAX_TEXT."""
        if self.bound(size) > MAX_TEXT and is_longer(value, MAX_TEXT):
            raise InvalidValue(TOO_LARGE)
        return _encode(value)


def is_longer(value: object, limit: int) -> bool:
    """Whether the JSON text of `value` is longer than `limit` bytes. It builds the texts of scalars and names alone."""
    known: dict[str, int] = {}
    length, left = 0, [value]
    while left:
        inner = left.pop()
        if isinstance(inner, dict):
            length += 2 * len(inner) + (not inner) + 1  # braces, colons and commas
            length += sum(_length(name, known) for name in inner)
            left += inner.values()
        elif isinstance(inner, list):
            length += max(1, len(inner)) + 1
            left += inner
        else:
            length += _length(inner, known) if isinstance(inner, str) else len(_encode(inner))
        if length > limit:
            return True
    return False


def _length(text: str, known: dict[str, int]) -> int:
    if text not in known:
        known[text] = len(_encode(text))
    return known[text]


def _items(schema: Schema, *, is_avro: bool, everything: bool) -> Iterator[int]:
    """Bounds, for each byte of a value, of what can occur many times in it: items and entries; with `everything` each
    type of the schema."""
    for each in all_types(schema):
        repeated = list(filter(None, (each.keys, each.values)))
        if repeated:
            size = sum(_min_bytes(one, is_avro=is_avro) for one in repeated)
            yield -(-(sum(map(_fixed, repeated)) + _SCALAR) // size)
        if everything:
            yield _fixed(each)


def _min_bytes(schema: Schema, *, is_avro: bool) -> int:
    """The minimum size of an item, at least 1. A struct has two bytes in Protobuf, its tag and length, and in JSON."""
    if schema.type is not SchemaType.STRUCT:
        return 1
    return max(1, _min_avro(schema)) if is_avro else 2


def _min_avro(schema: Schema) -> int:
    """The minimum size of a value in Avro. A fixed type can have no bytes."""
    if schema.optional or schema.type not in (SchemaType.STRUCT, SchemaType.BYTES):
        return 1
    return sum(_min_avro(field.schema) for field in schema.fields)


def _fixed(schema: Schema) -> int:
    """A bound of the text of a value whose texts, arrays and maps are empty, and without uses of enclosing structs."""
    default = 0 if schema.default is None else _ESCAPED * len(schema.default.json)
    symbol = max((len(_encode(text)) for parameter in schema.parameters for text in parameter), default=0)
    fields = sum(len(_encode(field.name)) + 2 + _fixed(field.schema) for field in schema.fields)
    return (_SCALAR if schema.name is None else _LOGICAL) + default + symbol + fields
