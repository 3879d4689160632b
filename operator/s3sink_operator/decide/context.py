"""The facts that the policies use: one sink, its objects, and what follows from them. Each is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from s3sink_operator import executor_count, memory_sizing, names, objects, pod_failures
from s3sink_operator.decide.attempt_history import AttemptHistory, DriverRevision, update_history
from s3sink_operator.decide.sink_context import SinkContext
from s3sink_operator.executor_count import ScalingBounds, ScalingPlan, ScalingState
from s3sink_operator.memory_sizing import Bounds, SizingInputs
from s3sink_operator.objects import PodShape
from s3sink_operator.status import MAX_INTEGER
from s3sink_operator.status_model import MemoryChange, MemoryInputs, MemoryStatus
from s3sink_operator.types import (
    Json,
    annotation,
    attempt_number,
    is_controlled,
    is_terminating,
    label,
    uid_of,
)
from sink_job.api import memory_budget
from sink_job.api.allocation import Allocation
from sink_job.api.enums import ExecutorMode, MemoryMode
from sink_job.api.report import Report, RunState

_MEMORY: Final = "spec.executor.memory"


@dataclass(frozen=True)
class Context(SinkContext):
    """The facts of one reconcile pass, each computed once."""

    def _owned(self, pod: Json | None) -> Json | None:
        return pod if pod is not None and is_controlled(pod, self.uid) else None

    @cached_property
    def driver(self) -> Json | None:
        """The driver pod, if this sink owns it."""
        return self._owned(self.observed.driver)

    @cached_property
    def operation(self) -> Json | None:
        """The operation pod, if this sink owns it."""
        return self._owned(self.observed.operation)

    @cached_property
    def executors(self) -> Sequence[Json]:
        """The executor pods of the current driver. Those of previous attempts are terminating."""
        if self.driver is None:
            return ()
        attempt, driver = attempt_number(self.driver, names.ATTEMPT_LABEL), uid_of(self.driver)
        own = [pod for pod in self.observed.executors if is_controlled(pod, driver)]  # anyone may set these labels
        return [pod for pod in own if attempt_number(pod, names.ATTEMPT_LABEL) == attempt]

    @property
    def publishes_at_stop(self) -> bool:
        """Whether the driver is ending with its namespace and publishes its open objects."""
        driver = self.driver
        if driver is None or not self.observed.namespace_terminating or not is_terminating(driver):
            return False
        return pod_failures.termination_failure(driver) is None

    @property
    def has_published_at_stop(self) -> bool:
        """Whether the driver has ended and published its open objects before that."""
        return self.driver is not None and pod_failures.has_published(self.driver)

    @property
    def unowned_object(self) -> Json | None:
        """The first object with the name of a child that this sink does not own."""
        for pod in (self.observed.driver, self.observed.operation):
            if pod is not None and not is_controlled(pod, self.uid):
                return pod
        for child in (self.observed.config_map, self.observed.service_account, self.observed.role_binding):
            if child is not None and not is_controlled(child, self.uid):
                owners = child["metadata"].get("ownerReferences") or ()
                if label(child, names.SINK_LABEL) != self.name or any(owner.get("controller") for owner in owners):
                    return child
        return None

    @property
    def report(self) -> Report | None:
        return self.observed.report if isinstance(self.observed.report, Report) and self.driver else None

    @cached_property
    def history(self) -> AttemptHistory:
        """The attempts and failures after this pass."""
        observed = replace(self.observed, driver=self.driver, operation=self.operation)
        return update_history(observed, self.previous_status, self.revision, self.bounds, self.now)

    @property
    def lost_node_pod(self) -> tuple[Json, str] | None:
        """The driver or operation pod whose node is gone or not ready, and the node."""
        nodes = dict(self.observed.nodes)
        for pod in (self.driver, self.operation):
            node = None if pod is None else pod_failures.node_of_lost_pod(pod, nodes)
            if pod is not None and node is not None and pod_failures.termination_failure(pod) is None:
                return pod, node
        return None

    def rejected_for_ms(self, kind: str, name: str) -> int | None:
        """Milliseconds until a write that the API server rejected is retried; None if it may be written."""
        times = [each.at_ms for each in self.observed.rejections if (each.kind, each.name) == (kind, name)]
        left = max(times) + self.settings.rejected_retry_ms - self.now if times else 0
        return left if left > 0 else None

    # -- the desired driver --------------------------------------------------------------------------------------------

    @cached_property
    def revision(self) -> DriverRevision | None:
        """The revision that a driver would be started with now."""
        if self.sink is None:
            return None
        return DriverRevision(spec_hash=objects.spec_hash(self.sink, self.settings), restart=self.restart_requested)

    @property
    def source_hash(self) -> str:
        """A digest of the settings in the spec of the sink, without the defaults of the operator."""
        return objects.source_hash(self.observed.spec.written or self.parsed_sink)

    @cached_property
    def is_rollout_pending(self) -> bool:
        """Whether the driver differs from the desired revision only by what the operator adds to the spec: its default
        image, or the result of another version. Such a restart is not requested by the user and waits for its turn.

        A driver of a version that did not annotate the source counts as such.
        """
        driver, revision = self.driver, self.revision
        if driver is None or self.sink is None or revision is None or is_terminating(driver):
            return False
        if revision.matches_pod(driver) or revision.requests_restart(driver):
            return False
        source = annotation(driver, names.SOURCE_HASH_ANNOTATION)
        is_same_generation = annotation(driver, names.GENERATION_ANNOTATION) == str(self.generation)
        return source is None or is_same_generation or source == self.source_hash

    @property
    def has_current_driver(self) -> bool:
        """Whether the driver was started with the current spec and the current defaults of the operator."""
        return self.driver is not None and self.revision is not None and self.revision.matches_pod(self.driver)

    @property
    def is_up_to_date(self) -> bool:
        """Whether the driver was started with the current spec."""
        return self.has_current_driver or self.is_rollout_pending

    @property
    def is_local(self) -> bool:
        return self.parsed_sink.spec.executor.mode is ExecutorMode.LOCAL

    @property
    def bounds(self) -> Bounds | None:
        """The memory bounds of the spec. In Local mode spec.driver.memory fixes the size of the pod."""
        if self.sink is None:
            return None
        spec = self.sink.spec
        if self.is_local and spec.driver.memory is not None:
            return Bounds(mode=MemoryMode.DISABLED, min=spec.driver.memory, max=spec.driver.memory)
        memory = spec.executor.memory
        return Bounds(mode=memory.mode, min=memory.min, max=memory.max)

    @cached_property
    def inputs(self) -> SizingInputs:
        """The inputs of the required memory, from this report or else from the previous status."""
        spec = self.parsed_sink.spec
        load = self._load
        return SizingInputs(
            slots=spec.executor.cores,
            executors=self.desired_executors,
            part_size=spec.s3.part_size,
            encoding=memory_budget.encoding_memory(spec.format),
            open_objects=load.open_objects or 0,
            held_bytes=load.held_bytes or 0,
            active_partitions=load.active_partitions or 0,
            remainder_bytes=load.remainder_bytes or 0,
        )

    @cached_property
    def _load(self) -> MemoryInputs:
        """What the driver reports now, or else what it reported last."""
        if self.report is None:
            section = self.previous_status.memory
            return (section.inputs if section else None) or MemoryInputs()
        memory = self.report.memory
        return MemoryInputs(
            open_objects=memory.max_open_objects,
            held_bytes=min(memory.buffered_bytes + memory.spilled_bytes, MAX_INTEGER),
            active_partitions=memory.active_partitions,
            remainder_bytes=memory.remainder_bytes,
        )

    @property
    def desired_executors(self) -> int:
        """The desired number of executors; 1 in Local mode, where the driver pod runs the tasks."""
        if self.is_local:
            return 1
        plan = self.scaling_plan
        return self.parsed_sink.spec.executor.instances if plan is None else plan.executors

    @cached_property
    def scaling_plan(self) -> ScalingPlan | None:
        """The number of executors that follows activity; None with `scaling.mode: Fixed`, and in Local mode."""
        bounds = None if self.sink is None else ScalingBounds.of(self.sink.spec.executor)
        if bounds is None:
            return None
        active = self._load.active_partitions or 0
        if self.driver is None:
            return executor_count.start(active, bounds)
        section = self.previous_status.scaling
        current = self.current_executors
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
    def current_executors(self) -> int | None:
        """The desired number of executors before this pass, if it is known. The status precedes the allocation."""
        section = self.previous_status.scaling
        known = None if section is None else section.desired
        return known or (None if self.allocation is None else self.allocation.executors)

    @property
    def _follows_allocation(self) -> bool:
        """Whether the driver is of the current spec, copies, and applies its allocation."""
        report = self.report
        if report is None or report.state is not RunState.RUNNING or not self.is_up_to_date:
            return False
        return report.memory.applied_bytes is not None

    @property
    def _resizes_executors(self) -> bool:
        """Whether the driver or a container does not have the current memory yet. Not a container whose resize was
        rejected, or that its node cannot resize: that may last."""
        report, current = self.report, self.current_memory
        if report is None or current is None or report.memory.applied_bytes != current:
            return True
        rejected = {each.name for each in self.observed.rejections}
        size = self.executor_limit(current)
        return self.settings.supports_resize and any(
            (objects.memory_limit(pod) or size) != size
            for pod in self.executors
            if pod["metadata"]["name"] not in rejected and not is_terminating(pod)
        )

    def executor_limit(self, memory: int) -> int:
        """The memory limit in bytes of an executor that is allocated `memory` bytes."""
        cores = self.parsed_sink.spec.executor.cores
        return memory_budget.heap_of(cores) + memory_budget.executor_overhead(memory, cores=cores)

    @cached_property
    def current_memory(self) -> int | None:
        """Desired bytes of each running executor, or of the pod in Local mode; None without a driver."""
        if self.driver is None:
            return None
        return self.allocation.memory if self.allocation is not None else objects.sized_memory(self.driver)

    @cached_property
    def allocation(self) -> Allocation | None:
        """The allocation of the last driver."""
        return objects.current_allocation(self.observed.config_map)

    @property
    def has_edited_bounds(self) -> bool:
        """Whether the settings of the memory are others than those of the allocation."""
        bounds = "" if self.allocation is None else self.allocation.bounds
        return bounds not in ("", objects.memory_bounds(self.parsed_sink))

    @property
    def has_changed_by_defaults(self) -> bool:
        """Whether changed defaults of the operator, not the user, changed the memory of the running driver.

        An edit of the spec since its start is that of the user, unless defaults apply to the memory.
        """
        if not self.has_edited_bounds:
            return self.allocation is not None and self.allocation.by_defaults
        applied = self.settings.sink_defaults.applied(self.written_spec)
        generation = annotation(self.driver or {"metadata": {}}, names.GENERATION_ANNOTATION)
        return generation == str(self.generation) or any(each.field.startswith(_MEMORY) for each in applied)

    @cached_property
    def start_size(self) -> int:
        """Bytes that an executor, or the whole sink in Local mode, is started with."""
        bounds = self.bounds
        assert bounds is not None
        size = memory_sizing.start_size(self.inputs, bounds, self.history.sizing, self.now)
        return max(bounds.min, self._smaller_size(size) or size) if self._is_driver_rejected else size

    @property
    def _is_driver_rejected(self) -> bool:
        """Whether the API server rejected the next driver pod of a sink in Local mode, for its size or else."""
        pod = "Pod", names.driver_pod_name(self.name)
        return self.is_local and any((each.kind, each.name) == pod for each in self.observed.rejections)

    def _smaller_size(self, size: int) -> int | None:
        """The last memory of the sink below `size`; None if none is known."""
        memory = self.previous_status.memory or MemoryStatus()
        change = memory.last_change or MemoryChange()
        known = (memory.current, change.to, change.from_)
        return max((each for each in known if each is not None and each < size), default=None)

    @property
    def is_driver_capped(self) -> bool:
        """Whether the driver of a sink in Cluster mode has reached the limit of automatic sizing."""
        if self.sink is None or self.is_local or self.sink.spec.driver.memory is not None:
            return False
        return memory_sizing.is_driver_capped(self.history.sizing, self.now)

    def pod_shape(self) -> PodShape:
        """The sizes and annotations of the next driver pod."""
        revision = self.revision
        assert revision is not None
        memory = self.start_size
        if not self.is_local:
            partitions = self.previous_progress.partitions
            assigned = max(0, (partitions.assigned if partitions else None) or 0)
            memory = self.parsed_sink.spec.driver.memory or memory_sizing.driver_size(
                assigned, self.history.sizing, self.now
            )
        return PodShape(
            attempt=self.history.next_attempt,
            memory=memory,
            executor_memory=None if self.is_local else self.start_size,
            spec_hash=revision.spec_hash,
            source_hash=self.source_hash,
            generation=self.generation,
            restarted_for=self.restart_requested,
        )
