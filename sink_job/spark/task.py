"""What one Spark task does: its share of the round's work, a call for each topic-partition and one row back for each.

It runs in the Python worker. A task knows what it reads from the plan and its number, so a range without records still
gets its call.
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

if TYPE_CHECKING:
    from pyspark import Broadcast

OUTCOMES = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("failed", pa.bool_()), ("result", pa.binary())]
)
OUTCOMES_DDL = "topic string, partition int, failed boolean, result binary"
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class TaskFailure:
    """Why a task's work failed: the error for the driver, and the trace for its log."""

    error: SinkError
    trace: str


@dataclass(frozen=True)
class InlineInputs:
    """Inputs that travel with the task, where a broadcast would cost more."""

    value: dict[TopicPartition, bytes]


@dataclass(frozen=True)
class SparkTask:
    """What Spark runs in each task of a DataFrame; it is pickled once a round.

    `members`: what each task reads, in order. `attempts`: how often Spark tries a task.
    """

    factory: ProcessorFactory
    inputs: InlineInputs | Broadcast[dict[TopicPartition, bytes]]
    members: Sequence[Sequence[TopicPartition]]
    attempts: int

    def __call__(self, rows: Batches) -> Batches:
        """Rows of OUTCOMES, one for each member. An exception worth another try is raised, but for the last one."""
        _warm_up()
        number, attempt = _task_context()
        packs = _BatchCursor(rows)
        inputs = self.inputs.value
        members = self.members[number]
        results: list[bytes] = []
        try:
            share = self.factory()
            for member in members:
                results.append(share(member, inputs.get(member, b""), packs.of(member)))
                packs.skip(member)
            if packs.drain():
                raise RuntimeError("the reader gave records of a topic-partition that this task has no part in")
            share.close()
        except Exception as error:
            if packs.failed or (attempt + 1 < self.attempts and _worth_another_try(error)):
                raise
            packs.drain()
            yield _outcomes(members[:1], [pickle.dumps(_failure(error))], failed=True)
            return
        yield _outcomes(members, results, failed=False)


class _BatchCursor:
    """The task's packs, handed out by topic-partition, in the order in which they come.

    `failed`: they ended in an error of the reader, which is Spark's to report.
    """

    def __init__(self, rows: Batches) -> None:
        self._packs = (pack for batch in rows for pack in iter_batches(batch))
        self._ahead: PartitionBatch | None = None
        self.failed = False

    def of(self, member: TopicPartition) -> Batches:
        """The member's records, as far as nobody has read them."""
        while (pack := self._next()) is not None:
            if pack.tp != member:
                self._ahead = pack
                return
            yield pack.records

    def skip(self, member: TopicPartition) -> None:
        """Pass over what is left of the member's records."""
        for _ in self.of(member):
            pass

    def drain(self) -> int:
        """Read on to the end, so that Spark's writer does not find the pipe closed. Returns the number of packs."""
        packs = 0
        while self._next() is not None:
            packs += 1
        return packs

    def _next(self) -> PartitionBatch | None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            return ahead
        try:
            return next(self._packs, None)
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


def _worth_another_try(error: Exception) -> bool:
    """A SinkError has been tried again where it was raised, for as long as that was worth it."""
    return not isinstance(error, SinkError)


def _failure(error: Exception) -> TaskFailure:
    trace = "".join(traceback.format_exception(error))
    if not isinstance(error, SinkError):
        return TaskFailure(SinkError(traceback.format_exception_only(error)[-1].strip()), trace)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error that does not travel must not hide what it says
        return TaskFailure(SinkError(f"{error.reason}: {error}"), trace)
    return TaskFailure(error, trace)


def _task_context() -> tuple[int, int]:
    """The task's number in its job, and which try this is, both from 0."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not in a Spark task")
    return context.partitionId(), context.attemptNumber()


_warmed_up = 0


def _warm_up() -> None:
    """Spark's worker collects garbage after each task: 26 ms over all that is imported, so leave that out of sight.

    Twice, because the first task of a worker still imports.
    """
    global _warmed_up
    if _warmed_up < 2:
        _warmed_up += 1
        gc.collect()
        gc.freeze()
