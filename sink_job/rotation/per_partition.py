"""Scope Partition: the limits apply to all open objects of a topic-partition together, and close all of them.

docs/semantics.md, section 3. The records between two closes are one segment, whose end is searched in columns. Indices
are those of `AcceptedRows`.
"""

from __future__ import annotations

import enum

import numpy as np
from msgspec.structs import replace

from sink_job.arrow.arrays import Integers, Mask
from sink_job.records.batch import REJECTED_PATH, Rows
from sink_job.rotation.policy import RotationContext
from sink_job.rotation.projected_sizes import ProjectedSizes
from sink_job.rotation.row_index import AcceptedRows, RowGroup, first_times, first_true
from sink_job.rotation.schema_rules import SchemaSearch
from sink_job.rotation.types import CloseReason, Step


class _SegmentEnd(enum.Enum):
    """The reason for the end of a segment. The record after the segment triggers SCHEMA, TIME and CAP, its last record
    FULL."""

    SCHEMA = enum.auto()
    TIME = enum.auto()
    CAP = enum.auto()
    FULL = enum.auto()
    NOTHING = enum.auto()


def rotate_per_partition(rotation: RotationContext, rows: Rows) -> list[Step]:
    """Adds `rows` to the open objects of `rotation`; returns the steps in order."""
    return _PartitionRotation(rotation, rows).steps()


