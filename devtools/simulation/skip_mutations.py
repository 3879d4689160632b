"""Deliberate defects of skipped records, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from sink_job.writer import dead_letters, partition_writer
from sink_job.writer.skipped_records import SkippedRecords

Patches = Sequence[AbstractContextManager[Any]]


def skipped_records_in_source_ranges() -> Patches:
    """The source ranges of objects contain the records that a round has skipped."""
    original = SkippedRecords.without

    def without(
        self: SkippedRecords, batches: Iterable[pa.RecordBatch], on_passed: Callable[[int], None]
    ) -> Iterator[pa.RecordBatch]:
        return original(self, batches, lambda offset: None)

    return [patch.object(SkippedRecords, "without", without)]


def skipped_records_of_earlier_rounds_in_source_ranges() -> Patches:
    """The source ranges of an object continue over a record that an earlier round has skipped at its end."""
    return [patch.object(partition_writer, "last_skipped", lambda state: None)]


def skipped_records_in_source_ranges_of_dead_letters() -> Patches:
    """The source ranges of dead-letter objects contain skipped records."""
    return [patch.object(dead_letters, "_has_any", lambda breaks, start, end: False)]


def skipped_records_not_recorded() -> Patches:
    """The ledger does not list the records that a round has skipped."""
    return [patch.object(SkippedRecords, "before", lambda self, end: self._before)]


SKIP_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        skipped_records_in_source_ranges,
        skipped_records_of_earlier_rounds_in_source_ranges,
        skipped_records_in_source_ranges_of_dead_letters,
        skipped_records_not_recorded,
    )
}

SKIP_INCLUDE = {
    **dict.fromkeys(SKIP_MUTATIONS, ("skips", "lifecycle", "edit")),
    "skipped_records_in_source_ranges_of_dead_letters": ("skips", "lifecycle", "dead-letters", "edit"),
}
"""The features that a run needs to find a defect."""
