"""What the keys of both sides show of one topic-partition: which objects take part, and where their keys differ."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sink_job.api.topic_partition import TopicPartition
from sink_job.compare.compared_objects import ComparedObject, SinkPartition
from sink_job.compare.key_matching import Extents, KeyMatches, match
from sink_job.compare.results import DifferenceType, SideDifference

NO_END = 1 << 63


@dataclass(frozen=True)
class Window:
    """The objects that are compared: of one topic-partition, with a first offset from `start` (inclusive) to `end`
    (exclusive). None: no limit."""

    partition: TopicPartition | None = None
    start: int | None = None
    end: int | None = None


class PartitionKeys:
    """The objects of both sides with a first offset from `start` (inclusive) to `end` (exclusive), where both have
    arrived. A side without any object does not limit them."""

    def __init__(self, side: SinkPartition | None, other: Sequence[ComparedObject], window: Window) -> None:
        """`side` is None if the sink has copied no records of the topic-partition."""
        self.side = SinkPartition(0, NO_END) if side is None else side
        self.is_copied = side is not None
        self.window = window
        self.all_other = other
        self.start = max(self.side.start, window.start or 0)
        arrived = max((each.first + 1 for each in other), default=NO_END)
        self.end = max(self.start, min(arrived, self.side.end, NO_END if window.end is None else window.end))
        self.sink = self._within(self.side.objects)
        self.other = self._within(other)
        self.missing = self._within(self.side.missing)
        self.matches: KeyMatches = match(self.sink, self.other)
        self._rotations = sorted(self.side.rotations, key=lambda each: each.start)

    def _within(self, objects: Collection[ComparedObject]) -> list[ComparedObject]:
        return [each for each in objects if self.start <= each.first < self.end]

    def gaps(self, offset: int) -> int:
        """The number of offsets without a record in an object in the rotation range of the offset."""
        at = bisect_right(self._rotations, offset, key=lambda each: each.start) - 1
        found = self._rotations[at] if at >= 0 else None
        return found.gaps.count if found is not None and offset < found.end else 0

    def findings(self) -> Iterator[SideDifference]:
        """Missing and damaged objects of the sink, and keys that differ."""
        for each in self.missing:
            message = f"the object of offsets {each.first} to {each.last} is not in the sink's bucket"
            yield SideDifference(DifferenceType.OBJECT_MISSING, each.first, message, each.key)
        for each in self.sink:
            if each.key in self.side.damaged:
                message = f"the object of the sink is not the one in the ledger: {self.side.damaged[each.key]}"
                yield SideDifference(DifferenceType.OBJECT_DAMAGED, each.first, message, each.key)
        for one, two in self.matches.moved:
            yield SideDifference(DifferenceType.KEY_DIFFERS, one.first, "their keys differ", one.key, two.key)
        for each in self.matches.only_sink:
            unlisted = "" if each.last is not None else "; the ledger does not list this object"
            message = f"no object of the other begins at this offset{unlisted}"
            yield SideDifference(DifferenceType.KEY_ONLY_IN_SINK, each.first, message, each.key)
        yield from self._only_in_other()

    def _only_in_other(self) -> Iterator[SideDifference]:
        missing = {each.name for each in self.missing}
        extents, rejected = Extents(self.side.objects), Extents(self.side.rejected)
        for each in self.matches.only_other:
            if each.name in missing:
                continue  # the finding is that of the missing object
            if extents.contain(each.first):
                message = "no object of the sink begins at this offset; one that begins before it may have its records"
                kind = DifferenceType.KEY_ONLY_IN_OTHER
            else:
                message = "no object of the sink has this offset"
                kind = DifferenceType.OFFSETS_MISSING
                if rejected.contain(each.first):
                    message += "; the sink has rejected records around it"
                if count := self.gaps(each.first):
                    message += f"; the ledger counts {count:,} offsets without a record in an object around it"
            yield SideDifference(kind, each.first, message, other_key=each.key)

    def notes(self) -> Iterator[str]:
        """What did not take part, and where a comparison could begin."""
        if not self.is_copied:
            yield "the sink has copied no records of this topic-partition"
        if not self.all_other:
            yield "the other has no object of this topic-partition"
        before = sum(each.first < self.side.start for each in self.all_other)
        if before and self.window.start is None:
            yield f"{_begin(before, 'the other')} before the sink's start offset {self.side.start:,}"
        limit = NO_END if self.window.end is None else self.window.end
        for objects, side, slower in (
            (self.side.objects, "the sink", "other"),
            (self.all_other, "the other", "sink"),
        ):
            if later := sum(self.end <= each.first < limit for each in objects):
                yield f"{_begin(later, side)} at or after {self.end:,}: the {slower} has not arrived there"
        alone = [each.first for each in (*self.matches.only_sink, *self.matches.only_other)]
        common = min((one.first for one, _ in self.matches.equal), default=0)
        if alone and min(alone) < common:
            yield f"{common:,} is the first offset at which both begin an object: --from {common} compares from there"


def _begin(count: int, side: str) -> str:
    return f"1 object of {side} begins" if count == 1 else f"{count:,} objects of {side} begin"
