"""Scope Object: flushSize, maxBytes and interval apply to each object; the schedule and maxOpenObjects close all.

docs/semantics.md, section 9. Objects are independent here: the records of each path are divided separately, and the
steps are then put into offset order. Only maxOpenObjects depends on all objects: if it is set, the batch is processed
in windows that end where the limit is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from sink_job.partitioning.batch import Rows
from sink_job.rotation.policy import RotationContext
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
        rotation, written = self._rotation, self._accepted
        if len(written) and rotation.state.open_records and rotation.due:
            steps.append(rotation.close_all())
            rotation.renew_schedule()
        at, window = 0, len(written)
        while at < len(written):
            end = min(at + window, len(written))
            segments = self._segments(at, end)
            hit = self._first_over_cap(segments)
            if hit is not None:
                end, window = hit, max(_MIN_WINDOW, hit - at)  # and twice that next, below
                segments = self._segments(at, end)
            steps += self._apply(segments)
            if hit is not None:
                steps.append(rotation.close_all())
            at, window = end, window * 2
        if len(written):
            rotation.state.current_path = written.path(len(written) - 1)
        return steps

    def _segments(self, start: int, end: int) -> list[_Segment]:
        if start == end:
            return []
        return [segment for group in self._accepted.groups(start, end) for segment in self._split(group)]

    def _split(self, group: PathGroup) -> list[_Segment]:
        """Divides one path's records into objects."""
        previous = self._rotation.state.open.get(group.path)
        whole = self._grown(previous, group)
        if not self._is_over(whole, group.latest):
            return [_Segment(whole, group.indices, None if previous else int(group.indices[0]), None)]
        path = _PathRecords(self._accepted, group, self._settings.interval)
        cut = None if previous is None else msgspec.structs.replace(previous)
        opened: int | None = None
        segments: list[_Segment] = []
        at, count = 0, len(group.indices)
        while at < count:
            if cut is not None and path.until_elapsed(cut, at, at + 1) == at:
                segments.append(_Segment(cut, range(0), None, (path.index(at), _BEFORE)))
                cut = None
            if cut is None:
                cut, opened = self._opened(path, at), path.index(at)
            full = self._full(path, cut, at)
            end = path.until_elapsed(cut, at + 1, min(full, count))
            is_full = end == full
            self._grow(path, cut, at, end)
            closed = (path.index(end - 1), _AFTER) if is_full else None
            if not is_full and end < count:
                closed = (path.index(end), _BEFORE)
            segments.append(_Segment(cut, group.indices[at:end], opened, closed))
            cut, opened = (None, None) if closed else (cut, opened)
            at = end
        return segments

    def _grown(self, previous: OpenObjectState | None, group: PathGroup) -> OpenObjectState:
        """The object of a path, open or new, with all records of the group."""
        return OpenObjectState(
            path=group.path,
            first=previous.first if previous else group.first,
            last=group.last,
            count=(previous.count if previous else 0) + len(group.indices),
            size=(previous.size if previous else 0) + group.size,
            opened_at=previous.opened_at if previous else self._rotation.now,
            interval_start=previous.interval_start if previous else group.time,
        )

    def _is_over(self, cut: OpenObjectState, latest: int | None) -> bool:
        """Whether an object with these records has to close before the last of them; `latest` is their latest time."""
        settings = self._settings
        if settings.flush_size is not None and cut.count >= settings.flush_size:
            return True
        if settings.max_bytes is not None and cut.size >= settings.max_bytes:
            return True
        if settings.interval is None or latest is None or cut.interval_start is None:
            return False
        return latest - cut.interval_start >= settings.interval

    def _opened(self, path: _PathRecords, at: int) -> OpenObjectState:
        offset = path.offset(at)
        base = path.time(at)
        return OpenObjectState(
            path=path.path,
            first=offset,
            last=offset,
            count=0,
            size=0,
            opened_at=self._rotation.now,
            interval_start=base,
        )

    def _grow(self, path: _PathRecords, cut: OpenObjectState, at: int, end: int) -> None:
        cut.last = path.offset(end - 1)
        cut.count += end - at
        cut.size += path.size(at, end)

    def _full(self, path: _PathRecords, cut: OpenObjectState, at: int) -> int:
        """The number after the record that reaches flushSize or maxBytes; beyond all records if none does."""
        full = path.count + 1
        if self._settings.flush_size is not None:
            full = max(at + self._settings.flush_size - cut.count, at + 1)
        if self._settings.max_bytes is not None:
            full = min(full, path.filled(at, self._settings.max_bytes - cut.size) + 1)
        return full

    def _first_over_cap(self, segments: Sequence[_Segment]) -> int | None:
        """The index of the first record that would exceed maxOpenObjects."""
        cap = self._settings.max_open_objects
        if cap is None:
            return None
        events = [(segment.opened, _OPENING) for segment in segments if segment.opened is not None]
        events += [segment.closed for segment in segments if segment.closed is not None]
        is_open = len(self._rotation.state.open)
        for index, event in sorted(events):
            if event == _OPENING and is_open >= cap:
                return index
            is_open += 1 if event == _OPENING else -1
        return None

    def _apply(self, segments: Sequence[_Segment]) -> list[Step]:
        """Applies the segments: closed objects in the order of closing, then the objects that stay open."""
        steps: list[Step] = []
        state = self._rotation.state
        stay = (len(self._accepted), _AFTER)
        for segment in sorted(segments, key=lambda segment: (segment.closed or stay, segment.state.first)):
            before = state.open.get(segment.state.path)
            state.open_records += segment.state.count - (before.count if before else 0)
            state.open[segment.state.path] = segment.state
            if len(segment.indices):
                steps.append(self._accepted.append(segment.state.path, segment.indices))
            if segment.closed:
                steps.append(self._rotation.close([segment.state]))
        state.open = {cut.path: cut for cut in sorted(state.open.values(), key=lambda cut: cut.first)}
        return steps


class _PathRecords:
    """The records of one path in a window, numbered from 0."""

    def __init__(self, written: AcceptedRows, group: PathGroup, interval: int | None) -> None:
        self.path = group.path
        self.count = len(group.indices)
        self._indices = group.indices
        self._interval = interval
        start, end = int(group.indices[0]), int(group.indices[-1]) + 1
        picked: slice | Indices = slice(start, end) if isinstance(group.indices, range) else group.indices
        self._offsets = written.offsets[picked]
        self._times = None if written.times is None else written.times[picked]
        self._sums: npt.NDArray[np.int64] | None = None
        if written.sizes is not None:
            self._sums = np.concatenate(([0], np.cumsum(written.sizes[picked])))

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

    def until_elapsed(self, cut: OpenObjectState, start: int, end: int) -> int:
        """The first record in [start, end) whose time is the interval or more past the object's first, else `end`."""
        interval, base, times = self._interval, cut.interval_start, self._times
        if interval is None or base is None or times is None:
            return end
        return first_true(start, end, lambda a, b: times[a:b] - base >= interval)
