"""A sample of topics: the records of a time span, or the last ones, of some of their partitions. Pure.

A record arrives at its timestamp, but never before the one before it, and a timestamp after the end of the sample does
not count: with CreateTime producers set it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers

MAX_PARTITIONS = 64
"""Maximum number of partitions of a topic that are read."""

MAX_OF_ALL_TOPICS = 1_024
"""Maximum number of partitions of all topics, apart from one of each."""

MAX_BYTES = 256 << 20
"""Maximum bytes of records, over all topics."""


class SampleLimits(NamedTuple):
    """What is read: records from `since` (ms since the epoch) for `span` ms, or with `records` this many of each topic:
    from `since`, or without it the last ones. `until`: the current time in ms."""

    until: int
    span: int = 600_000
    since: int | None = None
    records: int | None = None
    max_partitions: int = MAX_PARTITIONS
    max_bytes: int = MAX_BYTES

    def partitions_of(self, topics: int) -> int:
        """The maximum number of partitions of each of so many topics."""
        return max(1, min(self.max_partitions, MAX_OF_ALL_TOPICS // max(1, topics)))

    @property
    def start(self) -> int:
        """The time of the first records, in ms."""
        return self.until - self.span if self.since is None else self.since

    @property
    def end(self) -> int:
        """The time after the last records, in ms."""
        return self.until if self.records is not None else min(self.start + self.span, self.until)


@dataclass(frozen=True)
class SampledPartition:
    """The records of one partition in the order of their offsets; `batch` has all columns. `arrivals` are ms since the
    epoch, ascending. `is_cut`: the limit of bytes ended the sample early."""

    batch: pa.RecordBatch
    arrivals: Integers
    is_cut: bool = False

    @property
    def offsets(self) -> Integers:
        return arrow_columns.numbers(self.batch.column("offset"))

    @property
    def value_bytes(self) -> int:
        bounds = arrow_columns.bounds(self.batch.column("value"))
        return int(bounds[-1] - bounds[0])

    @property
    def late(self) -> int:
        """The records that are older than one before them."""
        stamps = arrow_columns.numbers(self.batch.column("timestamp"))
        valid = stamps[stamps >= 0]
        return int((valid < np.maximum.accumulate(valid)).sum()) if len(valid) else 0

    def slice(self, start: int, end: int) -> pa.RecordBatch:
        """The records with the offsets `[start, end)`."""
        first, last = np.searchsorted(self.offsets, [start, end])
        return self.batch.slice(int(first), int(last - first))

    def end_at(self, now: int) -> int:
        """The log end offset at this time: after the last record that has arrived."""
        arrived = int(np.searchsorted(self.arrivals, now, side="right"))
        return int(self.offsets[arrived - 1]) + 1 if arrived else int(self.offsets[0])

    def arrival(self, offset: int) -> int:
        """When the record at `offset`, or the next one, has arrived, in ms."""
        return int(self.arrivals[min(int(np.searchsorted(self.offsets, offset)), len(self.arrivals) - 1)])


@dataclass(frozen=True)
class SampledTopic:
    """How much of a topic is in a sample: `partitions` of all its partitions, those that were read, and those among
    them without records."""

    partitions: int
    read: Sequence[int]
    empty: Sequence[int] = ()


@dataclass(frozen=True)
class Sample:
    """The records, and how much of each topic they are. `start` and `end` are ms since the epoch."""

    topics: Mapping[str, SampledTopic]
    partitions: Mapping[TopicPartition, SampledPartition]
    start: int
    end: int

    @property
    def records(self) -> int:
        return sum(len(each.batch) for each in self.partitions.values())


def arrivals(timestamps: Integers, start: int, end: int) -> Integers:
    """When records arrive, from their timestamps in ms (-1: none): ascending, and within `[start, end]`."""
    known = np.where((timestamps < 0) | (timestamps > end), start, timestamps)
    return np.maximum.accumulate(np.maximum(known, start)).astype(np.int64)


def chosen(partitions: int, most: int) -> list[int]:
    """At most `most` of the partitions `0 … partitions - 1`, evenly spaced."""
    if partitions <= most:
        return list(range(partitions))
    return sorted({index * partitions // most for index in range(most)})
