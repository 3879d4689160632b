"""The results of a verification: findings, and one result for each topic-partition."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sink_job.api.errors import DataLoss, ObjectConflict
from sink_job.api.topic_partition import TopicPartition

MAX_FINDINGS = 100
"""Maximum number of findings that a comparison reports: the first ones."""


class FindingType(StrEnum):
    """The type of a finding."""

    OBJECT_MISSING = "ObjectMissing"
    OFFSETS_MISSING = "OffsetsMissing"
    COMMITTED_OFFSET_AHEAD = "CommittedOffsetAhead"
    LOG_TRUNCATED = "LogTruncated"
    OBJECT_MISMATCH = "ObjectMismatch"
    DUPLICATE_OFFSETS = "DuplicateOffsets"
    UNTRACKED_OBJECT = "UntrackedObject"
    RECORD_MISMATCH = "RecordMismatch"

    @property
    def exit_code(self) -> int:
        """The exit code of DataLoss for missing records, that of ObjectConflict for different or duplicate records."""
        return DataLoss.exit_code if self in _LOSSES else ObjectConflict.exit_code


_LOSSES = (
    FindingType.OBJECT_MISSING,
    FindingType.OFFSETS_MISSING,
    FindingType.COMMITTED_OFFSET_AHEAD,
    FindingType.LOG_TRUNCATED,
)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An inconsistency: its type, its first offset, an explanation, and the key of the object if there is one."""

    type: FindingType
    offset: int
    message: str
    key: str | None = None


class ComparisonResult(msgspec.Struct, rename="camel"):
    """The result of comparing objects with Kafka's records.

    `objects`, `records` and `bytes` (uncompressed) count equal objects. `kafka_gone_objects` are objects whose records
    Kafka no longer holds completely. `skipped_records` are rejected, ignored and skipped records, which are in no
    object.
    """

    objects: int = 0
    records: int = 0
    bytes: int = 0
    kafka_gone_objects: int = 0
    skipped_records: int = 0
    findings: list[Finding] = []

    def add(self, other: ComparisonResult) -> None:
        """Adds the counts and findings of another result."""
        self.objects += other.objects
        self.records += other.records
        self.bytes += other.bytes
        self.kafka_gone_objects += other.kafka_gone_objects
        self.skipped_records += other.skipped_records
        self.findings = [*self.findings, *other.findings][:MAX_FINDINGS]


class PartitionResult(msgspec.Struct, frozen=True, rename="camel"):
    """The result of the audit of one topic-partition.

    Without `findings` each offset from `start` (the sink's start offset, inclusive) to `committed` (exclusive) is in a
    visible object or a gap. `next` is the next offset to read.
    `objects`, `records` and `bytes` count visible objects, `dead_letter_objects` those of them with dead letters;
    `dead_letters` are their records and those in the dead-letter topic, which `records` leaves out. `pending_records`
    counts records in open and invisible objects. `gaps` counts the offsets below `next` without a record in an object:
    control records, and aborted, compacted, dropped, skipped and lost records. `lost` counts the lost ones among them:
    Kafka had deleted them when their object had to be rebuilt (`onDataLoss: Continue`), or a user has accepted their
    loss (`s3sink repair --accept-loss`). `skipped` are those of `errors.skip`. Each `generation` (from 1) has results
    of its own; those of an ended generation cover it up to its end.
    `end` (Kafka's log end offset) and `group` (the committed offset) are None if Kafka does not have them. `compared`
    is None if nothing was compared with Kafka's records. `removed` are objects that a lifecycle rule has removed on
    purpose; `objects`, `records` and `bytes` leave them out.
    """

    topic: str
    partition: int
    start: int
    committed: int
    next: int
    objects: int
    records: int
    bytes: int
    pending_records: int
    gaps: int
    end: int | None = None
    group: int | None = None
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    compared: ComparisonResult | None = None
    generation: int = 1
    lost: int = 0
    skipped: int = 0
    dead_letters: int = 0
    removed: int = 0
    dead_letter_objects: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def lag(self) -> int | None:
        """Number of offsets from `committed` to the end of Kafka's log; None if the end is unknown."""
        return None if self.end is None else max(0, self.end - self.committed)
