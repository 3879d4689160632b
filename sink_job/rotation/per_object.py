"""Scope Object: flushSize, maxBytes and interval apply to each object alone; schedule and the cap close all.

SEMANTICS section 9. Objects do not touch each other here, so each path's records are cut by themselves, and what
happens is then put into the order in which it happens. Only the cap ties them together: with one set, the batch is
taken in windows that end where the cap is hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from sink_job.partitioning.batch import Rows
from sink_job.rotation.policy import RotationContext
from sink_job.rotation.row_index import AcceptedRows, PathGroup, Places, first_true
from sink_job.rotation.types import OpenObjectState, Step

_BEFORE, _OPENING, _AFTER = 0, 1, 2
_SMALLEST_WINDOW = 64


def rotate_per_object(rotation: RotationContext, rows: Rows) -> list[Step]:
    """Gives `rows` to the open objects of `rotation`, and what that appends and closes, in order."""
    return _Batch(rotation, rows).steps()


class _Piece(NamedTuple):
    """What a window does to one object: the records at `places` (there may be none) go to it, then it is closed at
    (place, before or after that record), if at all. `cut` is the object with them; `opened` the place that opens it."""

    cut: OpenObjectState
    places: Places | range
    opened: int | None
    closed: tuple[int, int] | None


class _Batch:
    def __init__(self, rotation: RotationContext, rows: Rows) -> None:
        self._rotation = rotation
        self._settings = rotation.settings
        self._written = AcceptedRows(rows)

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        rotation, written = self._rotation, self._written
        if len(written) and rotation.state.open_records and rotation.due:
            steps.append(rotation.close_all())
            rotation.renew_schedule()
        at, window = 0, len(written)
        while at < len(written):
            end = min(at + window, len(written))
            pieces = self._pieces(at, end)
            hit = self._first_over_cap(pieces)
            if hit is not None:
                end, window = hit, max(_SMALLEST_WINDOW, hit - at)  # and twice that next, below
                pieces = self._pieces(at, end)
            steps += self._apply(pieces)
            if hit is not None:
                steps.append(rotation.close_all())
            at, window = end, window * 2
        if len(written):
            rotation.state.current_path = written.path(len(written) - 1)
        return steps

    def _pieces(self, start: int, end: int) -> list[_Piece]:
        if start == end:
            return []
        return [piece for group in self._written.groups(start, end) for piece in self._cut(group)]

    def _cut(self, group: PathGroup) -> list[_Piece]:
        """Cuts one path's records."""
        was = self._rotation.state.open.get(group.path)
        whole = self._grown(was, group)
        if not self._is_over(whole, group.latest):
            return [_Piece(whole, group.places, None if was else int(group.places[0]), None)]
        path = _Path(self._written, group, self._settings.interval)
        cut = None if was is None else msgspec.structs.replace(was)
        opened: int | None = None
        pieces: list[_Piece] = []
        at, count = 0, len(group.places)
        while at < count:
            if cut is not None and path.until_elapsed(cut, at, at + 1) == at:
                pieces.append(_Piece(cut, range(0), None, (path.place(at), _BEFORE)))
                cut = None
            if cut is None:
                cut, opened = self._opened(path, at), path.place(at)
            full = self._full(path, cut, at)
            end = path.until_elapsed(cut, at + 1, min(full, count))
            is_full = end == full
            self._grow(path, cut, at, end)
            closed = (path.place(end - 1), _AFTER) if is_full else None
            if not is_full and end < count:
                closed = (path.place(end), _BEFORE)
            pieces.append(_Piece(cut, group.places[at:end], opened, closed))
            cut, opened = (None, None) if closed else (cut, opened)
            at = end
        return pieces

    def _grown(self, was: OpenObjectState | None, group: PathGroup) -> OpenObjectState:
        """The object of a path, open or not, with all of its records."""
        return OpenObjectState(
            path=group.path,
            first=was.first if was else group.first,
            last=group.last,
            count=(was.count if was else 0) + len(group.places),
            size=(was.size if was else 0) + group.size,
            opened_at=was.opened_at if was else self._rotation.now,
            interval_start=was.interval_start if was else group.time,
        )

    def _is_over(self, cut: OpenObjectState, latest: int | None) -> bool:
        """Whether an object with these records, the latest of that time, has to be closed somewhere among them."""
        settings = self._settings
        if settings.flush_size is not None and cut.count >= settings.flush_size:
            return True
        if settings.max_bytes is not None and cut.size >= settings.max_bytes:
            return True
        if settings.interval is None or latest is None or cut.interval_start is None:
            return False
        return latest - cut.interval_start >= settings.interval

    def _opened(self, path: _Path, at: int) -> OpenObjectState:
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

    def _grow(self, path: _Path, cut: OpenObjectState, at: int, end: int) -> None:
        cut.last = path.offset(end - 1)
        cut.count += end - at
        cut.size += path.size(at, end)

    def _full(self, path: _Path, cut: OpenObjectState, at: int) -> int:
        """The number of the record behind the one that fulfils flushSize or maxBytes; past all when none does."""
        full = path.count + 1
        if self._settings.flush_size is not None:
            full = max(at + self._settings.flush_size - cut.count, at + 1)
        if self._settings.max_bytes is not None:
            full = min(full, path.filled(at, self._settings.max_bytes - cut.size) + 1)
        return full

    def _first_over_cap(self, pieces: Sequence[_Piece]) -> int | None:
        """The first place that would open one object too many."""
        cap = self._settings.max_open_objects
        if cap is None:
            return None
        events = [(piece.opened, _OPENING) for piece in pieces if piece.opened is not None]
        events += [piece.closed for piece in pieces if piece.closed is not None]
        is_open = len(self._rotation.state.open)
        for place, event in sorted(events):
            if event == _OPENING and is_open >= cap:
                return place
            is_open += 1 if event == _OPENING else -1
        return None

    def _apply(self, pieces: Sequence[_Piece]) -> list[Step]:
        """Makes the pieces real: closed ones in the order of closing, then those that stay open."""
        steps: list[Step] = []
        state = self._rotation.state
        stay = (len(self._written), _AFTER)
        for piece in sorted(pieces, key=lambda piece: (piece.closed or stay, piece.cut.first)):
            before = state.open.get(piece.cut.path)
            state.open_records += piece.cut.count - (before.count if before else 0)
            state.open[piece.cut.path] = piece.cut
            if len(piece.places):
                steps.append(self._written.append(piece.cut.path, piece.places))
            if piece.closed:
                steps.append(self._rotation.close([piece.cut]))
        state.open = {cut.path: cut for cut in sorted(state.open.values(), key=lambda cut: cut.first)}
        return steps


