"""The facts that the policies use: one sink, its objects, and what follows from them. Each is computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from s3sink_operator import memory_sizing, names, objects, pod_failures
from s3sink_operator.decide.attempt_history import AttemptHistory, DriverRevision, update_history
from s3sink_operator.decide.sink_context import SinkContext
from s3sink_operator.memory_sizing import Bounds, SizingInputs
from s3sink_operator.objects import PodShape
from s3sink_operator.status import MAX_INTEGER
from s3sink_operator.status_model import MemoryChange, MemoryInputs, MemoryStatus
from s3sink_operator.types import (
    Json,
    annotation,
    is_controlled,
    is_terminating,
    label,
)
from sink_job.api import memory_budget
from sink_job.api.allocation import Allocation
from sink_job.api.enums import ExecutorMode, MemoryMode
from sink_job.api.report import Report

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
        if self.report is not None:
            memory = self.report.memory
            opened = memory.max_open_objects
            held = min(memory.buffered_bytes + memory.spilled_bytes, MAX_INTEGER)
            active, remainder = memory.active_partitions, memory.remainder_bytes
        else:
            section = self.previous_status.memory
            known = (section.inputs if section else None) or MemoryInputs()
            opened, held = known.open_objects or 0, known.held_bytes or 0
            active, remainder = known.active_partitions or 0, known.remainder_bytes or 0
        return SizingInputs(
            slots=spec.executor.cores,
            executors=1 if self.is_local else spec.executor.instances,
            part_size=spec.s3.part_size,
            encoding=memory_budget.encoding_memory(spec.format),
            open_objects=opened,
            held_bytes=held,
            active_partitions=active,
            remainder_bytes=remainder,
        )

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
