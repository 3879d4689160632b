"""Batches whose records are too large for one column: they are prepared in halves.

The tasks of a round, rebuilds and `verify --deep` do it alike, so what can be written can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from sink_job.arrow.columns import ColumnTooLarge
from sink_job.writer.record_pipeline import PreparedBatch

Prepare = Callable[[pa.RecordBatch, int], PreparedBatch]
"""Prepares a batch under a clock in ms, as `RecordPipeline.prepare`."""


def prepared_parts(
    batch: pa.RecordBatch, clock: int, prepare: Prepare, first_row: int = 0
) -> Iterator[tuple[int, pa.RecordBatch, PreparedBatch]]:
    """The batch, or its parts in order if it is too large for one: (row of its first record, part, prepared part).

    `first_row` is added to the rows. Raises ColumnTooLarge if one record is too large.
    """
    try:
        prepared = prepare(batch, clock)
    except ColumnTooLarge:
        if len(batch) < 2:
            raise
        half = len(batch) // 2
        yield from prepared_parts(batch.slice(0, half), clock, prepare, first_row)
        yield from prepared_parts(batch.slice(half), clock, prepare, first_row + half)
    else:
        yield first_row, batch, prepared
