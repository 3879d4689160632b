"""What a running driver tells about itself: the typed `/report`, read by the CLI and the operator.

Times are milliseconds since the epoch, durations milliseconds, sizes bytes; offsets are Kafka offsets. Readers ignore
fields that they do not know, so an older operator reads a newer job.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from sink_job.api.errors import DataError, SinkError

_LONGEST_TOPIC = 249
_MOST = 2**63 - 1

Topic = Annotated[str, Field(max_length=_LONGEST_TOPIC)]
Partition = Annotated[int, Field(ge=0, le=2**31 - 1)]
Count = Annotated[int, Field(ge=0, le=_MOST)]
"""How many of something, also bytes and offsets."""
Figure = Annotated[int, Field(ge=-_MOST, le=_MOST)]
"""What a clock that was set may make less than nothing."""
Moment = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
"""A time before the year 10000, which is as far as it can be written."""

TERMINATION_MESSAGE_BYTES: Final = 4096
"""What Kubernetes keeps of a container's termination message."""


class ReportModel(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, extra="ignore"
    )


class RunState(StrEnum):
    """What the driver is doing."""

    STARTING = "Starting"
    RECOVERING = "Recovering"
    RUNNING = "Running"
    STOPPING = "Stopping"
    ENDED = "Ended"
    FAILED = "Failed"


class PartitionReport(ReportModel):
    """One topic-partition."""

    topic: Topic
    partition: Partition
    committed: Annotated[Count, Field(description="First offset that is not in a visible object.")]
    next: Annotated[Count, Field(description="First offset that has not been read into an object.")]
    end: Annotated[Count | None, Field(description="Log end as read_committed sees it; none: not known yet.")] = None
    lag: Annotated[Count | None, Field(description="end - committed.")] = None
    lag_ms: Annotated[Figure | None, Field(description="Age of the oldest record that is not visible, if known.")] = (
        None
    )
    open_objects: Count = 0


class HangingTransactionReport(ReportModel):
    """A topic-partition of which nothing can be read, because a transaction stays open in it."""

    topic: Topic
    partition: Partition
    offset: Annotated[Count, Field(description="Last stable offset: the first of the open transaction.")]
    end: Annotated[Count, Field(description="End of the log, open transactions included.")]
    since: Annotated[Moment, Field(description="Since when it stands there at the latest.")]


class Totals(ReportModel):
    """Counts since this driver's claim."""

    records: Annotated[Count, Field(description="Records in recorded objects, open ones included.")] = 0
    bytes: Annotated[Count, Field(description="Their encoded, uncompressed bytes.")] = 0
    objects: Annotated[Count, Field(description="Objects made visible.")] = 0
    parts: Annotated[Count, Field(description="Parts uploaded.")] = 0
    uploaded_bytes: Annotated[Count, Field(description="Bytes of those parts.")] = 0
    ignored: Annotated[Count, Field(description="Records without value that onNullValue let go.")] = 0
    dropped: Annotated[Count, Field(description="Refused records that tolerance let go.")] = 0
    lost: Annotated[
        Count, Field(description="Offsets given up because Kafka no longer held them (onDataLoss: Continue).")
    ] = 0
    rebuilt: Annotated[Count, Field(description="Objects rebuilt because their upload was lost.")] = 0
    retries: Annotated[Count, Field(description="Requests to S3 that were tried again.")] = 0
    clock_jumps: Annotated[Count, Field(description="Times that the host's clock was set by more than 5 s.")] = 0


class Timing(ReportModel):
    """How long something takes, in milliseconds."""

    count: Count = 0
    total_ms: Figure = 0
    last_ms: Figure | None = None
    longest_ms: Figure | None = None


class MemoryReport(ReportModel):
    """What the operator computes memory from."""

    slots: Annotated[Count, Field(description="Tasks that run at a time.")] = 0
    open_objects: Annotated[Count, Field(description="Open objects of all topic-partitions.")] = 0
    max_open_objects: Annotated[Count, Field(description="Open objects of the topic-partition that has most.")] = 0
    part_size: Count = 0
    buffered_bytes: Annotated[Count, Field(description="Bytes that tasks of the last round held at their peak.")] = 0
    spilled_bytes: Annotated[Count, Field(description="Bytes that tasks of the last round put on local disk.")] = 0
    jvm_bytes: Annotated[Count | None, Field(description="Peak resident memory of the JVM.")] = None
    python_bytes: Annotated[Count | None, Field(description="Peak resident memory of the largest Python worker.")] = (
        None
    )


