"""Applies the operator's allocation to a running driver: number of executors, and memory of the tasks.

The operator writes the allocation to a ConfigMap, which the kubelet updates in the pod within about a minute. The
driver applies it between two rounds, and reports the memory that it has applied. Only then does the operator decrease
the memory of a container, so no task has more than its container.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sink_job.api import memory_budget
from sink_job.api.allocation import Allocation
from sink_job.api.errors import ConfigurationError
from sink_job.coordinator.progress import Progress

ALLOCATION_FILE = "S3SINK_ALLOCATION"
"""Environment variable with the path of the allocation."""

_log = logging.getLogger(__name__)


class Executors(Protocol):
    """The executors of a running application."""

    def scale(self, executors: int) -> None:
        """Requests this number of executors."""
        ...

    def end_excess(self) -> None:
        """Ends those above the requested number."""
        ...

    def resize(self, memory: int) -> None:
        """Changes the memory of new ones, in bytes."""
        ...


class Slots(Protocol):
    """What assigns topic-partitions to concurrent tasks."""

    def set_slots(self, slots: int) -> None:
        """Changes the number of concurrent tasks."""
        ...


class LiveAllocation:
    """The allocation of one run.

    `cores`: concurrent tasks of a container. `part_size`, and `encoding` and `registration` of `memory_budget`, in
    bytes. Without a file,
    nothing changes.
    """

    def __init__(
        self,
        file: Path | None,
        current: Allocation,
        *,
        cores: int,
        part_size: int,
        encoding: int = 0,
        registration: int = 0,
        progress: Progress,
    ) -> None:
        self._file = file
        self._current = current
        self._cores = cores
        self._part_size = part_size
        self._encoding = encoding
        self._registration = registration
        self._progress = progress
        self._executors: Executors | None = None
        self._slots: Slots | None = None
        self._rejected: Allocation | None = None
        self._memory: memory_budget.MemoryBudget | None = None

    def connect(self, slots: Slots, executors: Executors | None) -> None:
        """Starts to apply changes to these. `executors`: None in Local mode."""
        self._slots, self._executors = slots, executors

    def apply(self) -> None:
        """Applies the current content of the file. No task may be running. An unreadable file changes nothing."""
        if self._file is None or self._slots is None:
            return
        desired = self._read()
        if desired is not None and desired not in (self._current, self._rejected):
            self._change(desired)
        self._end_excess()
        self._progress.allocated(self._current.memory, self._current.executors * self._cores)

    def task_memory(self) -> tuple[int, int] | None:
        """Budget in bytes and part buffers of a task; None while the memory is that of the start."""
        return None if self._memory is None else (self._memory.budget, self._memory.part_buffers)

    def container(self) -> tuple[int, int] | None:
        """Memory of a container in bytes, and its concurrent tasks; None without a file."""
        return None if self._file is None else (self._current.memory, self._cores)

    def _read(self) -> Allocation | None:
        assert self._file is not None
        try:
            found = Allocation.parse(self._file.read_text())
        except OSError:
            return None
        return None if found is None else Allocation(executors=found.executors, memory=found.memory)

    def _change(self, desired: Allocation) -> None:
        """Raises nothing: an allocation that cannot be applied is logged, and the current one stays."""
        try:
            memory = memory_budget.divide(
                desired.memory,
                cores=self._cores,
                part_size=self._part_size,
                encoding=self._encoding,
                registration=self._registration,
            )
        except ConfigurationError as error:
            self._reject(desired, error)
            return
        assert self._slots is not None
        try:
            if self._executors is not None:
                self._executors.resize(desired.memory)
                self._executors.scale(desired.executors)
        except Exception as error:  # the JVM may have ended: the next round reports that
            self._reject(desired, error)
            return
        self._slots.set_slots(desired.executors * self._cores)
        self._current, self._memory, self._rejected = desired, memory, None
        _log.info(
            "%d MiB of memory (for each task %d MiB and %d part buffers), %d concurrent tasks",
            memory.total >> 20,
            memory.budget >> 20,
            memory.part_buffers,
            desired.executors * self._cores,
        )

    def _end_excess(self) -> None:
        """Raises nothing."""
        if self._executors is None:
            return
        try:
            self._executors.end_excess()
        except Exception as error:  # the JVM may have ended: the next round reports that
            _log.warning("executors above the requested number are not ended: %s", error)

    def _reject(self, desired: Allocation, error: Exception) -> None:
        _log.warning(
            "the allocation of %d bytes and %d executors is not applied: %s", desired.memory, desired.executors, error
        )
        self._rejected = desired


def allocation_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The path of the allocation; None without an operator."""
    path = environ.get(ALLOCATION_FILE)
    return Path(path) if path else None