class _Path:
    """The records of one path in a window, numbered from 0."""

    def __init__(self, written: AcceptedRows, group: PathGroup, interval: int | None) -> None:
        self.path = group.path
        self.count = len(group.places)
        self._places = group.places
        self._interval = interval
        start, end = int(group.places[0]), int(group.places[-1]) + 1
        picked: slice | Places = slice(start, end) if isinstance(group.places, range) else group.places
        self._offsets = written.offsets[picked]
        self._times = None if written.times is None else written.times[picked]
        self._sums: npt.NDArray[np.int64] | None = None
        if written.sizes is not None:
            self._sums = np.concatenate(([0], np.cumsum(written.sizes[picked])))

    def place(self, number: int) -> int:
        return int(self._places[number])

    def offset(self, number: int) -> int:
        return int(self._offsets[number])

    def time(self, number: int) -> int | None:
        return None if self._times is None else int(self._times[number])

    def size(self, start: int, end: int) -> int:
        return 0 if self._sums is None else int(self._sums[end] - self._sums[start])

    def filled(self, start: int, room: int) -> int:
        """The first record from `start` on that takes `room` bytes or more, with those since `start`."""
        assert self._sums is not None, "maxBytes needs sizes"
        sums = self._sums[start + 1 :]
        return start + int(np.searchsorted(sums, self._sums[start] + room))

    def until_elapsed(self, cut: OpenObjectState, start: int, end: int) -> int:
        """The first record in [start, end) whose time is the interval or more past the object's first, else `end`."""
        interval, base, times = self._interval, cut.interval_start, self._times
        if interval is None or base is None or times is None:
            return end
        return first_true(start, end, lambda a, b: times[a:b] - base >= interval)
