"""The memory limit of this process's container. Kubernetes can increase it while the process runs."""

from __future__ import annotations

from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_FILES = ("memory.max", "memory/memory.limit_in_bytes")


def memory_limit(root: Path = _CGROUPS) -> int | None:
    """The limit in bytes, from cgroup v2 or v1; None if there is no limit or no cgroup."""
    for name in _FILES:
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None


class ContainerMemory:
    """The memory of a run, and its current value after a resize of the container.

    The operator sets `--memory` to the limit of the container. If both are equal at the start, this class follows the
    limit. If they differ, `--memory` applies for the whole run. `requested`: the value of `--memory` in bytes.
    """

    def __init__(self, requested: int | None, root: Path = _CGROUPS) -> None:
        self._requested = requested
        self._root = root
        self._follows = requested is not None and memory_limit(root) == requested

    def current(self) -> int | None:
        """The current limit of the container in bytes, if it is larger than at the start; else None."""
        limit = memory_limit(self._root) if self._follows else None
        return limit if limit is not None and self._requested is not None and limit > self._requested else None
