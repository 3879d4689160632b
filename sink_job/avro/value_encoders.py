"""The parts of a compiled encoder of Avro data: a small object for each type, with all that its method `encode` needs.

`sink_job.avro.encoder` compiles schemas to them. Unlike closures they have a repr that names the type, and an
unexpected error gets a note with the field. What is passed on are bound methods, which are as fast as closures;
objects that are called themselves are not. For the same reason a method reads a function to a local variable first.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

from sink_job.arrow.varints import encode_long
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidFieldValue, InvalidValue
from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import Schema
from sink_job.connect.scopes import named_in, shown

Encode = Callable[[Any], bytes]
"""Encodes a value. Raises InvalidFieldValue, InvalidValue and RecursionError."""

Join = Callable[[list[bytes], Iterable[bytes]], bytes]
"""The data of an array or a map from their count and the data of the items."""

MAX_REPEATED: Final = 64 * 1024**2
"""The maximum size in bytes of the data of an array or a map whose items can take a default. A default is in a schema,
not in the value: an item of a few bytes can be as large as the default, and the value too large for the memory."""
TOO_LARGE: Final = (
    f"its data are larger than {MAX_REPEATED >> 20} MiB: the defaults in its schema are repeated too often"
)


# -- null --------------------------------------------------------------------------------------------------------------


class OptionalEncoder:
    """A union with null: the index of the branch, and the value."""

    __slots__ = ("_branch", "_encode_value", "_null")

    def __init__(self, encode_value: Encode, null: bytes, branch: bytes) -> None:
        self._encode_value = encode_value
        self._null = null
        self._branch = branch

    def __repr__(self) -> str:
        return f"optional {shown(self._encode_value)}"

    def encode(self, value: Any) -> bytes:
        if value is None:
            return self._null
        encode_value = self._encode_value
        return self._branch + encode_value(value)


class RequiredEncoder:
    """A type without null."""

    __slots__ = ("_encode_value",)

    def __init__(self, encode_value: Encode) -> None:
        self._encode_value = encode_value

    def __repr__(self) -> str:
        return f"required {shown(self._encode_value)}"

    def encode(self, value: Any) -> bytes:
        if value is None:
            raise_missing(value)
        encode_value = self._encode_value
        return encode_value(value)


class DefaultEncoder:
    """A type without null. A null takes the default."""

    def __init__(self, encode_value: Encode, schema: Schema) -> None:
        self._encode_value = encode_value
        self._schema = schema

    def __repr__(self) -> str:
        return f"defaulted {shown(self._encode_value)}"

    @functools.cached_property
    def _default(self) -> bytes:
        return self._encode_value(default_value(self._schema))

    def encode(self, value: Any) -> bytes:
        if value is None:
            return self._default
        encode_value = self._encode_value
        return encode_value(value)


def raise_missing(_: object) -> NoReturn:
    raise InvalidFieldValue("a required value is null or missing")


def encode_null(_: object) -> bytes:
    """The null of a union, whose index is 0."""
    return b"\x00"


# -- types with others in them -----------------------------------------------------------------------------------------


class RecordEncoder:
    __slots__ = ("_fields", "_name")

    def __init__(self, name: str | None, fields: Sequence[tuple[str, Encode]]) -> None:
        self._name = name
        self._fields = fields

    def __repr__(self) -> str:
        return f"record {self._name or ''}({', '.join(name for name, _ in self._fields)})"

    def encode(self, value: Mapping[str, object]) -> bytes:
        parts: list[bytes] = []
        name = ""
        try:
            for name, encode_field in self._fields:
                parts.append(encode_field(value.get(name)))
        except InvalidValue as error:
            raise InvalidFieldValue.of(error, name) from None
        except Exception as error:
            named_in(error, name, self)
            raise
        return b"".join(parts)


class ArrayEncoder:
    __slots__ = ("_encode_item", "_join")

    def __init__(self, encode_item: Encode, join: Join) -> None:
        self._encode_item = encode_item
        self._join = join

    def __repr__(self) -> str:
        return f"array of {shown(self._encode_item)}"

    def encode(self, value: list[object]) -> bytes:
        if not value:
            return b"\x00"
        join = self._join
        return join([encode_long(len(value))], map(self._encode_item, value))


class EntriesEncoder:
    """An array of the entries of a map."""

    __slots__ = ("_encode_key", "_encode_value", "_join")

    def __init__(self, encode_key: Encode, encode_value: Encode, join: Join) -> None:
        self._encode_key = encode_key
        self._encode_value = encode_value
        self._join = join

    def __repr__(self) -> str:
        return f"map of {shown(self._encode_key)} to {shown(self._encode_value)}"

    def encode(self, value: list[tuple[object, object]]) -> bytes:
        if not value:
            return b"\x00"
        join, encode_key, encode_value = self._join, self._encode_key, self._encode_value
        return join([encode_long(len(value))], (encode_key(key) + encode_value(item) for key, item in value))


class MapEncoder(EntriesEncoder):
    """The same for a map with text keys, which is a dict."""

    __slots__ = ()

    def encode(self, value: Any) -> bytes:
        return EntriesEncoder.encode(self, list(value.items()))


class KeyEncoder:
    """Keys for Parquet, whose maps have no null keys."""

    __slots__ = ("_encode_key",)

    def __init__(self, encode_key: Encode) -> None:
        self._encode_key = encode_key

    def __repr__(self) -> str:
        return shown(self._encode_key)

    def encode(self, value: Any) -> bytes:
        if value is None:
            raise InvalidFieldValue("the key of a map is null, which Parquet cannot express")
        encode_key = self._encode_key
        return encode_key(value)


class UnionEncoder:
    """A union of several types: the index of the member that the value has, and its data."""

    __slots__ = ("_encode_null", "_members")

    def __init__(self, members: Mapping[str, tuple[bytes, Encode]], encode_null: Encode) -> None:
        self._members = members
        self._encode_null = encode_null

    def __repr__(self) -> str:
        return f"union({', '.join(self._members)})"

    def encode(self, value: Any) -> bytes:
        for name, member in () if value is None else value.items():
            if member is not None:
                branch, encode_member = self._members[name]
                try:
                    return branch + encode_member(member)
                except InvalidValue as error:
                    raise InvalidFieldValue.of(error, name) from None
        encode_null = self._encode_null
        return encode_null(value)


def join_block(first: list[bytes], items: Iterable[bytes]) -> bytes:
    """The data of an array or a map: one block, and the end."""
    return b"".join([*first, *items, b"\x00"])


def join_limited(first: list[bytes], items: Iterable[bytes]) -> bytes:
    """The same. Raises InvalidFieldValue if the items are larger than MAX_REPEATED."""
    parts, size = first, 0
    for item in items:
        size += len(item)
        if size > MAX_REPEATED:
            raise InvalidFieldValue(TOO_LARGE)
        parts.append(item)
    return b"".join([*parts, b"\x00"])


# -- scalars -----------------------------------------------------------------------------------------------------------

encode_double: Final[Encode] = struct.Struct("<d").pack
_FLOAT: Final = struct.Struct("<f").pack
is_uuid: Final = re.compile("[0-9A-Fa-f]{8}(-?)[0-9A-Fa-f]{4}(?:\\1[0-9A-Fa-f]{4}){2}\\1[0-9A-Fa-f]{12}").fullmatch
"""The text form of RFC 9562, section 4, and the same without hyphens. uuid.UUID accepts more, such as spaces."""


class IntegerEncoder:
    __slots__ = ("_highest", "_kind", "_lowest")

    def __init__(self, lowest: int, highest: int, kind: str) -> None:
        """`kind` is the type for messages."""
        self._lowest = lowest
        self._highest = highest
        self._kind = kind

    def __repr__(self) -> str:
        return self._kind

    def encode(self, value: int) -> bytes:
        if not self._lowest <= value <= self._highest:
            raise InvalidFieldValue(f"{value} is outside the range of {self._kind}")
        return encode_long(value)


def encode_boolean(value: object) -> bytes:
    return b"\x01" if value else b"\x00"


def encode_float(value: float) -> bytes:
    try:
        return _FLOAT(value)
    except OverflowError:  # infinity, as in Java
        return _FLOAT(math.copysign(math.inf, value))


def encode_bytes(value: bytes) -> bytes:
    return encode_long(len(value)) + value


class FixedEncoder:
    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __repr__(self) -> str:
        return f"fixed({self._size})"

    def encode(self, value: bytes) -> bytes:
        if len(value) != self._size:
            raise InvalidFieldValue(f"it has {len(value)} bytes, but its type has {self._size}")
        return value


def encode_string(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise InvalidFieldValue("a string has a surrogate that is not part of a pair") from None
    return encode_long(len(data)) + data


def encode_uuid(value: str) -> bytes:
    if not is_uuid(value):
        raise InvalidFieldValue(f"{value[:100]!r} is not a UUID")
    return encode_string(value)


class EnumEncoder:
    __slots__ = ("_indexes",)

    def __init__(self, symbols: Sequence[str]) -> None:
        self._indexes = {symbol: encode_long(index) for index, symbol in enumerate(symbols)}

    def __repr__(self) -> str:
        return f"enum({', '.join(self._indexes)})"

    def encode(self, value: str) -> bytes:
        indexes = self._indexes
        if value not in indexes:
            raise InvalidFieldValue(f"{value[:100]!r} is not a symbol of its enum")
        return indexes[value]


class DecimalEncoder:
    __slots__ = ("_limit", "_precision", "_scale", "_size")

    def __init__(self, precision: int, scale: int, size: int | None) -> None:
        """`size` is that of a fixed; None for bytes."""
        self._precision = precision
        self._scale = scale
        self._size = size
        self._limit = 10**precision

    def __repr__(self) -> str:
        return f"decimal({self._precision}, {self._scale})"

    def encode(self, value: Decimal) -> bytes:
        unscaled = logical_types.unscaled(value, self._scale)
        if not -self._limit < unscaled < self._limit:
            raise InvalidFieldValue(f"a decimal has more than {self._precision} digits")
        if self._size is None:
            return encode_bytes(logical_types.integer_to_bytes(unscaled))
        try:
            return unscaled.to_bytes(self._size, "big", signed=True)
        except OverflowError:
            raise InvalidFieldValue(f"a decimal does not fit into {self._size} bytes") from None
