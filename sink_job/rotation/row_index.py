"""The rows of a batch that are written, as columns of their own, and the questions that both scopes ask of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.partitioning.batch import REJECTED, Rows
from sink_job.rotation.types import Append

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]

_WINDOW = 1024


class PathGroup(NamedTuple):
    """One path's records within a stretch: their places, ascending, what they are in bytes, their first and last
    offset, and, with times, that of the first one and the latest."""

    path: str
    code: int
    places: Places | range
    size: int
    first: int
    last: int
    time: int | None
    latest: int | None


class AcceptedRows:
    """A batch without its refused rows. A *place* counts the written rows, from 0."""

    def __init__(self, rows: Rows) -> None:
        self.paths = rows.paths
        self._rows: Places | None = None
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

    def path(self, place: int) -> str:
        return self.paths[int(self.codes[place])]

    def append(self, path: str, places: Places | range) -> Append:
        """Append for the rows at `places`."""
        if self._rows is None:
            return Append(path, slice(places.start, places.stop) if isinstance(places, range) else places)
        rows = self._rows[places.start : places.stop] if isinstance(places, range) else self._rows[places]
        start, end = int(rows[0]), int(rows[-1]) + 1
        return Append(path, slice(start, end) if end - start == len(rows) else rows)

    def groups(self, start: int, end: int) -> Iterator[PathGroup]:
        """The records from place `start` to `end` by path, in the order of each path's first one."""
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
            places = range(first, last + 1) if last - first == high - low - 1 else order[low:high]
            yield PathGroup(self.paths[code], code, places, *rest)

    def _group(self, start: int, end: int) -> PathGroup:
        """The records of one path from place `start` to `end`."""
        code = int(self.codes[start])
        return PathGroup(
            path=self.paths[code],
            code=code,
            places=range(start, end),
            size=0 if self.sizes is None else int(self.sizes[start:end].sum()),
            first=int(self.offsets[start]),
            last=int(self.offsets[end - 1]),
            time=None if self.times is None else int(self.times[start]),
            latest=None if self.times is None else int(self.times[start:end].max()),
        )

    def _narrow(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.uint16] | npt.NDArray[np.int32]:
        """Codes of 16 bits where they fit: numpy sorts those by their digits, several times faster."""
        return codes.astype(np.uint16) if len(self.paths) < 65_536 else codes

    def sizes_so_far(self) -> Ints:
        """For each place the bytes of its path's records in this batch up to it."""
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

    def previous(self) -> Places:
        """For each place that of the record before it on the same path, -1 for a path's first one."""
        previous = np.full(len(self.codes), -1, np.intp)
        order = np.argsort(self._narrow(self.codes), kind="stable")
        same = self.codes[order][1:] == self.codes[order][:-1]
        previous[order[1:][same]] = order[:-1][same]
        return previous


def first_times(rows: Rows) -> tuple[Ints, int | None]:
    """For each written place the time of the first row looked at since the written row before it (itself, unless a
    refused path comes between), and that of the first row looked at behind the last written one."""
    assert rows.times is not None
    looked = np.flatnonzero(rows.codes != REJECTED)
    written = np.flatnonzero(rows.codes >= 0)
    since = np.concatenate(([0], written + 1))
    found = np.searchsorted(looked, since)
    behind = int(rows.times[looked[found[-1]]]) if found[-1] < len(looked) else None
    return rows.times[looked[found[:-1]]], behind


def first_true(start: int, end: int, test: Callable[[int, int], npt.NDArray[np.bool_]]) -> int:
    """The first place in [start, end) for which `test` holds, else `end`.

    `test(a, b)` gives the truth of the places from a to b. It is asked for growing windows in order, so that a search
    costs what it passes over and not what the batch holds.
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
