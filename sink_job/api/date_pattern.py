"""Date patterns of paths: which letters there are, and how a pattern falls into letters and literals.

The connector hands its `path.format` to Joda; the letters here are those that its documents and configurations use.
Anything else is refused, for a letter that silently means something else would move data to other paths.
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
    """`pattern` in its pieces, quotes resolved: `'year'=YYYY` is literal `year=`, letters `YYYY`.

    Raises ValueError for a quote that is not closed.
    """
    found: list[PatternElement] = []
    for (literal, _), run in itertools.groupby(_characters(pattern), key=_kind):
        found.append(PatternElement("".join(text for text, _ in run), literal))
    return [piece for piece in found if piece.text]


def _kind(character: tuple[str, bool]) -> tuple[bool, str]:
    text, literal = character
    return literal, "" if literal else text


def _characters(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each character of `pattern` and whether it is literal."""
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
        raise ValueError("has a single quote that is not closed")


def check_path_format(pattern: str) -> None:
    """Raises ValueError when `pattern` cannot make paths, with what is allowed."""
    if not pattern:
        raise ValueError("is empty: write a date pattern such as 'year'=YYYY/'month'=MM")
    if len(pattern) > 512:
        raise ValueError("is longer than 512 characters")
    found = pattern_elements(pattern)
    unknown = sorted({piece.text[0] for piece in found if not piece.literal} - set(LETTERS))
    if unknown:
        said = "letters" if len(unknown) > 1 else "letter"
        raise ValueError(
            f"uses the {said} {' '.join(unknown)}: allowed are {' '.join(LETTERS)}; text goes in single quotes"
        )
    _check_elements("".join(piece.text if piece.literal else "0" for piece in found))


def _check_elements(path: str) -> None:
    elements = path.removesuffix("/").split("/")
    if "" in elements:
        raise ValueError("has an empty path element: no / at the beginning, and no //")
    if {".", ".."} & set(elements):
        raise ValueError("has a path element . or ..")
    if any(unicodedata.category(character) == "Cc" for character in path):
        raise ValueError("has control characters")
