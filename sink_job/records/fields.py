"""Fields of records as path elements `name=value`, and the values that are rejected (docs/semantics.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import msgspec
import numpy as np

from sink_job.arrow.arrays import Codes

MISSING: Final = msgspec.UNSET
"""The value of a field that the record lacks. A null is None."""

Rejections = list[tuple[int, str]]
"""(row, reason) of each rejected row, ascending."""

_NUMBERS: Final = {int, bool, float, Decimal}
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
_COMPOUND: Final = {list, dict}


def unexpected_type(kind: type, expected: str) -> str:
    """The reason for the rejection of a value of type `kind`, to follow the name of its field in a message."""
    if kind is type(MISSING):
        return "is missing"
    names = {
        type(None): "null",
        bool: "a boolean",
        float: "a number with a fraction",
        list: "an array",
        dict: "an object",
        bytes: "bytes",
        Decimal: "a decimal number",
    }
    return f"holds {names.get(kind, 'another value')}, not {expected}"


def shortened(text: str) -> str:
    """The first 60 characters of `text`, for messages."""
    return text if len(text) <= 60 else text[:59] + "…"


def segments(name: str) -> list[str]:
    """The segments of the dotted name of a field. The empty name is the whole value or key, and has none."""
    return name.split(".") if name else []


def elements(
    name: str, values: Sequence[object], *, delimiter: str, label: str | None = None
) -> tuple[Codes, list[str], Rejections]:
    """The path elements of the values of the field `name`; `label` is its name in them, by default `name`.

    Returns for each value the index of its path element, or -1 for a rejected value; the distinct path elements; and
    the rejections.

    >>> codes, labels, rejected = elements("k", ["x", 1.5, "x"], delimiter="/")
    >>> codes.tolist(), labels, [row for row, reason in rejected]
    ([0, -1, 0], ['k=x'], [1])
    """
    kinds = set(map(type, values))
    keys: Sequence[object] = values
    if kinds & _COMPOUND or len(kinds & _NUMBERS) > 1:
        # In Python 1, 1.0, Decimal(1) and True are equal, and arrays are not hashable.
        keys = [(type(value), None if isinstance(value, (list, dict)) else value) for value in values]
    indexes: dict[object, int] = dict.fromkeys(keys, -1)
    labels: list[str] = []
    reasons: dict[object, str] = {}
    for key in indexes:
        try:
            text = value_text(
                key[1] if isinstance(key, tuple) else key, key[0] if isinstance(key, tuple) else type(key)
            )
        except ValueError as error:
            reasons[key] = f'field "{name}" {error}'
        else:
            indexes[key] = len(labels)
            labels.append(f"{label or name}={safe(text, delimiter)}")
    codes = np.fromiter(map(indexes.__getitem__, keys), np.int32, len(keys))
    rejected = [(row, reasons[keys[row]]) for row in np.flatnonzero(codes < 0).tolist()] if reasons else []
    return codes, labels, rejected


def value_text(value: object, kind: type) -> str:
    """The text of a value in a path. Raises ValueError with the reason if the value cannot be in a path."""
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None and kind is type(None):
        return "null"
    raise ValueError(unexpected_type(kind, "text, an integer or a boolean"))


def safe(text: str, delimiter: str) -> str:
    """`text` as one element of a path, or a part of one.

    A text that could change the directory or be invisible in it (`..`, the delimiter, control characters) is
    percent-encoded: these characters, and its percent signs. Any other text is unchanged, as in the connector.
    """
    if text == "..":
        return "%2E%2E"
    if delimiter not in text and not _CONTROL.search(text):
        return text
    return "".join(_percent(c.encode()) if c == "%" or c in delimiter or _CONTROL.match(c) else c for c in text)


def _percent(data: Iterable[int]) -> str:
    return "".join(f"%{byte:02X}" for byte in data)
