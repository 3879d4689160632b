"""Runs a round on Spark: one job, with one call of the task processor per topic-partition.

A topic-partition with a large range has its own task. Small ranges and idle topic-partitions share a few tasks per
core: a task has an overhead of 5 to 10 ms, so 512 tasks without records would take seconds.
"""

from __future__ import annotations

import logging
import pickle
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Cancelled, Columns, ProcessorFactory, Range
from sink_job.spark.errors import job_error
from sink_job.spark.pyspark_core import Broadcast, SparkContext
from sink_job.spark.range_reader import IDLE_MS, RangeReader
from sink_job.spark.task import InlineInputs, SparkTask, TaskFailure, TaskOutcome
from sink_job.spark.task_packing import TaskAssignment, assign_tasks

_log = logging.getLogger(__name__)
_INLINE_BYTES = 512 << 10  # larger inputs are broadcast once to each executor instead of sent with every task


class SparkEngine:
    """See `sink_job.engine.types.Engine`."""

    def __init__(
        self,
        context: SparkContext,
        client: Mapping[str, str],
        *,
        redact: Callable[[str], str] = str,
        cores: int | None = None,
        poll_timeout_ms: int = 15_000,
        idle_ms: int = IDLE_MS,
    ) -> None:
        """`client`: properties of a Kafka consumer (KafkaProperties.client()), with secrets in plain text.
        `redact`: removes secrets from messages.
        `cores`: number of concurrent tasks; None: Spark's default parallelism.
        `poll_timeout_ms`: maximum time without a record of a range.
        `idle_ms`: time after which an unused consumer is closed.
        """
        self._context = context
        self._reader = RangeReader(context, client, poll_timeout_ms=poll_timeout_ms, idle_ms=idle_ms)
        self._redact = redact
        self._servers = client["bootstrap.servers"]
        self._cores = cores or context.defaultParallelism
        self._attempts = _attempts(context)
        self._group = f"s3sink-{uuid.uuid4()}"
        self._cancelled = threading.Event()

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        """See `sink_job.engine.types.Engine.run`."""
        if self._cancelled.is_set():
            raise Cancelled("cancelled before the start of the run")
        layout = assign_tasks(ranges, idle, cores=self._cores)
        if not layout.members:
            return {}
        self._context.setJobGroup(self._group, "round", interruptOnCancel=True)
        sent = self._send(inputs)
        try:
            outcomes = self._collect(layout, columns, factory, sent)
        except Exception as error:
            if self._cancelled.is_set():
                raise Cancelled("cancelled") from None
            raise job_error(error, servers=self._servers, redact=self._redact) from None
        finally:
            sent.destroy()
            with suppress(Exception):  # the JVM may have ended
                self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return self._results(outcomes, layout)

    def set_slots(self, slots: int) -> None:
        """Changes the number of concurrent tasks that the next runs are divided into."""
        self._cores = slots

    def cancel(self) -> None:
        """See `sink_job.engine.types.Engine.cancel`."""
        self._cancelled.set()
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)

    def _collect(
        self, layout: TaskAssignment, columns: Columns, factory: ProcessorFactory, sent: _ShippedInputs
    ) -> list[TaskOutcome]:
        """Runs the job."""
        tasks = [*layout.single, *layout.shared]
        members = [[partition for partition, _ in task] for task in tasks]
        task = SparkTask(factory, sent.inputs, members, self._attempts, self._reader.sockets, columns)
        return self._reader.read(tasks, columns).mapPartitionsWithIndex(task).collect()

    def _send(self, inputs: Mapping[TopicPartition, bytes]) -> _ShippedInputs:
        if sum(map(len, inputs.values())) <= _INLINE_BYTES:
            return _ShippedInputs(InlineInputs(dict(inputs)), lambda: None)
        broadcast = self._context.broadcast(dict(inputs))
        return _ShippedInputs(broadcast, broadcast.destroy)

    def _results(self, outcomes: Sequence[TaskOutcome], layout: TaskAssignment) -> dict[TopicPartition, bytes]:
        for outcome in outcomes:
            if outcome.failed:
                self._raise(pickle.loads(outcome.result))
        results = {outcome.tp: outcome.result for outcome in outcomes}
        if len(results) != len(layout.members):
            raise SinkError(f"Spark returned no result for {len(layout.members) - len(results)} topic-partitions")
        return results

    def _raise(self, failure: TaskFailure) -> None:
        _log.debug("a task failed:\n%s", self._redact(failure.trace))
        raise failure.error


@dataclass(frozen=True)
class _ShippedInputs:
    inputs: InlineInputs | Broadcast[dict[TopicPartition, bytes]]
    destroy: Callable[[], None]


def _attempts(context: SparkContext) -> int:
    """The maximum number of attempts of a task. In local mode it is in the master URL, `local[cores,attempts]`."""
    master = context.master or ""
    if master == "local" or master.startswith("local["):
        _, comma, attempts = master.rstrip("]").partition(",")
        return int(attempts) if comma else 1
    return int(context.getConf().get("spark.task.maxFailures") or "4")
