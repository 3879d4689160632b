"""The dead-letter object of one topic-partition in a task: which rejected records it holds, and when it closes.

It closes with the other objects of the topic-partition: with all of them in scope Partition, at the end of a round that
has closed one of them in scope Object. Without another open object it closes at the end of the round: it never holds
back the committed offset alone. An object that is only for a topic closes at the end of each round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sink_job.ledger.offset_checksum import checksum
from sink_job.records.batch import DEAD_LETTERS
from sink_job.rotation.policy import RotationPolicy, grown, opened
from sink_job.rotation.types import ObjectId, OpenObjectState
from sink_job.writer.dead_letters import DeadLetterLines
from sink_job.writer.record_pipeline import RejectedRow
from sink_job.writer.row_slices import RowSlice
from sink_job.writer.task_objects import TaskObjects

MAX_DEFERRED: Final = 1_000
MAX_DEFERRED_BYTES: Final = 1 << 20
"""Maximum number and bytes of rejected records, after the last accepted one of a batch, that wait for the next one."""

_ID: Final = ObjectId(DEAD_LETTERS)


class DeadLetterObject:
    """Takes the rejected records of a range in the order of their offsets, and writes them to the open dead-letter
    object. Records after the last accepted one wait for the next: a close before that one leaves them to the next
    dead-letter object, however the range is divided into batches."""

    def __init__(
        self,
        lines: DeadLetterLines,
        policy: RotationPolicy,
        now: int,
        inherited: Iterable[OpenObjectState],
        *,
        every_round: bool = False,
    ) -> None:
        """`now` is the round clock in ms. `inherited`: the open dead-letter object of the ledger, if there is one.
        `every_round`: it closes at the end of each round."""
        self.state = next(iter(inherited), None)
        self._lines = lines
        self._policy = policy
        self._now = now
        self._deferred: list[RowSlice] = []
        self._others_closed = False
        self._every_round = every_round

    def add(self, batch: pa.RecordBatch, rejected: Sequence[RejectedRow]) -> None:
        """Takes the rejected records of a batch."""
        if rejected:
            self._deferred.append(self._lines.of(batch, rejected, self._now))

    @property
    def has_many_deferred(self) -> bool:
        """Whether waiting records need too much memory."""
        many = sum(len(rows.offsets) for rows in self._deferred) > MAX_DEFERRED
        return many or sum(len(rows.data) for rows in self._deferred) > MAX_DEFERRED_BYTES

    def take_before(self, offset: int | None) -> list[RowSlice]:
        """The waiting records before `offset` (None: all), which the object holds now. The caller writes them."""
        taken: list[RowSlice] = []
        kept: list[RowSlice] = []
        for rows in self._deferred:
            count = len(rows.offsets) if offset is None else int(np.searchsorted(rows.offsets, offset))
            taken += _between(rows, 0, count)
            kept += _between(rows, count, len(rows.offsets))
        self._deferred = kept
        for rows in taken:
            before = self.state or opened(_ID, int(rows.offsets[0]), self._now)
            self.state = grown(before, last=int(rows.offsets[-1]), count=len(rows.offsets), size=len(rows.data))
        return taken

    def others_closed(self) -> None:
        """Another object of the topic-partition has closed."""
        self._others_closed = True

    def close(self, objects: TaskObjects) -> None:
        """Closes the object, if it is open."""
        if self.state is not None:
            objects.close([self.state])
            self.state = None

    def is_due(self, *, alone: bool) -> bool:
        """Whether the open object closes at the end of the round. `alone`: no other object is open."""
        policy, o = self._policy, self.state
        if o is None:
            return False
        is_old = policy.max_open_time is not None and self._now - o.opened_at >= policy.max_open_time
        is_large = policy.max_bytes is not None and o.size >= policy.max_bytes
        return alone or self._every_round or is_old or is_large or (policy.per_object and self._others_closed)


def _between(rows: RowSlice, start: int, end: int) -> list[RowSlice]:
    if start == end:
        return []
    if start == 0 and end == len(rows.offsets):
        return [rows]
    first = int(rows.ends[start - 1]) if start else 0
    offsets = rows.offsets[start:end]
    data = rows.data[first : int(rows.ends[end - 1])]
    return [RowSlice(data, rows.ends[start:end] - first, offsets, checksum(offsets))]
