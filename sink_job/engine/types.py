"""The interface between the coordinator and the engine that runs its tasks. Implemented by Spark, and by tests.

The coordinator passes offset ranges and a factory of task processors. In each task the engine creates one processor and
calls it once per topic-partition of the task, with the records of exactly that range in offset order. It returns the
bytes that the processor returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition

PartitionFunction = Callable[[TopicPartition, bytes, Iterator[pa.RecordBatch]], bytes]
"""Processes one topic-partition: (topic-partition, input, record batches) -> result.

Batches are never empty. They have the columns `offset: int64`, `value: binary` (null for a tombstone; or `row` in its
place) and those of `Columns`. For an idle topic-partition, and for a range without records (control records,
compaction), the iterator is empty.
"""


ROW = "row"
"""The column that a batch has in place of `value` if a separator was requested (`Columns.separator`)."""


def payload(batch: pa.RecordBatch) -> pa.BinaryArray:
    """The values of a batch, or its rows in their place. A null is a tombstone."""
    return batch.column(ROW if ROW in batch.schema.names else "value")


class TaskProcessor(Protocol):
    """Processes the topic-partitions of one task attempt, one after the other."""

    def __call__(self, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        """A `PartitionFunction`, called once for each topic-partition of the task."""
        ...

    def close(self) -> None:
        """Called once, after the last topic-partition and before the task returns its results.

        An exception fails the task. Not called after the failure of a topic-partition; the results are then discarded.
        """
        ...


ProcessorFactory = Callable[[], TaskProcessor]
"""Creates the processor of a task attempt. It must be picklable: a class or a function of a module, or a
`functools.partial` of one."""


def stateless(fn: PartitionFunction) -> ProcessorFactory:
    """A factory of processors without state: they call `fn` for each topic-partition. Picklable if `fn` is."""
    return partial(_Stateless, fn)


class _Stateless:
    def __init__(self, fn: PartitionFunction) -> None:
        self._fn = fn

    def __call__(self, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        return self._fn(tp, task_input, batches)

    def close(self) -> None:
        """There is no state to close."""


class Columns(NamedTuple):
    """The Kafka columns that a round reads in addition to `offset` and `value`. Each one has a cost.

    `timestamp`: int64, milliseconds since the epoch, -1 when the record has none. `key`: binary, null without one.
    `headers`: list<struct<key: string, value: binary>>, null when there are none. `timestamp_type`: int8, the id in
    org.apache.kafka.common.record.TimestampType: 0 CreateTime, 1 LogAppendTime, -1 none. Only an envelope needs it, so
    batches have fewer records with it. `separator`: not empty: there is a column `row: binary` in place of `value`. It
    has the value with the separator after it, null for a tombstone.
    """

    timestamp: bool = False
    key: bool = False
    headers: bool = False
    timestamp_type: bool = False
    separator: bytes = b""


class Range(NamedTuple):
    """An offset range of one topic-partition: `start` (inclusive) to `end` (exclusive)."""

    start: int
    end: int


class Engine(Protocol):
    """Runs the tasks of a round. One `run` at a time; `cancel` can be called from another thread."""

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        """Processes each topic-partition of `ranges` and `idle`, and returns one result for each.

        `ranges`: exactly these offsets are read from Kafka.
        `idle`: topic-partitions that are processed without reading.
        `inputs`: the input of each topic-partition; default `b""`.
        `factory`: creates the processor of each task attempt. A task may have several attempts, and an earlier one may
        still be running; the processor must allow that.

        Raises `DataLoss` if Kafka no longer holds a range. Raises `Cancelled` after `cancel`. Raises the `SinkError` of
        a processor, and for any other exception a `SinkError` with its last line.
        """
        ...

    def cancel(self) -> None:
        """Cancels the current run within about a second, and all later ones. Thread-safe and idempotent."""
        ...


class Cancelled(Exception):
    """`Engine.cancel` has ended the run."""
