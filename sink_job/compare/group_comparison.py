"""Compares the records of one group of objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from sink_job.compare.compared_objects import ComparedObject
from sink_job.compare.key_matching import ObjectGroup
from sink_job.compare.record_streams import ObjectRecords, RecordStream, counts_records
from sink_job.compare.results import DifferenceType, SideDifference
from sink_job.compare.sequence_diff import Digests, TooManyRecords, difference_between, digests, equal_records
from sink_job.s3 import S3Client

MAX_SURPLUS: Final = 500_000
"""Maximum number of records of a topic-partition that are on one side only, or in different objects."""
MAX_SCHEMA_SHOWN: Final = 300
"""Characters of a schema in a message."""


class SurplusRecord(NamedTuple):
    """A record that the other side of its group does not have, or has less often (`repeated`). `offset` is that of the
    record, or the first one of its object if records of other objects are between its records; `number` counts the
    records of the object from 1. `rank` counts the records before it in its sequence that both sides have: a changed
    record has the rank of its counterpart."""

    digest: int
    offset: int
    key: str
    number: int
    repeated: bool = False
    rank: int = 0


@dataclass(frozen=True)
class GroupResult:
    """The result of one group. `equal` counts equal records. `reordered` is the first record of the sink in another
    order."""

    group: ObjectGroup
    equal: int = 0
    sink_surplus: Sequence[SurplusRecord] = ()
    other_surplus: Sequence[SurplusRecord] = ()
    reordered: SurplusRecord | None = None
    findings: Sequence[SideDifference] = field(default=())

    @property
    def surplus(self) -> int:
        """The number of records that the sides do not share."""
        return len(self.sink_surplus) + len(self.other_surplus)


class SurplusLimit:
    """Counts the surplus records of a topic-partition. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left = MAX_SURPLUS

    def take(self, count: int) -> None:
        """Raises TooManyRecords if there are more than MAX_SURPLUS by now."""
        with self._lock:
            self._left -= count
            if self._left < 0:
                raise TooManyRecords


@dataclass(frozen=True)
class RecordComparer:
    """Reads the objects of both sides of a topic-partition. `separator`: of the output Bytes."""

    sink: S3Client
    other: S3Client
    separator: bytes
    limit: SurplusLimit = field(default_factory=SurplusLimit)

    def renewed(self) -> RecordComparer:
        """For the next topic-partition."""
        return RecordComparer(self.sink, self.other, self.separator)

    def compare(self, group: ObjectGroup) -> GroupResult:
        """Raises TooManyRecords and the errors of the store."""
        sink, other = self.stream(self.sink, group.sink), self.stream(self.other, group.other)
        canonical = (sink if group.sink else other).canonical
        if group.sink and group.other:
            count, are_equal = equal_records(sink.batches(), other.batches(), canonical)
            if are_equal:
                return GroupResult(group, count, findings=tuple(_findings(sink, other)))
            sink, other = self.stream(self.sink, group.sink), self.stream(self.other, group.other)
        left, right = digests(sink.batches(), canonical), digests(other.batches(), canonical)
        found = difference_between(left, right)
        self.limit.take(found.count)
        at_sink, at_other = _Positions(sink, left, group), _Positions(other, right, group)
        return GroupResult(
            group,
            len(left) - len(found.sink_only) - len(found.sink_repeated),
            at_sink.all(found.sink_only, found.sink_repeated),
            at_other.all(found.other_only, found.other_repeated),
            None if found.reordered is None else at_sink.at(found.reordered),
            tuple(_findings(sink, other)),
        )

    def stream(self, s3: S3Client, objects: Sequence[ComparedObject]) -> RecordStream:
        """The records of objects of one side."""
        return RecordStream(s3, objects, self.separator)

    def present(self, each: ComparedObject, values: Collection[int], *, of_sink: bool) -> set[int]:
        """Those of the digests `values` that are digests of records of an object."""
        stream = self.stream(self.sink if of_sink else self.other, [each])
        canonical = stream.canonical
        found = (hash(canonical(record)) for batch in stream.batches() for record in batch)
        return {value for value in found if value in values}


class _Positions:
    """Finds the object and the offset of a record by its position in a sequence."""

    def __init__(self, stream: RecordStream, values: Digests, group: ObjectGroup) -> None:
        self._read = stream.read
        self._values = values
        self._dense = all(each.last is not None and each.records == each.last - each.first + 1 for each in group.sink)

    def all(self, only: Sequence[int], repeated: Sequence[int]) -> list[SurplusRecord]:
        ranks = {position: position - before for before, position in enumerate(sorted((*only, *repeated)))}
        found = [self.at(position)._replace(rank=ranks[position]) for position in only]
        return [*found, *(self.at(each)._replace(rank=ranks[each], repeated=True) for each in repeated)]

    def at(self, position: int) -> SurplusRecord:
        rest = position
        for each in self._read:
            if rest < each.count:
                offset = each.source.first + (rest if self._dense else 0)
                return SurplusRecord(int(self._values[position]), offset, each.source.key, rest + 1)
            rest -= each.count
        raise IndexError(position)


def _findings(sink: RecordStream, other: RecordStream) -> Iterator[SideDifference]:
    """Damaged objects, and objects with other schemas."""
    yield from (finding for each in sink.read for finding in _sink_damage(each))
    for each in other.read:
        if each.damage is not None:
            message = f"the object of the other cannot be read: {each.damage}"
            yield SideDifference(DifferenceType.OTHER_UNREADABLE, each.source.first, message, other_key=each.source.key)
    left, right = ({each.schema for each in side.read if each.schema is not None} for side in (sink, other))
    if left and right and left != right:
        one, two = min(left - right or left), min(right - left or right)
        yield SideDifference(
            DifferenceType.SCHEMAS_DIFFER,
            sink.read[0].source.first,
            f"the types of the records differ: {_shortened(one)} in the sink, {_shortened(two)} in the other",
            sink.read[0].source.key,
            other.read[0].source.key,
        )


def _sink_damage(each: ObjectRecords) -> Iterator[SideDifference]:
    o = each.source
    if each.damage is not None:
        message = f"the object of the sink cannot be read: {each.damage}"
        yield SideDifference(DifferenceType.OBJECT_DAMAGED, o.first, message, o.key)
    elif o.records is not None and counts_records(o.key) and each.count != o.records:
        message = f"the object of the sink has {each.count:,} records, and {o.records:,} in the ledger"
        yield SideDifference(DifferenceType.OBJECT_DAMAGED, o.first, message, o.key)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SCHEMA_SHOWN else f"{text[:MAX_SCHEMA_SHOWN]}…"
