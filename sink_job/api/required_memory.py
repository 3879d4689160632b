"""The memory that a sink requires, by the job's own arithmetic (`memory_budget`). Pure.

    required = heap + JVM overhead + registration of tables
             + slots × (Python + Arrow batches + block in encoding + parts in flight + bytes that open objects buffer)

The bytes that the open objects of a slot buffer are the larger of two estimates. One is what the tasks of the last
round buffered, spilled bytes included, and at most one part for each open object. The other is what a slot holds of its
share of the active topic-partitions without spilling: the staged remainder expected of each, at most a part.

The operator sizes pods with it, and `s3sink plan` shows it. The function is monotone: more of any input, and fewer
executors, never lower the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.api import memory_budget
from sink_job.api.units.quantities import MI

STEP = 64 * MI
"""The recommended memory is a multiple of this."""


@dataclass(frozen=True, kw_only=True)
class SizingInputs:
    """The inputs of the required memory.

    `slots`: concurrent tasks of an executor. `executors`: executors that share the topic-partitions, 1 in Local mode.
    `open_objects`: of the topic-partition that has most. `held_bytes`: bytes that all tasks of the last round buffered
    or spilled. `active_partitions`: topic-partitions that had records recently. `remainder_bytes`: expected staged
    remainder of one of them. `encoding`: bytes that a task needs to encode a row group or block. `registration`: bytes
    that the driver needs to register tables, if it shares the memory.
    """

    slots: int
    part_size: int
    encoding: int = 0
    registration: int = 0
    executors: int = 1
    open_objects: int = 0
    held_bytes: int = 0
    active_partitions: int = 0
    remainder_bytes: int = 0

    @property
    def partitions_per_slot(self) -> int:
        """The largest share of the active topic-partitions that a slot has."""
        return -(-self.partitions_per_executor // max(1, self.slots))

    @property
    def partitions_per_executor(self) -> int:
        return -(-self.active_partitions // max(1, self.executors))


def required(inputs: SizingInputs) -> int:
    """Bytes that an executor requires, or the whole sink in Local mode."""
    slots = max(1, inputs.slots)
    part = inputs.part_size
    buffered = max(
        memory_budget.MIN_TASK_MEMORY,
        min(inputs.open_objects * part, -(-inputs.held_bytes // slots)),
        -(-_remainders(inputs) // slots),
    )
    return (
        memory_budget.beside_tasks(slots)
        + inputs.registration
        + slots * (memory_budget.BATCHES + inputs.encoding + (memory_budget.PARTS_IN_FLIGHT + 1) * part + buffered)
    )


def _remainders(inputs: SizingInputs) -> int:
    """Bytes that the slots of an executor hold of their active topic-partitions.

    The division by the slots is rounded up to whole topic-partitions. As `slots - 1` more of them, and not with the
    largest share for every slot, the result is monotone in the number of slots, too.
    """
    count = inputs.partitions_per_executor
    shares = count + max(1, inputs.slots) - 1 if count else 0
    return shares * min(inputs.remainder_bytes, inputs.part_size)


def recommended(inputs: SizingInputs, *, minimum: int = 0) -> int:
    """Bytes to give: the required memory with headroom, in whole steps, not below `minimum`."""
    return max(with_headroom(required(inputs)), minimum)


def with_headroom(size: int) -> int:
    """The bytes to give if `size` are required, in whole steps."""
    numerator, denominator = memory_budget.HEADROOM
    return round_up(size * numerator // denominator)


def initial(inputs: SizingInputs) -> int:
    """Bytes that a sink starts with while nothing is known of its load."""
    slots, part_size = max(1, inputs.slots), inputs.part_size
    return round_up(
        memory_budget.default_total(
            cores=slots,
            part_size=part_size,
            encoding=inputs.encoding,
            registration=inputs.registration,
            least=0,
            most=1 << 60,
        )
    )


def round_up(size: int) -> int:
    """`size` in whole steps."""
    return -(-size // STEP) * STEP
