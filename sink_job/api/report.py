"""The types of a driver's `/report` and of its termination message. The CLI and the operator read them.

Times are in milliseconds since 1970-01-01 UTC, durations in milliseconds, sizes in bytes; offsets are Kafka offsets.
Readers ignore unknown fields, so an older operator can read the report of a newer job.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from sink_job.api.errors import DataError, OwnershipConflict, SinkError

_MAX_TOPIC_LENGTH = 249
_MAX_COUNT = 2**63 - 1

Topic = Annotated[str, Field(max_length=_MAX_TOPIC_LENGTH, pattern=r"^[a-zA-Z0-9._-]*$")]
"""The name of a topic, in the characters that Kafka allows."""
Partition = Annotated[int, Field(ge=0, le=2**31 - 1)]
Count = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
"""A count, a number of bytes, or an offset."""
Figure = Annotated[int, Field(ge=-_MAX_COUNT, le=_MAX_COUNT)]
"""A number that can be negative if the clock of the host was set."""
Moment = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
"""A time before the year 10000, the limit of the date format."""


TERMINATION_MESSAGE_BYTES: Final = 4096
"""Maximum size of a termination message in Kubernetes."""
MAX_POSITIONS: Final = 20
"""Topic-partitions whose position a termination message has."""


MAX_SUMS: Final = 1_000
"""Topics of a report with sums."""
MAX_TABLES_SHOWN: Final = 20
"""Tables that a report lists: those with an error first, then those that lack objects for the longest time."""
MAX_TABLE_NAME: Final = 1024
MAX_TABLE_MESSAGE: Final = 1024
MAX_SKIPS_SHOWN: Final = 20
"""Records of `errors.skip` without effect that a report lists."""


class ReportModel(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, extra="ignore"
    )


class RunState(StrEnum):
    """The state of a driver."""

    STARTING = "Starting"
    RECOVERING = "Recovering"
    RUNNING = "Running"
    STOPPING = "Stopping"
    ENDED = "Ended"
    FAILED = "Failed"


class PartitionReport(ReportModel):
    """The progress of one topic-partition."""

    topic: Topic
    partition: Partition
    committed: Annotated[Count, Field(description="First offset that is not in a visible object.")]
    next: Annotated[Count, Field(description="First offset that has not been read.")]
    end: Annotated[Count | None, Field(description="Log end at the sink's isolation level; none: unknown.")] = None
    lag: Annotated[Count | None, Field(description="end - committed.")] = None
    lag_ms: Annotated[
        Figure | None, Field(description="Age of the first record that is not in a visible object; none: unknown.")
    ] = None
    open_objects: Count = 0


def max_lag_ms(partitions: Sequence[PartitionReport]) -> int | None:
    """The age of the oldest record that is not in a visible object: 0 without a lag, None if the age of a lagging
    topic-partition or all log ends are unknown."""
    ages = [each.lag_ms for each in partitions if each.lag]
    known = [age for age in ages if age is not None]
    is_known = len(known) == len(ages) and any(each.lag is not None for each in partitions)
    return max(0, *known, 0) if is_known else None


def sum_of_lags(partitions: Sequence[PartitionReport]) -> int | None:
    """The sum of the known lags; None if none is known, which is so for a deleted topic."""
    lags = [each.lag for each in partitions if each.lag is not None]
    return sum(lags) if lags else None


class TopicSum(ReportModel):
    """The sums of all topic-partitions of a topic."""

    topic: Topic
    partitions: Count
    lag: Annotated[Count | None, Field(description="Records that are not in a visible object; none: unknown.")] = None
    lag_ms: Annotated[Figure | None, Field(description="Age of the oldest of them; none: unknown.")] = None


class ReportSums(ReportModel):
    """The sums of all topic-partitions, of which the report lists a part."""

    lag: Count | None = None
    lag_ms: Figure | None = None
    topics: list[TopicSum] = []


class HangingTransactionReport(ReportModel):
    """A topic-partition that cannot be read further because of a hanging transaction."""

    topic: Topic
    partition: Partition
    offset: Annotated[Count, Field(description="Last stable offset: the first of the open transaction.")]
    end: Annotated[Count, Field(description="End of the log, open transactions included.")]
    since: Annotated[Moment, Field(description="First time the sink observed this position.")]


class SkipReport(ReportModel):
    """A record of `errors.skip` that has no effect."""

    topic: Topic
    partition: Partition
    offset: Count
    reason: Annotated[str, Field(max_length=256)]


class SkipsReport(ReportModel):
    """What becomes of the records of `errors.skip`."""

    waiting: Annotated[Count, Field(description="Records that the sink has not reached yet.")] = 0
    skipped: Annotated[Count, Field(description="Records that were passed over.")] = 0
    without_effect: Annotated[
        Count, Field(description="Records that the sink had passed before, or does not read.")
    ] = 0
    records_without_effect: Annotated[
        list[SkipReport], Field(max_length=MAX_SKIPS_SHOWN, description="Some of these.")
    ] = []


class TableReport(ReportModel):
    """A table of `spec.tables`."""

    table: Annotated[str, Field(max_length=MAX_TABLE_NAME, description="Its name; the pattern while no name is known.")]
    topic: Annotated[Topic, Field(description="The topic; empty while no name is known.")] = ""
    generation: Annotated[Count | None, Field(description="Generation of the ledger in its position.")] = None
    record: Annotated[
        Count | None, Field(description="Every object that the ledger acknowledges up to this record is in it.")
    ] = None
    lag_objects: Annotated[Count, Field(description="Published objects that are not in it.")] = 0
    lag_ms: Annotated[Figure, Field(description="Time since when it lacks objects; 0: it lacks none.")] = 0
    objects: Annotated[Count, Field(description="Objects that this driver has added.")] = 0
    commits: Annotated[Count, Field(description="Commits of this driver.")] = 0
    registered_at: Annotated[Moment | None, Field(description="Time of the last commit of this driver.")] = None
    reason: Annotated[str | None, Field(max_length=64, description="Why nothing is added; none: no error.")] = None
    message: Annotated[str | None, Field(max_length=MAX_TABLE_MESSAGE)] = None
    skipped_objects: Annotated[
        Count, Field(description="Objects that did not exist and were left out (onMissing: Skip).")
    ] = 0


class TableSums(ReportModel):
    """Sums of all tables, of which a report lists a part."""

    tables: Count = 0
    failing: Annotated[Count, Field(description="Tables with an error.")] = 0
    lag_objects: Count = 0
    lag_ms: Annotated[Figure, Field(description="Longest time since when a table lacks objects.")] = 0
    objects: Annotated[Count, Field(description="Objects that this driver has added.")] = 0
    commits: Count = 0
    skipped_objects: Annotated[Count, Field(description="Objects that did not exist and were left out.")] = 0


class Totals(ReportModel):
    """Totals since the claim of this driver."""

    records: Annotated[Count, Field(description="Records in recorded objects, open ones included.")] = 0
    bytes: Annotated[Count, Field(description="Their encoded, uncompressed bytes.")] = 0
    objects: Annotated[Count, Field(description="Published objects.")] = 0
    parts: Annotated[Count, Field(description="Parts uploaded.")] = 0
    uploaded_bytes: Annotated[Count, Field(description="Bytes of those parts.")] = 0
    ignored: Annotated[Count, Field(description="Records without value, ignored by onNullValue.")] = 0
    filtered: Annotated[Count, Field(description="Records left out by a transform of type Filter.")] = 0
    skipped: Annotated[Count, Field(description="Records passed over by errors.skip.")] = 0
    dropped: Annotated[Count, Field(description="Invalid records, dropped by tolerance: All.")] = 0
    dead_letters: Annotated[Count, Field(description="Invalid records in dead-letter objects, open ones included.")] = 0
    null_dead_letters: Annotated[
        Count, Field(description="Records without value in dead-letter objects (nullValues), also counted in ignored.")
    ] = 0
    dropped_properties: Annotated[
        Count, Field(description="Properties that the schema of their value lacks, dropped by unknownFields: Drop.")
    ] = 0
    lost: Annotated[
        Count, Field(description="Offsets deleted in Kafka before they were in S3 (onDataLoss: Continue).")
    ] = 0
    rebuilt: Annotated[Count, Field(description="Objects rebuilt because their upload was lost.")] = 0
    retries: Annotated[Count, Field(description="Retried requests to S3.")] = 0
    clock_jumps: Annotated[Count, Field(description="Times that the host's clock was set by more than 5 s.")] = 0


class Timing(ReportModel):
    """Durations of an operation, in milliseconds."""

    count: Count = 0
    total_ms: Figure = 0
    last_ms: Figure | None = None
    longest_ms: Figure | None = None


class MemoryReport(ReportModel):
    """The operator's input for memory sizing."""

    slots: Annotated[Count, Field(description="Number of concurrent tasks.")] = 0
    open_objects: Annotated[Count, Field(description="Open objects of all topic-partitions.")] = 0
    max_open_objects: Annotated[Count, Field(description="Maximum number of open objects of a topic-partition.")] = 0
    part_size: Count = 0
    active_partitions: Annotated[
        Count, Field(description="Topic-partitions that had records within the last one to two minutes.")
    ] = 0
    remainder_bytes: Annotated[
        Count, Field(description="Staged bytes that an active topic-partition holds between two rounds, on average.")
    ] = 0
    buffered_bytes: Annotated[Count, Field(description="Peak bytes in memory of the tasks of the last round.")] = 0
    spilled_bytes: Annotated[Count, Field(description="Bytes that tasks of the last round spilled to disk.")] = 0
    applied_bytes: Annotated[
        Count | None,
        Field(description="Memory of a container that no running task exceeds; none: only a restart changes it."),
    ] = None
    jvm_bytes: Annotated[Count | None, Field(description="Peak resident memory of the JVM.")] = None
    python_bytes: Annotated[Count | None, Field(description="Peak resident memory of the largest Python worker.")] = (
        None
    )


