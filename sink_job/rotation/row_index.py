"""The accepted rows of a batch as columns, and the queries that both rotation scopes need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.arrow.arrays import Codes, Indices, Integers, Mask
from sink_job.records.batch import NO_SCHEMA, REJECTED, Rows, SchemaCheck
from sink_job.rotation.types import Append, ObjectId

_WINDOW = 1024
_MAX_CODES = 1 << 16


class RowGroup(NamedTuple):
    """The records of one code within a segment: the path and schema of the first, their indices, ascending, size in
    bytes, first and last offset, and if there are times, the first record's and the latest."""

    target: ObjectId
    code: int
    indices: Indices | range
    size: int
    first: int
    last: int
    time: int | None
    latest: int | None


class AcceptedRows:
    """A batch without its rejected rows. An *index* counts the accepted rows, from 0.

    `path_codes` and `schemas` are those of `Rows`. Records with the same one of `codes` belong to the same object while
    it is open: the code is that of the path, with `separate` that of path and schema. `code_count` is their number.
    """

    def __init__(self, rows: Rows, *, separate: bool = False) -> None:
        self.paths, self.schema_ids, self._projected_sizes = rows.paths, rows.schema_ids, rows.projected_sizes
        self.closes: SchemaCheck | None = None if rows.closes is None else cache(rows.closes)
        self._rows: Indices | None = None
        codes, offsets, times, sizes, schemas = rows.codes, rows.offsets, rows.times, rows.sizes, rows.schemas
        if len(codes) and int(codes.min()) < 0:
            self._rows = np.flatnonzero(codes >= 0)
            codes, offsets = codes[self._rows], offsets[self._rows]
            times = None if times is None else times[self._rows]
            sizes = None if sizes is None else sizes[self._rows]
            schemas = None if schemas is None else schemas[self._rows]
        self.path_codes, self.offsets, self.times, self.sizes, self.schemas = codes, offsets, times, sizes, schemas
        self.codes, self.code_count = codes, len(rows.paths)
        self._combined = separate and schemas is not None
        self.path_switches = _switches(codes) if len(rows.paths) > 1 else []
        self.switches = self.path_switches
        if self._combined:
            self._combine()

    def _combine(self) -> None:
        """Replaces `codes` by codes of path and schema."""
        assert self.schemas is not None
        width = len(self.schema_ids) + 1
        combined = self.path_codes.astype(np.int64) * width + (self.schemas + 1)
        self._pairs = np.arange(len(self.paths) * width)
        if len(self._pairs) > _MAX_CODES:
            self._pairs, combined = np.unique(combined, return_inverse=True)
        self.codes, self.code_count = combined.astype(np.int32), len(self._pairs)
        self.switches = _switches(self.codes)

    def __len__(self) -> int:
        return len(self.codes)

    def path(self, index: int) -> str:
        return self.paths[int(self.path_codes[index])]

    def schema(self, index: int) -> str | None:
        """The id of the record's schema."""
        code = NO_SCHEMA if self.schemas is None else int(self.schemas[index])
        return None if code == NO_SCHEMA else self.schema_ids[code]

    def target(self, index: int) -> ObjectId:
        """The path and schema of the record."""
        return ObjectId(self.path(index), self.schema(index))

    @property
    def is_projected(self) -> bool:
        """Whether the size of a record depends on the schema of its object."""
        return self._projected_sizes is not None

    def projected_sizes(self, schema: str, indices: Indices) -> Integers:
        """The sizes of the records at `indices`, projected to the schema."""
        assert self._projected_sizes is not None, "records are written as they came"
        return self._projected_sizes(schema, indices if self._rows is None else self._rows[indices])

    def codes_of(self, slots: Iterable[ObjectId]) -> Iterator[tuple[int, ObjectId]]:
        """The code of each of `slots` (`RotationContext.slot`) that occurs in the batch."""
        paths = {path: code for code, path in enumerate(self.paths)}
        if not self._combined:
            yield from ((paths[slot.path], slot) for slot in slots if slot.path in paths and slot.schema is None)
            return
        schemas: dict[str | None, int] = {schema: code for code, schema in enumerate(self.schema_ids)}
        schemas[None] = NO_SCHEMA
        for slot in slots:
            if slot.path in paths and slot.schema in schemas:
                pair = paths[slot.path] * len(schemas) + schemas[slot.schema] + 1
                code = int(np.searchsorted(self._pairs, pair))
                if code < self.code_count and self._pairs[code] == pair:
                    yield code, slot

    def append(self, target: ObjectId, indices: Indices | range) -> Append:
        """The step that appends the rows at `indices`."""
        if self._rows is None:
            return Append(target, slice(indices.start, indices.stop) if isinstance(indices, range) else indices)
        rows = self._rows[indices.start : indices.stop] if isinstance(indices, range) else self._rows[indices]
        start, end = int(rows[0]), int(rows[-1]) + 1
        return Append(target, slice(start, end) if end - start == len(rows) else rows)

    def groups(self, start: int, end: int) -> Iterator[RowGroup]:
        """The records from index `start` to `end` by code, ordered by the first record of each code."""
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
            yield RowGroup(self.target(first), code, indices, *rest)

    def _group(self, start: int, end: int) -> RowGroup:
        """The records from index `start` to `end`, which have one code."""
        return RowGroup(
            target=self.target(start),
            code=int(self.codes[start]),
            indices=range(start, end),
            size=0 if self.sizes is None else int(self.sizes[start:end].sum()),
            first=int(self.offsets[start]),
            last=int(self.offsets[end - 1]),
            time=None if self.times is None else int(self.times[start]),
            latest=None if self.times is None else int(self.times[start:end].max()),
        )

    def _narrow(self, codes: Codes) -> npt.NDArray[np.uint16] | Codes:
        """Codes of 16 bits where possible: numpy's radix sort of those is several times faster."""
        return codes.astype(np.uint16) if self.code_count <= _MAX_CODES else codes

    def sizes_so_far(self) -> Integers:
        """For each index the bytes of the records in this batch with its code up to and including it."""
        assert self.sizes is not None, "maxBytes needs sizes"
        if not self.switches:
            return np.cumsum(self.sizes)
        order = np.argsort(self._narrow(self.codes), kind="stable")
        ordered = self.codes[order]
        sums = np.cumsum(self.sizes[order])
        starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
        before = sums[starts] - self.sizes[order][starts]  # the sum of all codes before: sums run over all of them
        lengths = np.diff(np.append(starts, len(order)))
        so_far = np.empty(len(order), np.int64)
        so_far[order] = sums - np.repeat(before, lengths)
        return so_far

    def previous(self) -> Indices:
        """For each index that of the previous record with the same code, -1 for the first one of a code."""
        previous = np.full(len(self.codes), -1, np.intp)
        order = np.argsort(self._narrow(self.codes), kind="stable")
        same = self.codes[order][1:] == self.codes[order][:-1]
        # the sort is stable: the neighbour of a record is the last one before it
        previous[order[1:][same]] = order[:-1][same]
        return previous


