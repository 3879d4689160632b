"""Scope Partition: the settings count over all open objects of a topic-partition, and a hit closes them all.

SEMANTICS section 3. Between two closes the records are one stretch, whose end is searched in columns. Places are those
of `Written`.
"""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

from sink_job.partitioning.batch import REJECTED_PATH, TOMBSTONE, Rows
from sink_job.rotation.policy import RotationContext
from sink_job.rotation.row_index import AcceptedRows, PathGroup, first_times, first_true
from sink_job.rotation.types import Step


class CloseReason(enum.Enum):
    """What ends a stretch. TIME and CAP are seen at the record behind it, FULL at its last record."""

    TIME = enum.auto()
    CAP = enum.auto()
    FULL = enum.auto()
    NOTHING = enum.auto()


def rotate_per_partition(rotation: RotationContext, rows: Rows) -> list[Step]:
    """Gives `rows` to the open objects of `rotation`, and what that appends and closes, in order."""
    return _Batch(rotation, rows).steps()


class _Batch:
    def __init__(self, rotation: RotationContext, rows: Rows) -> None:
        self._rotation = rotation
        self._settings = rotation.settings
        self._state = rotation.state
        self._written = AcceptedRows(rows)
        self._rows = rows
        self._switch = 0
        self._bases: npt.NDArray[np.int64] | None = self._written.times
        self._base_behind: int | None = None
        if rows.times is not None and bool((rows.codes == REJECTED_PATH).any()):
            self._bases, self._base_behind = first_times(rows)
        if self._settings.max_open_objects is not None:
            self._previous = self._written.previous()
            self._was_open = np.array([path in self._state.open for path in rows.paths], np.bool_)
        if self._settings.max_bytes is not None:
            self._sizes = self._written.sizes_so_far()
            held = [cut.size if (cut := self._state.open.get(path)) else 0 for path in rows.paths]
            self._left_behind = -np.array(held, np.int64)

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        written, state = self._written, self._state
        at, why = 0, CloseReason.NOTHING
        while at < len(written):
            if state.interval_start is None and written.times is not None and self._bases is not None:
                again = why in (CloseReason.TIME, CloseReason.CAP)
                state.interval_start = int(written.times[at] if again else self._bases[at])
            end, why = self._stretch(at)
            groups = list(written.groups(at, end)) if end > at else []
            steps += [self._append(group) for group in groups]
            if end > at:
                state.current_path = written.path(end - 1)
            if why is not CloseReason.NOTHING:
                steps.append(self._rotation.close_all())
                self._left(groups)
            if why is CloseReason.TIME:
                self._rotation.renew_schedule()
            at = end
        if state.interval_start is None:
            state.interval_start = self._base_behind
        return steps

    def _append(self, group: PathGroup) -> Step:
        cut = self._rotation.open(group.path, group.first)
        self._rotation.add(cut, last=group.last, count=len(group.places), size=group.size)
        return self._written.append(group.path, group.places)

    def _stretch(self, at: int) -> tuple[int, CloseReason]:
        """Where the stretch that starts at `at` ends (exclusive), and why."""
        watched = at if self._state.open_records else at + 1  # the first record of all cannot close anything
        full = self._full(at)
        end = min(full, len(self._written))
        time = self._time(watched, end)
        capped = self._capped(at, watched, time)
        if capped < time:
            return capped, CloseReason.CAP
        if time < end:
            return time, CloseReason.TIME
        return end, CloseReason.FULL if full <= len(self._written) else CloseReason.NOTHING

    def _full(self, at: int) -> int:
        """The place behind the record that fulfils flushSize or maxBytes; past the batch when none does."""
        full = len(self._written) + 1
        if self._settings.flush_size is not None:
            full = min(full, max(at + self._settings.flush_size - self._state.open_records, at + 1))
        limit = self._settings.max_bytes
        if limit is None:
            return full
        end = min(full, len(self._written))
        codes, sizes, left_behind = self._written.codes, self._sizes, self._left_behind
        hit = first_true(at, end, lambda a, b: sizes[a:b] - left_behind[codes[a:b]] >= limit)
        return hit + 1 if hit < end else full

    def _left(self, groups: list[PathGroup]) -> None:
        """After a close: what was written before it counts for no object any more."""
        if self._settings.max_open_objects is not None:
            self._was_open[:] = False
        if self._settings.max_bytes is not None:
            np.maximum(self._left_behind, 0, out=self._left_behind)
            for group in groups:
                self._left_behind[group.code] = self._sizes[group.places[-1]]

    def _time(self, start: int, end: int) -> int:
        """The first place in [start, end) at which rule 2 holds, else `end`."""
        if self._rotation.due:
            return min(start, end)
        interval, base, times = self._settings.interval, self._state.interval_start, self._written.times
        if interval is None or base is None or times is None:
            return end
        if self._settings.on_path_change:
            end = min(end, self._changed(start))
        return first_true(start, end, lambda a, b: times[a:b] - base >= interval)

    def _changed(self, start: int) -> int:
        """The first place from `start` on whose path is another than the last one's; a change from or to the tombstone
        path does not count."""
        if start == 0 and self._differ(self._state.current_path, self._written.path(0)):
            return 0
        switches, path = self._written.switches, self._written.path
        while self._switch < len(switches):
            place = switches[self._switch]
            if place >= start and self._differ(path(place - 1), path(place)):
                return place
            self._switch += 1
        return len(self._written)

    @staticmethod
    def _differ(one: str | None, other: str) -> bool:
        return one not in (None, other, TOMBSTONE) and other != TOMBSTONE

    def _capped(self, at: int, start: int, end: int) -> int:
        """The first place in [start, end) that would open one object too many in the stretch from `at`, else `end`."""
        cap = self._settings.max_open_objects
        if cap is None:
            return end
        room = cap - len(self._state.open)

        def one_too_many(a: int, b: int) -> npt.NDArray[np.bool_]:
            nonlocal room
            opens = (self._previous[a:b] < at) & ~self._was_open[self._written.codes[a:b]]
            counts = np.cumsum(opens)
            mask: npt.NDArray[np.bool_] = opens & (counts > room)
            room -= int(counts[-1])
            return mask

        return max(first_true(at, end, one_too_many), min(start, end))
