"""Changes the executors of a running Spark application: their number, and the memory of new ones.

Spark computes both from its configuration at the start. Its backend can request and end executors at any time; the
memory of a new executor pod comes from the configuration and from a default resource profile, which Spark caches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from sink_job.api import memory_budget
from sink_job.api.units.quantities import MI
from sink_job.spark.executor_pods import ExecutorConfig

_log = logging.getLogger(__name__)

_OVERHEAD = "spark.executor.memoryOverhead"
_INSTANCES = "spark.executor.instances"


class ExecutorScaler:
    """The executors of one Spark context. Call it between two jobs: it ends executors without waiting for tasks.

    `scaled` is called with each other number of executors that is requested.
    """

    def __init__(
        self, context: Any, config: ExecutorConfig, *, scaled: Callable[[int], object] = lambda executors: None
    ) -> None:
        self._context = context._jsc.sc()
        self._jvm = context._jvm
        self._executors = config.instances
        self._memory = config.memory
        self._cores = config.cores
        self._scaled = scaled

    def scale(self, executors: int) -> None:
        """Requests this number of executors. `end_excess` ends those above it."""
        if executors == self._executors:
            return
        _log.info("executors: %d instead of %d", executors, self._executors)
        self._context.requestTotalExecutors(executors, 0, self._no_hosts())
        self._context.conf().set(_INSTANCES, str(executors))
        self._executors = executors
        self._scaled(executors)

    def end_excess(self) -> None:
        """Ends the youngest executors above the requested number.

        Call it again and again: Spark keeps an executor whose pod existed already when fewer were requested, and it
        registers only later.
        """
        excess = self._running()[self._executors :]
        if excess:
            # (ids, adjust the requested number, count as failures, also those with tasks)
            self._context.schedulerBackend().killExecutors(self._sequence(excess), False, False, True)

    def resize(self, memory: int) -> None:
        """Gives new executors `memory` bytes. The heap stays the same, so only the memory beside it changes."""
        if memory == self._memory:
            return
        conf = self._context.conf()
        conf.set(_OVERHEAD, f"{memory_budget.executor_overhead(memory, cores=self._cores) // MI}m")
        profiles = getattr(self._jvm.org.apache.spark.resource, "ResourceProfile$").__getattr__("MODULE$")
        profiles.reInitDefaultProfile(conf)
        self._memory = memory

    def _running(self) -> list[str]:
        """The ids of the executors, oldest first."""
        return sorted(filter(None, self._context.getExecutorIds().mkString(",").split(",")), key=_number)

    def _no_hosts(self) -> Any:
        """No preference of hosts."""
        return getattr(self._jvm.scala.collection.immutable, "Map$").__getattr__("MODULE$").empty()

    def _sequence(self, ids: list[str]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for each in ids:
            made.add(each)
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(made)


def _number(executor: str) -> int:
    return int(executor) if executor.isdigit() else 0
