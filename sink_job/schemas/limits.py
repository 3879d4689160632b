"""Limits of the translation of a schema, so that no schema of a registry can exhaust a process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sink_job.schemas.errors import InvalidSchema

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
