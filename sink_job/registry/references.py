"""Collects the schemas that a schema refers to, directly or indirectly. Pure, but for the function that fetches one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from sink_job.connect.schema import SchemaReference

MAX_REFERENCES: Final = 1000
"""Maximum number of schemas that one schema refers to, directly or indirectly."""


class Reference(NamedTuple):
    """The name, subject and version by which a schema refers to another one."""

    name: str
    subject: str
    version: int


class Referenced(NamedTuple):
    """The text of a schema, and its own references."""

    text: str
    references: Sequence[Reference]


class InvalidReferences(ValueError):
    """The references form a cycle, or there are too many."""


class _Level(NamedTuple):
    rest: Iterator[Reference]
    target: SchemaReference | None


def collect(references: Sequence[Reference], fetch: Callable[[Reference], Referenced]) -> tuple[SchemaReference, ...]:
    """All schemas that `references` refer to, each after those that it refers to itself. A name is fetched once: the
    first reference with it counts, as in Confluent's clients.

    Raises InvalidReferences for a cycle and for more than `MAX_REFERENCES`.
    """
    found: dict[str, SchemaReference] = {}
    names: set[str] = set()
    path: dict[tuple[str, int], None] = {}
    levels = [_Level(iter(references), None)]
    while levels:
        reference = next(levels[-1].rest, None)
        if reference is None:
            target = levels.pop().target
            if target is not None:
                found[target.name] = target
                del path[target.subject, target.version]
        elif (reference.subject, reference.version) in path:
            raise InvalidReferences(f"its references form a cycle: {_cycle(path, reference)}")
        elif reference.name not in names:
            names.add(reference.name)
            if len(names) > MAX_REFERENCES:
                raise too_many_references()
            text, inner = fetch(reference)
            path[reference.subject, reference.version] = None
            levels.append(_Level(iter(inner), SchemaReference(*reference, text)))
    return tuple(found.values())


def too_many_references() -> InvalidReferences:
    """The error for more than `MAX_REFERENCES`."""
    return InvalidReferences(f"it has more than {MAX_REFERENCES:,} references")


def _cycle(path: dict[tuple[str, int], None], back: Reference) -> str:
    steps = [*path, (back.subject, back.version)]
    return " -> ".join(f"{subject} version {version}" for subject, version in steps)
