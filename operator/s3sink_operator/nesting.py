"""Objects that are nested more deeply than the fast JSON parser reads. A pod template may have any fields, and the API
server accepts 10,000 levels (the limit of Go's encoding/json).

What is nested too deeply is cut where it is read, so that one sink cannot end the operator, and is an invalid spec.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from pydantic_core import from_json

from sink_job.api.recursion import recursion_limit

MAX_LEVELS: Final = 100
"""Levels of a spec. The parser of pydantic reads 200, its serializer 254."""
_KEPT: Final = MAX_LEVELS + 10
"""Levels of an object that is cut: its spec still exceeds the maximum."""
_STEPS_SHOWN: Final = 4
_RECURSION_LIMIT: Final = 12_000


def deep_json() -> AbstractContextManager[None]:
    """Lets the json module of Python, which Kopf uses, read what the API server accepts, within the context: its levels
    count against the limit of recursion of the process, and take 2 MB of stack at most."""
    return recursion_limit(_RECURSION_LIMIT)


def parse_json(text: bytes | str) -> Any:
    """The document, cut if it is nested too deeply. Raises ValueError for invalid JSON."""
    try:
        return from_json(text)
    except ValueError:
        try:
            return cut(json.loads(text))
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None


def cut(node: Any, levels: int = _KEPT) -> Any:
    """A copy of the first levels. Deeper mappings and lists are empty."""
    if isinstance(node, dict):
        return {name: cut(inner, levels - 1) for name, inner in node.items()} if levels else {}
    if isinstance(node, list):
        return [cut(inner, levels - 1) for inner in node] if levels else []
    return node


def too_deep(node: Any, path: str) -> str | None:
    """The error message for a value at `path` with more than MAX_LEVELS levels; None if it has fewer."""
    found = next(_deep_paths(node, MAX_LEVELS), None)
    if found is None:
        return None
    return f"{'.'.join((path, *found[:_STEPS_SHOWN]))}: nested more than {MAX_LEVELS} levels deep"


def _deep_paths(node: Any, levels: int) -> Iterator[tuple[str, ...]]:
    """The paths of the mappings and lists below the first levels."""
    if not isinstance(node, dict | list):
        return
    if not levels:
        yield ()
        return
    for step, inner in node.items() if isinstance(node, dict) else enumerate(node):
        yield from ((str(step), *path) for path in _deep_paths(inner, levels - 1))