def _switches(codes: Codes) -> list[int]:
    """The indices of the records whose code differs from the previous one.

    >>> _switches(np.array([5, 5, 3, 5], np.int32))
    [2, 3]
    """
    return (np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()


def first_times(rows: Rows) -> tuple[Integers, int | None]:
    """For each accepted row the time of the first row with a time after the previous accepted row (itself, unless a
    row with a rejected path lies between), and that of the first such row after the last accepted one.

    >>> from sink_job.records.batch import REJECTED_PATH
    >>> rows = Rows(np.arange(4), np.array([0, REJECTED_PATH, 0, REJECTED]), ["p"], times=np.array([10, 20, 30, 40]))
    >>> times, behind = first_times(rows)  # the row with the rejected path counts for the next one
    >>> times.tolist(), behind
    ([10, 20], None)
    """
    assert rows.times is not None
    candidates = np.flatnonzero(rows.codes != REJECTED)
    accepted = np.flatnonzero(rows.codes >= 0)
    since = np.concatenate(([0], accepted + 1))
    found = np.searchsorted(candidates, since)
    behind = int(rows.times[candidates[found[-1]]]) if found[-1] < len(candidates) else None
    return rows.times[candidates[found[:-1]]], behind


def first_true(start: int, end: int, test: Callable[[int, int], Mask]) -> int:
    """The first index in [start, end) for which `test` holds, else `end`.

    `test(a, b)` returns a mask of the indices from a to b. It is called for growing windows in order, so the cost of a
    search depends on the distance of the result, not on the size of the batch.

    >>> values = np.array([1, 4, 9, 16])
    >>> first_true(1, 4, lambda start, end: values[start:end] > 8)
    2
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
