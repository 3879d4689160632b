"""Times as text by the patterns of java.text.SimpleDateFormat, in UTC and the way it reads by default: numbers beyond
their range count on (30 February is 1 March), and text after the pattern is ignored.

Letters: yyyy (or more), M, MM, d, H, m, s, S (milliseconds), X to XXX and Z, and quoted text. Others depend on the
locale or on the clock of the worker.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<plain>[^A-Za-z']+)")
_NUMBERS: Final = "yMdHmsS"
_ZONES: Final = "XZ"
_DIGITS: Final = re.compile("[0-9]+")
_ZONE: Final = re.compile(r"([+-])(\d\d)(?:(:?)(\d\d))?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DIGITS: Final = 9
_FIRST_YEAR: Final = 1583
_LAST_YEAR: Final = 9999
"""Before the first one, Java counts by the Julian calendar."""


class _Element(NamedTuple):
    """A field with its number of letters, or with the letter empty a text. `adjacent`: another field follows."""

    letter: str
    width: int
    text: str = ""
    adjacent: bool = False


class DatePattern:
    """A pattern. Raises ValueError, with the end of a sentence about it, for one that is not supported."""

    def __init__(self, pattern: str) -> None:
        found = _elements(pattern)
        self._elements = [
            each._replace(adjacent=bool(each.letter and following.letter))
            for each, following in pairwise([*found, _Element("", 0)])
        ]

    def text(self, time: int) -> str:
        """The text of a time in milliseconds. Raises ValueError for a time before 1583 or after 9999."""
        try:
            at = _EPOCH + timedelta(milliseconds=time)
        except OverflowError:
            raise ValueError("the time is out of range") from None
        _check_year(at.year)
        numbers = {"y": at.year, "M": at.month, "d": at.day, "H": at.hour, "m": at.minute, "s": at.second}
        numbers["S"] = at.microsecond // 1000
        zones = {"X": "Z", "Z": "+0000"}
        return "".join(
            each.text if not each.letter else zones.get(each.letter) or f"{numbers[each.letter]:0{each.width}}"
            for each in self._elements
        )

    def time(self, text: str) -> int:
        """The time of a text in milliseconds. Raises ValueError if it does not match."""
        values = {"y": 1970, "M": 1, "d": 1, "H": 0, "m": 0, "s": 0, "S": 0, "zone": 0}
        at = 0
        for each in self._elements:
            if not each.letter:
                if not text.startswith(each.text, at):
                    raise ValueError("the text does not match")
                at += len(each.text)
                continue
            at += len(text[at:]) - len(text[at:].lstrip(" \t"))
            name, value, at = _zone(text, at, each) if each.letter in _ZONES else _number(text, at, each)
            values[name] = value
        return _milliseconds(values)


def _elements(pattern: str) -> list[_Element]:
    found: list[_Element] = []
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            raise ValueError("has a quote that does not end")
        at = token.end()
        if (field := token["field"]) is None:
            quoted = token["quoted"]
            text = token["plain"] if quoted is None else quoted.replace("''", "'") or "'"
            found.append(_Element("", 0, text))
            continue
        letter, width = field[0], len(field)
        if letter not in _NUMBERS + _ZONES:
            raise ValueError(f"has the letter {letter}: use y M d H m s S X Z, and quotes around text")
        if (letter == "y" and width < 4) or (letter == "M" and width > 2) or (letter == "X" and width > 3):
            raise ValueError(f"has {field}: use yyyy, M or MM, and X to XXX")
        found.append(_Element(letter, width))
    if not any(each.letter for each in found):
        raise ValueError("has no letter of a field, such as yyyy")
    return found


def _number(text: str, at: int, element: _Element) -> tuple[str, int, int]:
    """The field, its value, and the end of its digits. Where another field follows, they are as many as letters."""
    end = len(text)
    if element.adjacent:
        end = at + element.width
        if end > len(text):
            raise ValueError("the text ends within a number")
    found = _DIGITS.match(text, at, end)
    if found is None or len(found[0]) > _MAX_DIGITS:
        raise ValueError("the text has no number at its place")
    return element.letter, int(found[0]), found.end()


def _zone(text: str, at: int, element: _Element) -> tuple[str, int, int]:
    """The zone as milliseconds ahead of UTC: Z or an offset of hours, with minutes for other patterns than X."""
    if element.letter == "X" and text.startswith("Z", at):
        return "zone", 0, at + 1
    found = _ZONE.match(text, at)
    if found is None or int(found[2]) > 23:
        raise ValueError("the text has no zone at its place")
    hours_only = element.letter == "X" and element.width == 1
    colon = ":" if element.letter == "X" and element.width == 3 else ""
    if hours_only:
        minutes, end = 0, found.end(2)
    elif found[4] is None or found[3] != colon or int(found[4]) > 59:
        raise ValueError("the text has no zone at its place")
    else:
        minutes, end = int(found[4]), found.end()
    sign = -1 if found[1] == "-" else 1
    return "zone", sign * (int(found[2]) * 60 + minutes) * 60_000, end


def _milliseconds(values: dict[str, int]) -> int:
    years, month = divmod(values["M"] - 1, 12)
    year = values["y"] + years
    _check_year(year)
    first = datetime(year, month + 1, 1, tzinfo=UTC)
    days = (first - _EPOCH).days + values["d"] - 1
    seconds = (days * 24 + values["H"]) * 3600 + values["m"] * 60 + values["s"]
    return seconds * 1000 + values["S"] - values["zone"]


def _check_year(year: int) -> None:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise ValueError(f"the year is not between {_FIRST_YEAR} and {_LAST_YEAR}")
