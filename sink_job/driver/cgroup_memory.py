"""The memory that the container of this process may use, which Kubernetes can raise while the process runs."""

from __future__ import annotations

from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_FILES = ("memory.max", "memory/memory.limit_in_bytes")


def memory_limit(root: Path = _CGROUPS) -> int | None:
    """Bytes, by cgroup v2 or v1; None where nothing is said or nothing limits it."""
    for name in _FILES:
        try:
            said = (root / name).read_text().strip()
        except OSError:
            continue
        return int(said) if said.isdigit() else None
    return None


class ContainerMemory:
    """What a run was given (bytes), and what it has by now: its container's limit is followed where that was what it
    was given, as the operator makes both the same; who says otherwise is taken at their word.
    """

    def __init__(self, given: int | None, root: Path = _CGROUPS) -> None:
        self._given = given
        self._root = root
        self._follows = given is not None and memory_limit(root) == given

    def current(self) -> int | None:
        """Bytes that the container has by now, where that is more than at the start."""
        limit = memory_limit(self._root) if self._follows else None
        return limit if limit is not None and self._given is not None and limit > self._given else None
