"""Tokenizer and validation of date patterns in paths.

The connector passes its `path.format` to Joda-Time. The letters allowed here are those that its documentation and
known configurations use. Every other letter is rejected: a different meaning of a letter would change paths silently.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

LETTERS: Final = "yYMdDHhmsSaEewxXZz"


class PatternElement(NamedTuple):
    """A run of one pattern letter (`MM`), or literal text."""

    text: str
    literal: bool


def pattern_elements(pattern: str) -> list[PatternElement]:
    """The elements of `pattern`, without quotes: `'year'=YYYY` is the literal `year=` and the letters `YYYY`.

    Raises ValueError for an unclosed quote.
    """
    found: list[PatternElement] = []
    for (literal, _), run in itertools.groupby(_characters(pattern), key=_kind):
        found.append(PatternElement("".join(text for text, _ in run), literal))
    return [element for element in found if element.text]


def _kind(character: tuple[str, bool]) -> tuple[bool, str]:
    text, literal = character
    return literal, "" if literal else text


def _characters(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each character of `pattern`, and True for a literal one."""
    quoted = False
    rest = iter(range(len(pattern)))
    for at in rest:
        character = pattern[at]
        if character == "'" and pattern[at + 1 : at + 2] == "'":
            next(rest)
            yield "'", True
        elif character == "'":
            quoted = not quoted
        else:
            yield character, quoted or not (character.isascii() and character.isalpha())
    if quoted:
        raise ValueError("has an unclosed single quote")


def check_path_format(pattern: str) -> None:
    """Raises ValueError, with the allowed form, for a `pattern` that is no valid path format."""
    if not pattern:
        raise ValueError("is empty: use a date pattern such as 'year'=YYYY/'month'=MM")
    if len(pattern) > 512:
        raise ValueError("is longer than 512 characters")
    found = pattern_elements(pattern)
    unknown = sorted({element.text[0] for element in found if not element.literal} - set(LETTERS))
    if unknown:
        plural = "letters" if len(unknown) > 1 else "letter"
        raise ValueError(
            f"has the unknown {plural} {' '.join(unknown)}: allowed are {' '.join(LETTERS)}; put text in single quotes"
        )
    _check_elements("".join(element.text if element.literal else "0" for element in found))


def _check_elements(path: str) -> None:
    elements = path.removesuffix("/").split("/")
    if "" in elements:
        raise ValueError("has an empty path element: remove / at the beginning and //")
    if {".", ".."} & set(elements):
        raise ValueError("has a path element . or ..")
    if any(unicodedata.category(character) == "Cc" for character in path):
        raise ValueError("contains control characters")
