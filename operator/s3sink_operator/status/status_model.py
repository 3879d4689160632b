"""The status of an S3Sink as typed models. The status schema of the CustomResourceDefinition is generated from them.

In code times are milliseconds since the epoch and sizes bytes; in JSON they are RFC 3339 timestamps of whole seconds
and Kubernetes quantities. The text below a field is its description in the CustomResourceDefinition.

The status is the operator's only memory. Every field that the operator depends on is declared here: the API server
prunes undeclared fields.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import Field, ValidationError

from s3sink_operator.config.sink_defaults import MAX_APPLIED
from s3sink_operator.status.progress_model import MAX_MOST_LAGGING, SinkProgress
from s3sink_operator.status.status_fields import PastTimes, Quantity, StatusModel, Time
from s3sink_operator.types import FailureCategory
from sink_job.api.enums import DesiredState, ResetTo
from sink_job.api.report import MAX_TABLE_MESSAGE, MAX_TABLE_NAME, MAX_TABLES_SHOWN

MAX_ATTEMPTS: Final = 5
"""Attempts that `attempts` lists."""
MAX_CONDITIONS: Final = 32
_MAX_PASSES: Final = 8


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class StatusCondition(StatusModel):
    """A condition, as `metav1.Condition` of Kubernetes."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Condition type."""
    status: ConditionStatus
    """Status of the condition: True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Reason of the last transition, in CamelCase."""
    message: Annotated[str, Field(max_length=32768)]
    """Human-readable explanation, with the action to take."""
    last_transition_time: Time
    """Time of the last change of the status."""
    observed_generation: Annotated[int | None, Field(ge=0)] = None
    """Generation of the spec that the condition was computed for."""


class MemoryInputs(StatusModel):
    """Inputs of the required memory."""

    slots: int | None = None
    """Number of tasks that an executor runs at a time."""
    part_size: int | None = None
    """Bytes of a part."""
    open_objects: Annotated[int | None, Field(ge=0)] = None
    """Open objects of the topic-partition that has most."""
    held_bytes: Annotated[int | None, Field(ge=0)] = None
    """Bytes that the tasks of the last round buffered or spilled."""
    executors: int | None = None
    """Number of executors that share the topic-partitions."""
    active_partitions: Annotated[int | None, Field(ge=0)] = None
    """Number of topic-partitions that had records recently."""
    remainder_bytes: Annotated[int | None, Field(ge=0)] = None
    """Expected staged bytes of an active topic-partition."""


class MemoryChange(StatusModel):
    """A change of the memory."""

    time: Time = None
    """Time of the change."""
    from_: Annotated[Quantity, Field(alias="from")] = None
    """Memory before the change."""
    to: Quantity = None
    """Memory after the change."""
    reason: str | None = None
    """Reason of the change."""


class MemoryStatus(StatusModel):
    """Memory of an executor, or of the whole sink in Local mode."""

    current: Quantity = None
    """Current memory."""
    recommended: Quantity = None
    """Recommended memory."""
    inputs: MemoryInputs | None = None
    """Inputs of the recommendation."""
    last_change: MemoryChange | None = None
    """Last change."""
    next_change_time: Time = None
    """Earliest time of the next change, except after an out-of-memory kill."""
    minimum: Quantity = None
    """Minimum memory learned from an out-of-memory kill; expires after a week."""
    driver_minimum: Quantity = None
    """Minimum driver memory learned from an out-of-memory kill; expires after a week."""
    minimum_time: Time = None
    """Time when a minimum was learned last."""
    low_since_time: Time = None
    """Time since when less memory would suffice."""
    change_times: PastTimes | None = None
    """Times of the changes within the last day."""


class ScalingChange(StatusModel):
    """A change of the number of executors."""

    time: Time = None
    """Time of the change."""
    from_: Annotated[int | None, Field(alias="from")] = None
    """Number before the change."""
    to: int | None = None
    """Number after the change."""
    reason: str | None = None
    """Reason of the change."""


class ScalingStatus(StatusModel):
    """Number of executors with scaling.mode: Auto; absent with Fixed."""

    desired: Annotated[int | None, Field(ge=1)] = None
    """Desired number of executors."""
    bounds: Annotated[str | None, Field(max_length=100)] = None
    """Settings that the number was computed with."""
    low_since_time: Time = None
    """Time since when fewer executors would suffice."""
    low_most: Annotated[int | None, Field(ge=1)] = None
    """Most executors that would have sufficed since then."""
    last_change: ScalingChange | None = None
    """Last change."""


