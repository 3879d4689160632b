"""What one Spark task does: its share of the round's work, a call for each topic-partition and one row back for each.

It runs in the Python worker. A task knows what it reads from the plan and its number. So a range without records still
gets its call, and where a task reads one range, records need not carry their topic and partition.
"""

from __future__ import annotations

import gc
import pickle
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.errors import SinkError
from sink_job.api.types import TopicPartition
from sink_job.spark.types import Work

if TYPE_CHECKING:
    from pyspark import Broadcast

OUTCOMES = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("failed", pa.bool_()), ("result", pa.binary())]
)
OUTCOMES_DDL = "topic string, partition int, failed boolean, result binary"
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Failure:
    """Why a task's work failed: the error for the driver, and the trace for its log."""

    error: SinkError
    trace: str


@dataclass(frozen=True)
class Inline:
    """Inputs that travel with the task, where a broadcast would cost more."""

    value: dict[TopicPartition, bytes]


@dataclass(frozen=True)
class Task:
    """What Spark runs in each task of a DataFrame; it is pickled once a round.

    `members`: what each task reads, in order; `first`: the number of the first of these tasks in the Spark job.
    `attempts`: how often Spark tries a task. `shared`: batches carry `topic` and `partition` in front.
    """

    work: Work
    inputs: Inline | Broadcast[dict[TopicPartition, bytes]]
    members: Sequence[Sequence[TopicPartition]]
    first: int
    attempts: int
    shared: bool

    def __call__(self, batches: Batches) -> Batches:
        """Rows of OUTCOMES, one for each member. An exception worth another try is raised, but for the last one."""
        _settle()
        number, attempt = _task_context()
        source = _Source(batches)
        inputs = self.inputs.value
        records = _Splitter(source) if self.shared else _Whole(source)
        members = self.members[number - self.first]
        results: list[bytes] = []
        try:
            share = self.work()
            for member in members:
                results.append(share(member, inputs.get(member, b""), records.of(member)))
                records.skip(member)
            if records.rest():
                raise RuntimeError("the reader gave records of a topic-partition that this task has no part in")
            share.end()
        except Exception as error:
            if source.failed or (attempt + 1 < self.attempts and _worth_another_try(error)):
                raise
            source.drain()
            yield _outcomes(members[:1], [pickle.dumps(_failure(error))], failed=True)
            return
        yield _outcomes(members, results, failed=False)


class _Source:
    """The task's batches, none empty. `failed`: they ended in an error of the reader, which is Spark's to report."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self.failed = False

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = next(self._batches)
            while not batch.num_rows:
                batch = next(self._batches)
        except StopIteration:
            raise
        except BaseException:
            self.failed = True
            raise
        return batch

    def drain(self) -> int:
        """Read on to the end, so that Spark's writer does not find the pipe closed. Returns the number of records."""
        return sum(batch.num_rows for batch in self)


class _Whole:
    """All batches belong to the one member."""

    def __init__(self, source: _Source) -> None:
        self._source = source

    def of(self, member: TopicPartition) -> Batches:
        return iter(self._source)

    def skip(self, member: TopicPartition) -> None:
        self._source.drain()

    def rest(self) -> int:
        return 0


class _Splitter:
    """Batches that run over several members, cut where a member ends, without the columns that tell."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._rest: pa.RecordBatch | None = None

    def of(self, member: TopicPartition) -> Batches:
        while (batch := self._next()) is not None:
            same = _rows_of(member, batch)
            self._rest = batch.slice(same) if same < batch.num_rows else None
            if same:
                yield batch.slice(0, same).select(batch.schema.names[2:])
            if self._rest is not None:
                return

    def skip(self, member: TopicPartition) -> None:
        for _ in self.of(member):
            pass

    def rest(self) -> int:
        """Read on to the end. Returns the number of records that belong to none of the task's members."""
        return (self._rest.num_rows if self._rest is not None else 0) + self._source.drain()

    def _next(self) -> pa.RecordBatch | None:
        rest, self._rest = self._rest, None
        return rest if rest is not None else next(self._source, None)


def _rows_of(member: TopicPartition, batch: pa.RecordBatch) -> int:
    """How many rows at the batch's beginning are the member's."""
    other = pc.or_(pc.not_equal(batch["topic"], member.topic), pc.not_equal(batch["partition"], member.partition))
    first: int = pc.index(other, True).as_py()
    return batch.num_rows if first < 0 else first


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


def _failure(error: Exception) -> Failure:
    trace = "".join(traceback.format_exception(error))
    if not isinstance(error, SinkError):
        return Failure(SinkError(traceback.format_exception_only(error)[-1].strip()), trace)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error that does not travel must not hide what it says
        return Failure(SinkError(f"{error.reason}: {error}"), trace)
    return Failure(error, trace)


def _task_context() -> tuple[int, int]:
    """The task's number in its job, and which try this is, both from 0."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not in a Spark task")
    return context.partitionId(), context.attemptNumber()


_settled = 0


def _settle() -> None:
    """Spark's worker collects garbage after each task: 26 ms over all that is imported, so leave that out of sight.

    Twice, because the first task of a worker still imports.
    """
    global _settled
    if _settled < 2:
        _settled += 1
        gc.collect()
        gc.freeze()
