"""The path of records without a value (`errors.tombstonePath`). Their time is Kafka's, as with the connector."""

from __future__ import annotations

import numpy as np

from sink_job.arrow.arrays import Integers, Mask
from sink_job.partitioning.partitioner import PathColumns
from sink_job.partitioning.timestamp_extractor import kafka_times
from sink_job.records.batch import REJECTED


def with_tombstones(columns: PathColumns, path: str, rows: Mask, timestamps: Integers) -> PathColumns:
    """The paths of a batch, `path` for the records of the mask `rows`. `timestamps`: Kafka's of all records, in ms. A
    record without one is rejected where paths have times."""
    paths = columns.paths if path in columns.paths else [*columns.paths, path]
    codes, times, rejected = columns.codes.copy(), columns.times, columns.rejected
    codes[rows] = paths.index(path)
    if times is not None:
        chosen = np.flatnonzero(rows)
        times = times.copy()
        times[chosen], without = kafka_times(timestamps[chosen])
        found = [(int(chosen[at]), reason) for at, reason in without]
        codes[[row for row, _ in found]] = REJECTED
        rejected = sorted([*rejected, *found])
    return PathColumns(codes, paths, times, rejected)
