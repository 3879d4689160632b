"""Numbers and their texts as Java's `Number`, `Long.parseLong`, `Double.parseDouble` and `toString` have them."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Final

import numpy as np

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,9}))?")
_MAX_EXPONENT: Final = 1000
_HEXADECIMAL: Final = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*\.?[0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_SPACE: Final = "".join(map(chr, range(33)))
"""What `String.trim` removes."""


class Float32(float):
    """A float32. Its text is the shortest that is this number among those."""

    def shortest(self) -> float:
        """The float64 with the same text."""
        return float(str(np.float32(self)))


def wrapped(value: int, bits: int) -> int:
    """The low `bits` of an integer, as a narrowing conversion has them."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def truncated(value: float, bits: int) -> int:
    """A number without its fraction, within the range of 32 or 64 bits; NaN is 0. To fewer bits it is wrapped."""
    if math.isnan(value):
        return 0
    width = 64 if bits == 64 else 32
    limit = 1 << (width - 1)
    whole = limit - 1 if value >= limit else -limit if value <= -limit else int(value)
    return wrapped(whole, bits)


def parse_integer(text: str, bits: int) -> int:
    """Raises ValueError for a text that is no integer of this size. Only digits of ASCII count."""
    if not _WHOLE.fullmatch(text) or len(text) > 64:
        raise ValueError(text)
    value = int(text)
    if wrapped(value, bits) != value:
        raise ValueError(text)
    return value


def parse_float(text: str) -> float:
    """Raises ValueError for a text that is no number."""
    text = text.strip(_SPACE)
    if found := _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(*found.groups())
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text if text.endswith(("NaN", "Infinity")) else text.rstrip("fFdD"))


def parse_decimal(text: str) -> Decimal:
    """A decimal number, as BigDecimal reads it. Raises ValueError for another text, and an exponent beyond ±1,000."""
    found = _DECIMAL.fullmatch(text.strip(_SPACE))
    if found is None or abs(int(found[1] or 0)) > _MAX_EXPONENT:
        raise ValueError(text)
    return Decimal(found[0])


def _hexadecimal(sign: str, digits: str, exponent: str) -> float:
    if digits in ("", "."):
        raise ValueError(digits)
    try:
        return float.fromhex(f"{sign}0x{digits}p{exponent}")
    except OverflowError:
        return math.copysign(math.inf, -1.0 if sign == "-" else 1.0)


def to_float32(value: float) -> Float32:
    """The nearest float32, an infinity beyond its range."""
    try:
        return Float32(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return Float32(math.copysign(math.inf, value))


def float_text(value: float) -> str:
    """The text of a number: 1.0E7, 0.001, NaN. It is the shortest that is this number, as in Java 19 and newer."""
    value = value.shortest() if isinstance(value, Float32) else value
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(whole) - 1
    if whole == "0":
        exponent = int(power or 0) - (len(fraction) - len(fraction.lstrip("0"))) - 1
    digits = digits.rstrip("0") or "0"
    if -3 <= exponent < 7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{fraction or '0'}"