class Failure(ReportModel):
    """The reason why a driver stops."""

    reason: str
    message: str
    exit_code: Figure
    topic: Topic | None = None
    partition: Figure | None = None
    offset: Count | None = None
    owner: Annotated[str | None, Field(description="With OwnershipConflict: cluster/namespace/name/sinkId.")] = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The failure for `error`. An error other than SinkError is internal; its message contains the type."""
        if not isinstance(error, SinkError):
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
            return cls(reason=SinkError.reason, message=message, exit_code=SinkError.exit_code)
        failure = cls(reason=error.reason, message=str(error), exit_code=error.exit_code)
        if isinstance(error, DataError):
            failure.topic, failure.partition, failure.offset = error.topic, error.partition, error.offset
        if isinstance(error, OwnershipConflict):
            failure.owner = error.owner
        return failure


class PositionReport(ReportModel):
    """The offset from which the next driver reads one topic-partition."""

    topic: Topic
    partition: Partition
    next: Annotated[Count, Field(description="First offset that has not been read.")]


class FinalReport(ReportModel):
    """The final status of a driver: its termination message. The operator reads it after the end of the driver."""

    epoch: Count | None = None
    round: Count | None = None
    totals: Totals = Totals()
    lag: Annotated[Count | None, Field(description="Offsets in no visible object; none: unknown.")] = None
    open_objects: Count = 0
    positions: Annotated[
        list[PositionReport], Field(description="Positions of some topic-partitions: of the failure, then by lag.")
    ] = []
    partitions: Annotated[Count, Field(description="Number of topic-partitions.")] = 0
    published: Annotated[bool, Field(description="The driver published all open objects before it ended.")] = False
    failure: Failure | None = None

    def termination_message(self) -> str:
        """JSON of at most 4 KiB, the limit of Kubernetes: with as many positions as fit. If none fits, the message of
        the failure is shortened."""
        for kept in range(len(self.positions), -1, -1):
            found = self.model_copy(update={"positions": self.positions[:kept]})
            text = found.model_dump_json(exclude_none=True)
            excess = len(text.encode()) - TERMINATION_MESSAGE_BYTES
            if excess <= 0:
                return text
        if self.failure is None:
            return text
        kept = max(0, len(self.failure.message) - excess - len("…".encode()))
        shorter = self.failure.model_copy(update={"message": self.failure.message[:kept] + "…"})
        return found.model_copy(update={"failure": shorter}).model_dump_json(exclude_none=True)


class StartReport(ReportModel):
    """The start offset of one topic-partition after a reset."""

    topic: Topic
    partition: Partition
    previous: Annotated[Count | None, Field(description="First offset in no object before the reset; none: new.")] = (
        None
    )
    start: Annotated[Count, Field(description="First offset to copy after the reset.")]


class ResetReport(ReportModel):
    """The result of an offset reset: the termination message of its operation pod."""

    generation: Annotated[Count, Field(description="Generation of the ledger: 2 after the first reset.")]
    record: Annotated[Count, Field(description="Number of the ledger record of this reset.")]
    topics_dir: Annotated[str, Field(description="Directory of objects after the reset.")]
    copied_again: Annotated[Count, Field(description="Offsets in existing objects that are copied again.")] = 0
    skipped: Annotated[Count, Field(description="Offsets in no object that are not copied.")] = 0
    repeated: Annotated[bool, Field(description="This request was already completed by this record.")] = False
    partitions: list[StartReport] = []
    more: Annotated[Count, Field(description="Number of topic-partitions that did not fit.")] = 0

    def termination_message(self) -> str:
        """JSON of at most 4 KiB, with as many topic-partitions as fit."""
        for kept in range(len(self.partitions), -1, -1):
            some = {"partitions": self.partitions[:kept], "more": len(self.partitions) - kept}
            text = self.model_copy(update=some).model_dump_json(exclude_none=True)
            if len(text.encode()) <= TERMINATION_MESSAGE_BYTES:
                return text
        raise AssertionError("a message without topic-partitions fits")


class Report(ReportModel):
    """The document at `/report`."""

    sink_id: str
    name: str
    namespace: str
    state: RunState
    epoch: Annotated[Count | None, Field(description="Number of this driver's claim; none before the claim.")] = None
    round: Annotated[Count | None, Field(description="Number of the last recorded round.")] = None
    now: Annotated[Moment, Field(description="The driver's clock at this report.")]
    started_at: Moment
    assigned_partitions: Count = 0
    active_partitions: Annotated[Count, Field(description="Topic-partitions that the last round read.")] = 0
    partitions: list[PartitionReport] = []
    sums: Annotated[ReportSums | None, Field(description="Set if not all topic-partitions are listed.")] = None
    log_ends_at: Annotated[Moment | None, Field(description="Time when the log ends were read.")] = None
    hanging_transactions: Annotated[
        list[HangingTransactionReport], Field(description="Topic-partitions with a hanging transaction.")
    ] = []
    tables: Annotated[
        list[TableReport], Field(max_length=MAX_TABLES_SHOWN, description="Some of the tables of spec.tables.")
    ] = []
    table_sums: Annotated[TableSums | None, Field(description="Set if the driver registers tables.")] = None
    skips: Annotated[SkipsReport | None, Field(description="Set if errors.skip has any record.")] = None
    totals: Totals = Totals()
    last_publish: Annotated[Moment | None, Field(description="Time of the last publication of an object.")] = None
    rounds: Timing = Timing()
    publishes: Timing = Timing()
    memory: MemoryReport = MemoryReport()
    executor_denial: Annotated[
        str | None,
        Field(max_length=1024, description="Why the driver may not create executors; none: it may."),
    ] = None
    executor_rejection: Annotated[
        str | None,
        Field(max_length=1024, description="Why the API server rejects executor pods; none: it does not."),
    ] = None
    no_progress_ms: Annotated[
        Count | None,
        Field(description="Time without a completed task or request; none: less than 225 s."),
    ] = None
    published: Annotated[bool, Field(description="The driver published all open objects before it ended.")] = False
    failure: Failure | None = None

    @field_validator("partitions")
    @classmethod
    def _distinct(cls, partitions: list[PartitionReport]) -> list[PartitionReport]:
        if len({(each.topic, each.partition) for each in partitions}) < len(partitions):
            raise ValueError("a topic-partition is listed twice")
        return partitions

    def limited(self, most: int) -> Report:
        """The report with at most `most` topic-partitions, those with the largest lags, and the sums of all; the report
        itself if it has no more. The sums list the topics with the largest lags, at most MAX_SUMS. Of the hanging
        transactions it lists the MAX_SUMS oldest."""
        if len(self.hanging_transactions) > MAX_SUMS:
            oldest = sorted(self.hanging_transactions, key=lambda each: (each.since, each.topic, each.partition))
            return self.model_copy(update={"hanging_transactions": oldest[:MAX_SUMS]}).limited(most)
        if len(self.partitions) <= most:
            return self
        by_topic: dict[str, list[PartitionReport]] = {}
        for each in self.partitions:
            by_topic.setdefault(each.topic, []).append(each)
        topics = [
            TopicSum(topic=topic, partitions=len(found), lag=sum_of_lags(found), lag_ms=max_lag_ms(found))
            for topic, found in by_topic.items()
        ]
        topics.sort(key=lambda each: (-(each.lag or 0), each.topic))
        worst = sorted(self.partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))[:most]
        sums = ReportSums(
            lag=sum_of_lags(self.partitions), lag_ms=max_lag_ms(self.partitions), topics=topics[:MAX_SUMS]
        )
        return self.model_copy(update={"partitions": worst, "sums": sums})

    def final(self) -> FinalReport:
        """The part of the report that remains after the end of the driver."""
        lags = [each.lag for each in self.partitions]
        known = [lag for lag in lags if lag is not None]
        return FinalReport(
            epoch=self.epoch,
            round=self.round,
            totals=self.totals,
            lag=sum(known) if known and len(known) == len(lags) else None,
            open_objects=self.memory.open_objects,
            positions=self._positions(),
            partitions=len(self.partitions),
            published=self.published,
            failure=self.failure,
        )

    def _positions(self) -> list[PositionReport]:
        failed = None if self.failure is None else (self.failure.topic, self.failure.partition)
        ordered = sorted(
            self.partitions,
            key=lambda each: ((each.topic, each.partition) != failed, -(each.lag or 0), each.topic, each.partition),
        )
        return [
            PositionReport(topic=each.topic, partition=each.partition, next=each.next)
            for each in ordered[:MAX_POSITIONS]
        ]
