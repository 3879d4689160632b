"""Java's `.properties` format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sink_job.api.errors import InvalidConnector
from sink_job.api.field_errors import in_a_line

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\=:\s])+)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


def read_properties(text: str) -> dict[str, str]:
    """The properties of `text`. Raises InvalidConnector for a key that occurs twice, and for a line without a key."""
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match is None or not (match[2] or "=" in line or ":" in line):
            raise InvalidConnector(f"line {number}, column 1: the line is not a property: use key=value")
        key, value = (_unescaped(each) for each in match.groups())
        if key in found:
            message = f"line {number}, column 1: the key {in_a_line(key)} is there twice, first in line {lines[key]}"
            raise InvalidConnector(f"{message}: remove one")
        found[key], lines[key] = value, number
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number, without comments and empty ones, and with its continuations."""
    start, held = 0, ""
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = natural.lstrip(" \t\f")
        if not held and (not line or line[0] in "#!"):
            continue
        start = start if held else number
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            held += line[:-1]
            continue
        yield start, held + line
        held = ""
    if held:
        yield start, held


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(replaced, text)
