"""Fields of records as path elements: `name=value`, and which values have none (SEMANTICS section 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]

MISSING: Final = msgspec.UNSET
"""What a field is that its record lacks; null is None."""

Rejections = list[tuple[int, str]]
"""(row, what is wrong), ascending."""

_NUMBERS: Final = {int, bool, float}
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
_COMPOUND: Final = {list, dict}


def wrong_kind(kind: type, wanted: str) -> str:
    """What is wrong with a value of `kind` where `wanted` was, to be read behind the name of its field."""
    if kind is type(MISSING):
        return "is missing"
    names = {
        type(None): "null",
        bool: "a boolean",
        float: "a number with a fraction",
        list: "an array",
        dict: "an object",
    }
    return f"holds {names.get(kind, 'a value that is')}, not {wanted}"


def shortened(text: str) -> str:
    """At most 60 characters of a record's text, for messages."""
    return text if len(text) <= 60 else text[:59] + "…"


def elements(name: str, values: Sequence[object], *, delimiter: str) -> tuple[Codes, list[str], Rejections]:
    """For each value of the field `name` the place of its path element in the list that is returned too, or -1 where it
    has none, and what is wrong there."""
    kinds = set(map(type, values))
    keys: Sequence[object] = values
    if kinds & _COMPOUND or len(kinds & _NUMBERS) > 1:
        # 1, 1.0 and True are equal, and arrays cannot be looked up
        keys = [(type(value), None if isinstance(value, (list, dict)) else value) for value in values]
    places: dict[object, int] = dict.fromkeys(keys, -1)
    labels: list[str] = []
    wrong: dict[object, str] = {}
    for key in places:
        try:
            text = value_text(
                key[1] if isinstance(key, tuple) else key, key[0] if isinstance(key, tuple) else type(key)
            )
        except ValueError as why:
            wrong[key] = f'field "{name}" {why}'
        else:
            places[key] = len(labels)
            labels.append(f"{name}={safe(text, delimiter)}")
    codes = np.fromiter(map(places.__getitem__, keys), np.int32, len(keys))
    refused = [(row, wrong[keys[row]]) for row in np.flatnonzero(codes < 0).tolist()] if wrong else []
    return codes, labels, refused


def value_text(value: object, kind: type) -> str:
    """A value's text in a path.

    Raises ValueError with what is wrong about it.
    """
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None and kind is type(None):
        return "null"
    raise ValueError(wrong_kind(kind, "text, an integer or a boolean"))


def safe(text: str, delimiter: str) -> str:
    """`text` as (a part of) one element of a path.

    A text that could leave its directory or hide in it (`..`, control characters, the delimiter) is percent-encoded
    where it has to be, and at its percent signs; every other text stays as it is, as with the connector.
    """
    if text == "..":
        return "%2E%2E"
    if delimiter not in text and not _CONTROL.search(text):
        return text
    return "".join(_percent(c.encode()) if c == "%" or c in delimiter or _CONTROL.match(c) else c for c in text)


def _percent(data: Iterable[int]) -> str:
    return "".join(f"%{byte:02X}" for byte in data)
