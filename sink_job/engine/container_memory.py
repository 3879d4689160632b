"""The memory limit of this process's container, and memory that the process no longer uses."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa

CGROUPS = Path("/sys/fs/cgroup")
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MAX_HEAP_BLOCK: Final = (1 << 31) - 1
"""In bytes: the largest value that mallopt takes."""
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


def keep_freed_memory() -> None:
    """Makes the C library keep freed memory for later blocks, until `release_free_memory`.

    By default it takes each block above 32 MiB from the system, which clears its pages, and returns it when it is
    freed. That was 40 % of the CPU time of a task that encodes row groups, and a task with JSON lines gains nothing.
    Arrow has an allocator of its own, which is not changed: with the C library's the peak of a row group with many
    columns is larger.
    """
    with suppress(OSError, AttributeError):  # other C libraries than glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _MAX_HEAP_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _MAX_HEAP_BLOCK)


def release_free_memory() -> None:
    """Returns free memory of the allocators to the system."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # other C libraries than glibc
        ctypes.CDLL(None).malloc_trim(0)
