"""The input and the result of writing one topic-partition's range of a round (`sink_job.writer.partition_writer`)."""

from __future__ import annotations

import msgspec

from sink_job.json.typed.inference import SampledValues
from sink_job.ledger.state import ClosedObject, PartitionState, RotationRange
from sink_job.rotation.types import CloseReason

MAX_UNRESOLVED = 1_000
"""Maximum number of unresolved schema ids that a task reports. It scans no further: the driver resolves no more between
two rounds, and values with arbitrary bytes contain arbitrary ids."""


class TaskInput(msgspec.Struct, frozen=True):
    """A topic-partition's state and the range `[state.next, end)` to read; `close`: close all open objects at its
    end. `skip` are offsets to pass over, ascending, beside those that the state has as skipped."""

    state: PartitionState
    end: int
    close: bool = False
    skip: tuple[int, ...] = ()


class RejectedRecord(msgspec.Struct, frozen=True):
    """A rejected record: its offset and the reason."""

    offset: int
    message: str


class TaskCounters(msgspec.Struct):
    """Counters of a task. `records` and `bytes` (uncompressed) were written, `ignored` are null values that the policy
    drops, `skipped` were passed over (`errors.skip`), `rejected` are invalid records that are tolerated, `kept_nulls`
    those of them that would be ignored without dead letters, `dead_letters` those of them in dead-letter objects.
    `dropped_properties` are properties of values that their schemas lack. `filtered` were left out by a transform."""

    records: int = 0
    bytes: int = 0
    ignored: int = 0
    skipped: int = 0
    rejected: int = 0
    kept_nulls: int = 0
    dead_letters: int = 0
    parts: int = 0
    part_bytes: int = 0
    staged_bytes: int = 0
    dropped_properties: int = 0
    spilled_bytes: int = 0
    buffered_bytes: int = 0
    requests: dict[str, int] = {}
    retries: int = 0
    filtered: int = 0


class TaskResult(msgspec.Struct, frozen=True):
    """The result of one task. `lost` describes an upload or a staging object that no longer exists; the other fields
    are then invalid, except `started_uploads`.

    `reasons` are those for which the objects `closed` were closed, in their order. `started_uploads` are the uploads of
    this attempt, as (key, upload id). `error` is the record at which the sink has
    to stop. `rejected` are the first of the tolerated invalid records. `unresolved` are (topic, schema id) of the
    first ids in the range that the driver has not resolved, at most `MAX_UNRESOLVED`; `state.next` is then the first
    record with one of them. `observed` is what the task knows of the values from there on, if their schema is to be
    inferred.
    """

    state: PartitionState
    counts: TaskCounters
    closed: tuple[ClosedObject, ...] = ()
    reasons: tuple[CloseReason, ...] = ()
    rotations: tuple[RotationRange, ...] = ()
    error: RejectedRecord | None = None
    rejected: tuple[RejectedRecord, ...] = ()
    started_uploads: tuple[tuple[str, str], ...] = ()
    lost: str | None = None
    unresolved: tuple[tuple[str, str], ...] = ()
    observed: SampledValues | None = None
