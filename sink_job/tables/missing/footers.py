"""Reads the footers of the next objects of a table, and finds those that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sink_job.engine.thread_pools import pool
from sink_job.ledger.state import ClosedObject
from sink_job.tables import plan
from sink_job.tables.files import ObjectFooter
from sink_job.tables.plan import Batch

READERS: Final = 16
"""Number of concurrent reads of footers."""

Reader = Callable[[ClosedObject], ObjectFooter | None]
"""Reads a footer; None if the object does not exist and may be left out."""


@dataclass(frozen=True)
class BatchFooters:
    """The footers of the objects of a batch that exist, and those that do not. `record`: the record up to which they
    are all that the ledger has acknowledged."""

    footers: Sequence[ObjectFooter]
    missing: Sequence[ClosedObject]
    record: int


def read_batch(read: Reader, batch: Batch) -> BatchFooters:
    """Reads the footers of a batch, or of its first part whose statistics fit in memory."""
    found: list[ObjectFooter | None] = []
    with pool(READERS, "s3sink-footers") as readers:
        while len(found) < len(batch.objects):
            first = next((each for each in found if each is not None), None)
            if first is None:  # the number of columns is not known yet
                found += readers.map(read, batch.objects[len(found) : len(found) + (READERS if found else 1)])
                continue
            batch = plan.shortened(batch, len(first.columns.leaves))
            found = [*found[: len(batch.objects)], *readers.map(read, batch.objects[len(found) :])]
    missing = [o for o, footer in zip(batch.objects, found, strict=True) if footer is None]
    return BatchFooters([each for each in found if each is not None], missing, batch.record)
