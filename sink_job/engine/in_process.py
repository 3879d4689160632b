"""Runs tasks in threads of the driver process, without Spark and without reading from Kafka.

With executor pods, a driver that publishes at SIGTERM has no executors left: a deleted namespace ends them too.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sink_job.api.errors import TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.thread_pools import pool
from sink_job.engine.types import Cancelled, Columns, ProcessorFactory, Range

TASKS = 2
"""Concurrent tasks: their part buffers are in the memory of the driver."""


class InProcessEngine:
    """See `sink_job.engine.types.Engine`. Raises TransientError for a run that reads from Kafka."""

    def __init__(self) -> None:
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
        if ranges:
            raise TransientError(f"{min(ranges)} has to be read from Kafka again, which the next driver does")

        def task(members: Sequence[TopicPartition]) -> dict[TopicPartition, bytes]:
            processor, results = factory(), {}
            for tp in members:
                if self._cancelled.is_set():
                    raise Cancelled("cancelled")
                results[tp] = processor(tp, inputs.get(tp, b""), iter(()))
            processor.close()
            return results

        shares = [share for at in range(TASKS) if (share := idle[at::TASKS])]
        with pool(TASKS, "s3sink-task") as threads:
            return {tp: result for found in threads.map(task, shares) for tp, result in found.items()}

    def cancel(self) -> None:
        """See `sink_job.engine.types.Engine.cancel`."""
        self._cancelled.set()