class Position(StatusModel):
    """Next offset of one topic-partition."""

    topic: str
    """Topic."""
    partition: int
    """Partition."""
    offset: int | None = None
    """First offset that has not been read."""


class Attempt(StatusModel):
    """One attempt: one driver pod."""

    number: int = 0
    """Number of the attempt, a label of its pods."""
    start_time: Time = None
    """Creation time of the driver pod."""
    end_time: Time = None
    """Time when the driver terminated."""
    reason: str | None = None
    """Reason of the termination, in CamelCase."""
    message: str | None = None
    """Explanation of the termination."""
    exit_code: int | None = None
    """Exit code of the driver."""
    resumes_from: str | None = None
    """Position from which the next attempt resumes: a round of the ledger, and offsets."""
    positions: Annotated[list[Position] | None, Field(max_length=MAX_MOST_LAGGING)] = None
    """Offsets from which the next attempt resumes, of some topic-partitions."""

    @property
    def has_ended(self) -> bool:
        return self.end_time is not None


class Retry(StatusModel):
    """State of the back-off after a failure."""

    failures: int = 0
    """Number of consecutive failures."""
    next_attempt_time: Time = None
    """Time of the next attempt."""
    category: FailureCategory = FailureCategory.INFRASTRUCTURE
    """Category of the last failure: User, Infrastructure or Scheduling."""
    reason: str = "Unknown"
    """Reason of the last failure, in CamelCase."""
    message: str = ""
    """Explanation of the last failure."""
    component: str | None = None
    """Pod that failed: driver or operation."""
    failure_id: str | None = None
    """Identifies the last failure: the uid of the pod or the time of the rejection."""
    spec_hash: str | None = None
    """Hash of the settings of the failed pod."""
    restart: str | None = None
    """Restart annotation of the failed pod."""
    operation_hash: str | None = None
    """Hash of the failed operation."""
    owner: str | None = None
    """With OwnershipConflict: the owner."""
    take_over: str | None = None
    """Owner that the failed pod was to take over from."""


class ResetPosition(StatusModel):
    """Start offset of one topic-partition."""

    topic: str
    """Topic."""
    partition: int
    """Partition."""
    offset: int | None = None
    """First offset that is copied after the reset."""


class CompletedNonces(StatusModel):
    """Nonces of the completed offset resets."""

    spec: str | None = None
    """Nonce of the last completed request in spec.offsets.reset."""
    annotation: str | None = None
    """Nonce of the last completed request in the annotation."""


class OffsetResetStatus(StatusModel):
    """The last completed offset reset."""

    nonce: str | None = None
    """Nonce of the request."""
    to: ResetTo | None = None
    """Requested start position."""
    time: Time = None
    """Time of completion."""
    phase: str | None = None
    """Phase of the request: Completed."""
    message: str | None = None
    """Result of the reset."""
    generation: int | None = None
    """Generation of the ledger; the first reset starts generation 2."""
    topics_dir: str | None = None
    """Prefix of the objects written after the reset."""
    recopied_offsets: int | None = None
    """Number of offsets that are in previous objects and are copied again."""
    skipped_offsets: int | None = None
    """Number of offsets that are in no object and are not copied."""
    partitions: Annotated[list[ResetPosition] | None, Field(max_length=MAX_MOST_LAGGING)] = None
    """Start offsets of the first topic-partitions."""
    completed_nonces: CompletedNonces | None = None
    """Nonces of the completed requests."""


class TablePositionStatus(StatusModel):
    """Position of the sink in a table."""

    generation: int | None = None
    """Generation of the ledger."""
    record: int | None = None
    """Record of the ledger up to which all acknowledged objects are in the table."""


class TableError(StatusModel):
    """Why nothing is added to a table."""

    reason: Annotated[str | None, Field(max_length=64)] = None
    """Reason, in CamelCase."""
    message: Annotated[str | None, Field(max_length=MAX_TABLE_MESSAGE)] = None
    """Explanation, with the action to take."""


class TableStatus(StatusModel):
    """One table of spec.tables."""

    name: Annotated[str, Field(max_length=MAX_TABLE_NAME)]
    """Name of the table; the pattern of spec.tables while no name is known."""
    topic: str | None = None
    """Topic."""
    position: TablePositionStatus | None = None
    """Position of the sink in the table."""
    lag_objects: int | None = None
    """Number of published objects that are not in the table."""
    lag_seconds: int | None = None
    """Time in seconds since when the table lacks objects; 0: it lacks none."""
    last_commit_time: Time = None
    """Time of the last commit of the driver."""
    error: TableError | None = None
    """Why nothing is added."""
    skipped_objects: int | None = None
    """Number of objects that did not exist and were left out of the table (onMissing: Skip)."""


