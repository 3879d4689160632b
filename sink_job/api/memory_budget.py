"""The memory of a run and its division among processes and tasks. Pure arithmetic.

The memory of the whole process tree, in bytes, is

    heap + JVM_BESIDE_HEAP                             the JVM: Spark, a Kafka consumer for each concurrent task
    + DRIVER                                           this process
    + REGISTRATION                                     with spec.tables: the registrations of this process
    + cores × (WORKER + task)                          one Python worker for each concurrent task

The memory of a task (`task`) holds:

- data of open objects until a part is full, at most `budget` bytes; the rest spills to local disk (P7);
- the part buffers of running uploads (`part_buffers`);
- one more part during its assembly;
- Arrow batches with their encoded copy (BATCHES);
- the block that is being encoded (`encoding`): one row group or Avro block, whatever the number of open objects.

A task gets part buffers above PARTS_IN_FLIGHT from the headroom alone, so its budget holds what the operator has sized
the memory for.

Spilling makes any number of open objects fit. A part must be in memory for its upload. A part size that does not fit is
therefore rejected at the start; otherwise the kernel would kill the process later.

The job divides its memory with these functions. The operator computes the memory of pods with them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.format_section import FormatSpec, ParquetSpec
from sink_job.api.units.quantities import MI, format_size

HEAP = 448 * MI
"""Spark does not start with less than 450 MiB. About 40 MiB of the heap stay in use beside the fetches of the tasks."""
HEAP_PER_CORE = 32 * MI
MIN_HEAP = 256 * MI
JVM_BESIDE_HEAP = 256 * MI
DRIVER = 160 * MI
REGISTRATION = 160 * MI
"""Memory to register tables beside the rounds: PyIceberg, and one commit of 5,000 objects with 20 columns. Measured by
bench/registration_memory.py."""
WORKER = 170 * MI
TASK = 240 * MI
"""Default memory of a task. The process tree then takes less than 2 GB on 2 cores."""

BATCHES = 32 * MI
MIN_TASK_MEMORY = 16 * MI
MAX_PART_BUFFERS = 6
"""Maximum number of concurrent part uploads of one task. More do not increase the throughput of one server."""

PARTS_IN_FLIGHT = 3
"""Part buffers of one task that the operator sizes memory for. More of them use its headroom alone."""
HEADROOM = (23, 20)
"""Ratio of the memory that the operator gives to the required memory."""

PER_ROW_GROUP = 5
"""Memory to encode a row group, in multiples of spec.format.rowGroup: rows, columns and encoded pages. Measured by
bench/encoding_memory.py."""
PER_BLOOM_FILTER = 3
"""Memory to write a Bloom filter, in multiples of its bytes: the filter, the encoded pages with it, and a copy of
them."""
BLOOM_FILTER_SHARE = 32
"""A Bloom filter has at most this fraction of spec.format.rowGroup."""
PER_INDEX = 11
"""Memory to write the footer of a Parquet object, in multiples of the bytes of the indexes of its row groups. Measured
by bench/footers.py."""
MIN_INDEX = 4 * MI
PER_AVRO_BLOCK = 9
"""Memory to encode an Avro block, in multiples of spec.format.avroBlock."""

MIN_EXECUTOR_OVERHEAD = 384 * MI

MAX_CORES = 4
"""Maximum of the default number of concurrent tasks on a laptop."""


class MemoryBudget(NamedTuple):
    """The division of a run's memory: `total`, `heap` and `budget` in bytes, `part_buffers` in parts."""

    total: int
    heap: int
    budget: int
    part_buffers: int


