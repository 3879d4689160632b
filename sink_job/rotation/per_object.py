"""Scope Object: flushSize, maxBytes and interval apply to each object; the schedule and maxOpenObjects close all.

docs/semantics.md, section 9. Objects are independent here: the records of each path are divided separately, and the
steps are then put into offset order. Only maxOpenObjects depends on all objects: if it is set, the batch is processed
in windows that end where the limit is reached.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from sink_job.arrow.arrays import Indices, Integers, Mask
from sink_job.records.batch import Rows
from sink_job.rotation.policy import RotationContext, grown, opened
from sink_job.rotation.row_index import AcceptedRows, RowGroup, first_true
from sink_job.rotation.schema_rules import BatchSchemas, presence_changes
from sink_job.rotation.types import CloseReason, ObjectId, OpenObjectState, Step

_BEFORE, _OPENING, _AFTER = 0, 1, 2
_MIN_WINDOW = 64
_UNLIMITED = 1 << 62


def rotate_per_object(rotation: RotationContext, rows: Rows) -> list[Step]:
    """Adds `rows` to the open objects of `rotation`; returns the steps in order."""
    return _ObjectRotation(rotation, rows).steps()


class _Segment(NamedTuple):
    """The part of a window that goes to one object: the records at `indices`, possibly none, and the position at which
    the object closes, if it does (index, before or after that record), for `reason`. `state` is the object with these
    records; `opened` is the index of the record that opens it."""

    state: OpenObjectState
    indices: Indices | range
    opened: int | None
    closed: tuple[int, int] | None
    reason: CloseReason = CloseReason.OTHER


class _ObjectRotation:
    def __init__(self, rotation: RotationContext, rows: Rows) -> None:
        self._rotation = rotation
        self._settings = rotation.settings
        self._accepted = AcceptedRows(rows, separate=rotation.settings.separate)
        self._schemas: BatchSchemas | None = None
        self._presence_changes: list[int] = []
        if self._settings.separate:
            self._presence_changes = presence_changes(rotation, self._accepted)
        else:
            schemas = BatchSchemas(rotation, self._accepted)
            self._schemas = None if schemas.is_uniform else schemas

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        rotation, accepted = self._rotation, self._accepted
        if len(accepted) and rotation.state.open_records and rotation.due:
            steps.append(rotation.close_all(CloseReason.SCHEDULE_INTERVAL))
            rotation.renew_schedule()
        at, window = 0, len(accepted)
        while at < len(accepted):
            steps += self._close_changed(at)
            end = min(at + window, len(accepted), self._next_change(at))
            segments = self._segments(at, end)
            hit = self._first_over_cap(segments)
            if hit is not None:
                end, window = hit, max(_MIN_WINDOW, hit - at)  # and twice that next, below
                segments = self._segments(at, end)
            steps += self._apply(segments)
            if hit is not None:
                steps.append(rotation.close_all(CloseReason.MAX_OPEN_OBJECTS))
            at, window = end, window * 2
        if len(accepted):
            rotation.state = replace(rotation.state, current_path=accepted.path(len(accepted) - 1))
        return steps

    def _close_changed(self, at: int) -> list[Step]:
        """Rule 1 with `separate`: closes the objects of the record's path if they have a schema and the record has
        none, or the reverse."""
        changes = self._presence_changes
        if not changes or changes[min(bisect_left(changes, at), len(changes) - 1)] != at:
            return []
        path, rotation = self._accepted.path(at), self._rotation
        objects = [each for each in rotation.open.values() if each.path == path]
        return [rotation.close(objects, CloseReason.SCHEMA)] if objects else []

    def _next_change(self, at: int) -> int:
        """The next index after `at` at which `_close_changed` closes objects; beyond the batch if there is none."""
        position = bisect_right(self._presence_changes, at)
        return self._presence_changes[position] if position < len(self._presence_changes) else len(self._accepted) + 1

    def _segments(self, start: int, end: int) -> list[_Segment]:
        if start == end:
            return []
        return [segment for group in self._accepted.groups(start, end) for segment in self._split(group)]

    def _split(self, group: RowGroup) -> list[_Segment]:
        """Divides the records of one path, or with `separate` of one path and schema, into objects."""
        previous = self._rotation.open.get(self._rotation.slot(*group.target))
        start = previous or opened(group.target, group.first, self._rotation.now, interval_start=group.time)
        whole = grown(start, last=group.last, count=len(group.indices), size=group.size)
        if not self._is_over(whole, group.latest) and not self._is_mixed(start, group):
            return [_Segment(whole, group.indices, None if previous else int(group.indices[0]), None)]
        path = _PathRecords(self._accepted, group, self._settings.interval, self._schemas)
        current = previous
        opening: int | None = None
        segments: list[_Segment] = []
        at, count = 0, len(group.indices)
        while at < count:
            if current is not None and path.until_closed(current, at, at + 1) == at:
                reason = self._before(path, current, at)
                segments.append(_Segment(current, range(0), None, (path.index(at), _BEFORE), reason))
                current = None
            if current is None:
                current = opened(path.target(at), path.offset(at), self._rotation.now, interval_start=path.time(at))
                opening = path.index(at)
            full = self._full(path, current, at)
            end = path.until_closed(current, at + 1, min(full, count))
            if path.is_projected:
                filled = path.measure(current, at, end, (self._settings.max_bytes or _UNLIMITED) - current.size)
                full, end = (filled + 1, filled + 1) if filled < end else (full, end)
            is_full = end == full
            current = grown(current, last=path.offset(end - 1), count=end - at, size=path.size(at, end))
            closed, reason = None, CloseReason.OTHER
            if is_full:
                closed, reason = (path.index(end - 1), _AFTER), self._after(current)
            elif end < count:
                closed, reason = (path.index(end), _BEFORE), self._before(path, current, end)
            segments.append(_Segment(current, group.indices[at:end], opening, closed, reason))
            current, opening = (None, None) if closed else (current, opening)
            at = end
        return segments

    def _before(self, path: _PathRecords, current: OpenObjectState, at: int) -> CloseReason:
        """Why the object closes before the record `at` of its path."""
        time, start, interval = path.time(at), current.interval_start, self._settings.interval
        is_late = time is not None and start is not None and interval is not None and time - start >= interval
        return CloseReason.INTERVAL if is_late else CloseReason.SCHEMA

    def _after(self, current: OpenObjectState) -> CloseReason:
        """Why the object closes after its last record."""
        limit = self._settings.flush_size
        return CloseReason.FLUSH_SIZE if limit is not None and current.count >= limit else CloseReason.MAX_BYTES

    def _is_mixed(self, start: OpenObjectState, group: RowGroup) -> bool:
        """Whether one of the records has another schema than the object."""
        if self._schemas is None:
            return False
        return bool((self._schemas.of_rows[group.indices] != self._schemas.codes[start.schema]).any())

    def _is_over(self, whole: OpenObjectState, latest: int | None) -> bool:
        """Whether an object with these records has to close before the last of them; `latest` is their latest time."""
        settings = self._settings
        if settings.flush_size is not None and whole.count >= settings.flush_size:
            return True
        if settings.max_bytes is not None and whole.size >= settings.max_bytes:
            return True
        if settings.interval is None or latest is None or whole.interval_start is None:
            return False
        return latest - whole.interval_start >= settings.interval

    def _full(self, path: _PathRecords, current: OpenObjectState, at: int) -> int:
        """The number after the record that reaches flushSize or maxBytes; beyond all records if none does."""
        full = path.count + 1
        if self._settings.flush_size is not None:
            full = max(at + self._settings.flush_size - current.count, at + 1)
        if self._settings.max_bytes is not None and not path.is_projected:
            full = min(full, path.filled(at, self._settings.max_bytes - current.size) + 1)
        return full

    def _first_over_cap(self, segments: Sequence[_Segment]) -> int | None:
        """The index of the first record that would exceed maxOpenObjects."""
        cap = self._settings.max_open_objects
        if cap is None:
            return None
        events = [(segment.opened, _OPENING) for segment in segments if segment.opened is not None]
        events += [segment.closed for segment in segments if segment.closed is not None]
        is_open = len(self._rotation.open)
        for index, event in sorted(events):
            if event == _OPENING and is_open >= cap:
                return index
            is_open += 1 if event == _OPENING else -1
        return None

    def _apply(self, segments: Sequence[_Segment]) -> list[Step]:
        """Applies the segments: closed objects in the order of closing, then the objects that stay open."""
        steps: list[Step] = []
        rotation = self._rotation
        stay = (len(self._accepted), _AFTER)
        for segment in sorted(segments, key=lambda segment: (segment.closed or stay, segment.state.first)):
            slot = rotation.slot(*segment.state.id)
            before = rotation.open.get(slot)
            added = segment.state.count - (before.count if before else 0)
            rotation.state = replace(rotation.state, open_records=rotation.state.open_records + added)
            rotation.open[slot] = segment.state
            if len(segment.indices):
                steps.append(self._accepted.append(segment.state.id, segment.indices))
            if segment.closed:
                steps.append(rotation.close([segment.state], segment.reason))
        rotation.open = dict(sorted(rotation.open.items(), key=lambda each: each[1].first))
        return steps


class _PathRecords:
    """The records of a group in a window, numbered from 0. `schemas` is None if no schema closes an object."""

    def __init__(
        self, accepted: AcceptedRows, group: RowGroup, interval: int | None, schemas: BatchSchemas | None
    ) -> None:
        self._accepted = accepted
        self._batch_schemas = schemas
        self.count = len(group.indices)
        self._indices = group.indices
        self._interval = interval
        start, end = int(group.indices[0]), int(group.indices[-1]) + 1
        picked: slice | Indices = slice(start, end) if isinstance(group.indices, range) else group.indices
        self._offsets = accepted.offsets[picked]
        self._times = None if accepted.times is None else accepted.times[picked]
        self._schemas = None if schemas is None else schemas.of_rows[picked]
        self.is_projected = schemas is not None and accepted.is_projected
        self._measured = np.zeros(self.count if self.is_projected else 0, np.int64)
        self._sums: Integers | None = None
        if accepted.sizes is not None:
            self._sums = np.concatenate(([0], np.cumsum(accepted.sizes[picked])))

    def index(self, number: int) -> int:
        return int(self._indices[number])

    def target(self, number: int) -> ObjectId:
        """The path and schema of the record."""
        return self._accepted.target(self.index(number))

    def offset(self, number: int) -> int:
        return int(self._offsets[number])

    def time(self, number: int) -> int | None:
        return None if self._times is None else int(self._times[number])

    def size(self, start: int, end: int) -> int:
        if self.is_projected:
            return int(self._measured[start:end].sum())
        return 0 if self._sums is None else int(self._sums[end] - self._sums[start])

    def filled(self, start: int, room: int) -> int:
        """The first record with which the records from `start` have `room` bytes or more."""
        assert self._sums is not None, "maxBytes needs sizes"
        sums = self._sums[start + 1 :]
        return start + int(np.searchsorted(sums, self._sums[start] + room))

    def measure(self, current: OpenObjectState, start: int, end: int, room: int) -> int:
        """The first record in [start, end) with which the records from `start` have `room` bytes or more, else `end`.
        Sets the sizes of the records up to it, projected to the schema of the object."""
        left = room

        def fills(a: int, b: int) -> Mask:
            nonlocal left
            assert self._batch_schemas is not None, "records are projected only if their schemas differ"
            sizes = self._batch_schemas.sizes(self._batch_schemas.of_object(current, b - a), self._indices_of(a, b))
            self._measured[a:b] = sizes
            sums = np.cumsum(sizes)
            mask: Mask = sums >= left
            left -= int(sums[-1])
            return mask

        return first_true(start, end, fills)

    def _indices_of(self, start: int, end: int) -> Indices:
        indices = self._indices[start:end]
        return np.arange(indices.start, indices.stop) if isinstance(indices, range) else indices

    def until_closed(self, current: OpenObjectState, start: int, end: int) -> int:
        """The first record in [start, end) that closes the object by its time or schema, else `end`."""
        return self.until_changed(current, start, self.until_elapsed(current, start, end))

    def until_changed(self, current: OpenObjectState, start: int, end: int) -> int:
        """The first record in [start, end) that closes the object by its schema (rules 1 and 3), else `end`."""
        batch, schemas = self._batch_schemas, self._schemas
        if batch is None or schemas is None:
            return end
        return first_true(start, end, lambda a, b: batch.closes(batch.of_object(current, b - a), schemas[a:b]))

    def until_elapsed(self, current: OpenObjectState, start: int, end: int) -> int:
        """The first record in [start, end) whose time is the interval or more past the object's first, else `end`."""
        interval, base, times = self._interval, current.interval_start, self._times
        if interval is None or base is None or times is None:
            return end
        return first_true(start, end, lambda a, b: times[a:b] - base >= interval)
