"""A Spark task: calls the task processor for each of its topic-partitions and returns one row for each.

Runs in Spark's Python worker. A task knows its topic-partitions from its number, so the processor is also called for a
range without records.
"""

from __future__ import annotations

import gc
import pickle
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import ProcessorFactory
from sink_job.spark.columnar_batch import PartitionBatch, iter_batches
from sink_job.spark.resource_errors import resource_error

if TYPE_CHECKING:
    from pyspark import Broadcast

OUTCOMES = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("failed", pa.bool_()), ("result", pa.binary())]
)
OUTCOMES_DDL = "topic string, partition int, failed boolean, result binary"
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class TaskFailure:
    """The failure of a task: the error for the driver, and the stack trace for its log."""

    error: SinkError
    trace: str


@dataclass(frozen=True)
class InlineInputs:
    """Inputs that are pickled with the task. For small inputs this is cheaper than a broadcast."""

    value: dict[TopicPartition, bytes]


@dataclass(frozen=True)
class SparkTask:
    """The function that Spark runs in each task of a DataFrame. It is pickled once per round.

    `members`: the topic-partitions of each task, in order. `attempts`: the maximum number of attempts of a task.
    """

    factory: ProcessorFactory
    inputs: InlineInputs | Broadcast[dict[TopicPartition, bytes]]
    members: Sequence[Sequence[TopicPartition]]
    attempts: int

    def __call__(self, rows: Batches) -> Batches:
        """Rows of OUTCOMES, one per topic-partition of the task.

        An exception that Spark should retry is raised. At the last attempt it is returned as a row.
        """
        _warm_up()
        number, attempt = _task_context()
        batches = _BatchCursor(rows)
        inputs = self.inputs.value
        members = self.members[number]
        results: list[bytes] = []
        try:
            processor = self.factory()
            for member in members:
                results.append(processor(member, inputs.get(member, b""), batches.of(member)))
                batches.skip(member)
            if batches.drain():
                raise RuntimeError("the reader returned records of a topic-partition that is not in this task")
            processor.close()
        except Exception as error:
            if batches.failed or (attempt + 1 < self.attempts and _is_retried(error)):
                raise
            batches.drain()
            yield _outcomes(members[:1], [pickle.dumps(_failure(error))], failed=True)
            return
        yield _outcomes(members, results, failed=False)


class _BatchCursor:
    """Iterates over the batches of a task by topic-partition, in their order.

    `failed`: the reader has raised an error, which Spark reports.
    """

    def __init__(self, rows: Batches) -> None:
        self._batches = (each for batch in rows for each in iter_batches(batch))
        self._ahead: PartitionBatch | None = None
        self.failed = False

    def of(self, member: TopicPartition) -> Batches:
        """The unread records of a topic-partition."""
        while (batch := self._next()) is not None:
            if batch.tp != member:
                self._ahead = batch
                return
            yield batch.records

    def skip(self, member: TopicPartition) -> None:
        """Skips the unread records of a topic-partition."""
        for _ in self.of(member):
            pass

    def drain(self) -> int:
        """Reads all remaining batches and returns their number. Otherwise Spark's writer would fail at a closed
        pipe."""
        count = 0
        while self._next() is not None:
            count += 1
        return count

    def _next(self) -> PartitionBatch | None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            return ahead
        try:
            return next(self._batches, None)
        except BaseException:
            self.failed = True
            raise


def _outcomes(members: Sequence[TopicPartition], results: Sequence[bytes], *, failed: bool) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([member.topic for member in members], pa.string()),
            pa.array([member.partition for member in members], pa.int32()),
            pa.array([failed] * len(members)),
            pa.array(results, pa.binary()),
        ],
        schema=OUTCOMES,
    )


def _is_retried(error: Exception) -> bool:
    """Whether Spark should retry the task. A SinkError has been retried already where it was raised, if useful."""
    return not isinstance(error, SinkError)


def _failure(error: Exception) -> TaskFailure:
    trace = "".join(traceback.format_exception(error))
    if (lack := resource_error(error)) is not None:
        return TaskFailure(lack, trace)
    if not isinstance(error, SinkError):
        return TaskFailure(SinkError(traceback.format_exception_only(error)[-1].strip()), trace)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # the error cannot be pickled: keep its message
        return TaskFailure(SinkError(f"{error.reason}: {error}"), trace)
    return TaskFailure(error, trace)


def _task_context() -> tuple[int, int]:
    """The number of the task in its job, and the number of its attempt, both from 0."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this code must run in a Spark task")
    return context.partitionId(), context.attemptNumber()


_warmed_up = 0


def _warm_up() -> None:
    """Excludes the imported objects from garbage collection.

    Spark's worker collects garbage after each task, which takes 26 ms with all imported objects. This runs in the first
    two tasks of a worker, because the first one still imports modules.
    """
    global _warmed_up
    if _warmed_up < 2:
        _warmed_up += 1
        gc.collect()
        gc.freeze()
