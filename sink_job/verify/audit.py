"""Audits each topic-partition by the ledger's arithmetic: the core of `s3sink verify`. Pure functions.

No object is open at the end of a rotation range. The objects with their first offset in the range, the range's offset
gaps and its lost records must therefore add up to the range: in count, and in the sum of the offset hashes
(`offset_checksum`). Rotation ranges must follow each other without a gap from the sink's start offset. The records
accepted since the last range must be in closed or open objects, or lost. If the bucket contains exactly the listed
objects (`BucketState`) and the committed offset is that of the ledger, each offset below it is in exactly one object or
a recorded gap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import AcceptedObject
from sink_job.ledger.offset_checksum import CountedObject, checksum_range, total_checksum
from sink_job.ledger.state import (
    ClosedObject,
    LostObject,
    OffsetChecksum,
    PartitionState,
    RotationRange,
    committable_offsets,
)
from sink_job.partitioning.object_keys import is_temporary
from sink_job.records.batch import DEAD_LETTERS
from sink_job.rotation.types import ObjectId
from sink_job.verify.audit_input import BucketState, GenerationAudit, KafkaOffsets, UntrackedObject
from sink_job.verify.offset_gaps import locate_fault
from sink_job.verify.results import Finding, FindingType, PartitionResult

MAX_SKIPPED_SHOWN = 20
"""Maximum number of skipped offsets that a note names."""

Item = TypeVar("Item", ClosedObject, RotationRange, LostObject)


def audit(generation: GenerationAudit, bucket: BucketState, kafka: KafkaOffsets) -> list[PartitionResult]:
    """The result for each topic-partition of the generation, in ascending order."""
    unpublished = {o.key for o in generation.state.pending.values() if o.key in bucket.missing}
    committable = committable_offsets(generation.state, set(generation.state.pending) - unpublished)
    previous = _previous_objects(generation, committable)
    bucket = _without(bucket, previous)
    objects = _by_partition(generation.objects)
    rotations = _by_partition(generation.rotations)
    lost = _by_partition(generation.lost)
    results = [
        _PartitionAudit(
            tp, generation, objects.get(tp, []), rotations.get(tp, []), lost.get(tp, []), bucket, unpublished
        ).result(committable[tp], kafka)
        for tp in sorted(committable)
    ]
    return [_with_previous(result, previous) for result in results]


def _previous_objects(generation: GenerationAudit, partitions: Collection[TopicPartition]) -> dict[str, AcceptedObject]:
    """The objects of the writer before this sink, by key: its first claim has compared them with Kafka."""
    return {each.key: each for each in generation.previous if each.topic_partition in partitions}


def _without(bucket: BucketState, previous: Collection[str]) -> BucketState:
    """The deviations of the bucket without the objects of the previous writer."""
    if not previous:
        return bucket
    others = {tp: [o for o in objects if o.key not in previous] for tp, objects in bucket.untracked.items()}
    return replace(bucket, untracked=others)


def _with_previous(result: PartitionResult, previous: Mapping[str, AcceptedObject]) -> PartitionResult:
    """The result with a note on the objects of the previous writer."""
    mine = [each for each in previous.values() if each.topic_partition == result.topic_partition]
    if not mine:
        return result
    first, last = min(each.first for each in mine), max(each.last for each in mine)
    note = (
        f"{len(mine):,} objects with offsets {first} to {last} are of the previous writer: their "
        f"{sum(each.records for each in mine):,} records were equal to Kafka's at the first start"
    )
    return msgspec.structs.replace(result, notes=(*result.notes, note))


def unknown_partition(tp: TopicPartition, objects: Sequence[UntrackedObject], generation: int) -> PartitionResult:
    """The result for untracked objects of a partition that the ledger does not contain. Readers of the directory read
    them as well."""
    message = "the ledger does not list this object, and this sink has copied no records of the partition"
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
    groups: dict[TopicPartition, list[Item]] = {}
    for item in items:
        groups.setdefault(TopicPartition(item.topic, item.partition), []).append(item)
    return groups


class _PartitionAudit:
    """The audit of one topic-partition. Each method checks one aspect and yields its findings."""

    def __init__(
        self,
        tp: TopicPartition,
        generation: GenerationAudit,
        objects: Sequence[ClosedObject],
        rotations: Sequence[RotationRange],
        lost: Sequence[LostObject],
        bucket: BucketState,
        unpublished: Collection[str],
    ) -> None:
        """`unpublished` are the keys of closed objects that are not visible yet."""
        self.tp = tp
        self.state: PartitionState = generation.state.partitions[str(tp)]
        self.objects = sorted(objects, key=lambda o: (o.first, o.last))
        self.rotations = sorted(rotations, key=lambda r: (r.start, r.end))
        self.lost = sorted(lost, key=lambda each: each.first)
        self.bucket = bucket
        self.unpublished = unpublished
        self.audited = generation
        self.generation = generation.state.generation
        first_rotation = self.rotations[0].start if self.rotations else self.state.rotation_start
        self.start = generation.starts.get(tp, first_rotation)
        self.lowest_start = min(self.start, bucket.lowest_starts.get(tp, self.start))
        self.untracked = bucket.untracked.get(tp, ())

    def result(self, committable: int, kafka: KafkaOffsets) -> PartitionResult:
        """`committable` is the first offset that is not in a visible object."""
        state = self.state
        absent = self.bucket.missing | self.bucket.replaced
        visible = [o for o in self.objects if o.key not in absent and o.key not in self.bucket.mismatched]
        unpublished = [o for o in self.objects if o.key in self.unpublished]
        group, end = kafka.group.get(self.tp), kafka.ends.get(self.tp)
        lasting = [o for o in visible if not is_temporary(o.path, o.key)]
        lost = total_checksum(self.lost).count + total_checksum(self._accepted()).count
        findings = [
            *self._objects_in_bucket(),
            *self._rotation_ranges(),
            *self._since_last_rotation(),
            *self._listed_twice(),
            *self._untracked_objects(),
            *self._committed_offset(committable, group, end),
        ]
        return PartitionResult(
            topic=self.tp.topic,
            partition=self.tp.partition,
            start=self.start,
            committed=committable,
            next=state.next,
            objects=len(lasting),
            records=total_checksum([o for o in visible if o.path != DEAD_LETTERS]).count,
            bytes=sum(o.bytes for o in lasting),
            pending_records=total_checksum(state.open).count + total_checksum(unpublished).count,
            gaps=sum(r.gaps.count for r in self.rotations) + self._recent_gaps() + lost,
            end=end,
            group=group,
            notes=(
                *self._loss_notes(),
                *self._skip_notes(),
                *(self._end_notes() if self.audited.ended else self._notes(committable, group)),
            ),
            findings=tuple(sorted(findings, key=lambda finding: finding.offset)),
            generation=self.generation,
            lost=lost,
            skipped=len(self._skipped()),
            dead_letters=total_checksum([o for o in visible if o.path == DEAD_LETTERS]).count,
            removed=sum(o.key in self.bucket.removed for o in self.objects),
            dead_letter_objects=sum(o.path == DEAD_LETTERS for o in lasting),
        )

    def _recent_gaps(self) -> int:
        """Number of gaps since the last rotation range. It is unknown (0) if the generation ended with open objects."""
        if self._ended_open():
            return 0
        return self.state.next - self.state.rotation_start - self.state.accepted.count

    def _ended_open(self) -> bool:
        """Whether the generation ended with open objects and with later records that are in closed objects or lost."""
        return self.audited.ended and self.state.committable < self.state.next

    def _recently_lost(self) -> list[LostObject]:
        """The lost records since the last rotation range."""
        return [each for each in self.lost if each.first >= self.state.rotation_start]

    def _objects_in_bucket(self) -> Iterator[Finding]:
        """Each listed object must be in the bucket, with the recorded size and checksum, or its loss is accepted."""
        accepted = {o.key for o in self._accepted()}
        for o in self.objects:
            if o.key in self.bucket.replaced or o.key in accepted:
                continue
            if o.key in self.bucket.mismatched:
                difference = self.bucket.mismatched[o.key]
                message = f"the object at this key is not the object of offsets {o.first} to {o.last}: {difference}"
                yield Finding(FindingType.OBJECT_MISMATCH, o.first, message, o.key)
            elif o.key in self.bucket.missing and o.key not in self.unpublished and o.key not in self.bucket.removed:
                message = f"the object of offsets {o.first} to {o.last} is not in the bucket: it was deleted or moved"
                yield Finding(FindingType.OBJECT_MISSING, o.first, message, o.key)
            elif o.key in self.bucket.recopied:
                at = self.bucket.recopied[o.key]
                message = (
                    f"a later generation has copied the records of this object from offset {at} on again: the "
                    "directory contains them twice"
                )
                yield Finding(FindingType.DUPLICATE_OFFSETS, at, message, o.key)

    def _rotation_ranges(self) -> Iterator[Finding]:
        """Rotation ranges must follow each other. The objects, gaps and lost records of each must add up to it."""
        reached = self.start
        firsts = [o.first for o in self.objects]
        lost_firsts = [each.first for each in self.lost]
        for r in self.rotations:
            yield from self._follows(reached, r.start)
            reached = max(reached, r.end)
            within: list[CountedObject] = [*self.objects[bisect_left(firsts, r.start) : bisect_left(firsts, r.end)]]
            within += self.lost[bisect_left(lost_firsts, r.start) : bisect_left(lost_firsts, r.end)]
            missing = checksum_range(r.start, r.end) - total_checksum(within) - r.gaps
            yield from self._fault(r.start, r.end, within, missing)
        yield from self._follows(reached, self.state.rotation_start)
        if self.objects and firsts[0] < self.start:
            yield Finding(
                FindingType.DUPLICATE_OFFSETS,
                firsts[0],
                f"the ledger lists an object before the sink's start offset {self.start}",
                self.objects[0].key,
            )

    def _follows(self, reached: int, start: int) -> Iterator[Finding]:
        if start > reached:
            message = f"the published log has no entry for offsets {reached} to {start - 1}"
            yield Finding(FindingType.OFFSETS_MISSING, reached, message)
        elif start < reached:
            message = f"the published log lists offsets {start} to {reached - 1} twice"
            yield Finding(FindingType.DUPLICATE_OFFSETS, start, message)

    def _since_last_rotation(self) -> Iterator[Finding]:
        """The records accepted since the last rotation range must be in closed or open objects, or lost."""
        state = self.state
        closed = [o for o in self.objects if o.first >= state.rotation_start]
        since: list[CountedObject] = [*closed, *state.open, *self._recently_lost()]
        missing = state.accepted - total_checksum(since)
        yield from self._fault(state.rotation_start, state.accepted_end, since, missing)

    def _fault(
        self, start: int, end: int, objects: Sequence[CountedObject], missing: OffsetChecksum
    ) -> Iterator[Finding]:
        fault = locate_fault(start, end, objects, missing)
        if fault is not None:
            kind = FindingType.DUPLICATE_OFFSETS if fault.duplicate else FindingType.OFFSETS_MISSING
            yield Finding(kind, fault.offset, fault.message)

    def _listed_twice(self) -> Iterator[Finding]:
        """No key may be listed twice. The objects of a path and schema must follow each other."""
        reached: dict[ObjectId, ClosedObject] = {}
        for o in self.objects:
            before = reached.get(o.id)
            if before is not None and o.first <= before.last:
                message = f"offsets {o.first} to {min(o.last, before.last)} of path {o.path} are in two objects"
                yield Finding(FindingType.DUPLICATE_OFFSETS, o.first, message, o.key)
            if before is None or o.last > before.last:
                reached[o.id] = o

    def _untracked_objects(self) -> Iterator[Finding]:
        """An untracked object contains records a second time for readers of the directory."""
        for each in self.untracked:
            if each.copy_of is not None:
                message = f"a copy of {each.copy_of}: its records from offset {each.first} on exist twice"
            elif each.first >= self.start:
                message = f"the ledger does not list this object: its records from offset {each.first} on exist twice"
            else:
                message = (
                    f"the ledger does not list this object, which begins before generation {self.generation}: its "
                    f"records from offset {self.start} on exist twice"
                )
            if each.first >= self.lowest_start:
                yield Finding(FindingType.UNTRACKED_OBJECT, each.first, message, each.key)

    def _committed_offset(self, committable: int, group: int | None, end: int | None) -> Iterator[Finding]:
        """All offsets below the committed offset must be visible (P5), and Kafka's log must reach the committed
        offset."""
        first_open = min((o.first for o in self.state.open), default=committable)
        if first_open < committable:
            message = f"the ledger's committable offset is {committable}, but an object is open from {first_open} on"
            yield Finding(FindingType.COMMITTED_OFFSET_AHEAD, first_open, message)
        if group is not None and group > committable:
            message = f"the consumer group's offset is {group}, but offset {committable} is in no visible object"
            yield Finding(FindingType.COMMITTED_OFFSET_AHEAD, committable, message)
        if end is not None and end < committable:
            message = (
                f"Kafka's log ends at {end}, before the committed offset {committable}: it was truncated, and new "
                f"records below offset {committable} are not copied"
            )
            yield Finding(FindingType.LOG_TRUNCATED, end, message)

    def _loss_notes(self) -> Iterator[str]:
        """The recorded losses."""
        if self.lost:
            first, last = self.lost[0].first, max(each.last for each in self.lost)
            count = total_checksum(self.lost).count
            yield (
                f"{count:,} records between offsets {first} and {last} were lost: Kafka had deleted them when their "
                "unpublished objects had to be rebuilt (onDataLoss: Continue)"
            )
        yield from _accepted_note(self._accepted())

    def _accepted(self) -> list[ClosedObject]:
        """The missing and damaged objects whose loss a user has accepted."""
        keys = self.audited.accepted & (self.bucket.missing | self.bucket.mismatched.keys())
        return [o for o in self.objects if o.key in keys] if keys else []

    def _skipped(self) -> list[int]:
        """The offsets of the records that were passed over (`errors.skip`). They are in the gaps."""
        return [each for each in self.state.skipped if self.start <= each < self.state.next]

    def _skip_notes(self) -> Iterator[str]:
        if skipped := self._skipped():
            offsets = ", ".join(map(str, skipped[:MAX_SKIPPED_SHOWN])) + (" …" if skipped[MAX_SKIPPED_SHOWN:] else "")
            yield f"{len(skipped):,} of the gaps are records that were skipped (errors.skip): offsets {offsets}"

    def _end_notes(self) -> Iterator[str]:
        """Notes about an ended generation."""
        if self._ended_open():
            yield (
                f"records from offset {self.state.committable} on that were in open objects at the offset reset are in "
                f"no object of generation {self.generation}"
            )
        replaced = sum(1 for o in self.objects if o.key in self.bucket.replaced)
        if replaced:
            yield (
                f"{replaced:,} objects of generation {self.generation} are not in the bucket; a later generation "
                "copies their records"
            )

    def _notes(self, committable: int, group: int | None) -> Iterator[str]:
        """Unusual but consistent facts."""
        if group is None:
            suffix = f" of generation {self.generation}" if self.generation > 1 else ""
            yield f"the consumer group has no committed offset{suffix}; the next run commits it"
        elif group < committable:
            yield (
                f"the consumer group's offset is {group} but should be {committable}: the last commit was lost; the "
                "next run corrects it"
            )
        before = sum(1 for each in self.untracked if each.first < self.lowest_start)
        if before:
            yield f"{before:,} objects begin before the sink's start offset {self.lowest_start}: it did not write them"


def _accepted_note(objects: Sequence[ClosedObject]) -> Iterator[str]:
    """The note about objects whose loss a user has accepted."""
    if objects:
        yield (
            f"{total_checksum(objects).count:,} records of {len(objects):,} objects are lost: they are missing or "
            "damaged, and s3sink repair --accept-loss has recorded their loss. The first is "
            f"{objects[0].key} (offset {objects[0].first})"
        )
