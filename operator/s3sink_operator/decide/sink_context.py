"""The facts about one sink that the policies use: its manifest, its previous status, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from s3sink_operator import conflicts, names
from s3sink_operator.progress_model import SinkProgress
from s3sink_operator.status_model import CompletedNonces, S3SinkStatus
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
from sink_job.api.enums import DeletionPolicy, DesiredState
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.spec import Sink

BY_SPEC: Final = "spec"
BY_ANNOTATION: Final = "annotation"
RESET_REQUEST_FIELD: Final = {
    BY_SPEC: "spec.offsets.reset",
    BY_ANNOTATION: f"the annotation {names.RESET_OFFSETS_ANNOTATION}",
}


@dataclass(frozen=True)
class SinkContext:
    """The facts of one reconcile pass, without those of the pods. `now` in ms since the epoch."""

    observed: Observed
    settings: Settings
    now: int

    # -- the sink ------------------------------------------------------------------------------------------------------

    @cached_property
    def _requested_reset(self) -> Sink | None:
        """The sink with the request of the annotation, until that request is completed."""
        return None if self._is_reset_completed or self.observed.reset is None else self.observed.reset.sink

    @property
    def _is_reset_completed(self) -> bool:
        reset = self.observed.reset
        return reset is None or (reset.nonce is not None and reset.nonce == self.completed_nonces.annotation)

    @property
    def sink(self) -> Sink | None:
        """The sink, if its spec is valid. A reset request in the annotation replaces that of the spec."""
        return self._requested_reset or self.observed.spec.sink

    @property
    def parsed_sink(self) -> Sink:
        """The sink, for policies after the one that checks the spec."""
        assert self.sink is not None
        return self.sink

    @property
    def spec_error(self) -> str:
        """Why the spec is invalid; empty if it is valid."""
        return self.observed.spec.error

    @property
    def reset_source(self) -> str:
        """Source of the reset request: BY_SPEC or BY_ANNOTATION."""
        return BY_SPEC if self._requested_reset is None else BY_ANNOTATION

    @property
    def reset_error(self) -> str:
        """Why the request of the annotation is invalid; empty if there is none or it is valid."""
        reset = self.observed.reset
        return "" if reset is None or self._is_reset_completed else reset.error

    @cached_property
    def pending_reset(self) -> OffsetResetSpec | None:
        """The reset request that is not completed."""
        reset = self.sink.spec.offsets.reset if self.sink is not None else None
        return None if reset is None or reset.nonce == self.completed_nonce else reset

    @property
    def completed_nonces(self) -> CompletedNonces:
        """The nonces of the completed requests: the spec and the annotation hold one each."""
        reset = self.previous_status.offset_reset
        if reset is None:
            return CompletedNonces()
        return reset.completed_nonces or CompletedNonces(spec=reset.nonce)

    @property
    def completed_nonce(self) -> str | None:
        """The nonce of the last completed request of the current source."""
        nonces = self.completed_nonces
        return nonces.spec if self.reset_source == BY_SPEC else nonces.annotation

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

    @cached_property
    def previous_document(self) -> Json:
        """The JSON of the status before this pass."""
        return dict(self.observed.sink.get("status") or {})

    @cached_property
    def previous_status(self) -> S3SinkStatus:
        """The status before this pass."""
        return S3SinkStatus.read(self.previous_document)

    @property
    def previous_progress(self) -> SinkProgress:
        return self.previous_status.progress or SinkProgress()

    @property
    def written_spec(self) -> Json:
        """The spec as it is written, valid or not."""
        spec = self.observed.sink.get("spec")
        return spec if isinstance(spec, dict) else {}

    @cached_property
    def spec(self) -> Json:
        """The spec with the defaults of the operator, valid or not."""
        return dict(self.settings.sink_defaults.apply(self.written_spec))

    @property
    def deletion_policy(self) -> DeletionPolicy:
        """The deletion policy as it is written, also of an invalid spec."""
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
        status = self.previous_status
        return bool(status.published) and (status.published_endpoint or "") == self.s3_endpoint

    @cached_property
    def desired_state(self) -> tuple[DesiredState, str]:
        """The desired state and its source."""
        return desired_state(self.observed.sink)

    @property
    def restart_requested(self) -> str | None:
        """The text of the restart annotation."""
        return annotation(self.observed.sink, names.RESTART_ANNOTATION) or None

    @cached_property
    def resources(self) -> SinkResources:
        return conflicts.resources_of(self.parsed_sink, self.observed.sink)

    @cached_property
    def conflict(self) -> conflicts.SinkConflict | None:
        """The sink of the namespace that had overlapping resources first, or may have."""
        return None if self.sink is None else conflicts.find_conflict(self.resources, self.observed.competitors)

    @cached_property
    def foreign_overlap(self) -> conflicts.SinkConflict | None:
        """A sink of another namespace whose resources overlap, or may overlap."""
        if self.sink is None:
            return None
        return conflicts.find_foreign_overlap(self.resources, self.observed.competitors)

    @property
    def has_conflict(self) -> bool:
        """Whether this sink loses a certain conflict."""
        return self.conflict is not None and self.conflict.certain

    @property
    def owner_reference(self) -> Json:
        """The owner reference of all children."""
        return owner_reference(self.observed.sink)

    # -- its objects ---------------------------------------------------------------------------------------------------
