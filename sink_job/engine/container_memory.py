"""The memory limit of this process's container, and memory that the process no longer uses."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

CGROUPS = Path("/sys/fs/cgroup")
_FILES = ("memory.max", "memory/memory.limit_in_bytes")


def memory_limit(root: Path = CGROUPS) -> int | None:
    """The limit in bytes, from cgroup v2 or v1; None if there is no limit or no cgroup."""
    for name in _FILES:
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None


def release_free_memory() -> None:
    """Returns free memory of the allocators to the system. Without it, a process stays as large as it once was."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # other C libraries than glibc
        ctypes.CDLL(None).malloc_trim(0)
