"""CBOR: each value is one item, without a schema (RFC 8949).

A tag is left out and its content written, as RFC 8949, section 3.4, allows. Exceptions:

| tag | content | written as |
|---|---|---|
| 1 | seconds since the epoch | milliseconds since the epoch |
| 2, 3 | bignum | number |
| 4, 5 | decimal fraction, bigfloat | number |
| 25, 28, 29, 256 | references to other items | rejected: the content alone is another value |
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import cbor2

from sink_job.api import enums
from sink_job.plain.schemaless import DUPLICATE_KEY, MAX_DEPTH, TOO_DEEP, Normalizer, RejectedItem, SchemalessConverter

MAX_INTEGER_BYTES: Final = 1024
"""The maximum length of a bignum. Python's conversion to digits is quadratic, and rejects more than 4,300 digits."""

MAX_EXPONENT: Final = 1100
"""The maximum of the absolute value of a decimal's or bigfloat's exponent. That of a double is 1,074."""

_MAX_SECONDS: Final = 2**63 // 1000
_TRUNCATED: Final = "Input data was truncated"


class CborConverter(SchemalessConverter):
    """Converts values that are one CBOR item each."""

    def __init__(self, fields: tuple[str, ...] = (), output: enums.OutputFormat = enums.OutputFormat.JSON) -> None:
        super().__init__(decode, fields, output)


def decode(value: bytes) -> object:
    """The item in `value`, normalized. Raises ValueError with the reason if it is rejected."""
    if not value:
        raise RejectedItem("the value is empty")
    stream = io.BytesIO(value)
    decoder = cbor2.CBORDecoder(
        stream, semantic_decoders=_TAGS, tag_hook=_content, max_depth=MAX_DEPTH, allow_duplicate_keys=False
    )
    try:
        item = decoder.decode()
    except cbor2.CBORDecodeError as error:
        raise RejectedItem(_reason(error)) from None
    if stream.tell() != len(value):
        raise RejectedItem(f"the value is not CBOR: trailing bytes (byte {stream.tell()})")
    return _normalized(item)


def _reason(error: cbor2.CBORDecodeError) -> str:
    for cause in _causes(error):
        if isinstance(cause, RejectedItem):
            return str(cause)
        if isinstance(cause, UnicodeDecodeError):
            return "a text in the value is not UTF-8"
    text = str(error)
    if "nesting depth" in text:
        return TOO_DEEP
    if "Duplicate map key" in text:
        return DUPLICATE_KEY
    return f"the value is not CBOR: {_TRUNCATED if isinstance(error, cbor2.CBORDecodeEOF) else text}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _content(tag: cbor2.CBORTag, _: bool) -> object:
    return tag.value


def _same(content: object, _: bool) -> object:
    return content


def _milliseconds(seconds: object, _: bool) -> int:
    if type(seconds) not in (int, float) or not abs(seconds) <= _MAX_SECONDS:  # type: ignore[arg-type]
        raise RejectedItem("a time in the value (tag 1) is not a number of seconds")
    return round(seconds * 1000)  # type: ignore[operator]


def _bignum(content: object, _: bool) -> int:
    if not isinstance(content, bytes):
        raise RejectedItem("a bignum in the value (tag 2 or 3) is not a byte string")
    return _limited(int.from_bytes(content))


def _negative_bignum(content: object, immutable: bool) -> int:
    return -1 - _bignum(content, immutable)


def _limited(number: int) -> int:
    if number.bit_length() > 8 * MAX_INTEGER_BYTES:
        raise RejectedItem(f"a bignum in the value is longer than {MAX_INTEGER_BYTES} bytes")
    return number


def _decimal_fraction(content: object, _: bool) -> Decimal:
    exponent, mantissa = _exponent_and_mantissa(content)
    return Decimal(f"{mantissa}E{exponent}")


def _bigfloat(content: object, _: bool) -> Decimal:
    """The bigfloat, exactly: m × 2^-e = m × 5^e × 10^-e."""
    exponent, mantissa = _exponent_and_mantissa(content)
    return Decimal(mantissa << exponent) if exponent >= 0 else Decimal(f"{mantissa * 5**-exponent}E{exponent}")


def _exponent_and_mantissa(content: object) -> tuple[int, int]:
    if not (isinstance(content, (list, tuple)) and [type(part) for part in content] == [int, int]):
        raise RejectedItem("a decimal in the value (tag 4 or 5) is not an array of two integers")
    exponent, mantissa = content
    if abs(exponent) > MAX_EXPONENT:
        raise RejectedItem(f"the exponent of a decimal in the value is beyond ±{MAX_EXPONENT}")
    return exponent, _limited(mantissa)


def _rejected(tag: int) -> Callable[[object, bool], object]:
    def reject(_content: object, _: bool) -> object:
        raise RejectedItem(f"the value contains the tag {tag}, which is not supported")

    return reject


def _nothing(_: object) -> None:
    return None


def _simple(item: cbor2.CBORSimpleValue) -> object:
    raise RejectedItem(f"the value contains the simple value {item.value}, which is not supported")


_TAGS: Final[Mapping[int, Callable[[Any, bool], object]]] = {
    **dict.fromkeys((0, 30, 35, 36, 37, 52, 54, 100, 258, 260, 261, 1004, 43000, 55799), _same),
    1: _milliseconds,
    2: _bignum,
    3: _negative_bignum,
    4: _decimal_fraction,
    5: _bigfloat,
    **{tag: _rejected(tag) for tag in (25, 28, 29, 256)},
}
"""The tags that cbor2 would decode in another way. `_content` has the others."""

_normalized: Final = Normalizer(
    {type(cbor2.undefined): _nothing, cbor2.CBORSimpleValue: _simple}, maps=(dict, cbor2.frozendict)
)
