"""Passes over the records of a range that are to be skipped (`errors.skip`).

A task does not see them: a batch is divided before and after each, without a copy. So nothing of them is converted,
and a schema id of theirs is not resolved. The source ranges of objects leave them out, as records with an unknown
schema id: a rebuild selects the same records, whatever the manifest lists by then (P2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from sink_job.ledger.state import PartitionState


class SkippedRecords:
    """The records of a topic-partition that a task passes over."""

    def __init__(self, state: PartitionState, chosen: Sequence[int]) -> None:
        """`chosen`: offsets to skip. Those that the ledger has as skipped are added: after a discard of open objects
        they are read again."""
        self._before = state.skipped
        self._offsets = np.array(sorted(each for each in {*chosen, *state.skipped} if each >= state.next), np.int64)
        self._passed: list[int] = []

    def without(self, batches: Iterable[pa.RecordBatch], on_passed: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """The batches without the records to skip. `on_passed` is called with each of their offsets, after the records
        before it and before those after it."""
        for batch in batches:
            if not len(self._offsets) or not len(batch):
                yield batch
                continue
            offsets = batch.column("offset").to_numpy()
            start = 0
            for row in np.flatnonzero(np.isin(offsets, self._offsets)).tolist():
                if row > start:
                    yield batch.slice(start, row - start)
                self._passed.append(int(offsets[row]))
                on_passed(int(offsets[row]))
                start = row + 1
            if start < len(batch):
                yield batch.slice(start)

    def before(self, end: int) -> tuple[int, ...]:
        """All offsets that the ledger has as skipped after a round that ends before the offset `end`."""
        passed = self.passed(end)
        return tuple(sorted({*self._before, *passed})) if passed else self._before

    def passed(self, end: int) -> list[int]:
        """The offsets below `end` that this task has passed over."""
        return [each for each in self._passed if each < end]


def last_skipped(state: PartitionState) -> int | None:
    """The last skipped offset that was passed before `state.next`; None if there is none."""
    return max((each for each in state.skipped if each < state.next), default=None)
