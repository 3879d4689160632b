"""The offsets that rows of a table must have, from the ledger. Pure.

The ledger has the range of each object, its number of records, and a checksum of their offsets. Objects of different
paths interleave, and a range may have gaps. So objects whose ranges overlap are one *component*: its objects that are
not in the table must add up to the offsets that were read of it (`sink_job.ledger.offset_checksum`). Components do not
overlap.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.ledger.state import ClosedObject, OffsetChecksum

Longs = npt.NDArray[np.int64]
Checksums = npt.NDArray[np.uint64]


class OffsetComponent(NamedTuple):
    """A range of offsets `[start, end)` of a partition. `expected` is the checksum of the records that rows must have,
    `records` the number of records of all objects in the table or of rows; `own` the number of objects in the table."""

    partition: int
    start: int
    end: int
    expected: OffsetChecksum
    records: int
    own: int

    @property
    def is_dense(self) -> bool:
        """Whether each offset of the range is in an object."""
        return self.records == self.end - self.start


@dataclass
class _Objects:
    """The objects of a partition, 33 bytes each."""

    first: array[int] = field(default_factory=lambda: array("q"))
    last: array[int] = field(default_factory=lambda: array("q"))
    count: array[int] = field(default_factory=lambda: array("q"))
    hash: array[int] = field(default_factory=lambda: array("Q"))
    own: array[int] = field(default_factory=lambda: array("b"))


class OffsetRanges:
    """Collects the objects of a topic whose records a table must have."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Objects] = {}

    def add(self, o: ClosedObject, *, is_own: bool) -> None:
        """Adds an object. `is_own`: the table has it; otherwise rows of other files must have its records."""
        objects = self._partitions.setdefault(o.partition, _Objects())
        objects.first.append(o.first)
        objects.last.append(o.last)
        objects.count.append(o.offsets.count)
        objects.hash.append(o.offsets.hash)
        objects.own.append(is_own)

    def components(self) -> Components:
        """The components of all partitions."""
        found = [_merged(number, self._partitions[number]) for number in sorted(self._partitions)]
        return Components(*(np.concatenate(each) for each in zip(_NONE, *found, strict=True)))


class Components:
    """Components, ascending by partition and offset, as columns."""

    def __init__(
        self, partition: Longs, start: Longs, end: Longs, expected: Longs, hashes: Checksums, count: Longs, own: Longs
    ) -> None:
        self.partition, self.start, self.end = partition, start, end
        self.expected, self.hashes, self.count, self.own = expected, hashes, count, own
        numbers = np.unique(partition)
        self._slices = {
            int(number): (int(np.searchsorted(partition, number)), int(np.searchsorted(partition, number, "right")))
            for number in numbers
        }

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, at: int) -> OffsetComponent:
        expected = OffsetChecksum(int(self.expected[at]), int(self.hashes[at]))
        place = int(self.partition[at]), int(self.start[at]), int(self.end[at])
        return OffsetComponent(*place, expected, int(self.count[at]), int(self.own[at]))

    def chosen(self, numbers: Longs) -> Components:
        """These components alone."""
        columns = (self.partition, self.start, self.end, self.expected, self.hashes, self.count, self.own)
        return Components(*(column[numbers] for column in columns))  # type: ignore[arg-type]

    def of(self, partitions: Longs, offsets: Longs) -> Longs:
        """The number of the component of each record, -1 for those in none."""
        found = np.full(len(offsets), -1, dtype=np.int64)
        for number in np.unique(partitions).tolist():
            first, last = self._slices.get(number, (0, 0))
            rows = np.flatnonzero(partitions == number)
            at = np.searchsorted(self.start[first:last], offsets[rows], "right") - 1 + first
            is_in = at >= first
            is_in[is_in] = offsets[rows[is_in]] < self.end[at[is_in]]
            found[rows[is_in]] = at[is_in]
        return found


def _merged(partition: int, objects: _Objects) -> tuple[npt.NDArray[np.generic], ...]:
    """The columns of the components of a partition."""
    first = np.frombuffer(objects.first, dtype=np.int64)
    order = np.argsort(first, kind="stable")
    first = first[order]
    reached = np.maximum.accumulate(np.frombuffer(objects.last, dtype=np.int64)[order])
    counts = np.frombuffer(objects.count, dtype=np.int64)[order]
    hashes = np.frombuffer(objects.hash, dtype=np.uint64)[order]
    own = np.frombuffer(objects.own, dtype=np.int8)[order].astype(np.int64)
    begins = np.flatnonzero(np.concatenate(([True], first[1:] > reached[:-1])))
    ends = np.concatenate((begins[1:], [len(first)])) - 1
    return (
        np.full(len(begins), partition, dtype=np.int64),
        first[begins],
        reached[ends] + 1,
        np.add.reduceat(np.where(own, 0, counts), begins),
        np.add.reduceat(np.where(own, np.uint64(0), hashes), begins),
        np.add.reduceat(counts, begins),
        np.add.reduceat(own, begins),
    )


_NONE: Final = tuple(np.zeros(0, dtype=np.uint64 if at == 4 else np.int64) for at in range(7))
"""The columns of no components."""
