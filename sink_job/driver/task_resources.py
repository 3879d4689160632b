"""The cores and the memory of a run's tasks: those of this process tree, or those of executor pods."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from sink_job.api import memory_budget
from sink_job.api.spec import Sink
from sink_job.driver.live_allocation import LiveAllocation
from sink_job.driver.machine import machine_memory, memory_of, usual_cores
from sink_job.engine.container_memory import CGROUPS, memory_limit
from sink_job.spark.executor_pods import ExecutorConfig, read_executor_config

_log = logging.getLogger(__name__)


class ContainerMemory:
    """The memory of a run, and its current value after a resize of the container. Kubernetes can increase the limit
    while the process runs.

    The operator sets `--memory` to the limit of the container. If both are equal at the start, this class follows the
    limit. If they differ, `--memory` applies for the whole run. `requested`: the value of `--memory` in bytes.
    """

    def __init__(self, requested: int | None, root: Path = CGROUPS) -> None:
        self._requested = requested
        self._root = root
        self._follows = requested is not None and memory_limit(root) == requested

    def current(self) -> int | None:
        """The current limit of the container in bytes, if it is larger than at the start; else None."""
        limit = memory_limit(self._root) if self._follows else None
        return limit if limit is not None and self._requested is not None and limit > self._requested else None


@dataclass
class TaskResources:
    """`cluster` are the executor pods, None without them. `cores` is the number of concurrent tasks of the sink.
    `memory` divides the memory of this process tree, or of each executor. `registration` are the bytes that this
    process needs to register tables."""

    cluster: ExecutorConfig | None
    cores: int
    memory: memory_budget.MemoryBudget
    container_memory: ContainerMemory
    registration: int = 0

    @classmethod
    def of(cls, sink: Sink, *, spark_properties: Path | None, cores: int | None, memory: int | None) -> TaskResources:
        """`spark_properties`: see `RunOptions`; `memory` in bytes. Raises ConfigurationError if parts do not fit in
        memory or the file of executor properties is invalid."""
        registration = memory_budget.registration_memory(sink.spec.tables)
        if spark_properties is None:
            slots = cores or usual_cores()
            return cls(None, slots, memory_of(sink, cores=slots, total=memory), ContainerMemory(memory), registration)
        cluster = read_executor_config(spark_properties, os.environ)
        executor_memory = memory_of(sink, cores=cluster.cores, total=cluster.memory, is_executor=True)
        return cls(cluster, cluster.slots, executor_memory, ContainerMemory(None), registration)

    @property
    def executors(self) -> int:
        return self.cluster.instances if self.cluster else 1

    @property
    def cores_of_executor(self) -> int:
        return self.cluster.cores if self.cluster else self.cores

    def current_task_memory(self, sink: Sink, allocation: LiveAllocation) -> tuple[int, int] | None:
        """The budget (bytes) and part buffers of a task after a change of the container's memory; else None.

        The heap of the JVM does not change.
        """
        if allocation.container() is not None:
            return allocation.task_memory()
        total = self.container_memory.current()
        if total is None:
            return None
        memory = memory_of(sink, cores=self.cores, total=total)
        return memory.budget, memory.part_buffers

    def log(self, sink: Sink) -> None:
        """Logs the resources, and a warning if this machine has less memory."""
        _log.info(
            "%s: %d concurrent tasks, %s%d MiB of memory (for each task %d MiB and %d part buffers)",
            sink.sink_id,
            self.cores,
            "" if self.cluster is None else f"{self.cluster.instances} executors, each with ",
            self.memory.total >> 20,
            self.memory.budget >> 20,
            self.memory.part_buffers,
        )
        present = machine_memory() if self.cluster is None else None
        if present is not None and self.memory.total > present:
            _log.warning("this machine has only %d MiB of memory: decrease --cores, or set --memory", present >> 20)
