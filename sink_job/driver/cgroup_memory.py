"""The memory limit of this process's container. Kubernetes can increase it while the process runs."""

from __future__ import annotations

from pathlib import Path

from sink_job.engine.container_memory import CGROUPS, memory_limit


class ContainerMemory:
    """The memory of a run, and its current value after a resize of the container.

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
