"""The seam between the rounds and what runs their tasks: implemented by Spark here and, for tests, in process.

A round hands over ranges and its work. Wherever a task runs, the engine opens a share of the work, calls it once per
topic-partition of the task with the records of exactly that range in offset order, and brings back the bytes it gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition

PartitionFunction = Callable[[TopicPartition, bytes, Iterator[pa.RecordBatch]], bytes]
"""What is done for one topic-partition: (topic-partition, its input, its records' batches) -> its result.

Batches hold `offset: int64` and `value: binary` (null for a tombstone), and what `Columns` asks for; they are never
empty. A range without any record (control records, compaction holes), and an idle topic-partition, is called with an
iterator that ends at once.
"""


class TaskProcessor(Protocol):
    """One task's part of the work; it lives as long as one try of the task and sees its topic-partitions in turn."""

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        """A `Function`, called once for each topic-partition of the task."""
        ...

    def close(self) -> None:
        """Called once, behind the last topic-partition and before any result leaves the task; what it raises is an
        error of the task. Not called where a topic-partition failed: then the results are thrown away.
        """
        ...


ProcessorFactory = Callable[[], TaskProcessor]
"""Opens a task's share. It must be picklable: a class or a function of a module, or a `functools.partial` of one."""


def stateless(fn: PartitionFunction) -> ProcessorFactory:
    """Work whose topic-partitions have nothing in common: `fn` for each of them. Picklable as far as `fn` is."""
    return partial(_Stateless, fn)


class _Stateless:
    def __init__(self, fn: PartitionFunction) -> None:
        self._fn = fn

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        return self._fn(tp, given, batches)

    def close(self) -> None:
        """Nothing was kept."""


class Columns(NamedTuple):
    """The Kafka columns a round reads beside `offset` and `value`; each one costs, so ask only for what is used.

    `timestamp`: int64, milliseconds since the epoch, -1 when the record has none. `key`: binary, null without one.
    `headers`: list<struct<key: string, value: binary>>, null when there are none.
    """

    timestamp: bool = False
    key: bool = False
    headers: bool = False


class Range(NamedTuple):
    """Offsets of one topic-partition, half open: `start` is read, `end` is not."""

    start: int
    end: int


class Engine(Protocol):
    """Runs a round's tasks. One `run` at a time; `cancel` may come from another thread."""

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        """Do `work` for each of `ranges` and `idle` once, and return what it returned: one entry for each, always.

        `ranges` are read from Kafka, exactly; `idle` topic-partitions read nothing. `inputs` are handed to the task
        that needs them (missing: `b""`). A task may be tried more than once, and an earlier try may still be running:
        `work` has to bear that.

        Raises `DataLoss` when Kafka no longer holds a range; `Cancelled` after `cancel`; the `SinkError` that `work`
        raised (only `TransientError` is tried again before); a `SinkError` with the last line of any other exception.
        """
        ...

    def cancel(self) -> None:
        """End the run under way, within about a second, and refuse any later one. From any thread; idempotent."""
        ...


class Cancelled(Exception):
    """The run was ended by `Engine.cancel`; nothing is wrong."""
