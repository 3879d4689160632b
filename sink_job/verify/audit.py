"""What the ledger's lists prove about a sink, partition by partition: pure, the heart of `s3sink verify`.

A rotation is a stretch of offsets after which nothing was open, so the objects whose first offset lies in it and its
holes must sum to the stretch: in count, and in the sum of the offsets' hashes (`tally`). What was given up of objects
that had to be rebuilt (`Lost`) counts as they do. Rotations follow each other
without a gap from the sink's first offset on; what was written since the last one must be in the objects named or open
since. With the bucket's objects being those of the lists (`Bucket`), and Kafka's committed offset what the ledger says,
each offset up to it is in exactly one object or a known hole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import msgspec

from sink_job.api.errors import DataLoss, ObjectConflict
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.offset_checksum import CountedObject, checksum_range, total_checksum
from sink_job.ledger.state import (
    ClosedObject,
    LedgerState,
    LostObject,
    OffsetChecksum,
    PartitionState,
    RotationRange,
    committable_offsets,
)
from sink_job.verify.offset_gaps import locate_fault

MAX_FINDINGS = 100
"""Findings of a comparison that are told; the first ones matter."""

Item = TypeVar("Item", ClosedObject, RotationRange, LostObject)


class FindingType(StrEnum):
    """What can be wrong at an offset."""

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
        """That of data loss where records are missing, that of a conflict where there are others or too many."""
        return DataLoss.exit_code if self in _LOSSES else ObjectConflict.exit_code


_LOSSES = (
    FindingType.OBJECT_MISSING,
    FindingType.OFFSETS_MISSING,
    FindingType.COMMITTED_OFFSET_AHEAD,
    FindingType.LOG_TRUNCATED,
)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Something wrong: from `offset` on, with a sentence about it."""

    type: FindingType
    offset: int
    message: str
    key: str | None = None


class ComparisonResult(msgspec.Struct, rename="camel"):
    """What comparing with Kafka's records found: objects, their records and uncompressed bytes that are the same there,
    objects of which Kafka no longer holds all records (`gone`), records in no object that are refused or ignored
    (`left_out`)."""

    objects: int = 0
    records: int = 0
    bytes: int = 0
    expired_objects: int = 0
    skipped_records: int = 0
    findings: list[Finding] = []

    def add(self, other: ComparisonResult) -> None:
        self.objects += other.objects
        self.records += other.records
        self.bytes += other.bytes
        self.expired_objects += other.expired_objects
        self.skipped_records += other.skipped_records
        self.findings = [*self.findings, *other.findings][:MAX_FINDINGS]


class PartitionResult(msgspec.Struct, frozen=True, rename="camel"):
    """What is proved of one topic-partition. `start` is the sink's first offset; each offset from there to `committed`
    (exclusive) is in a visible object or a hole, unless something is `wrong`.

    `objects`, `records` and `bytes` count visible objects, `waiting` records in open ones or ones not visible yet.
    `holes` are the offsets below `next` (the next one to read) that hold no record of ours: control records, aborted,
    compacted, refused, and lost ones. `lost` are those of them that had been read, and could not be read again for an
    object that had to be rebuilt (`onDataLoss: Continue`). `generation` counts the resets of the offsets, from 1: each
    is proved for itself, and one that has ended up to where it ended. `end` (of Kafka's log) and `group` (its offset in
    Kafka) are None where Kafka doesn't know them, `compared` where nothing was compared with Kafka's records.
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

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def lag(self) -> int | None:
        """Records, or offsets, that Kafka has behind `committed`."""
        return None if self.end is None else max(0, self.end - self.committed)


@dataclass(frozen=True)
class UntrackedObject:
    """An object with records of ours that the lists do not name; `first` is the offset its key says, or that of the
    recorded object `copy_of`, which has the same content."""

    key: str
    first: int
    bytes: int
    copy_of: str | None = None


@dataclass(frozen=True)
class BucketState:
    """How the bucket differs from the lists: keys that they name and are not there, keys where something else stands
    (and what, in words), and objects that they do not name. `replaced` are keys of an ended generation that a later one
    has copied anew, or is about to: they need not be there. `doubled` are keys of an ended generation that are there,
    and the first of their offsets that a later one has copied beside them. `begins` is the lowest start of all
    generations in the directory."""

    missing: frozenset[str] = frozenset()
    other: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[TopicPartition, Sequence[UntrackedObject]] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    doubled: Mapping[str, int] = field(default_factory=dict)
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class GenerationAudit:
    """What the ledger says of one generation: its state, every object ever acknowledged, every rotation, where its
    first claim says that partitions start, and what was given up. `ended`: a reset of the offsets has begun another
    one, and `state` is how this one ended."""

    state: LedgerState
    published: Sequence[ClosedObject]
    rotations: Sequence[RotationRange]
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ended: bool = False
    lost: Sequence[LostObject] = ()

    @property
    def objects(self) -> list[ClosedObject]:
        """Every object that was ever named."""
        return [*self.published, *self.state.pending.values()]


@dataclass(frozen=True)
class KafkaOffsets:
    """What Kafka says: the group's offsets, asked before all else, and the log ends, asked after all else."""

    group: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)


