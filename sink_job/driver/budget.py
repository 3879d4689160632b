"""How a run divides its memory: the arithmetic is `sink_job.api.budget`, which the operator shares."""

from __future__ import annotations

from sink_job.api.budget import (
    BATCHES,
    DRIVER,
    JVM_BESIDE_HEAP,
    LEAST_BUDGET,
    MOST_BODIES,
    MOST_CORES,
    WORKER,
    Memory,
    divide,
    heap_beside_executors,
    least_total,
    usual_total,
)

__all__ = [
    "BATCHES",
    "DRIVER",
    "JVM_BESIDE_HEAP",
    "LEAST_BUDGET",
    "MOST_BODIES",
    "MOST_CORES",
    "WORKER",
    "Memory",
    "divide",
    "heap_beside_executors",
    "least_total",
    "usual_total",
]
