"""A Spark task: calls the task processor for each of its topic-partitions and returns an outcome for each.

Runs in Spark's Python worker. A task knows its topic-partitions from its number, so the processor is also called for a
range without records.
"""

from __future__ import annotations

import gc
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, ProcessorFactory
from sink_job.spark.frames import FrameReader, RangeBatch, socket_path
from sink_job.spark.resource_errors import resource_error

if TYPE_CHECKING:
    from pyspark import Broadcast, TaskContext

Batches = Iterator[pa.RecordBatch]


class TaskOutcome(NamedTuple):
    """The result of a topic-partition; a pickled TaskFailure if `failed`."""

    tp: TopicPartition
    failed: bool
    result: bytes


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
    """The function that Spark runs in each task. It is pickled once per round.

    `members`: the topic-partitions of each task, in order, which are also its ranges. `attempts`: the maximum number of
    attempts of a task. `sockets`: the beginning of the paths of the tasks' sockets. `columns`: those that are read.
    """

    factory: ProcessorFactory
    inputs: InlineInputs | Broadcast[dict[TopicPartition, bytes]]
    members: Sequence[Sequence[TopicPartition]]
    attempts: int
    sockets: str
    columns: Columns

    def __call__(self, number: int, rows: Iterable[Any]) -> Iterable[TaskOutcome]:
        """An outcome for each topic-partition of the task `number`.

        An exception that Spark should retry is raised. At the last attempt it is returned as an outcome.
        """
        _warm_up()
        context = _task_context()
        for _ in rows:  # Spark expects that a task reads its input, which is empty
            pass
        with FrameReader(socket_path(self.sockets, context.taskAttemptId()), self.columns) as frames:
            return self._outcomes(self.members[number], context.attemptNumber(), RangeCursor(frames.next))

    def _outcomes(self, members: Sequence[TopicPartition], attempt: int, batches: RangeCursor) -> list[TaskOutcome]:
        try:
            results = self._results(members, batches)
            return [TaskOutcome(tp, False, result) for tp, result in zip(members, results, strict=True)]
        except Exception as error:
            if batches.failed or (attempt + 1 < self.attempts and _is_retried(error)):
                raise
            return [TaskOutcome(members[0], True, pickle.dumps(_failure(error)))]

    def _results(self, members: Sequence[TopicPartition], batches: RangeCursor) -> list[bytes]:
        inputs = self.inputs.value
        processor = self.factory()
        results = []
        for number, member in enumerate(members):
            if number:
                batches.skip(number - 1)
            results.append(processor(member, inputs.get(member, b""), batches.of(number)))
        # What the last one leaves unread is not read: the closed socket stops the reader.
        if batches.is_read and batches.skip_all():
            raise RuntimeError("the reader sent records of a range that is not in this task")
        processor.close()
        return results


class RangeCursor:
    """Iterates over the batches of a task by range, in their order. `read` returns the next batch, or None.

    `is_read`: no records of the last range of `of` are left. `failed`: the reader has reported an error, which Spark
    reports after the last attempt.
    """

    def __init__(self, read: Callable[[], RangeBatch | None]) -> None:
        self._read = read
        self._ahead: RangeBatch | None = None
        self._ended = False
        self.is_read = False
        self.failed = False

    def of(self, number: int) -> Batches:
        """The unread records of a range."""
        self.is_read = False
        return self._of(number)

    def _of(self, number: int) -> Batches:
        while (batch := self._next()) is not None:
            if batch.number != number:
                self._ahead = batch
                break
            yield batch.records
        self.is_read = True

    def skip(self, number: int) -> None:
        """Skips the unread records of a range."""
        for _ in self.of(number):
            pass

    def skip_all(self) -> int:
        """Reads all remaining batches, up to the end that the reader reports, and returns their number."""
        count = 0
        while self._next() is not None:
            count += 1
        return count

    def _next(self) -> RangeBatch | None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            return ahead
        if self._ended:
            return None
        try:
            batch = self._read()
        except BaseException:
            self.failed = True
            raise
        self._ended = batch is None
        return batch


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


def _task_context() -> TaskContext:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this code must run in a Spark task")
    return context


YOUNG_OBJECTS = 100_000
"""New objects after which Python collects garbage. A batch of small records makes tens of thousands, none of which is
part of a cycle; with Python's default of 700 their traversal was a tenth of the CPU time of a task."""

_warmed_up = 0


def _warm_up() -> None:
    """Excludes the imported objects from garbage collection.

    Spark's worker collects garbage after each task, which takes 26 ms with all imported objects. This runs in the first
    two tasks of a worker, because the first one still imports modules.
    """
    global _warmed_up
    if _warmed_up < 2:
        _warmed_up += 1
        gc.set_threshold(YOUNG_OBJECTS)
        gc.collect()
        gc.freeze()
