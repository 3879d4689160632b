"""Limits of the translation of a schema, so that no schema of a registry can exhaust a process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from sink_job.api.recursion import recursion_limit
from sink_job.connect.errors import InvalidSchema

MAX_DEPTH: Final = 100
"""The maximum depth of types within types."""

MAX_NODES: Final = 100_000
"""The maximum number of types after each use of a named type is replaced by its content."""

MAX_CONTENT: Final = 16 * 1024**2
"""The maximum length in characters of all parameters and defaults after each use of a named type is replaced by its
content."""


class Limits:
    """Counts the types of one schema, and the length of their parameters and defaults."""

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._max_nodes = max_nodes
        self._nodes = self._depth = self._content = 0

    def count(self, nodes: int = 1) -> None:
        """Counts types. Raises InvalidSchema beyond the maximum number."""
        self._nodes += nodes
        if self._nodes > self._max_nodes:
            raise InvalidSchema(f"the schema has more than {self._max_nodes:,} types when named types are replaced")

    def parameters(self, parameters: Mapping[str, str]) -> None:
        """Counts the parameters of a type. Raises InvalidSchema beyond the maximum length."""
        self._add(sum(len(key) + len(value) for key, value in parameters.items()))

    def default(self, value: object) -> None:
        """Counts a default, which is a JSON value. Raises InvalidSchema beyond the maximum length or depth."""
        level = [value]
        for _ in range(MAX_DEPTH):
            self._add(sum(len(each) if isinstance(each, str) else 1 for each in level))
            level = [inner for each in level for inner in _inner(each)]
            if not level:
                return
        raise InvalidSchema(f"the schema has a default that is nested deeper than {MAX_DEPTH}")

    def _add(self, length: int) -> None:
        self._content += length
        if self._content > MAX_CONTENT:
            raise InvalidSchema(
                f"the schema has parameters and defaults of more than {MAX_CONTENT:,} characters when named types are "
                "replaced"
            )

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts a type, with the types in it in its block. Raises InvalidSchema beyond a limit."""
        self.count()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidSchema(f"the schema has types that are nested deeper than {MAX_DEPTH}")
        yield
        self._depth -= 1


def _inner(value: object) -> Iterable[object]:
    """The values in an array, and the names and values in an object."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else ()


MAX_VALUE_DEPTH: Final = MAX_DEPTH
"""The maximum number of nested structs, arrays and maps of a decoded value. Members of unions count as structs."""

MAX_TEXT_DEPTH: Final = 256
"""The maximum number of nested arrays and objects of a JSON text."""

MAX_SCHEMA_TEXT_DEPTH: Final = 400
"""The same for the text of a schema. Types at their maximum depth need 300."""

VALUE_TOO_DEEP: Final = f"the value is nested deeper than {MAX_VALUE_DEPTH} levels"
TEXT_TOO_DEEP: Final = f"the value is nested deeper than {MAX_TEXT_DEPTH} levels"
SCHEMA_TEXT_TOO_DEEP: Final = f"is nested deeper than {MAX_SCHEMA_TEXT_DEPTH} levels"

_TOKENS: Final = re.compile(rb'[\[{]|[\]}]|"(?:[^"\\]|\\.)*"')


def is_value_too_deep(value: object) -> bool:
    """Whether a decoded value has more than MAX_VALUE_DEPTH nested dicts and lists."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_VALUE_DEPTH):
        level = [inner for each in level for inner in _inner(each) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def is_text_too_deep(text: bytes, limit: int = MAX_TEXT_DEPTH) -> bool:
    """Whether a JSON text, which must be valid, has more than `limit` nested arrays and objects."""
    if len(text) <= 2 * limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def check_schema_text(text: str, what: str) -> None:
    """Raises InvalidSchema if the text of a schema, which must be valid JSON, is nested too deeply."""
    if is_text_too_deep(text.encode(), MAX_SCHEMA_TEXT_DEPTH):
        raise InvalidSchema(f"{what} {SCHEMA_TEXT_TOO_DEEP}")


LIMIT: Final = 20_000
"""A value that is read within Python's usual limit of 1,000 frames has fewer than 1,000 levels. Its projection takes at
most ten frames a level, of which few need stack in C."""


def deeper() -> AbstractContextManager[None]:
    """Sets Python's recursion limit to `LIMIT` inside the block, for all threads of the process."""
    return recursion_limit(LIMIT)