class Failure(ReportModel):
    """Why the driver stops."""

    reason: str
    message: str
    exit_code: Figure
    topic: str | None = None
    partition: int | None = None
    offset: Count | None = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """What `error` means to the one who runs the sink; an error without a name is ours, and says what it is."""
        if not isinstance(error, SinkError):
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
            return cls(reason=SinkError.reason, message=message, exit_code=SinkError.exit_code)
        failure = cls(reason=error.reason, message=str(error), exit_code=error.exit_code)
        if isinstance(error, DataError):
            failure.topic, failure.partition, failure.offset = error.topic, error.partition, error.offset
        return failure


class FinalReport(ReportModel):
    """How a driver ended: its termination message, which the operator reads when there is no report any more."""

    epoch: Count | None = None
    round: Count | None = None
    totals: Totals = Totals()
    lag: Annotated[Count | None, Field(description="Offsets that were in no visible object; none: not known.")] = None
    open_objects: Count = 0
    failure: Failure | None = None

    def termination_message(self) -> str:
        """JSON of at most 4 KiB, as Kubernetes allows; the failure's message is shortened to make it fit."""
        text = self.model_dump_json(exclude_none=True)
        excess = len(text.encode()) - TERMINATION_MESSAGE_BYTES
        if excess <= 0 or self.failure is None:
            return text
        kept = max(0, len(self.failure.message) - excess - len("…".encode()))
        shorter = self.failure.model_copy(update={"message": self.failure.message[:kept] + "…"})
        return self.model_copy(update={"failure": shorter}).model_dump_json(exclude_none=True)


class StartReport(ReportModel):
    """Where one topic-partition starts after a reset."""

    topic: Topic
    partition: Partition
    previous: Annotated[Count | None, Field(description="First offset that was in no object; none: it is new.")] = None
    start: Annotated[Count, Field(description="First offset to copy from now on.")]


class ResetReport(ReportModel):
    """What came of a reset of the offsets: the termination message of the pod that did it."""

    generation: Annotated[Count, Field(description="Of the ledger; the first reset begins 2.")]
    record: Annotated[Count, Field(description="Number of the record that says so.")]
    topics_dir: Annotated[str, Field(description="Where objects go from now on.")]
    copied_again: Annotated[Count, Field(description="Offsets that are in objects of before and are copied again.")] = 0
    skipped: Annotated[Count, Field(description="Offsets that are in no object and are not copied.")] = 0
    repeated: Annotated[bool, Field(description="The same request was carried out before, by this record.")] = False
    partitions: list[StartReport] = []
    more: Annotated[Count, Field(description="Topic-partitions left out for want of room.")] = 0

    def termination_message(self) -> str:
        """JSON of at most 4 KiB: as many topic-partitions as fit."""
        for kept in range(len(self.partitions), -1, -1):
            some = {"partitions": self.partitions[:kept], "more": len(self.partitions) - kept}
            text = self.model_copy(update=some).model_dump_json(exclude_none=True)
            if len(text.encode()) <= TERMINATION_MESSAGE_BYTES:
                return text
        raise AssertionError("a message without topic-partitions fits")


class Report(ReportModel):
    """All of `/report`."""

    sink_id: str
    name: str
    namespace: str
    state: RunState
    epoch: Annotated[Count | None, Field(description="Number of this driver's claim; none before it.")] = None
    round: Annotated[Count | None, Field(description="Number of the last recorded round.")] = None
    now: Annotated[Moment, Field(description="The driver's clock when it made this report.")]
    started_at: Moment
    assigned_partitions: Count = 0
    active_partitions: Annotated[Count, Field(description="Topic-partitions that the last round read.")] = 0
    partitions: list[PartitionReport] = []
    stuck: Annotated[
        list[HangingTransactionReport], Field(description="Where an open transaction holds everything up.")
    ] = []
    totals: Totals = Totals()
    last_publish: Annotated[Moment | None, Field(description="When an object was last made visible.")] = None
    rounds: Timing = Timing()
    publishes: Timing = Timing()
    memory: MemoryReport = MemoryReport()
    failure: Failure | None = None

    @field_validator("partitions")
    @classmethod
    def _distinct(cls, partitions: list[PartitionReport]) -> list[PartitionReport]:
        if len({(each.topic, each.partition) for each in partitions}) < len(partitions):
            raise ValueError("a topic-partition is told twice")
        return partitions

    def final(self) -> FinalReport:
        """What is left of a report when the driver is gone."""
        lags = [each.lag for each in self.partitions]
        known = [lag for lag in lags if lag is not None]
        return FinalReport(
            epoch=self.epoch,
            round=self.round,
            totals=self.totals,
            lag=sum(known) if known and len(known) == len(lags) else None,
            open_objects=self.memory.open_objects,
            failure=self.failure,
        )
