"""The allocation of a running sink in its ConfigMap: number of executors, and memory of each.

The kubelet updates it in the driver's pod. It is also the operator's record of the current memory: a change of it
precedes the resizes of the pods, so a pass that is interrupted is continued by the next one.
"""

from __future__ import annotations

from typing import Final

from s3sink_operator.objects.spark_properties import CONFIG_DIR
from s3sink_operator.types import Json
from sink_job.api.allocation import Allocation
from sink_job.api.enums import ExecutorMode
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import format_size

ALLOCATION: Final = "allocation.json"
"""Key in the ConfigMap, and name of the file."""
ALLOCATION_DIR: Final = f"{CONFIG_DIR}/allocation"
"""A directory of its own: a file that is mounted with a subPath would not be updated."""
VOLUME: Final = "allocation"


def allocation_of(
    sink: Sink, *, memory: int, executors: int | None = None, bounds: str | None = None, by_defaults: bool = False
) -> Allocation:
    """The allocation with `memory` bytes for each executor, or for the pod in Local mode. `executors`: None for those
    of the spec, without effect in Local mode. `bounds`: None for those of the spec."""
    local = sink.spec.executor.mode is ExecutorMode.LOCAL
    instances = 1 if local else executors or sink.spec.executor.instances
    known = memory_bounds(sink) if bounds is None else bounds
    return Allocation(executors=instances, memory=memory, bounds=known, by_defaults=by_defaults)


def memory_bounds(sink: Sink) -> str:
    """The settings of the memory, as a text that changes with them."""
    memory = sink.spec.executor.memory
    return f"{memory.mode.value}, {format_size(memory.min)} to {format_size(memory.max)}"


def current_allocation(config_map: Json | None) -> Allocation | None:
    """The allocation in the ConfigMap, if there is one. It is that of the current driver: it is written before the
    driver is created."""
    text = ((config_map or {}).get("data") or {}).get(ALLOCATION)
    return Allocation.parse(text) if isinstance(text, str) else None
