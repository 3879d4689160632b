"""Compares two sequences of records: in step while they are equal, by the digests of all records if they are not."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sink_job.compare.record_streams import Batches

Digests = npt.NDArray[np.int64]

MAX_DIGESTS: Final = 4_000_000
"""Maximum number of records of a side that are compared one by one after a difference: 32 MB, and as much for sorting
them."""


class TooManyRecords(Exception):
    """More records differ than are compared one by one."""


def equal_records(sink: Batches, other: Batches, canonical: Callable[[bytes], bytes]) -> tuple[int, bool]:
    """The number of equal records at the beginning, and whether the sequences are equal."""
    left, right = _Buffer(sink), _Buffer(other)
    count = 0
    while True:
        size = min(left.fill(), right.fill())
        if size == 0:
            return count, not left.rows and not right.rows
        one, two = left.take(size), right.take(size)
        if one != two:
            for a, b in zip(one, two, strict=True):
                if a != b and canonical(a) != canonical(b):
                    return count, False
                count += 1
        else:
            count += size


class _Buffer:
    """The next records of a sequence."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self.rows: Sequence[bytes] = ()

    def fill(self) -> int:
        """Reads until there is a record or the sequence has ended. Returns the number of records."""
        while not self.rows and (batch := next(self._batches, None)) is not None:
            self.rows = batch
        return len(self.rows)

    def take(self, size: int) -> Sequence[bytes]:
        taken, self.rows = self.rows[:size], self.rows[size:]
        return taken


def digests(batches: Batches, canonical: Callable[[bytes], bytes]) -> Digests:
    """The digest of each record: equal for equal records within this process. Raises TooManyRecords."""
    found = array("q")
    for batch in batches:
        found.extend(hash(canonical(each)) for each in batch)
        if len(found) > MAX_DIGESTS:
            raise TooManyRecords
    return np.frombuffer(found, np.int64) if found else np.empty(0, np.int64)


@dataclass(frozen=True)
class SequenceDifference:
    """What differs between two sequences, as positions in each. `sink_only` and `other_only` are records that the other
    sequence does not have, `sink_repeated` and `other_repeated` those that it has less often. `reordered` is the first
    record of the sink in another order, if both have the same records."""

    sink_only: Sequence[int] = ()
    other_only: Sequence[int] = ()
    sink_repeated: Sequence[int] = ()
    other_repeated: Sequence[int] = ()
    reordered: int | None = None

    @property
    def count(self) -> int:
        """The number of records that the sequences do not share."""
        return sum(map(len, (self.sink_only, self.other_only, self.sink_repeated, self.other_repeated)))


def difference_between(sink: Digests, other: Digests) -> SequenceDifference:
    """The difference of two sequences of digests."""
    sink_only, sink_repeated = _surplus(sink, other)
    other_only, other_repeated = _surplus(other, sink)
    if sink_only or sink_repeated or other_only or other_repeated:
        return SequenceDifference(sink_only, other_only, sink_repeated, other_repeated)
    different = np.flatnonzero(sink != other)
    return SequenceDifference(reordered=int(different[0]) if len(different) else None)


def _surplus(one: Digests, two: Digests) -> tuple[list[int], list[int]]:
    """The positions of records that `two` does not have, and of those that it has less often: their last ones."""
    values, counts = np.unique(one, return_counts=True)
    others, other_counts = np.unique(two, return_counts=True)
    common, at, at_other = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    more = counts[at] > other_counts[at_other]
    left = dict(zip(common[more].tolist(), other_counts[at_other][more].tolist(), strict=True))
    only = np.flatnonzero(~np.isin(one, others)).tolist()
    return only, list(_repeated(one, left))


def _repeated(one: Digests, left: dict[int, int]) -> Iterator[int]:
    """The positions after the first `left` ones of each value in it."""
    for position in np.flatnonzero(np.isin(one, list(left))).tolist() if left else ():
        value = int(one[position])
        left[value] -= 1
        if left[value] < 0:
            yield position
