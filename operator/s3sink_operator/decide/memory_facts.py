"""The facts about the executors of a sink: the memory that they have, how many run, and the sizes to start with.

In Local mode the driver pod counts as the one executor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from s3sink_operator import names, objects
from s3sink_operator.decide.attempt_history import AttemptHistory
from s3sink_operator.decide.pod_facts import PodFacts
from s3sink_operator.decide.sink_facts import PreviousStatus, SinkFacts
from s3sink_operator.failures import pod_failures
from s3sink_operator.failures.pod_failures import PodFailure
from s3sink_operator.sizing import executor_count, memory_sizing
from s3sink_operator.sizing.executor_count import ScalingBounds, ScalingPlan, ScalingState
from s3sink_operator.status.reported_progress import MAX_INTEGER
from s3sink_operator.status.status_model import MemoryChange, MemoryInputs, MemoryStatus
from s3sink_operator.types import Json, Observed, Settings, annotation, is_terminating
from sink_job.api import memory_budget
from sink_job.api.allocation import Allocation
from sink_job.api.report import RunState
from sink_job.api.required_memory import SizingInputs

_MEMORY: Final = "spec.executor.memory"


@dataclass(frozen=True, kw_only=True)
class MemoryFacts:
    """What the tasks have now, and what they use of it."""

    observed: Observed
    settings: Settings
    previous: PreviousStatus
    sink: SinkFacts
    pods: PodFacts

    @cached_property
    def allocation(self) -> Allocation | None:
        """The allocation of the last driver."""
        return objects.current_allocation(self.observed.config_map)

    @cached_property
    def current(self) -> int | None:
        """Desired bytes of each running executor, or of the pod in Local mode; None without a driver."""
        if self.pods.driver is None:
            return None
        return self.allocation.memory if self.allocation is not None else objects.sized_memory(self.pods.driver)

    @cached_property
    def load(self) -> MemoryInputs:
        """What the driver reports now, or else what it reported last."""
        if self.pods.report is None:
            section = self.previous.status.memory
            return (section.inputs if section else None) or MemoryInputs()
        memory = self.pods.report.memory
        return MemoryInputs(
            open_objects=memory.max_open_objects,
            held_bytes=min(memory.buffered_bytes + memory.spilled_bytes, MAX_INTEGER),
            active_partitions=memory.active_partitions,
            remainder_bytes=memory.remainder_bytes,
        )

    @property
    def has_edited_bounds(self) -> bool:
        """Whether the settings of the memory are others than those of the allocation."""
        bounds = "" if self.allocation is None else self.allocation.bounds
        return bounds not in ("", objects.memory_bounds(self.sink.manifest))

    @property
    def has_changed_by_defaults(self) -> bool:
        """Whether changed defaults of the operator, not the user, changed the memory of the running driver.

        An edit of the spec since its start is that of the user, unless defaults apply to the memory.
        """
        if not self.has_edited_bounds:
            return self.allocation is not None and self.allocation.by_defaults
        applied = self.settings.sink_defaults.applied(self.sink.written_spec)
        edition = annotation(self.pods.driver or {"metadata": {}}, names.GENERATION_ANNOTATION)
        return edition == self.sink.edition or any(default.field.startswith(_MEMORY) for default in applied)


@dataclass(frozen=True, kw_only=True)
class ExecutorState:
    """Numbers of running and desired executors. `failure`: why one of the others does not start, if known."""

    running: int
    desired: int
    failure: PodFailure | None = None

    @property
    def is_incomplete(self) -> bool:
        return self.running < self.desired

    def message(self) -> str:
        """How many executors run, and why the others do not."""
        reason = "Spark is creating the others" if self.failure is None else self.failure.message
        return f"{self.running} of {self.desired} executors are running: {reason}"


@dataclass(frozen=True, kw_only=True)
class ScalingFacts:
    """How many executors the sink should have, and has. `now` in ms since the epoch."""

    observed: Observed
    settings: Settings
    now: int
    previous: PreviousStatus
    sink: SinkFacts
    pods: PodFacts
    memory: MemoryFacts

    @property
    def desired(self) -> int:
        """The desired number of executors; 1 in Local mode, where the driver pod runs the tasks."""
        if self.sink.is_local:
            return 1
        return self.sink.manifest.spec.executor.instances if self.plan is None else self.plan.executors

    @cached_property
    def plan(self) -> ScalingPlan | None:
        """The number of executors that follows activity; None with `scaling.mode: Fixed`, and in Local mode."""
        bounds = None if self.sink.parsed is None else ScalingBounds.of(self.sink.parsed.spec.executor)
        if bounds is None:
            return None
        active = self.memory.load.active_partitions or 0
        if self.pods.driver is None:
            return executor_count.start(active, bounds)
        section, current = self.previous.status.scaling, self.current
        if section is None or current is None or section.bounds != bounds.text:
            return executor_count.edited(active, bounds, current=current)
        state = ScalingState(low_since=section.low_since_time, low_most=section.low_most)
        if not self._follows_allocation:
            return executor_count.unchanged(bounds, state, current=current)
        return executor_count.plan(
            active,
            bounds,
            state,
            current=current,
            now=self.now,
            shrink_after=self.settings.shrink_after_ms,
            may_shrink=not self._resizes_executors,
        )

    @property
    def current(self) -> int | None:
        """The desired number of executors before this pass, if it is known. The status precedes the allocation."""
        section, allocation = self.previous.status.scaling, self.memory.allocation
        desired = None if section is None else section.desired
        return desired or (None if allocation is None else allocation.executors)

    @property
    def executors(self) -> ExecutorState:
        """How many executors of the current driver run, and why the others do not start."""
        running = [pod for pod in self.pods.executors if _phase(pod) == "Running"]
        waiting = (pod_failures.startup_failure(pod) for pod in self.pods.executors if _phase(pod) != "Running")
        failure = next((failure for failure in waiting if failure is not None), None)
        return ExecutorState(running=len(running), desired=self.desired, failure=failure)

    @property
    def _follows_allocation(self) -> bool:
        """Whether the driver is of the current spec, copies, and applies its allocation."""
        report = self.pods.report
        if report is None or report.state is not RunState.RUNNING or not self.pods.is_up_to_date:
            return False
        return report.memory.applied_bytes is not None

    @property
    def _resizes_executors(self) -> bool:
        """Whether the driver or a container does not have the current memory yet. Not a container whose resize was
        rejected, or that its node cannot resize: that may last."""
        report, current = self.pods.report, self.memory.current
        if report is None or current is None or report.memory.applied_bytes != current:
            return True
        rejected = {rejection.name for rejection in self.observed.rejections}
        size = self.sink.executor_limit(current)
        return self.settings.supports_resize and any(
            (objects.memory_limit(pod) or size) != size
            for pod in self.pods.executors
            if pod["metadata"]["name"] not in rejected and not is_terminating(pod)
        )


@dataclass(frozen=True, kw_only=True)
class SizingFacts:
    """The memory that the next attempt starts with. `now` in ms since the epoch."""

    observed: Observed
    now: int
    previous: PreviousStatus
    sink: SinkFacts
    memory: MemoryFacts
    scaling: ScalingFacts
    history: AttemptHistory

    @cached_property
    def inputs(self) -> SizingInputs:
        """The inputs of the required memory, from this report or else from the previous status."""
        spec, load = self.sink.manifest.spec, self.memory.load
        return SizingInputs(
            slots=spec.executor.cores,
            executors=self.scaling.desired,
            part_size=spec.s3.part_size,
            encoding=memory_budget.encoding_memory(spec.format),
            registration=memory_budget.registration_memory(spec.tables) if self.sink.is_local else 0,
            open_objects=load.open_objects or 0,
            held_bytes=load.held_bytes or 0,
            active_partitions=load.active_partitions or 0,
            remainder_bytes=load.remainder_bytes or 0,
        )

    @cached_property
    def start_size(self) -> int:
        """Bytes that an executor, or the whole sink in Local mode, is started with."""
        bounds = self.sink.memory_bounds
        assert bounds is not None
        size = memory_sizing.start_size(self.inputs, bounds, self.history.sizing, self.now)
        return max(bounds.min, self._smaller_size(size) or size) if self._is_driver_rejected else size

    @property
    def driver_size(self) -> int:
        """Bytes of the next driver pod. In Local mode it runs the tasks."""
        if self.sink.is_local:
            return self.start_size
        partitions = self.previous.progress.partitions
        assigned = max(0, (partitions.assigned if partitions else None) or 0)
        spec = self.sink.manifest.spec
        registration = memory_budget.registration_memory(spec.tables)
        return spec.driver.memory or memory_sizing.driver_size(
            assigned, self.history.sizing, self.now, registration=registration
        )

    @property
    def is_driver_capped(self) -> bool:
        """Whether the driver of a sink in Cluster mode has reached the limit of automatic sizing."""
        parsed = self.sink.parsed
        if parsed is None or self.sink.is_local or parsed.spec.driver.memory is not None:
            return False
        return memory_sizing.is_driver_capped(self.history.sizing, self.now)

    @property
    def _is_driver_rejected(self) -> bool:
        """Whether the API server rejected the next driver pod of a sink in Local mode, for its size or else."""
        pod = "Pod", names.driver_pod_name(self.sink.name)
        return self.sink.is_local and any((each.kind, each.name) == pod for each in self.observed.rejections)

    def _smaller_size(self, size: int) -> int | None:
        """The last memory of the sink below `size`; None if none is known."""
        memory = self.previous.status.memory or MemoryStatus()
        change = memory.last_change or MemoryChange()
        last_sizes = (memory.current, change.to, change.from_)
        return max((last for last in last_sizes if last is not None and last < size), default=None)


def _phase(pod: Json) -> str | None:
    return (pod.get("status") or {}).get("phase")