def divide(total: int, *, cores: int, part_size: int, encoding: int = 0, registration: int = 0) -> MemoryBudget:
    """Divides `total` bytes for a process tree with `cores` concurrent tasks.

    Part buffers take a third of the memory of a task: at least one part, and at most MAX_PART_BUFFERS. They leave the
    bytes that the operator has sized the memory for (`sized_budget`). The rest is the budget.

    Raises ConfigurationError, with the required memory, if a part does not fit.
    """
    heap = heap_of(cores)
    task_memory = (total - registration - beside_tasks(cores)) // cores - encoding
    required = min_total(cores=cores, part_size=part_size, encoding=encoding, registration=registration)
    if total < required:
        raise ConfigurationError(
            f"memory: {_mi(total)} is too little for {cores} concurrent task{'s' if cores > 1 else ''} with "
            f"spec.s3.partSize {format_size(part_size)}{_and(encoding)}: {_mi(required)} are required. Increase the "
            "memory (--memory, or spec.executor.memory.max), run fewer tasks (--cores, or spec.executor.cores), or "
            f"decrease spec.s3.partSize{' or spec.format.rowGroup' if encoding else ''}"
        )
    sized = sized_budget(total, cores=cores, part_size=part_size, encoding=encoding, registration=registration)
    kept = max(MIN_TASK_MEMORY, sized)
    fitting = (task_memory - BATCHES - kept) // part_size - 1
    part_buffers = max(1, min(MAX_PART_BUFFERS, task_memory // 3 // part_size, fitting))
    return MemoryBudget(total, heap, task_memory - (part_buffers + 1) * part_size - BATCHES, part_buffers)


def sized_budget(total: int, *, cores: int, part_size: int, encoding: int = 0, registration: int = 0) -> int:
    """The bytes that each task may hold without spilling if `total` is the memory that the operator recommends.

    Negative if `total` is less than it ever recommends.
    """
    required = total * HEADROOM[1] // HEADROOM[0] - registration
    return (required - beside_tasks(cores)) // cores - BATCHES - (PARTS_IN_FLIGHT + 1) * part_size - encoding


def min_total(*, cores: int, part_size: int, encoding: int = 0, registration: int = 0) -> int:
    """The minimum memory for `cores` concurrent tasks, in bytes."""
    return beside_tasks(cores) + registration + cores * (2 * part_size + BATCHES + MIN_TASK_MEMORY + encoding)


def default_total(
    *, cores: int, part_size: int, least: int, most: int, encoding: int = 0, registration: int = 0
) -> int:
    """The memory of a run without `--memory`, in bytes: TASK for each task, more for large parts.

    The result is at least `least`, and at most `most` bytes.
    """
    minimum = min_total(cores=cores, part_size=part_size, encoding=encoding, registration=registration)
    return min(max(beside_tasks(cores) + registration + cores * (TASK + encoding), minimum, least), most)


def encoding_memory(settings: FormatSpec) -> int:
    """The bytes that a task needs to encode one block or the footer of a container; 0 for other outputs."""
    if settings.parquet is not None:
        parquet = settings.parquet
        filters = PER_BLOOM_FILTER * len(parquet.bloom_filters or ()) * max_bloom_filter(parquet.row_group)
        return max(PER_ROW_GROUP * parquet.row_group + filters, PER_INDEX * max_index(parquet))
    return PER_AVRO_BLOCK * settings.avro.block if settings.avro is not None else 0


def registration_memory(tables: Collection[object]) -> int:
    """The bytes that a driver needs to register the tables of `spec.tables`."""
    return REGISTRATION if tables else 0


def max_index(settings: ParquetSpec) -> int:
    """The bytes of the indexes of row groups at which a Parquet object is closed: for its footer a task has the memory
    of a row group. A column of a row group takes about 140 bytes."""
    return max(2 * settings.row_group // 5, MIN_INDEX)


def max_bloom_filter(row_group: int) -> int:
    """The maximum bytes of a Bloom filter of a row group of `row_group` bytes: a power of two, as all filters are."""
    return 1 << (row_group // BLOOM_FILTER_SHARE).bit_length() - 1 if row_group >= BLOOM_FILTER_SHARE else 1


def heap_of(cores: int) -> int:
    """The heap of the JVM, in bytes."""
    return HEAP + cores * HEAP_PER_CORE


def executor_overhead(total: int, *, cores: int) -> int:
    """The memory of an executor beside its heap, in bytes: whole MiB, and Spark's minimum at least."""
    return max(MIN_EXECUTOR_OVERHEAD, total - heap_of(cores)) // MI * MI


def heap_beside_executors(total: int | None, registration: int = 0) -> int:
    """The heap of a driver's JVM if tasks run in executors, in bytes. `total`: the driver's memory, None if unknown."""
    return heap_of(1) if total is None else max(MIN_HEAP, total - JVM_BESIDE_HEAP - DRIVER - registration)


def beside_tasks(cores: int) -> int:
    """The memory of everything except tasks, in bytes."""
    return heap_of(cores) + JVM_BESIDE_HEAP + DRIVER + cores * WORKER


def _and(encoding: int) -> str:
    return f" and {_mi(encoding)} to encode a row group or block" if encoding else ""


def _mi(size: int) -> str:
    return format_size(-(-size // MI) * MI)
