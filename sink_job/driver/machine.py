"""The machine that runs a driver: its CPUs, its memory and how a run divides it, and the owner that it identifies."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping

from sink_job.api import memory_budget
from sink_job.api.spec import Sink
from sink_job.ledger.ownership import Owner

CLUSTER = "S3SINK_CLUSTER"


def usual_cores() -> int:
    """The default number of concurrent tasks: the CPUs of this process, at most `memory_budget.MAX_CORES`."""
    available = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(available, memory_budget.MAX_CORES)


def machine_memory() -> int | None:
    """The memory of this machine in bytes; None if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def memory_of(sink: Sink, *, cores: int, total: int | None, is_executor: bool = False) -> memory_budget.MemoryBudget:
    """The division of `total` bytes, or of the default. Raises ConfigurationError if a part does not fit."""
    part_size, bounds = sink.spec.s3.part_size, sink.spec.executor.memory
    encoding = memory_budget.encoding_memory(sink.spec.format)
    registration = 0 if is_executor else memory_budget.registration_memory(sink.spec.tables)
    default = memory_budget.default_total(
        cores=cores,
        part_size=part_size,
        encoding=encoding,
        registration=registration,
        least=bounds.min,
        most=bounds.max,
    )
    return memory_budget.divide(
        total or default, cores=cores, part_size=part_size, encoding=encoding, registration=registration
    )


def owner_of(sink: Sink, environ: Mapping[str, str]) -> Owner:
    """The owner in ownership claims of this sink. The cluster is `$S3SINK_CLUSTER`, or the name of this host."""
    cluster = environ.get(CLUSTER) or platform.node() or "localhost"
    return Owner(cluster=cluster, namespace=sink.namespace, name=sink.name, sink_id=sink.sink_id)
