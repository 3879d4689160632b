"""The accepted rows of a batch as columns, and the queries that both rotation scopes need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.partitioning.batch import REJECTED, Rows
from sink_job.rotation.types import Append

Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]

_WINDOW = 1024


class PathGroup(NamedTuple):
    """One path's records within a segment: their indices, ascending, size in bytes, first and last offset, and if there
    are times, the first record's and the latest."""

    path: str
    code: int
    indices: Indices | range
    size: int
    first: int
    last: int
    time: int | None
    latest: int | None


class AcceptedRows:
    """A batch without its rejected rows. An *index* counts the accepted rows, from 0."""

    def __init__(self, rows: Rows) -> None:
        self.paths = rows.paths
        self._rows: Indices | None = None
        codes, offsets, times, sizes = rows.codes, rows.offsets, rows.times, rows.sizes
        if len(codes) and int(codes.min()) < 0:
            self._rows = np.flatnonzero(codes >= 0)
            codes, offsets = codes[self._rows], offsets[self._rows]
            times = None if times is None else times[self._rows]
            sizes = None if sizes is None else sizes[self._rows]
        self.codes, self.offsets, self.times, self.sizes = codes, offsets, times, sizes
        self.switches: list[int] = []
        if len(rows.paths) > 1:
            self.switches = (np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()

    def __len__(self) -> int:
        return len(self.codes)

    def path(self, index: int) -> str:
        return self.paths[int(self.codes[index])]

    def append(self, path: str, indices: Indices | range) -> Append:
        """The step that appends the rows at `indices`."""
        if self._rows is None:
            return Append(path, slice(indices.start, indices.stop) if isinstance(indices, range) else indices)
        rows = self._rows[indices.start : indices.stop] if isinstance(indices, range) else self._rows[indices]
        start, end = int(rows[0]), int(rows[-1]) + 1
        return Append(path, slice(start, end) if end - start == len(rows) else rows)

    def groups(self, start: int, end: int) -> Iterator[PathGroup]:
        """The records from index `start` to `end` by path, ordered by the first record of each path."""
        segment = self.codes[start:end]
        if not self.switches or not bool((segment != segment[0]).any()):
            yield self._group(start, end)
            return
        order = np.argsort(self._narrow(segment), kind="stable")
        ordered = segment[order]
        order += start
        starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
        stops = np.append(starts[1:], len(order))
        firsts, lasts = order[starts], order[stops - 1]
        none = [None] * len(starts)
        columns = zip(
            ordered[starts].tolist(),
            starts.tolist(),
            stops.tolist(),
            firsts.tolist(),
            lasts.tolist(),
            [0] * len(starts) if self.sizes is None else np.add.reduceat(self.sizes[order], starts).tolist(),
            self.offsets[firsts].tolist(),
            self.offsets[lasts].tolist(),
            none if self.times is None else self.times[firsts].tolist(),
            none if self.times is None else np.maximum.reduceat(self.times[order], starts).tolist(),
            strict=True,
        )
        for code, low, high, first, last, *rest in sorted(columns, key=itemgetter(3)):
            indices = range(first, last + 1) if last - first == high - low - 1 else order[low:high]
            yield PathGroup(self.paths[code], code, indices, *rest)

    def _group(self, start: int, end: int) -> PathGroup:
        """The records from index `start` to `end`, which have one path."""
        code = int(self.codes[start])
        return PathGroup(
            path=self.paths[code],
            code=code,
            indices=range(start, end),
            size=0 if self.sizes is None else int(self.sizes[start:end].sum()),
            first=int(self.offsets[start]),
            last=int(self.offsets[end - 1]),
            time=None if self.times is None else int(self.times[start]),
            latest=None if self.times is None else int(self.times[start:end].max()),
        )

    def _narrow(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.uint16] | npt.NDArray[np.int32]:
        """Codes of 16 bits where possible: numpy's radix sort of those is several times faster."""
        return codes.astype(np.uint16) if len(self.paths) < 65_536 else codes

    def sizes_so_far(self) -> Ints:
        """For each index the bytes of its path's records in this batch up to and including it."""
        assert self.sizes is not None, "maxBytes needs sizes"
        if not self.switches:
            return np.cumsum(self.sizes)
        order = np.argsort(self._narrow(self.codes), kind="stable")
        ordered = self.codes[order]
        sums = np.cumsum(self.sizes[order])
        starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
        before = sums[starts] - self.sizes[order][starts]
        lengths = np.diff(np.append(starts, len(order)))
        so_far = np.empty(len(order), np.int64)
        so_far[order] = sums - np.repeat(before, lengths)
        return so_far

    def previous(self) -> Indices:
        """For each index that of the previous record with the same path, -1 for a path's first record."""
        previous = np.full(len(self.codes), -1, np.intp)
        order = np.argsort(self._narrow(self.codes), kind="stable")
        same = self.codes[order][1:] == self.codes[order][:-1]
        previous[order[1:][same]] = order[:-1][same]
        return previous


def first_times(rows: Rows) -> tuple[Ints, int | None]:
    """For each accepted row the time of the first row with a time after the previous accepted row (itself, unless a
    row with a rejected path lies between), and that of the first such row after the last accepted one."""
    assert rows.times is not None
    candidates = np.flatnonzero(rows.codes != REJECTED)
    accepted = np.flatnonzero(rows.codes >= 0)
    since = np.concatenate(([0], accepted + 1))
    found = np.searchsorted(candidates, since)
    behind = int(rows.times[candidates[found[-1]]]) if found[-1] < len(candidates) else None
    return rows.times[candidates[found[:-1]]], behind


def first_true(start: int, end: int, test: Callable[[int, int], npt.NDArray[np.bool_]]) -> int:
    """The first index in [start, end) for which `test` holds, else `end`.

    `test(a, b)` returns a mask of the indices from a to b. It is called for growing windows in order, so the cost of a
    search depends on the distance of the result, not on the size of the batch.
    """
    window = _WINDOW
    while start < end:
        stop = min(start + window, end)
        mask = test(start, stop)
        hit = int(mask.argmax())
        if mask[hit]:
            return start + hit
        start, window = stop, window * 2
    return end
