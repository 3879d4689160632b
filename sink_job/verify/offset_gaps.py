"""The arithmetic of an audit: which offsets a set of objects lacks, or has twice, when only tallies are known.

Pure. The objects of a rotation and its holes must sum to its range (`tally`). Where they don't, this module finds the
first offset at which they don't, as sharply as the tallies allow: the count and the sum of hashes of what is missing
identify it when it is one dense stretch, and otherwise bound where it can lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sink_job.ledger.offset_checksum import CountedObject, checksum_range, hash_offsets
from sink_job.ledger.state import OffsetChecksum

WINDOW = 1 << 22
"""Offsets that are searched one by one for what is missing; beyond them its place is only bounded."""


class OffsetFault(NamedTuple):
    """The first wrong offset, and what is wrong from there on; `doubled`: there is too much, not too little."""

    offset: int
    message: str
    doubled: bool = False


def locate_fault(start: int, end: int, objects: Sequence[CountedObject], lacks: OffsetChecksum) -> OffsetFault | None:
    """Where `[start, end)` goes wrong when its objects lack `lacks` of what they should hold (below zero: too much);
    None when they lack nothing."""
    if lacks == OffsetChecksum():
        return None
    wrong = next((o for o in objects if is_wrong(o)), None)
    if wrong is not None:
        return OffsetFault(
            wrong.first, f"the list's count and hash of offsets {wrong.first} to {wrong.last} are not theirs"
        )
    if lacks.count > 0:
        return _missing(start, end, objects, lacks)
    return _doubled(start, end, objects, lacks)


def is_wrong(o: CountedObject) -> bool:
    """Whether an object cannot be what its tally says: more than it spans, or dense and yet other offsets."""
    span = o.last + 1 - o.first
    if o.offsets.count >= span:
        return o.offsets != checksum_range(o.first, o.last + 1)
    return o.offsets.count < 1


def _missing(start: int, end: int, objects: Sequence[CountedObject], lacks: OffsetChecksum) -> OffsetFault:
    """Missing offsets lie outside of the objects that are dense; one dense stretch of them is found exactly."""
    free = list(uncovered(start, end, [o for o in objects if o.offsets.count == o.last + 1 - o.first]))
    for gap_start, gap_end in free:
        first = find(gap_start, gap_end, lacks)
        if first is not None:
            return OffsetFault(first, f"offsets {first} to {first + lacks.count - 1} are in no object")
    first, last = (free[0][0], free[-1][1] - 1) if free else (start, end - 1)
    return OffsetFault(first, f"{lacks.count} records between offsets {first} and {last} are in no object")


def _doubled(start: int, end: int, objects: Sequence[CountedObject], lacks: OffsetChecksum) -> OffsetFault:
    """Offsets that are there twice lie where objects overlap."""
    surplus = OffsetChecksum() - lacks
    twice = next((o for o in objects if o.offsets == surplus), None)
    if twice is not None:
        return OffsetFault(twice.first, f"offsets {twice.first} to {twice.last} are in two objects", doubled=True)
    first = overlap(objects)
    first = start if first is None else first
    if surplus.count:
        return OffsetFault(
            first, f"{surplus.count} records too many between offsets {first} and {end - 1}", doubled=True
        )
    return OffsetFault(
        first, f"the objects between offsets {first} and {end - 1} hold others than the recorded offsets"
    )


def uncovered(start: int, end: int, objects: Sequence[CountedObject]) -> Iterator[tuple[int, int]]:
    """The stretches `[a, b)` of `[start, end)` that lie between no object's first and last offset, ascending."""
    reached = start
    for o in sorted(objects, key=lambda o: o.first):
        if o.first > reached:
            yield reached, min(o.first, end)
        reached = max(reached, o.last + 1)
        if reached >= end:
            return
    yield reached, end


def overlap(objects: Sequence[CountedObject]) -> int | None:
    """The first offset that two objects span; paths that interleave have one."""
    reached = -1
    for o in sorted(objects, key=lambda o: o.first):
        if o.first <= reached:
            return o.first
        reached = max(reached, o.last)
    return None


def find(start: int, end: int, wanted: OffsetChecksum) -> int | None:
    """The first offset of the dense stretch in `[start, end)` whose tally is `wanted`, if there is one."""
    if not 0 < wanted.count <= end - start:
        return None
    if wanted.count == end - start:
        return start if checksum_range(start, end) == wanted else None
    if end - start > WINDOW:
        return None
    sums = np.zeros(end - start + 1, dtype=np.uint64)
    np.cumsum(hash_offsets(np.arange(start, end, dtype=np.int64)), out=sums[1:])
    matches = np.flatnonzero(sums[wanted.count :] - sums[: -wanted.count] == np.uint64(wanted.hash))
    return start + int(matches[0]) if len(matches) else None