class RolloutStatus(StatusModel):
    """Last restart by a rollout of the operator's defaults."""

    template: str
    """Hash of these defaults."""
    start_time: Time = None
    """Time of the restart."""
    available_time: Time = None
    """Time since when the sink is available again; absent before."""
    degraded: bool | None = None
    """Before the restart the sink was not Ready, and copied with some of its executors."""


class AppliedDefaultStatus(StatusModel):
    """A field that has its value from the operator."""

    field: str
    """Field of the S3Sink."""
    value: str
    """Its value."""


class ResourceClaim(StatusModel):
    """The resources that the sink holds. Another sink of the namespace that overlaps with them later does not run."""

    digest: Annotated[str, Field(max_length=64)]
    """Digest of bucket, directory, topics, consumer group, ledger and brokers of the spec."""
    since: Annotated[str, Field(max_length=64)]
    """Time since when the sink holds them."""


class S3SinkStatus(StatusModel):
    """Observed state of the sink. Written by the operator; safe to delete."""

    observed_generation: Annotated[int | None, Field(ge=0)] = None
    """Generation of the spec that the status was computed for."""
    conditions: Annotated[list[StatusCondition] | None, Field(max_length=MAX_CONDITIONS)] = None
    """Ready, Reconciling and Stalled always; further conditions such as DataLoss or InvalidSpec while they are true."""
    desired_state: DesiredState | None = None
    """Desired state."""
    desired_state_source: str | None = None
    """Where the desired state is set: spec.state or an annotation."""
    published: bool | None = None
    """Whether all open objects were published after the last driver terminated."""
    published_endpoint: str | None = None
    """S3 endpoint of the published objects; absent for AWS."""
    progress: SinkProgress | None = None
    """Progress that the driver reports."""
    tables: Annotated[list[TableStatus] | None, Field(max_length=MAX_TABLES_SHOWN)] = None
    """Tables of spec.tables: those with an error first, then those that lack objects for the longest time."""
    memory: MemoryStatus | None = None
    """Memory of an executor, or of the whole sink in Local mode."""
    scaling: ScalingStatus | None = None
    """Number of executors with scaling.mode: Auto; absent with Fixed."""
    attempts: Annotated[list[Attempt] | None, Field(max_length=MAX_ATTEMPTS)] = None
    """Last attempts, newest first."""
    retry: Retry | None = None
    """State of the back-off after a failure."""
    offset_reset: OffsetResetStatus | None = None
    """Last completed offset reset."""
    rollout: RolloutStatus | None = None
    """Last restart by a rollout of the operator's defaults."""
    applied_defaults: Annotated[list[AppliedDefaultStatus] | None, Field(max_length=MAX_APPLIED)] = None
    """Fields that the spec does not set and that have defaults of the operator (sinkDefaults of the chart)."""
    node_lost_time: Time = None
    """Time since when the node of the driver is not ready."""
    claim: ResourceClaim | None = None
    """Resources that the sink holds; absent while it loses a conflict."""
    replicas: Annotated[int | None, Field(ge=0)] = None
    """Number of running executor pods."""
    selector: str | None = None
    """Label selector of the executor pods."""

    @classmethod
    def read(cls, document: object) -> Self:
        """The status in a document of the API server. A field with an invalid value counts as absent."""
        rest: Any = document if isinstance(document, dict) else {}
        for attempt in range(_MAX_PASSES):
            try:
                return cls.model_validate(rest)
            except ValidationError as error:
                rest = copy.deepcopy(rest) if attempt == 0 else rest
                _remove(rest, (each["loc"] for each in error.errors(include_url=False)))
        return cls()

    def condition(self, kind: str) -> StatusCondition | None:
        """The condition of a type."""
        return next((each for each in self.conditions or () if each.type == kind), None)


def _remove(document: Any, places: Iterable[tuple[int | str, ...]]) -> None:
    """Removes from a document the deepest existing value at each place, later list items first."""
    existing = dict.fromkeys(_existing(document, place) for place in places)
    for path in reversed(existing):
        if path and not any(path[:end] in existing for end in range(1, len(path))):
            parent = document
            for step in path[:-1]:
                parent = parent[step]
            del parent[path[-1]]


def _existing(document: Any, place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The part of `place` that exists in the document."""
    node = document
    for depth, step in enumerate(place):
        exists = step in node if isinstance(node, dict) else isinstance(node, list) and step in range(len(node))
        if not exists:
            return place[:depth]
        node = node[step]
    return place
