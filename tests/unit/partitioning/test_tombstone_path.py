"""The path and the time of records without a value."""

from __future__ import annotations

import numpy as np

from sink_job.partitioning.partitioner import PathColumns
from sink_job.partitioning.tombstone_path import with_tombstones
from sink_job.records.batch import REJECTED

ROWS = np.array([False, True, True])


def columns(*, timed: bool) -> PathColumns:
    return PathColumns(np.array([0, REJECTED, REJECTED], np.int32), ["p"], np.array([5, 0, 0]) if timed else None, [])


def test_they_have_their_path_and_kafkas_time() -> None:
    found = with_tombstones(columns(timed=True), "gone", ROWS, np.array([1, 2, 3]))
    assert found.times is not None
    assert (found.codes.tolist(), found.paths, found.times.tolist()) == ([0, 1, 1], ["p", "gone"], [5, 2, 3])


def test_one_without_a_time_is_rejected_where_paths_have_times() -> None:
    found = with_tombstones(columns(timed=True), "gone", ROWS, np.array([1, -1, 3]))
    assert (found.codes.tolist(), found.rejected) == ([0, REJECTED, 1], [(1, "the record has no Kafka timestamp")])
    untimed = with_tombstones(columns(timed=False), "gone", ROWS, np.array([1, -1, 3]))
    assert (untimed.codes.tolist(), untimed.rejected) == ([0, 1, 1], [])


def test_a_path_that_other_records_have_is_the_same() -> None:
    found = with_tombstones(columns(timed=False), "p", ROWS, np.array([1, 2, 3]))
    assert (found.codes.tolist(), found.paths) == ([0, 0, 0], ["p"])
