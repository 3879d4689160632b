"""Matches the objects of both sides of a topic-partition by their keys. Pure functions.

An object holds records of one path in ascending order, and begins with the offset in its key. The objects of a path
follow each other, so an object ends before the next one of its path begins. Two objects with the same name below the
directories are a pair. Other objects that begin at the same offset are a pair, too: their keys differ. What is left
belongs to the pair before it in its path: one side has closed its objects at other offsets. The records of such a
*group* are compared as one sequence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sink_job.compare.compared_objects import ComparedObject
from sink_job.compare.results import OffsetRange


class ObjectGroup(NamedTuple):
    """Objects whose records are compared as one sequence, in the order of their offsets."""

    sink: tuple[ComparedObject, ...]
    other: tuple[ComparedObject, ...]

    @property
    def first(self) -> int:
        return min(each.first for each in (*self.sink, *self.other))


@dataclass(frozen=True)
class KeyMatches:
    """The result. `equal` and `moved` are pairs with equal and with different names; `only_sink` and `only_other` are
    in no pair. `groups` contain each object once."""

    equal: list[tuple[ComparedObject, ComparedObject]] = field(default_factory=list)
    moved: list[tuple[ComparedObject, ComparedObject]] = field(default_factory=list)
    only_sink: list[ComparedObject] = field(default_factory=list)
    only_other: list[ComparedObject] = field(default_factory=list)
    groups: list[ObjectGroup] = field(default_factory=list)


def match(sink: Iterable[ComparedObject], other: Iterable[ComparedObject]) -> KeyMatches:
    """Matches the objects of one topic-partition. Names are unique on each side."""
    found = KeyMatches()
    names = {each.name: each for each in other}
    unmatched: dict[int, list[ComparedObject]] = {}
    for each in sorted(sink, key=_order):
        if (same := names.pop(each.name, None)) is not None:
            found.equal.append((each, same))
        else:
            unmatched.setdefault(each.first, []).append(each)
    for each in sorted(names.values(), key=_order):
        if at_offset := unmatched.get(each.first):
            found.moved.append((at_offset.pop(0), each))
        else:
            found.only_other.append(each)
    found.only_sink.extend(each for at_offset in unmatched.values() for each in at_offset)
    found.only_sink.sort(key=_order)
    found.groups.extend(_groups(found))
    return found


def _order(each: ComparedObject) -> tuple[int, str]:
    return each.first, each.name


def _groups(found: KeyMatches) -> Iterator[ObjectGroup]:
    """The pairs, with the objects after them in their path, and the objects before the first pair of their path."""
    firsts: dict[str, list[int]] = {}
    for one, _ in found.equal:
        firsts.setdefault(one.path, []).append(one.first)
    sink, other = _after(firsts, found.only_sink), _after(firsts, found.only_other)
    for one, two in found.equal:
        at = (one.path, one.first)
        yield ObjectGroup((one, *sink.pop(at, ())), (two, *other.pop(at, ())))
    for one, two in found.moved:
        yield ObjectGroup((one,), (two,))
    for at in sorted({*sink, *other}):
        yield ObjectGroup(tuple(sink.get(at, ())), tuple(other.get(at, ())))


def _after(
    firsts: Mapping[str, Sequence[int]], objects: Iterable[ComparedObject]
) -> dict[tuple[str, int], list[ComparedObject]]:
    """The objects by their path and the first offset of the pair before them, -1 if there is none."""
    found: dict[tuple[str, int], list[ComparedObject]] = {}
    for each in objects:
        starts = firsts.get(each.path, ())
        before = bisect_right(starts, each.first)
        found.setdefault((each.path, starts[before - 1] if before else -1), []).append(each)
    return found


class Extents:
    """The offset ranges from the first to the last offset of objects, for queries."""

    def __init__(self, objects: Iterable[ComparedObject]) -> None:
        self.objects = sorted((each for each in objects if each.last is not None), key=_order)
        self._ranges = merged((each.first, each.last) for each in self.objects if each.last is not None)
        self._starts = [first for first, _ in self._ranges]

    def contain(self, offset: int) -> bool:
        """Whether an object begins at or before the offset, and ends at or after it."""
        at = bisect_right(self._starts, offset)
        return at > 0 and offset <= self._ranges[at - 1][1]


def merged(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The ranges in ascending order; those that overlap or follow each other are one."""
    found: list[OffsetRange] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def last_offsets(objects: Sequence[ComparedObject], end: int) -> dict[str, int]:
    """The last offset of each object by its key: that of the ledger, else the one before the next object of its path,
    or before `end`."""
    by_path: dict[str, list[ComparedObject]] = {}
    for each in sorted(objects, key=_order):
        by_path.setdefault(each.path, []).append(each)
    found = {}
    for of_path in by_path.values():
        for number, each in enumerate(of_path):
            following = of_path[number + 1].first if number + 1 < len(of_path) else end
            found[each.key] = max(each.first, following - 1) if each.last is None else each.last
    return found
