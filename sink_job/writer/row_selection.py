"""Selects the rows of a batch that belong to an object, from the source ranges that the ledger keeps of it (P2).

An object's records are those in its source ranges, prepared under the clock of each range, whose path is the object's.
Rebuild and `verify --deep` use the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.ledger.state import SourceRange
from sink_job.partitioning.batch import Rows
from sink_job.writer.record_pipeline import PreparedBatch
from sink_job.writer.row_slices import RowSlice, row_slices

Indices = npt.NDArray[np.intp]


class Member(Protocol):
    """The part of an object that decides which rows belong to it."""

    @property
    def path(self) -> str: ...
    @property
    def sources(self) -> tuple[SourceRange, ...]: ...


Object = TypeVar("Object", bound=Member)


def object_rows(
    objects: Sequence[Object], batch: pa.RecordBatch, prepare: Callable[[pa.RecordBatch, int], PreparedBatch]
) -> Iterator[tuple[Object, Indices, RowSlice]]:
    """Each object with its rows of `batch`: their numbers in the batch, ascending, and the encoded rows.

    `objects` are those of one topic-partition and one number of settings; `prepare` converts a batch under a clock. An
    object gets its rows in offset order, once for each clock.
    """
    offsets = batch.column("offset").to_numpy()
    by_path = group_by_path(objects)
    for clock, (start, end) in clock_ranges(objects, int(offsets[0]), int(offsets[-1])).items():
        low, high = np.searchsorted(offsets, (start, end))
        if low == high:
            continue
        prepared = prepare(batch.slice(low, high - low), clock)
        selected = list(select_rows(by_path, prepared.rows, clock))
        slices = row_slices(prepared, [_as_slice(rows) for _, rows in selected]) if selected else iter(())
        for (o, rows), encoded in zip(selected, slices, strict=True):
            yield o, rows + low, encoded


def group_by_path(objects: Sequence[Object]) -> dict[str, list[Object]]:
    """The objects of each path, in the given order."""
    groups: dict[str, list[Object]] = {}
    for o in objects:
        groups.setdefault(o.path, []).append(o)
    return groups


def clock_ranges(objects: Sequence[Member], first: int, last: int) -> dict[int, tuple[int, int]]:
    """For each clock, ascending, the smallest range `[start, end)` that covers the objects' source ranges under it
    within offsets `first` to `last` (inclusive). Clocks ascend with the offsets of an object."""
    ranges: dict[int, tuple[int, int]] = {}
    for o in objects:
        for source in o.sources:
            start, end = max(source.start, first), min(source.end, last + 1)
            if start < end:
                low, high = ranges.get(source.clock, (start, end))
                ranges[source.clock] = min(start, low), max(end, high)
    return dict(sorted(ranges.items()))


def select_rows(objects: Mapping[str, Sequence[Object]], rows: Rows, clock: int) -> Iterator[tuple[Object, Indices]]:
    """Each object that has records among `rows`, prepared under `clock`, with their indices, ascending.

    `objects` are those of one topic-partition, by path.
    """
    order = np.argsort(rows.codes, kind="stable")
    bounds = np.searchsorted(rows.codes[order], np.arange(len(rows.paths) + 1))
    for code, path in enumerate(rows.paths):
        of_path = order[bounds[code] : bounds[code + 1]]
        if not len(of_path):
            continue
        for o in objects.get(path, ()):
            mask = _in_sources(o, clock, rows.offsets[of_path])
            if mask.any():
                yield o, of_path if mask.all() else of_path[mask]


def _in_sources(o: Member, clock: int, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(offsets), dtype=np.bool_)
    for source in o.sources:
        if source.clock == clock:
            mask[np.searchsorted(offsets, source.start) : np.searchsorted(offsets, source.end)] = True
    return mask


def _as_slice(rows: Indices) -> slice | Indices:
    """Adjacent rows as a slice, which copies nothing."""
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows) and (np.diff(rows) == 1).all():
        return slice(first, last + 1)
    return rows
