"""The seam between the rounds and what runs their tasks: implemented by Spark here and, for tests, in process.

A round hands over ranges and one function; the engine calls that function once per topic-partition, somewhere, with the
records of exactly that range in offset order, and brings back the bytes it returned.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from sink_job.api.types import TopicPartition

Work = Callable[[TopicPartition, bytes, Iterator[pa.RecordBatch]], bytes]
"""What a task does for one topic-partition: (topic-partition, its input, its records' batches) -> its result.

It must be picklable: a function of a module, or a `functools.partial` of one. Batches hold `offset: int64` and
`value: binary` (null for a tombstone), and what `Columns` asks for; they are never empty. A range without any record
(control records, compaction holes), and an idle topic-partition, is called with an iterator that ends at once.
"""


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
        fn: Work,
    ) -> dict[TopicPartition, bytes]:
        """Call `fn` once for each of `ranges` and `idle`, and return what it returned: one entry for each, always.

        `ranges` are read from Kafka, exactly; `idle` topic-partitions read nothing. `inputs` are handed to the task
        that needs them (missing: `b""`). A task may be tried more than once, and an earlier try may still be running:
        `fn` has to bear that.

        Raises `DataLoss` when Kafka no longer holds a range; `Cancelled` after `cancel`; the `SinkError` that `fn`
        raised (only `TryAgainLater` is tried again before); a `SinkError` with the last line of any other exception.
        """
        ...

    def cancel(self) -> None:
        """End the run under way, within about a second, and refuse any later one. From any thread; idempotent."""
        ...


class Cancelled(Exception):
    """The run was ended by `Engine.cancel`; nothing is wrong."""
