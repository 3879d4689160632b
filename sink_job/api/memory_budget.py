"""What memory a run takes and how a task may use its share: arithmetic, held by a test.

The whole process tree is, in bytes,

    heap + JVM_BESIDE_HEAP                             the JVM: Spark, Kafka's reader and client
    + DRIVER                                           this process
    + cores × (WORKER + task)                          a Python worker per task that runs at a time

and a task's share holds what its objects keep back until a part is full (`budget`, spilled to disk beyond it: P7), the
part bodies on their way to S3 (`bodies`), one more part while it is being put together, and Arrow batches with their
encoded copy (BATCHES). Spilling makes any number of open objects fit; a part, though, has to be in memory to be sent,
so a part size that leaves no room is refused instead of being killed by the kernel later.

The job divides with it what it was given, and the operator works out with it what to give.
"""

from __future__ import annotations

from typing import NamedTuple

from sink_job.api.errors import ConfigurationError
from sink_job.api.quantities import MI, format_size

HEAP = 512 * MI
HEAP_PER_CORE = 64 * MI
MIN_HEAP = 256 * MI
JVM_BESIDE_HEAP = 256 * MI
DRIVER = 160 * MI
WORKER = 170 * MI
TASK = 240 * MI
"""A task's share when nobody says anything: the tree is then under 2 GB on 2 cores."""

BATCHES = 32 * MI
MIN_TASK_MEMORY = 16 * MI
MAX_PART_BUFFERS = 6
"""Parts of one task under way at once: more don't make one connection's server faster."""

MAX_CORES = 4
"""Tasks at a time on a laptop when nobody says anything."""


class MemoryBudget(NamedTuple):
    """How a run divides its memory; `total`, `heap` and `budget` in bytes, `bodies` in parts."""

    total: int
    heap: int
    budget: int
    part_buffers: int


def divide(total: int, *, cores: int, part_size: int) -> MemoryBudget:
    """How `total` bytes are used by a process tree that runs `cores` tasks at a time.

    Bodies take a third of a task's share, at least one part and at most MOST_BODIES; the rest is the budget.
    Raises ConfigurationError when a part does not fit, and says what would.
    """
    heap = heap_of(cores)
    share = (total - beside_tasks(cores)) // cores
    least = min_total(cores=cores, part_size=part_size)
    if total < least:
        raise ConfigurationError(
            f"memory: {_mi(total)} is too little for {cores} task{'s' if cores > 1 else ''} at a time with "
            f"spec.s3.partSize {format_size(part_size)}: it takes {_mi(least)}. Give more memory (--memory, or "
            "spec.executor.memory.max), fewer tasks (--cores), or smaller parts"
        )
    room = (share - BATCHES - MIN_TASK_MEMORY) // part_size - 1
    bodies = max(1, min(MAX_PART_BUFFERS, share // 3 // part_size, room))
    return MemoryBudget(total, heap, share - (bodies + 1) * part_size - BATCHES, bodies)


def min_total(*, cores: int, part_size: int) -> int:
    """The least memory that `cores` tasks at a time can work in."""
    return beside_tasks(cores) + cores * (2 * part_size + BATCHES + MIN_TASK_MEMORY)


def default_total(*, cores: int, part_size: int, least: int, most: int) -> int:
    """What a run takes when `--memory` is not given: the usual, more for large parts, within the spec's bounds."""
    wanted = max(beside_tasks(cores) + cores * TASK, min_total(cores=cores, part_size=part_size), least)
    return min(wanted, most)


def heap_of(cores: int) -> int:
    """The JVM's heap."""
    return HEAP + cores * HEAP_PER_CORE


def heap_beside_executors(total: int | None) -> int:
    """The heap of a driver's JVM whose tasks run in executors; `total`: bytes of the driver, None where nobody says."""
    return HEAP if total is None else max(MIN_HEAP, total - JVM_BESIDE_HEAP - DRIVER)


def beside_tasks(cores: int) -> int:
    """All that is not a task's share."""
    return heap_of(cores) + JVM_BESIDE_HEAP + DRIVER + cores * WORKER


def _mi(size: int) -> str:
    return format_size(-(-size // MI) * MI)
