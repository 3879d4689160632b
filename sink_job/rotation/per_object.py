"""Scope Object: flushSize, maxBytes and interval apply to each object; the schedule and maxOpenObjects close all.

docs/semantics.md, section 9. Objects are independent here: the records of each path are divided separately, and the
steps are then put into offset order. Only maxOpenObjects depends on all objects: if it is set, the batch is processed
in windows that end where the limit is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from sink_job.partitioning.batch import Rows
from sink_job.rotation.policy import RotationContext, grown, opened
from sink_job.rotation.row_index import AcceptedRows, Indices, PathGroup, first_true
from sink_job.rotation.types import OpenObjectState, Step

_BEFORE, _OPENING, _AFTER = 0, 1, 2
_MIN_WINDOW = 64


def rotate_per_object(rotation: RotationContext, rows: Rows) -> list[Step]:
    """Adds `rows` to the open objects of `rotation`; returns the steps in order."""
    return _ObjectRotation(rotation, rows).steps()


class _Segment(NamedTuple):
    """The part of a window that goes to one object: the records at `indices`, possibly none, and the position at which
    the object closes, if it does (index, before or after that record). `state` is the object with these records;
    `opened` is the index of the record that opens it."""

    state: OpenObjectState
    indices: Indices | range
    opened: int | None
    closed: tuple[int, int] | None


class _ObjectRotation:
    def __init__(self, rotation: RotationContext, rows: Rows) -> None:
        self._rotation = rotation
        self._settings = rotation.settings
        self._accepted = AcceptedRows(rows)

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        rotation, accepted = self._rotation, self._accepted
        if len(accepted) and rotation.state.open_records and rotation.due:
            steps.append(rotation.close_all())
            rotation.renew_schedule()
        at, window = 0, len(accepted)
        while at < len(accepted):
            end = min(at + window, len(accepted))
            segments = self._segments(at, end)
            hit = self._first_over_cap(segments)
            if hit is not None:
                end, window = hit, max(_MIN_WINDOW, hit - at)  # and twice that next, below
                segments = self._segments(at, end)
            steps += self._apply(segments)
            if hit is not None:
                steps.append(rotation.close_all())
            at, window = end, window * 2
        if len(accepted):
            rotation.state = replace(rotation.state, current_path=accepted.path(len(accepted) - 1))
        return steps

    def _segments(self, start: int, end: int) -> list[_Segment]:
        if start == end:
            return []
        return [segment for group in self._accepted.groups(start, end) for segment in self._split(group)]

    def _split(self, group: PathGroup) -> list[_Segment]:
        """Divides one path's records into objects."""
        previous = self._rotation.open.get(group.path)
        start = previous or opened(group.path, group.first, self._rotation.now, interval_start=group.time)
        whole = grown(start, last=group.last, count=len(group.indices), size=group.size)
        if not self._is_over(whole, group.latest):
            return [_Segment(whole, group.indices, None if previous else int(group.indices[0]), None)]
        path = _PathRecords(self._accepted, group, self._settings.interval)
        current = previous
        opening: int | None = None
        segments: list[_Segment] = []
        at, count = 0, len(group.indices)
        while at < count:
            if current is not None and path.until_elapsed(current, at, at + 1) == at:
                segments.append(_Segment(current, range(0), None, (path.index(at), _BEFORE)))
                current = None
            if current is None:
                current = opened(path.path, path.offset(at), self._rotation.now, interval_start=path.time(at))
                opening = path.index(at)
            full = self._full(path, current, at)
            end = path.until_elapsed(current, at + 1, min(full, count))
            is_full = end == full
            current = grown(current, last=path.offset(end - 1), count=end - at, size=path.size(at, end))
            closed = (path.index(end - 1), _AFTER) if is_full else None
            if not is_full and end < count:
                closed = (path.index(end), _BEFORE)
            segments.append(_Segment(current, group.indices[at:end], opening, closed))
            current, opening = (None, None) if closed else (current, opening)
            at = end
        return segments

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
        if self._settings.max_bytes is not None:
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
            before = rotation.open.get(segment.state.path)
            added = segment.state.count - (before.count if before else 0)
            rotation.state = replace(rotation.state, open_records=rotation.state.open_records + added)
            rotation.open[segment.state.path] = segment.state
            if len(segment.indices):
                steps.append(self._accepted.append(segment.state.path, segment.indices))
            if segment.closed:
                steps.append(rotation.close([segment.state]))
        rotation.open = {each.path: each for each in sorted(rotation.open.values(), key=lambda each: each.first)}
        return steps


class _PathRecords:
    """The records of one path in a window, numbered from 0."""

    def __init__(self, accepted: AcceptedRows, group: PathGroup, interval: int | None) -> None:
        self.path = group.path
        self.count = len(group.indices)
        self._indices = group.indices
        self._interval = interval
        start, end = int(group.indices[0]), int(group.indices[-1]) + 1
        picked: slice | Indices = slice(start, end) if isinstance(group.indices, range) else group.indices
        self._offsets = accepted.offsets[picked]
        self._times = None if accepted.times is None else accepted.times[picked]
        self._sums: npt.NDArray[np.int64] | None = None
        if accepted.sizes is not None:
            self._sums = np.concatenate(([0], np.cumsum(accepted.sizes[picked])))

    def index(self, number: int) -> int:
        return int(self._indices[number])

    def offset(self, number: int) -> int:
        return int(self._offsets[number])

    def time(self, number: int) -> int | None:
        return None if self._times is None else int(self._times[number])

    def size(self, start: int, end: int) -> int:
        return 0 if self._sums is None else int(self._sums[end] - self._sums[start])

    def filled(self, start: int, room: int) -> int:
        """The first record with which the records from `start` have `room` bytes or more."""
        assert self._sums is not None, "maxBytes needs sizes"
        sums = self._sums[start + 1 :]
        return start + int(np.searchsorted(sums, self._sums[start] + room))

    def until_elapsed(self, current: OpenObjectState, start: int, end: int) -> int:
        """The first record in [start, end) whose time is the interval or more past the object's first, else `end`."""
        interval, base, times = self._interval, current.interval_start, self._times
        if interval is None or base is None or times is None:
            return end
        return first_true(start, end, lambda a, b: times[a:b] - base >= interval)