def audit(lists: GenerationAudit, bucket: BucketState, log: KafkaOffsets) -> list[PartitionResult]:
    """The verdict on each topic-partition of the ledger, in their order."""
    hidden = {o.key for o in lists.state.pending.values() if o.key in bucket.missing}
    proved = committable_offsets(lists.state, set(lists.state.pending) - hidden)
    objects = _by_partition(lists.objects)
    rotations = _by_partition(lists.rotations)
    lost = _by_partition(lists.lost)
    return [
        _Partition(tp, lists, objects.get(tp, []), rotations.get(tp, []), lost.get(tp, []), bucket, hidden).verdict(
            proved[tp], log
        )
        for tp in sorted(proved)
    ]


def stray(tp: TopicPartition, objects: Sequence[UntrackedObject], generation: int) -> PartitionResult:
    """The verdict on objects of a partition that the ledger does not know: readers of the directory read them too."""
    message = "this sink has copied nothing of this partition, and no list names this object"
    return PartitionResult(
        topic=tp.topic,
        partition=tp.partition,
        start=0,
        committed=0,
        next=0,
        objects=0,
        records=0,
        bytes=0,
        pending_records=0,
        gaps=0,
        findings=tuple(
            Finding(FindingType.UNTRACKED_OBJECT, each.first, message, each.key)
            for each in sorted(objects, key=lambda each: each.first)
        ),
        generation=generation,
    )


def _by_partition(items: Sequence[Item]) -> dict[TopicPartition, list[Item]]:
    found: dict[TopicPartition, list[Item]] = {}
    for item in items:
        found.setdefault(TopicPartition(item.topic, item.partition), []).append(item)
    return found


