"""The results of a comparison: findings, and one result for each topic-partition."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from sink_job.api.errors import DataLoss, ObjectConflict
from sink_job.api.topic_partition import TopicPartition

MAX_FINDINGS = 100
"""Maximum number of findings of a type that a topic-partition reports: those with the lowest offsets."""

OffsetRange = tuple[int, int]
"""The first and the last offset, both inclusive."""


class DifferenceType(StrEnum):
    """The type of a difference between the two directories."""

    OBJECT_MISSING = "ObjectMissing"
    """The ledger lists an object that is not in the bucket."""
    OBJECT_DAMAGED = "ObjectDamaged"
    """An object of the sink has another size or number of records than in the ledger, or cannot be read."""
    OFFSETS_MISSING = "OffsetsMissing"
    """No object of the sink has the first offset of an object of the other writer."""
    RECORDS_MISSING = "RecordsMissing"
    """The sink has no such record."""
    KEY_DIFFERS = "KeyDiffers"
    """Both have an object that begins at the offset, with different keys."""
    KEY_ONLY_IN_SINK = "KeyOnlyInSink"
    KEY_ONLY_IN_OTHER = "KeyOnlyInOther"
    OTHER_UNREADABLE = "OtherObjectUnreadable"
    """An object of the other writer is damaged or cannot be read."""
    SCHEMAS_DIFFER = "SchemasDiffer"
    RECORDS_DIFFER = "RecordsDiffer"
    RECORDS_MOVED = "RecordsMoved"
    """A record is in different objects."""
    RECORDS_REORDERED = "RecordsReordered"
    RECORDS_DOUBLED = "RecordsDoubled"
    RECORDS_ONLY_IN_SINK = "RecordsOnlyInSink"

    @property
    def exit_code(self) -> int:
        """The exit code of DataLoss if the sink lacks records, else that of ObjectConflict."""
        return DataLoss.exit_code if self in _LOSSES else ObjectConflict.exit_code


_LOSSES = (
    DifferenceType.OBJECT_MISSING,
    DifferenceType.OBJECT_DAMAGED,
    DifferenceType.OFFSETS_MISSING,
    DifferenceType.RECORDS_MISSING,
)


class SideDifference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A difference: its type, its first offset, an explanation, and the keys of the objects in which it is. `count` is
    the number of records or objects."""

    type: DifferenceType
    offset: int
    message: str
    key: str | None = None
    other_key: str | None = None
    count: int = 1


class PartitionComparison(msgspec.Struct, frozen=True, rename="camel"):
    """The comparison of one topic-partition.

    Objects with a first offset from `start` (inclusive) to `end` (exclusive) took part: `objects` of the sink,
    `other_objects` of the other writer, `equal_keys` with the same key in both directories. `both`, `only_sink` and
    `only_other` are the offset ranges of objects whose first offset both, or one of them, have. Ranges can overlap if
    several paths interleave; the end of a range of `only_other` is the offset before the next object of its path, since
    keys have no last offset. `records` is the number of equal records, None if the objects were not read.
    """

    topic: str
    partition: int
    start: int
    end: int
    objects: int = 0
    other_objects: int = 0
    equal_keys: int = 0
    both: tuple[OffsetRange, ...] = ()
    only_sink: tuple[OffsetRange, ...] = ()
    only_other: tuple[OffsetRange, ...] = ()
    records: int | None = None
    notes: tuple[str, ...] = ()
    findings: tuple[SideDifference, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def exit_code(partitions: Sequence[PartitionComparison]) -> int:
    """0 without findings; the code of data loss if the sink lacks records; else that of different objects."""
    codes = {finding.type.exit_code for each in partitions for finding in each.findings}
    return DataLoss.exit_code if DataLoss.exit_code in codes else next(iter(codes), 0)


def limited(findings: list[SideDifference]) -> tuple[SideDifference, ...]:
    """The findings in the order of their offsets, at most MAX_FINDINGS of a type. The last one of a type that has more
    reports their number."""
    by_type: dict[DifferenceType, list[SideDifference]] = {}
    for each in sorted(findings, key=lambda finding: finding.offset):
        by_type.setdefault(each.type, []).append(each)
    chosen = []
    for of_type in by_type.values():
        chosen += of_type[:MAX_FINDINGS]
        if rest := of_type[MAX_FINDINGS:]:
            last = chosen[-1]
            chosen[-1] = msgspec.structs.replace(last, message=f"{last.message}; {len(rest):,} more such findings")
    return tuple(sorted(chosen, key=lambda finding: finding.offset))
