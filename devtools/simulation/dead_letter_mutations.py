"""Deliberate defects of dead-letter objects, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from sink_job.arrow.arrays import Indices
from sink_job.ledger.state import SourceRange
from sink_job.writer.dead_letter_object import DeadLetterObject
from sink_job.writer.dead_letters import DeadLetterLines, DeadLetterSources
from sink_job.writer.record_pipeline import RejectedRow
from sink_job.writer.row_slices import RowSlice

Patches = Sequence[AbstractContextManager[Any]]


def clocks_of_dead_letters_forgotten() -> Patches:
    """The source ranges of a dead-letter object have the clock of its first round."""

    def extend(
        self: DeadLetterSources, previous: tuple[SourceRange, ...], clock: int, breaks: Sequence[int]
    ) -> tuple[SourceRange, ...]:
        ranges = [*previous, *self._ranges]
        return (SourceRange(ranges[0].start, ranges[-1].end, ranges[0].clock),)

    return [patch.object(DeadLetterSources, "extend", extend)]


def accepted_records_rebuilt_as_dead_letters() -> Patches:
    """A rebuild takes all records of the source ranges of a dead-letter object."""

    def of_object(
        self: DeadLetterLines,
        batch: pa.RecordBatch,
        rejected: Sequence[RejectedRow],
        clock: int,
        sources: Sequence[SourceRange],
    ) -> tuple[Indices, RowSlice] | None:
        offsets = batch.column("offset").to_numpy()
        chosen = [
            RejectedRow(row, int(offsets[row]), "rejected")
            for source in sources
            if source.clock == clock
            for row in range(*np.searchsorted(offsets, (source.start, source.end)).tolist())
        ]
        return (np.array([each.row for each in chosen], np.intp), self.of(batch, chosen, clock)) if chosen else None

    return [patch.object(DeadLetterLines, "of_object", of_object)]


def dead_letters_stay_open() -> Patches:
    """A dead-letter object does not close at the end of a round without other open objects."""
    return [patch.object(DeadLetterObject, "is_due", lambda self, *, alone: False)]


def waiting_dead_letters_forgotten() -> Patches:
    """Rejected records after the last accepted one of a round are not written."""
    original = DeadLetterObject.take_before

    def take_before(self: DeadLetterObject, offset: int | None) -> list[RowSlice]:
        return [] if offset is None else original(self, offset)

    return [patch.object(DeadLetterObject, "take_before", take_before)]


DEAD_LETTER_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        clocks_of_dead_letters_forgotten,
        accepted_records_rebuilt_as_dead_letters,
        dead_letters_stay_open,
        waiting_dead_letters_forgotten,
    )
}
