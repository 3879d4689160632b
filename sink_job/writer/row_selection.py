"""Which records of a batch belong to which object: from the members that the ledger keeps of each (P2).

An object's records are those of the stretches it has seen, under the round clock of each, whose path is its own.
Rebuilding an object and comparing one with Kafka both choose them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sink_job.ledger.state import SourceRange
from sink_job.partitioning.batch import Rows

Indices = npt.NDArray[np.intp]


class Member(Protocol):
    """An object as far as it matters here."""

    @property
    def path(self) -> str: ...
    @property
    def sources(self) -> tuple[SourceRange, ...]: ...


Object = TypeVar("Object", bound=Member)


def group_by_path(objects: Sequence[Object]) -> dict[str, list[Object]]:
    """The objects of each path, in their order."""
    found: dict[str, list[Object]] = {}
    for o in objects:
        found.setdefault(o.path, []).append(o)
    return found


def clock_ranges(objects: Sequence[Member], first: int, last: int) -> dict[int, tuple[int, int]]:
    """By round clock, the offsets `[start, end)` within `first` to `last` (inclusive) that objects were chosen from
    under it: a batch has to be looked at once for each clock, and no further than this."""
    found: dict[int, tuple[int, int]] = {}
    for o in objects:
        for stretch in o.sources:
            start, end = max(stretch.start, first), min(stretch.end, last + 1)
            if start < end:
                before = found.get(stretch.clock, (start, end))
                found[stretch.clock] = min(start, before[0]), max(end, before[1])
    return found


def select_rows(objects: Mapping[str, Sequence[Object]], rows: Rows, clock: int) -> Iterator[tuple[Object, Indices]]:
    """Each object that has records among `rows`, prepared under `clock`, with their indices, ascending.

    `objects` are those of one topic-partition, by path.
    """
    order = np.argsort(rows.codes, kind="stable")
    bounds = np.searchsorted(rows.codes[order], np.arange(len(rows.paths) + 1))
    for code, path in enumerate(rows.paths):
        chosen = order[bounds[code] : bounds[code + 1]]
        if not len(chosen):
            continue
        for o in objects.get(path, ()):
            seen = _seen(o, clock, rows.offsets[chosen])
            if seen.any():
                yield o, chosen if seen.all() else chosen[seen]


def _seen(o: Member, clock: int, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    seen = np.zeros(len(offsets), dtype=np.bool_)
    for stretch in o.sources:
        if stretch.clock == clock:
            seen[np.searchsorted(offsets, stretch.start) : np.searchsorted(offsets, stretch.end)] = True
    return seen
