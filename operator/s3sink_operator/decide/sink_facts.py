"""The facts about the S3Sink itself: its manifest, its previous status, its reset requests, and its conflicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from s3sink_operator import names, objects
from s3sink_operator.conflicts import overlaps
from s3sink_operator.decide.attempt_history import DriverRevision
from s3sink_operator.sizing.memory_sizing import Bounds
from s3sink_operator.status.progress_model import SinkProgress
from s3sink_operator.status.status_model import CompletedNonces, S3SinkStatus
from s3sink_operator.types import (
    Json,
    Observed,
    Settings,
    SinkResources,
    annotation,
    desired_state,
    owner_reference,
    to_ms,
)
from sink_job.api import memory_budget
from sink_job.api.enums import DeletionPolicy, DesiredState, ExecutorMode, MemoryMode
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.spec import Sink

BY_SPEC: Final = "spec"
BY_ANNOTATION: Final = "annotation"
RESET_REQUEST_FIELD: Final = {
    BY_SPEC: "spec.offsets.reset",
    BY_ANNOTATION: f"the annotation {names.RESET_OFFSETS_ANNOTATION}",
}


@dataclass(frozen=True, kw_only=True)
class PreviousStatus:
    """The status before this pass. `document`: its JSON."""

    document: Json

    @cached_property
    def status(self) -> S3SinkStatus:
        return S3SinkStatus.read(self.document)

    @property
    def progress(self) -> SinkProgress:
        return self.status.progress or SinkProgress()


@dataclass(frozen=True, kw_only=True)
class ResetRequests:
    """The requests for an offset reset: one may be in the spec, and one in the annotation."""

    observed: Observed
    previous: PreviousStatus

    @property
    def sink(self) -> Sink | None:
        """The sink with the current request, if its spec is valid: a request in the annotation replaces that of the
        spec until it is completed."""
        return self._by_annotation or self.observed.spec.sink

    @cached_property
    def _by_annotation(self) -> Sink | None:
        return None if self._is_completed or self.observed.reset is None else self.observed.reset.sink

    @property
    def _is_completed(self) -> bool:
        """Whether there is no request in the annotation, or it is completed."""
        reset = self.observed.reset
        return reset is None or (reset.nonce is not None and reset.nonce == self.completed_nonces.annotation)

    @property
    def source(self) -> str:
        """Source of the current request: BY_SPEC or BY_ANNOTATION."""
        return BY_SPEC if self._by_annotation is None else BY_ANNOTATION

    @property
    def error(self) -> str:
        """Why the request of the annotation is invalid; empty if there is none or it is valid."""
        reset = self.observed.reset
        return "" if reset is None or self._is_completed else reset.error

    @cached_property
    def pending(self) -> OffsetResetSpec | None:
        """The current request, if it is not completed."""
        reset = self.sink.spec.offsets.reset if self.sink is not None else None
        return None if reset is None or reset.nonce == self._completed_nonce else reset

    @property
    def completed_nonces(self) -> CompletedNonces:
        """The nonces of the completed requests: the spec and the annotation hold one each."""
        reset = self.previous.status.offset_reset
        if reset is None:
            return CompletedNonces()
        return reset.completed_nonces or CompletedNonces(spec=reset.nonce)

    @property
    def _completed_nonce(self) -> str | None:
        """The nonce of the last completed request of the current source."""
        nonces = self.completed_nonces
        return nonces.spec if self.source == BY_SPEC else nonces.annotation


@dataclass(frozen=True, kw_only=True)
class SinkFacts:
    """The manifest of the sink, and what it asks for. `parsed`: None if the spec is invalid."""

    observed: Observed
    settings: Settings
    previous: PreviousStatus
    parsed: Sink | None

    @property
    def manifest(self) -> Sink:
        """The parsed manifest, for policies after the one that checks the spec."""
        assert self.parsed is not None
        return self.parsed

    @property
    def spec_error(self) -> str:
        """Why the spec is invalid; empty if it is valid."""
        return self.observed.spec.error

    # -- its metadata --------------------------------------------------------------------------------------------------

    @cached_property
    def metadata(self) -> Json:
        return dict(self.observed.sink.get("metadata") or {})

    @property
    def name(self) -> str:
        return str(self.metadata.get("name"))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation", 0))

    @property
    def finalizers(self) -> list[str]:
        return list(self.metadata.get("finalizers") or ())

    @property
    def deletion_ms(self) -> int | None:
        """Time of the deletion; None for a sink that is not deleted."""
        return to_ms(self.metadata.get("deletionTimestamp"))

    @property
    def owner_reference(self) -> Json:
        """The owner reference of all children."""
        return owner_reference(self.observed.sink)

    @cached_property
    def desired_state(self) -> tuple[DesiredState, str]:
        """The desired state and its source."""
        return desired_state(self.observed.sink)

    @property
    def restart_requested(self) -> str | None:
        """The text of the restart annotation."""
        return annotation(self.observed.sink, names.RESTART_ANNOTATION) or None

    @property
    def skip_annotation(self) -> str | None:
        """The text of the skip annotation."""
        return annotation(self.observed.sink, names.SKIP_ANNOTATION)

    @property
    def edition(self) -> str:
        """What the user has written, as the driver pod has it in its annotation."""
        return names.edition(self.generation, self.skip_annotation)

    # -- its spec, valid or not ----------------------------------------------------------------------------------------

    @property
    def written_spec(self) -> Json:
        """The spec as it is written."""
        spec = self.observed.sink.get("spec")
        return spec if isinstance(spec, dict) else {}

    @cached_property
    def spec(self) -> Json:
        """The spec with the defaults of the operator."""
        return dict(self.settings.sink_defaults.apply(self.written_spec))

    @property
    def deletion_policy(self) -> DeletionPolicy:
        """The deletion policy as it is written."""
        written = self.spec.get("deletionPolicy")
        return DeletionPolicy(written) if written in list(DeletionPolicy) else DeletionPolicy.RETAIN

    @property
    def s3_endpoint(self) -> str:
        """The S3 endpoint; empty for AWS. An edit may change it."""
        s3 = self.spec.get("s3")
        return str(s3.get("endpoint") or "") if isinstance(s3, dict) else ""

    @property
    def published(self) -> bool:
        """Whether the previous status says that all open objects are published, at this endpoint."""
        status = self.previous.status
        return bool(status.published) and (status.published_endpoint or "") == self.s3_endpoint

    # -- its valid spec ------------------------------------------------------------------------------------------------

    @cached_property
    def revision(self) -> DriverRevision | None:
        """The revision that a driver would be started with now."""
        if self.parsed is None:
            return None
        return DriverRevision(spec_hash=objects.spec_hash(self.parsed, self.settings), restart=self.restart_requested)

    @property
    def source_hash(self) -> str:
        """A digest of the settings in the spec of the sink, without the defaults of the operator."""
        return objects.source_hash(self.observed.spec.written or self.manifest)

    @property
    def is_local(self) -> bool:
        return self.manifest.spec.executor.mode is ExecutorMode.LOCAL

    @property
    def memory_bounds(self) -> Bounds | None:
        """The memory bounds of the spec. In Local mode spec.driver.memory fixes the size of the pod."""
        if self.parsed is None:
            return None
        spec = self.parsed.spec
        if self.is_local and spec.driver.memory is not None:
            return Bounds(mode=MemoryMode.DISABLED, min=spec.driver.memory, max=spec.driver.memory)
        memory = spec.executor.memory
        return Bounds(mode=memory.mode, min=memory.min, max=memory.max)

    def executor_limit(self, memory: int) -> int:
        """The memory limit in bytes of an executor that is allocated `memory` bytes."""
        cores = self.manifest.spec.executor.cores
        return memory_budget.heap_of(cores) + memory_budget.executor_overhead(memory, cores=cores)


@dataclass(frozen=True, kw_only=True)
class Conflicts:
    """Other sinks with the same resources. Only a valid spec has resources."""

    observed: Observed
    sink: SinkFacts

    @cached_property
    def resources(self) -> SinkResources:
        """The resources of this sink."""
        return overlaps.resources_of(self.sink.manifest, self.observed.sink)

    @cached_property
    def first_owner(self) -> overlaps.SinkConflict | None:
        """The sink of the namespace that had overlapping resources first, or may have."""
        if self.sink.parsed is None:
            return None
        return overlaps.find_conflict(self.resources, self.observed.competitors)

    @cached_property
    def foreign_overlap(self) -> overlaps.SinkConflict | None:
        """A sink of another namespace whose resources overlap, or may overlap."""
        if self.sink.parsed is None:
            return None
        return overlaps.find_foreign_overlap(self.resources, self.observed.competitors)

    @property
    def is_lost(self) -> bool:
        """Whether this sink loses a certain conflict."""
        return self.first_owner is not None and self.first_owner.certain
