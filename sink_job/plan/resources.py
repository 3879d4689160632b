"""Memory and executors of a planned sink, by the formula of the operator. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.api.enums import ExecutorMode, ScalingMode
from sink_job.api.required_memory import with_headroom
from sink_job.api.sections.operator_sections import ExecutorSpec


@dataclass(frozen=True)
class PlannedResources:
    """`memory`: bytes of each executor, or of the whole sink in Local mode (`executors` is 0 then). `recommended` is
    above it if `spec.executor.memory.max` is too small."""

    executors: int
    memory: int
    recommended: int


def executors_for(active: int, spec: ExecutorSpec) -> int:
    """The executors for this many active topic-partitions; 0 in Local mode."""
    if spec.mode is ExecutorMode.LOCAL:
        return 0
    scaling = spec.scaling
    if scaling.mode is not ScalingMode.AUTO:
        return spec.instances
    needed = -(-active // (spec.cores * scaling.partitions_per_task))
    return min(max(needed, scaling.min_instances), scaling.max_instances)


def resources(required: int, active: int, spec: ExecutorSpec) -> PlannedResources:
    """`required`: bytes by `sink_job.api.required_memory`; `active`: topic-partitions with records."""
    recommended = with_headroom(required)
    memory = min(max(recommended, spec.memory.min), spec.memory.max)
    return PlannedResources(executors_for(active, spec), memory, recommended)
