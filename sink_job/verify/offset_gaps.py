"""Locates missing and duplicate offsets by checksums. Pure functions.

The objects and gaps of a rotation range must add up to the range (`offset_checksum`). If they do not, this module
locates the first wrong offset as precisely as the checksums allow. The checksum of the missing offsets identifies them
if they are one contiguous range; otherwise it only bounds their location.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sink_job.ledger.offset_checksum import CountedObject, checksum_range, hash_offsets
from sink_job.ledger.state import OffsetChecksum

WINDOW = 1 << 22
"""Maximum number of offsets to search for missing ones; in larger ranges their location is only bounded."""


class OffsetFault(NamedTuple):
    """The first wrong offset and an explanation. `duplicate`: there are too many records, not too few."""

    offset: int
    message: str
    duplicate: bool = False


def locate_fault(start: int, end: int, objects: Sequence[CountedObject], missing: OffsetChecksum) -> OffsetFault | None:
    """The first fault in `[start, end)` if `missing` is the checksum of the offsets missing in its objects (a negative
    count: duplicate offsets); None if it is zero."""
    if missing == OffsetChecksum():
        return None
    wrong = next((o for o in objects if is_wrong(o)), None)
    if wrong is not None:
        return OffsetFault(
            wrong.first, f"the ledger's checksum of the object of offsets {wrong.first} to {wrong.last} is wrong"
        )
    if missing.count > 0:
        return _missing(start, end, objects, missing)
    return _duplicate(start, end, objects, OffsetChecksum() - missing)


def is_wrong(o: CountedObject) -> bool:
    """Whether the checksum of an object is impossible: it counts no offset, more than the object spans, or all of them
    with a different hash."""
    span = o.last + 1 - o.first
    if o.offsets.count >= span:
        return o.offsets != checksum_range(o.first, o.last + 1)
    return o.offsets.count < 1


def _missing(start: int, end: int, objects: Sequence[CountedObject], missing: OffsetChecksum) -> OffsetFault:
    """Missing offsets are outside of objects without gaps. One contiguous range of them is located exactly."""
    free = list(uncovered(start, end, [o for o in objects if o.offsets.count == o.last + 1 - o.first]))
    for gap_start, gap_end in free:
        first = find(gap_start, gap_end, missing)
        if first is not None:
            return OffsetFault(first, f"offsets {first} to {first + missing.count - 1} are in no object")
    first, last = (free[0][0], free[-1][1] - 1) if free else (start, end - 1)
    return OffsetFault(first, f"{missing.count} records between offsets {first} and {last} are in no object")


def _duplicate(start: int, end: int, objects: Sequence[CountedObject], surplus: OffsetChecksum) -> OffsetFault:
    """Duplicate offsets are where objects overlap. `surplus` is their checksum."""
    twice = next((o for o in objects if o.offsets == surplus), None)
    if twice is not None:
        return OffsetFault(twice.first, f"offsets {twice.first} to {twice.last} are in two objects", duplicate=True)
    first = overlap(objects)
    first = start if first is None else first
    if surplus.count:
        return OffsetFault(
            first, f"{surplus.count} records too many between offsets {first} and {end - 1}", duplicate=True
        )
    return OffsetFault(first, f"the objects between offsets {first} and {end - 1} do not contain the recorded offsets")


def uncovered(start: int, end: int, objects: Sequence[CountedObject]) -> Iterator[tuple[int, int]]:
    """The ranges `[a, b)` within `[start, end)` that no object spans, ascending."""
    reached = start
    for o in sorted(objects, key=lambda o: o.first):
        if o.first > reached:
            yield reached, min(o.first, end)
        reached = max(reached, o.last + 1)
        if reached >= end:
            return
    yield reached, end


def overlap(objects: Sequence[CountedObject]) -> int | None:
    """The first offset that two objects span; None if there is none. Interleaved paths have one."""
    reached = -1
    for o in sorted(objects, key=lambda o: o.first):
        if o.first <= reached:
            return o.first
        reached = max(reached, o.last)
    return None


def find(start: int, end: int, target: OffsetChecksum) -> int | None:
    """The first offset of the contiguous range within `[start, end)` with the checksum `target`; None if there is
    none."""
    if not 0 < target.count <= end - start:
        return None
    if target.count == end - start:
        return start if checksum_range(start, end) == target else None
    if end - start > WINDOW:
        return None
    sums = np.zeros(end - start + 1, dtype=np.uint64)
    np.cumsum(hash_offsets(np.arange(start, end, dtype=np.int64)), out=sums[1:])
    matches = np.flatnonzero(sums[target.count :] - sums[: -target.count] == np.uint64(target.hash))
    return start + int(matches[0]) if len(matches) else None
