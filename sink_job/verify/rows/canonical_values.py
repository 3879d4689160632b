"""One sequence of bytes for each value: two records are equal if theirs are.

JSON texts are equal if their values are: the order of keys and white space do not count, and numbers are equal by their
value (`1.0` is `1`). Rows of Avro and Parquet are equal if each field is: the order of fields does not count, NaN is
equal to NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_NOT_JSON: Final = b"\xff"
"""Prefix of a text that is not JSON. No JSON text begins with it."""


def json_value(line: bytes) -> bytes:
    """The value of a JSON text. A text that is not JSON is only equal to itself."""
    try:
        return canonical(_DECODER.decode(line.decode()))
    except (ValueError, RecursionError, InvalidOperation):
        return _NOT_JSON + line


def canonical(value: object) -> bytes:
    """The bytes of a value of Python, with the types of JSON, Avro and Arrow. Raises RecursionError for a value that is
    nested too deeply."""
    return _text(value).encode("utf-8", "surrogatepass")


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{name!r}:{_text(each)}" for name, each in value.items())) + "}"
    if isinstance(value, _Pairs):
        return "{" + ",".join(sorted(f"{name!r}:{_text(each)}" for name, each in value.pairs)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return repr(value)


class _Pairs:
    """An object of JSON with all its pairs, also those of a key that occurs twice."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class _Number(str):
    """A number of JSON, by its digits without zeros at the end, and its exponent."""

    def __repr__(self) -> str:
        return str(self)


def _number(text: str) -> _Number:
    sign, digits, exponent = Decimal(text).as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    stripped = significant.rstrip("0")
    if not stripped:
        return _Number("0")
    return _Number(f"{'-' if sign else ''}{stripped}e{int(exponent) + len(significant) - len(stripped)}")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_float=_number, parse_int=_number, parse_constant=_Number
)
