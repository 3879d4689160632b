"""The cutter: which record goes to which object, and when objects are closed. SEMANTICS sections 2, 3 and 9.

A cutter lives for one round of one topic-partition: `start_round`, any number of `feed`, then `end_round`. How the
round's records are spread over batches does not matter. It turns once per close and per new path, not per record; the
rules themselves stand in `by_partition` and `by_object`, one for each rotation scope.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from sink_job.partitioning.batch import REJECTED, Rows
from sink_job.rotation.per_object import rotate_per_object
from sink_job.rotation.per_partition import rotate_per_partition
from sink_job.rotation.policy import RotationContext, RotationPolicy
from sink_job.rotation.types import Append, Close, RotationState, Step


class Rotator:
    """Cuts one topic-partition's records of one round."""

    def __init__(self, settings: RotationPolicy, state: RotationState, now: int) -> None:
        """`state` is left as it is; `now` is the round's clock in milliseconds, never before an earlier round's."""
        self._rotation = RotationContext(settings, state, now)

    @property
    def state(self) -> RotationState:
        """The state so far. Belongs to the cutter until the round has ended."""
        return self._rotation.state

    @property
    def committable(self) -> int:
        """The first offset that is not in a closed object; with nothing open the next offset to read."""
        return self._rotation.committable

    def open_round(self) -> list[Close]:
        """Closes what has been open for maxOpenTime; after an idle spell renews the schedule.

        It looks at the clock alone, so that an object without new records is closed by a round that reads nothing.
        """
        rotation, limit = self._rotation, self._rotation.settings.max_open_time
        closed: list[Close] = []
        if limit is not None:
            late = [cut for cut in self.state.open.values() if rotation.now - cut.opened_at >= limit]
            if late:
                close = rotation.close(late) if rotation.settings.per_object else rotation.close_all()
                closed.append(replace(close, ends_rotation=not self.state.open))
        if self.state.next_schedule is None or (self.state.open_records == 0 and rotation.due):
            rotation.renew_schedule()
        return closed

    def add(self, rows: Rows) -> list[Step]:
        """Takes the next records, in the order of their offsets, and says what to append and to close, in order.

        A path's rows come before the Close of the object they belong to. Rows are numbered within this batch.
        """
        if not len(rows):
            return []
        rotate = rotate_per_object if self._rotation.settings.per_object else rotate_per_partition
        paths = set(self.state.open)
        steps = with_rotation_ends(rotate(self._rotation, rows), paths)
        self.state.next = int(rows.offsets[-1]) + 1
        if rows.times is not None:
            looked_at = np.flatnonzero(rows.codes != REJECTED)
            if len(looked_at):
                self.state.last_time = int(rows.times[looked_at[-1]])
        return steps

    def close_round(self, planned_end: int) -> list[Close]:
        """Ends the round at its planned end, the next offset to read: closes everything when the schedule is due."""
        closed: list[Close] = []
        if self.state.open_records and self._rotation.due:
            closed.append(replace(self._rotation.close_all(), ends_rotation=True))
            self._rotation.renew_schedule()
        self.stop_at(planned_end)
        return closed

    def stop_at(self, next_offset: int) -> None:
        """Ends the round before its planned end, as a data error does: nothing is closed for that."""
        self.state.next = next_offset
        self.state.committable = self.committable

    def close_all(self) -> list[Close]:
        """Closes what is open, for a sink that ends and publishes it, or before other settings apply."""
        return [replace(self._rotation.close_all(), ends_rotation=True)] if self.state.open else []


def with_rotation_ends(steps: Sequence[Step], open_paths: Set[str]) -> list[Step]:
    """The steps of one batch, with `Close.ends_rotation` set. `open_paths` are the paths of the objects that are open
    before the batch. All rows of earlier batches have lower offsets."""
    lowest_later: list[int | None] = []
    lowest: int | None = None
    for step in reversed(steps):
        lowest_later.append(lowest)
        if isinstance(step, Append):
            first = _bounds(step)[0]
            lowest = first if lowest is None else min(lowest, first)
    marked: list[Step] = []
    paths, highest = set(open_paths), -1
    for step, later in zip(steps, reversed(lowest_later), strict=True):
        if isinstance(step, Append):
            paths.add(step.path)
            highest = max(highest, _bounds(step)[1])
            marked.append(step)
        else:
            paths -= {o.path for o in step.objects}
            marked.append(replace(step, ends_rotation=not paths and (later is None or later > highest)))
    return marked


def _bounds(step: Append) -> tuple[int, int]:
    """The first and the last row of a step."""
    if isinstance(step.rows, slice):
        return step.rows.start or 0, step.rows.stop - 1
    return int(step.rows[0]), int(step.rows[-1])