class _Partition:
    """The audit of one topic-partition; each method yields what is wrong in one respect."""

    def __init__(
        self,
        tp: TopicPartition,
        lists: GenerationAudit,
        objects: Sequence[ClosedObject],
        rotations: Sequence[RotationRange],
        lost: Sequence[LostObject],
        bucket: BucketState,
        hidden: Collection[str],
    ) -> None:
        """`hidden` are the keys of named objects that are not visible yet."""
        self.tp = tp
        self.state: PartitionState = lists.state.partitions[str(tp)]
        self.objects = sorted(objects, key=lambda o: (o.first, o.last))
        self.rotations = sorted(rotations, key=lambda r: (r.start, r.end))
        self.lost = sorted(lost, key=lambda each: each.first)
        self.bucket = bucket
        self.hidden = hidden
        self.ended = lists.ended
        self.generation = lists.state.generation
        begins = self.rotations[0].start if self.rotations else self.state.rotation_start
        self.start = lists.starts.get(tp, begins)
        self.begins = min(self.start, bucket.begins.get(tp, self.start))
        self.unknown = bucket.unknown.get(tp, ())

    def verdict(self, proved: int, log: KafkaOffsets) -> PartitionResult:
        """`proved` is the first offset that is not in a visible object."""
        state = self.state
        gone = self.bucket.missing | self.bucket.replaced
        visible = [o for o in self.objects if o.key not in gone and o.key not in self.bucket.other]
        hidden = [o for o in self.objects if o.key in self.hidden]
        group, end = log.group.get(self.tp), log.ends.get(self.tp)
        wrong = [
            *self._in_the_bucket(),
            *self._in_the_rotations(),
            *self._since_the_last_rotation(),
            *self._listed_twice(),
            *self._unknown_to_the_lists(),
            *self._committed(proved, group, end),
        ]
        return PartitionResult(
            topic=self.tp.topic,
            partition=self.tp.partition,
            start=self.start,
            committed=proved,
            next=state.next,
            objects=len(visible),
            records=total_checksum(visible).count,
            bytes=sum(o.bytes for o in visible),
            pending_records=total_checksum(state.open).count + total_checksum(hidden).count,
            gaps=sum(r.gaps.count for r in self.rotations) + self._holes_since() + total_checksum(self.lost).count,
            end=end,
            group=group,
            notes=(*self._notes_of_loss(), *(self._notes_of_the_end() if self.ended else self._notes(proved, group))),
            findings=tuple(sorted(wrong, key=lambda finding: finding.offset)),
            generation=self.generation,
            lost=total_checksum(self.lost).count,
        )

    def _holes_since(self) -> int:
        """Holes since the last rotation; of an ended generation those are not known where objects were left open."""
        if self._was_left_open():
            return 0
        return self.state.next - self.state.rotation_start - self.state.accepted.count

    def _was_left_open(self) -> bool:
        """Whether some objects were open when the generation ended, and what was written behind them stays: in others
        that were closed, or lost."""
        return self.ended and self.state.committable < self.state.next

    def _lost_since(self) -> list[LostObject]:
        """What was given up since the last rotation."""
        return [each for each in self.lost if each.first >= self.state.rotation_start]

    def _in_the_bucket(self) -> Iterator[Finding]:
        """What the lists name must be there, with the recorded size and checksum."""
        for o in self.objects:
            if o.key in self.bucket.replaced:
                continue
            if o.key in self.bucket.other:
                message = (
                    f"another object stands in the place of offsets {o.first} to {o.last}: {self.bucket.other[o.key]}"
                )
                yield Finding(FindingType.OBJECT_MISMATCH, o.first, message, o.key)
            elif o.key in self.bucket.missing and o.key not in self.hidden:
                message = f"the object of offsets {o.first} to {o.last} is not in the bucket: deleted, or moved away"
                yield Finding(FindingType.OBJECT_MISSING, o.first, message, o.key)
            elif o.key in self.bucket.doubled:
                at = self.bucket.doubled[o.key]
                message = (
                    f"a later generation has copied the records of this object again, from offset {at} on, beside it"
                )
                yield Finding(FindingType.DUPLICATE_OFFSETS, at, message, o.key)

    def _in_the_rotations(self) -> Iterator[Finding]:
        """Rotations follow each other, and the objects and holes of each sum to its range."""
        reached = self.start
        firsts = [o.first for o in self.objects]
        losses = [each.first for each in self.lost]
        for r in self.rotations:
            yield from self._follows(reached, r.start)
            reached = max(reached, r.end)
            within: list[CountedObject] = [*self.objects[bisect_left(firsts, r.start) : bisect_left(firsts, r.end)]]
            within += self.lost[bisect_left(losses, r.start) : bisect_left(losses, r.end)]
            lacks = checksum_range(r.start, r.end) - total_checksum(within) - r.gaps
            yield from self._fault(r.start, r.end, within, lacks)
        yield from self._follows(reached, self.state.rotation_start)
        if self.objects and firsts[0] < self.start:
            yield Finding(
                FindingType.DUPLICATE_OFFSETS,
                firsts[0],
                "the lists name an object before the sink's start",
                self.objects[0].key,
            )

    def _follows(self, reached: int, start: int) -> Iterator[Finding]:
        if start > reached:
            message = f"the published list says nothing of offsets {reached} to {start - 1}"
            yield Finding(FindingType.OFFSETS_MISSING, reached, message)
        elif start < reached:
            message = f"the published list counts offsets {start} to {reached - 1} twice"
            yield Finding(FindingType.DUPLICATE_OFFSETS, start, message)

    def _since_the_last_rotation(self) -> Iterator[Finding]:
        """What was written since is in the objects named since and the open ones."""
        state = self.state
        named = [o for o in self.objects if o.first >= state.rotation_start]
        since: list[CountedObject] = [*named, *state.open, *self._lost_since()]
        yield from self._fault(state.rotation_start, state.accepted_end, since, state.accepted - total_checksum(since))

    def _fault(
        self, start: int, end: int, objects: Sequence[CountedObject], lacks: OffsetChecksum
    ) -> Iterator[Finding]:
        found = locate_fault(start, end, objects, lacks)
        if found is not None:
            wrong = FindingType.DUPLICATE_OFFSETS if found.doubled else FindingType.OFFSETS_MISSING
            yield Finding(wrong, found.offset, found.message)

    def _listed_twice(self) -> Iterator[Finding]:
        """No key is named twice, and objects of one path follow each other."""
        reached: dict[str, ClosedObject] = {}
        for o in self.objects:
            before = reached.get(o.path)
            if before is not None and o.first <= before.last:
                message = f"offsets {o.first} to {min(o.last, before.last)} of path {o.path} are in two objects"
                yield Finding(FindingType.DUPLICATE_OFFSETS, o.first, message, o.key)
            if before is None or o.last > before.last:
                reached[o.path] = o

    def _unknown_to_the_lists(self) -> Iterator[Finding]:
        """An object of ours that nothing names doubles records for whoever reads the directory."""
        for found in self.unknown:
            if found.copy_of is not None:
                message = f"a copy of {found.copy_of}: its records from offset {found.first} on are there twice"
            elif found.first >= self.start:
                message = f"the lists do not name this object: its records from offset {found.first} on are there twice"
            else:
                message = (
                    f"the lists do not name this object, which begins in front of generation {self.generation}: what "
                    f"it holds from offset {self.start} on is there twice"
                )
            if found.first >= self.begins:
                yield Finding(FindingType.UNTRACKED_OBJECT, found.first, message, found.key)

    def _committed(self, proved: int, group: int | None, end: int | None) -> Iterator[Finding]:
        """Nothing is committed that is not visible (P5), and Kafka has not forgotten what was."""
        first_open = min((o.first for o in self.state.open), default=proved)
        if first_open < proved:
            message = f"the ledger says that all below {proved} is in objects, and one from {first_open} on is open"
            yield Finding(FindingType.COMMITTED_OFFSET_AHEAD, first_open, message)
        if group is not None and group > proved:
            message = f"the group's offset in Kafka is {group}, but offset {proved} is in no visible object"
            yield Finding(FindingType.COMMITTED_OFFSET_AHEAD, proved, message)
        if end is not None and end < proved:
            message = (
                f"Kafka's log ends at {end}, before the committed offset {proved}: what it writes there is in no object"
            )
            yield Finding(FindingType.LOG_TRUNCATED, end, message)

    def _notes_of_loss(self) -> Iterator[str]:
        """What was given up, and is known to be in no object."""
        if self.lost:
            first, last = self.lost[0].first, max(each.last for each in self.lost)
            count = total_checksum(self.lost).count
            yield (
                f"{count:,} records between offsets {first} and {last} are in no object: Kafka "
                "no longer held them when unpublished objects had to be rebuilt (onDataLoss: Continue)"
            )

    def _notes_of_the_end(self) -> Iterator[str]:
        """What is to be said of a generation that a reset has ended."""
        if self._was_left_open():
            yield (
                f"what was open from offset {self.state.committable} on when the offsets were reset is in no object of "
                f"generation {self.generation}"
            )
        replaced = sum(1 for o in self.objects if o.key in self.bucket.replaced)
        if replaced:
            yield f"{replaced:,} objects of generation {self.generation} are gone, and a later one copies their records"

    def _notes(self, proved: int, group: int | None) -> Iterator[str]:
        """What a person may wonder about, and is right."""
        if group is None:
            ours = f" of generation {self.generation}" if self.generation > 1 else ""
            yield f"the group has no offset{ours} in Kafka; the next run commits it"
        elif group < proved:
            yield f"the group's offset in Kafka is {group}: the last commit was lost, the next run makes up for it"
        before = sum(1 for found in self.unknown if found.first < self.begins)
        if before:
            yield f"{before} objects begin before the sink's first offset {self.begins}: they are not its own"
