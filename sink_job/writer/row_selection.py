"""Selects the rows of a batch that belong to an object, from the source ranges that the ledger keeps of it (P2).

An object's records are those in its source ranges, prepared under the clock of each range, whose path and schema are
the object's. If records are projected to the schema of their object, their own schema does not count.
Rebuild and `verify --deep` use the same functions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from sink_job.arrow.arrays import Indices, Integers, Mask
from sink_job.ledger.state import SourceRange
from sink_job.records.batch import DEAD_LETTERS, NO_SCHEMA, Rows
from sink_job.rotation.types import ObjectId
from sink_job.writer.dead_letters import DeadLetterLines
from sink_job.writer.large_batches import Prepare, prepared_parts
from sink_job.writer.row_slices import RowSelection, RowSlice, row_slices


class Member(Protocol):
    """The part of an object that decides which rows belong to it."""

    @property
    def id(self) -> ObjectId: ...
    @property
    def sources(self) -> tuple[SourceRange, ...]: ...


Object = TypeVar("Object", bound=Member)


def object_rows(
    objects: Sequence[Object], batch: pa.RecordBatch, prepare: Prepare, lines: DeadLetterLines | None = None
) -> Iterator[tuple[Object, Indices, RowSlice]]:
    """Each object with its rows of `batch`: their numbers in the batch, ascending, and the encoded rows.

    `objects` are those of one topic-partition and one number of settings; `prepare` converts a batch under a clock. It
    leaves no schema id unresolved: an id that the ledger does not contain is unknown. `lines` are those of dead-letter
    objects, if there are any. An object gets its rows in offset
    order, once for each clock and part of the batch.
    """
    offsets = batch.column("offset").to_numpy()
    by_id = group_by_id(objects)
    for clock, (start, end) in clock_ranges(objects, int(offsets[0]), int(offsets[-1])).items():
        low, high = np.searchsorted(offsets, (start, end))
        if low == high:
            continue
        for first_row, part, prepared in prepared_parts(batch.slice(low, high - low), clock, prepare, int(low)):
            assert not prepared.unresolved, f"schema ids {prepared.unresolved} are neither in the ledger nor unknown"
            selected = list(select_rows(by_id, prepared.rows, clock))
            choices = [RowSelection(o.id.schema, _as_slice(rows)) for o, rows in selected]
            slices = row_slices(prepared, choices) if selected else iter(())
            for (o, rows), encoded in zip(selected, slices, strict=True):
                yield o, rows + first_row, encoded
            for o in by_id.get(ObjectId(DEAD_LETTERS), ()):
                assert lines is not None, "dead-letter objects have lines"
                if (found := lines.of_object(part, prepared.errors, clock, _within(o, part))) is not None:
                    yield o, found[0] + first_row, found[1]


def _within(o: Member, batch: pa.RecordBatch) -> tuple[SourceRange, ...]:
    offsets = batch.column("offset")
    return sources_within(o, offsets[0].as_py(), offsets[-1].as_py())


def group_by_id(objects: Sequence[Object]) -> dict[ObjectId, list[Object]]:
    """The objects of each path and schema, in the given order."""
    groups: dict[ObjectId, list[Object]] = {}
    for o in objects:
        groups.setdefault(o.id, []).append(o)
    return groups


def clock_ranges(objects: Sequence[Member], first: int, last: int) -> dict[int, tuple[int, int]]:
    """For each clock, ascending, the smallest range `[start, end)` that covers the objects' source ranges under it
    within offsets `first` to `last` (inclusive). Clocks ascend with the offsets of an object."""
    ranges: dict[int, tuple[int, int]] = {}
    for o in objects:
        for source in sources_within(o, first, last):
            start, end = max(source.start, first), min(source.end, last + 1)
            clock = abs(source.clock)  # negative: `sink_job.writer.dead_letters`
            low, high = ranges.get(clock, (start, end))
            ranges[clock] = min(start, low), max(end, high)
    return dict(sorted(ranges.items()))


def sources_within(o: Member, first: int, last: int) -> tuple[SourceRange, ...]:
    """The source ranges of an object with offsets from `first` to `last` (inclusive). An object can have as many source
    ranges as records, and its records come in many batches, so the others are not read."""
    low = bisect_right(o.sources, first, key=lambda source: source.end)
    return o.sources[low : bisect_right(o.sources, last, low, key=lambda source: source.start)]


def select_rows(
    objects: Mapping[ObjectId, Sequence[Object]], rows: Rows, clock: int
) -> Iterator[tuple[Object, Indices]]:
    """Each object that has records among `rows`, prepared under `clock`, with their indices, ascending.

    `objects` are those of one topic-partition, by path and schema. If records are projected, an object has all records
    of its path in its source ranges: no other object of the path was open meanwhile. The same holds where records
    without a value have the schema of a record before them, which may be in no source range.
    """
    if rows.projected_sizes is not None or rows.nulls is not None:
        objects = _by_path(objects)
        rows = replace(rows, schemas=None)
    for id_, members in _rows_by_id(rows):
        for o in objects.get(id_, ()):
            mask = _in_sources(o, clock, rows.offsets[members])
            if mask.any():
                yield o, members if mask.all() else members[mask]


def _by_path(objects: Mapping[ObjectId, Sequence[Object]]) -> dict[ObjectId, list[Object]]:
    paths: dict[ObjectId, list[Object]] = {}
    for id_, of_id in objects.items():
        paths.setdefault(ObjectId(id_.path), []).extend(of_id)
    return paths


def _rows_by_id(rows: Rows) -> Iterator[tuple[ObjectId, Indices]]:
    """The accepted rows of each path and schema."""
    order = np.argsort(rows.codes, kind="stable")
    bounds = np.searchsorted(rows.codes[order], np.arange(len(rows.paths) + 1))
    for code, path in enumerate(rows.paths):
        of_path = order[bounds[code] : bounds[code + 1]]
        if not len(of_path):
            continue
        if rows.schemas is None:
            yield ObjectId(path), of_path
            continue
        schemas = rows.schemas[of_path]
        for schema in np.unique(schemas).tolist():
            yield ObjectId(path, None if schema == NO_SCHEMA else rows.schema_ids[schema]), of_path[schemas == schema]


def _in_sources(o: Member, clock: int, offsets: Integers) -> Mask:
    mask = np.zeros(len(offsets), dtype=np.bool_)
    for source in sources_within(o, int(offsets[0]), int(offsets[-1])):
        if source.clock == clock:
            mask[np.searchsorted(offsets, source.start) : np.searchsorted(offsets, source.end)] = True
    return mask


def _as_slice(rows: Indices) -> slice | Indices:
    """Adjacent rows as a slice, which copies nothing."""
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows) and (np.diff(rows) == 1).all():
        return slice(first, last + 1)
    return rows
