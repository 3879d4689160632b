"""Matches a topic against a pattern in bounded time: patterns are user input, and the operator evaluates them.

The backtracking of `re` may take hours, as for `(a+)+b` against 40 times a. So `re` only parses the pattern. The
matching uses sets of positions: each element maps the positions where it may start to those where it may end, without
backtracking. Lookaround, back references, case-insensitive matching, syntax that only Java has, and patterns that take
too many steps are undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]  # the only access to the parsed pattern
from typing import Any, Final

MAX_STEPS: Final = 20_000
"""Maximum number of compared characters, which takes some milliseconds."""

_CATEGORIES: Final = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_WORD": lambda one: one.isalnum() or one == "_",
    "CATEGORY_SPACE": str.isspace,
}


class _UndecidedError(Exception):
    """The result is undecided: unsupported syntax, or too many steps."""


@lru_cache(maxsize=65536)
def matches(pattern: str, topic: str) -> bool | None:
    """Whether the whole `topic`, which is ASCII, matches `pattern`; None if that is undecided."""
    try:
        parsed = _parsed(pattern)
        return len(topic) in _Matcher(topic).through(parsed, frozenset({0}))
    except (_UndecidedError, RecursionError):
        return None


@lru_cache(maxsize=1024)
def _parsed(pattern: str) -> Sequence[tuple[Any, Any]]:
    try:
        found = _parser.parse(pattern)
    except (re.error, OverflowError):
        raise _UndecidedError from None
    if found.state.flags & re.IGNORECASE:
        raise _UndecidedError
    return list(found)


class _Matcher:
    """Matches one topic with a limited number of steps."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.left = MAX_STEPS

    def through(self, pieces: Iterable[tuple[Any, Any]], starts: frozenset[int]) -> frozenset[int]:
        """The positions where the sequence `pieces` may end."""
        for kind, value in pieces:
            if not starts:
                break
            starts = self._one(str(kind), value, starts)
        return starts

    def _one(self, kind: str, value: Any, starts: frozenset[int]) -> frozenset[int]:
        self.left -= len(starts)
        if self.left < 0:
            raise _UndecidedError
        match kind:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                end = len(self.topic)
                return frozenset(at + 1 for at in starts if at < end and _fits(kind, value, self.topic[at]))
            case "BRANCH":
                return frozenset().union(*(self.through(branch, starts) for branch in value[1]))
            case "SUBPATTERN":
                _, on, off, inner = value
                if (on | off) & re.IGNORECASE:
                    raise _UndecidedError
                return self.through(inner, starts)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = value
                return self._repeated(least, most, inner, starts)
            case "AT":
                return self._at(str(value), starts)
        raise _UndecidedError

    def _repeated(self, least: int, most: int, inner: Any, starts: frozenset[int]) -> frozenset[int]:
        for _ in range(least):
            starts = self.through(inner, starts)
            if not starts:
                return starts
            self._step()
        found = new = starts
        done = least
        while new and done < int(most):
            new = self.through(inner, new) - found
            found |= new
            done += 1
            self._step()
        return found

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _UndecidedError

    def _at(self, where: str, starts: frozenset[int]) -> frozenset[int]:
        match where:
            case "AT_BEGINNING" | "AT_BEGINNING_STRING":
                return starts & {0}
            case "AT_END" | "AT_END_STRING":
                return starts & {len(self.topic)}
        raise _UndecidedError


def _fits(kind: str, value: Any, one: str) -> bool:
    match kind:
        case "ANY":
            return True
        case "LITERAL":
            return bool(ord(one) == value)
        case "NOT_LITERAL":
            return bool(ord(one) != value)
    expected = not any(str(each) == "NEGATE" for each, _ in value)
    return any(_within(str(each), inner, one) for each, inner in value) == expected


def _within(kind: str, value: Any, one: str) -> bool:
    """Whether a member of a character class contains this character."""
    match kind:
        case "LITERAL":
            return bool(ord(one) == value)
        case "RANGE":
            return bool(value[0] <= ord(one) <= value[1])
        case "CATEGORY":
            name = str(value)
            plain = name.replace("NOT_", "")
            return bool(_CATEGORIES[plain](one)) == (plain == name)
    return False
