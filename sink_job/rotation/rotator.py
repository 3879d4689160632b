"""The rotator: decides which object a record goes to, and when objects close. docs/semantics.md, sections 2, 3 and 9.

A rotator serves one round of one topic-partition: `open_round`, any number of `add`, then `close_round`. The result
does not depend on how the records are divided into batches. It loops per close and per new path, not per record. The
rules are in `per_partition` and `per_object`, one module for each rotation scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

import msgspec
import numpy as np

from sink_job.records.batch import REJECTED, Rows
from sink_job.rotation.null_records import with_schemas_of_nulls
from sink_job.rotation.per_object import rotate_per_object
from sink_job.rotation.per_partition import rotate_per_partition
from sink_job.rotation.policy import RotationContext, RotationPolicy
from sink_job.rotation.types import Append, Close, CloseReason, ObjectId, OpenObjectState, RotationState, Step


class Rotator:
    """Assigns one topic-partition's records of one round to objects."""

    def __init__(
        self, settings: RotationPolicy, state: RotationState, objects: Iterable[OpenObjectState], now: int
    ) -> None:
        """`objects` are the open objects, ordered by first offset; `now` is the round clock in ms, never before that of
        an earlier round."""
        self._context = RotationContext(settings, state, objects, now)

    @property
    def state(self) -> RotationState:
        """The current state; that of the topic-partition after the round has ended."""
        return self._context.state

    @property
    def open(self) -> Mapping[ObjectId, OpenObjectState]:
        """The open objects, ordered by first offset."""
        return {each.id: each for each in self._context.open.values()}

    @property
    def committable(self) -> int:
        """The first offset that is not in a closed object; without open objects the next offset to read."""
        return self._context.committable

    def open_round(self) -> list[Close]:
        """Closes the objects that have been open for maxOpenTime; renews the schedule after an idle period.

        Only the clock decides, so a round that reads nothing closes an object without new records.
        """
        rotation, limit = self._context, self._context.settings.max_open_time
        closed: list[Close] = []
        if limit is not None:
            due = [each for each in self.open.values() if rotation.now - each.opened_at >= limit]
            closed = self.close(due, CloseReason.MAX_OPEN_TIME)
        if self.state.next_schedule is None or (self.state.open_records == 0 and rotation.due):
            rotation.renew_schedule()
        return closed

    def add(self, rows: Rows) -> list[Step]:
        """Takes the next records, in offset order; returns what to append and to close, in order.

        The rows of an object come before its Close. Row numbers are those of this batch.
        """
        if not len(rows):
            return []
        rows, last_schema = with_schemas_of_nulls(rows, self.state.last_schema)
        rotate = rotate_per_object if self._context.settings.per_object else rotate_per_partition
        before = set(self.open)
        steps = with_rotation_ends(rotate(self._context, rows), before)
        last_time = self.state.last_time
        if rows.times is not None:
            valid = np.flatnonzero(rows.codes != REJECTED)
            last_time = int(rows.times[valid[-1]]) if len(valid) else last_time
        self._update(next=int(rows.offsets[-1]) + 1, last_time=last_time, last_schema=last_schema)
        return steps

    def close_round(self, planned_end: int) -> list[Close]:
        """Ends the round at its planned end, which is the next offset to read; closes all objects if the schedule is
        due."""
        closed: list[Close] = []
        if self.state.open_records and self._context.due:
            closed.append(replace(self._context.close_all(CloseReason.SCHEDULE_INTERVAL), ends_rotation=True))
            self._context.renew_schedule()
        self.stop_at(planned_end)
        return closed

    def stop_at(self, next_offset: int) -> None:
        """Ends the round before its planned end, as a data error does; closes nothing."""
        self._update(next=next_offset)
        self._update(committable=self.committable)

    def close(self, chosen: Sequence[OpenObjectState], reason: CloseReason = CloseReason.OTHER) -> list[Close]:
        """Closes open objects before the next record: `chosen`, and with scope Partition all if there is one."""
        if not chosen:
            return []
        rotation = self._context
        close = rotation.close(chosen, reason) if rotation.settings.per_object else rotation.close_all(reason)
        return [replace(close, ends_rotation=not self.open)]

    def close_all(self) -> list[Close]:
        """Closes all open objects: at the end of a run that publishes them, or before other settings apply."""
        return [replace(self._context.close_all(), ends_rotation=True)] if self.open else []

    def _update(self, **fields: int | str | None) -> None:
        self._context.state = msgspec.structs.replace(self._context.state, **fields)


def with_rotation_ends(steps: Sequence[Step], open_before: Set[ObjectId]) -> list[Step]:
    """The steps of one batch, with `Close.ends_rotation` set. `open_before` are the objects that are open before the
    batch. All rows of earlier batches have lower offsets."""
    lowest_later: list[int | None] = []
    lowest: int | None = None
    for step in reversed(steps):
        lowest_later.append(lowest)
        if isinstance(step, Append):
            first = _bounds(step)[0]
            lowest = first if lowest is None else min(lowest, first)
    marked: list[Step] = []
    open_now, highest = set(open_before), -1
    for step, later in zip(steps, reversed(lowest_later), strict=True):
        if isinstance(step, Append):
            open_now.add(step.target)
            highest = max(highest, _bounds(step)[1])
            marked.append(step)
        else:
            open_now -= {o.id for o in step.objects}
            marked.append(replace(step, ends_rotation=not open_now and (later is None or later > highest)))
    return marked


def _bounds(step: Append) -> tuple[int, int]:
    """The first and the last row of a step."""
    if isinstance(step.rows, slice):
        return step.rows.start or 0, step.rows.stop - 1
    return int(step.rows[0]), int(step.rows[-1])