class _PartitionRotation:
    def __init__(self, rotation: RotationContext, rows: Rows) -> None:
        self._rotation = rotation
        self._accepted = AcceptedRows(rows, separate=rotation.settings.separate)
        self._schemas = SchemaSearch(rotation, self._accepted)
        self._rows = rows
        self._switch = 0
        self._starts: Integers | None = self._accepted.times
        self._next_start: int | None = None
        if rows.times is not None and bool((rows.codes == REJECTED_PATH).any()):
            self._starts, self._next_start = first_times(rows)
        if self._rotation.settings.max_open_objects is not None:
            self._previous = self._accepted.previous()
            self._was_open = np.zeros(self._accepted.code_count, np.bool_)
            self._was_open[[code for code, _ in self._accepted.codes_of(rotation.open)]] = True
        self._projected = ProjectedSizes.of(rotation, self._accepted, self._schemas)
        self._sizes = self._accepted.sizes_so_far() if self._can_fill() else None
        if self._sizes is not None:
            self._closed_bytes = np.zeros(self._accepted.code_count, np.int64)
            for code, slot in self._accepted.codes_of(rotation.open):
                self._closed_bytes[code] = -rotation.open[slot].size

    def _can_fill(self) -> bool:
        """Whether an object could reach maxBytes with the records of this batch. False where sizes depend on the schema
        of the object."""
        limit, sizes = self._rotation.settings.max_bytes, self._accepted.sizes
        if limit is None or self._projected is not None:
            return False
        assert sizes is not None, "maxBytes needs sizes"
        largest = max((each.size for each in self._rotation.open.values()), default=0)
        return largest + int(sizes.sum()) >= limit

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        rotation, accepted = self._rotation, self._accepted
        at, why = 0, _SegmentEnd.NOTHING
        while at < len(accepted):
            if rotation.state.interval_start is None and accepted.times is not None and self._starts is not None:
                again = why in (_SegmentEnd.SCHEMA, _SegmentEnd.TIME, _SegmentEnd.CAP)
                start = int(accepted.times[at] if again else self._starts[at])
                rotation.state = replace(rotation.state, interval_start=start)
            end, why = self._segment(at)
            groups = list(accepted.groups(at, end)) if end > at else []
            steps += [self._append(group) for group in groups]
            if end > at:
                rotation.state = replace(rotation.state, current_path=accepted.path(end - 1))
            if why is not _SegmentEnd.NOTHING:
                steps.append(rotation.close_all(self._reason(why, end)))
                self._forget_closed(groups)
            if why is _SegmentEnd.TIME:
                rotation.renew_schedule()
            at = end
        if rotation.state.interval_start is None:
            rotation.state = replace(rotation.state, interval_start=self._next_start)
        return steps

    def _reason(self, why: _SegmentEnd, end: int) -> CloseReason:
        """Which setting ends a segment at the index `end`."""
        settings, state = self._rotation.settings, self._rotation.state
        if why is _SegmentEnd.SCHEMA:
            return CloseReason.SCHEMA
        if why is _SegmentEnd.CAP:
            return CloseReason.MAX_OPEN_OBJECTS
        if why is _SegmentEnd.FULL:
            is_full = settings.flush_size is not None and state.open_records >= settings.flush_size
            return CloseReason.FLUSH_SIZE if is_full else CloseReason.MAX_BYTES
        if self._rotation.due:
            return CloseReason.SCHEDULE_INTERVAL
        times, base, interval = self._accepted.times, state.interval_start, settings.interval
        is_late = times is not None and base is not None and interval is not None and times[end] - base >= interval
        return CloseReason.INTERVAL if is_late else CloseReason.PATH_CHANGE

    def _append(self, group: RowGroup) -> Step:
        target = self._rotation.add(
            group.target, first=group.first, last=group.last, count=len(group.indices), size=group.size
        )
        return self._accepted.append(target, group.indices)

    def _segment(self, at: int) -> tuple[int, _SegmentEnd]:
        """The end (exclusive) of the segment that starts at `at`, and the reason."""
        end, why = self._unsized_segment(at)
        filled = self._filled(at, end) if self._projected is None else self._projected.filled(at, end)
        return (filled + 1, _SegmentEnd.FULL) if filled < end else (end, why)

    def _unsized_segment(self, at: int) -> tuple[int, _SegmentEnd]:
        """As `_segment`, without maxBytes."""
        watched = at if self._rotation.state.open_records else at + 1  # the first record of all cannot close anything
        full = self._full(at)
        end = min(full, len(self._accepted))
        time = self._time(watched, end)
        limit = min(time + 1, end)
        changed = self._schemas.first(at, limit)
        if changed == time < limit and not self._schemas.is_presence(changed):
            changed = limit  # rule 2 comes before rule 3
        capped = self._capped(at, watched, min(time, changed))
        if capped < min(time, changed):
            return capped, _SegmentEnd.CAP
        if changed < limit:
            return changed, _SegmentEnd.SCHEMA
        if time < end:
            return time, _SegmentEnd.TIME
        return end, _SegmentEnd.FULL if full <= len(self._accepted) else _SegmentEnd.NOTHING

    def _full(self, at: int) -> int:
        """The index after the record that reaches flushSize; beyond the batch if none does."""
        if self._rotation.settings.flush_size is None:
            return len(self._accepted) + 1
        return max(at + self._rotation.settings.flush_size - self._rotation.state.open_records, at + 1)

    def _filled(self, at: int, end: int) -> int:
        """The first index in the segment [at, end) with which an object reaches maxBytes, else `end`."""
        limit, sizes = self._rotation.settings.max_bytes, self._sizes
        if limit is None or sizes is None:
            return end
        codes, left_behind = self._accepted.codes, self._closed_bytes
        return first_true(at, end, lambda a, b: sizes[a:b] - left_behind[codes[a:b]] >= limit)

    def _forget_closed(self, groups: list[RowGroup]) -> None:
        """After a close: the records before it no longer count for any object."""
        self._schemas.close_all()
        if self._projected is not None:
            self._projected.close_all()
        if self._rotation.settings.max_open_objects is not None:
            self._was_open[:] = False
        if self._sizes is not None:
            np.maximum(self._closed_bytes, 0, out=self._closed_bytes)
            for group in groups:
                self._closed_bytes[group.code] = self._sizes[group.indices[-1]]

    def _time(self, start: int, end: int) -> int:
        """The first index in [start, end) at which rule 2 holds, else `end`."""
        if self._rotation.due:
            return min(start, end)
        interval, base, times = (
            self._rotation.settings.interval,
            self._rotation.state.interval_start,
            self._accepted.times,
        )
        if interval is None or base is None or times is None:
            return end
        if self._rotation.settings.on_path_change:
            end = min(end, self._changed(start))
        return first_true(start, end, lambda a, b: times[a:b] - base >= interval)

    def _changed(self, start: int) -> int:
        """The first index from `start` whose path differs from the previous one; a change from or to the tombstone path
        does not count."""
        if start == 0 and self._differ(self._rotation.state.current_path, self._accepted.path(0)):
            return 0
        switches, path = self._accepted.path_switches, self._accepted.path
        while self._switch < len(switches):
            index = switches[self._switch]
            if index >= start and self._differ(path(index - 1), path(index)):
                return index
            self._switch += 1
        return len(self._accepted)

    def _differ(self, one: str | None, other: str) -> bool:
        tombstones = self._rotation.settings.tombstone_path
        return one not in (None, other, tombstones) and other != tombstones

    def _capped(self, at: int, start: int, end: int) -> int:
        """The first index in [start, end) that would exceed maxOpenObjects in the segment from `at`, else `end`."""
        cap = self._rotation.settings.max_open_objects
        if cap is None:
            return end
        room = cap - len(self._rotation.open)

        def one_too_many(a: int, b: int) -> Mask:
            nonlocal room
            opens = (self._previous[a:b] < at) & ~self._was_open[self._accepted.codes[a:b]]
            counts = np.cumsum(opens)
            mask: Mask = opens & (counts > room)
            room -= int(counts[-1])
            return mask

        return max(first_true(at, end, one_too_many), min(start, end))
