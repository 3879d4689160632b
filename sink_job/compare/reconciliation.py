"""Classifies the records that groups of objects do not share, of one topic-partition: moved, changed, repeated, or on
one side only. Pure functions.

A record that only one side of a group has is compared with all such records of the other side: with an equal one it has
moved to another object. One that the other side has in any object is a copy. In the same group, a record that only the
sink has and one that only the other has are a changed record if they are at the same place: after as many common
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from sink_job.compare.group_comparison import GroupResult, SurplusRecord
from sink_job.compare.results import DifferenceType, SideDifference

CountGaps = Callable[[int], int]
"""The number of offsets without a record in an object of the sink, around an offset."""
FindRecords = Callable[[Set[int]], Set[int]]
"""Those of the digests that are digests of any records of one side."""


@dataclass
class _Remaining:
    """The records of a group that are not in another group of the other side, and those that are."""

    result: GroupResult
    sink: list[SurplusRecord] = field(default_factory=list)
    other: list[SurplusRecord] = field(default_factory=list)
    moved: list[tuple[SurplusRecord, SurplusRecord]] = field(default_factory=list)


@dataclass(frozen=True)
class Classifier:
    """The queries are about the topic-partition of the groups. Those for records are called only for records that one
    side of a group has alone: they read all objects."""

    gaps: CountGaps
    in_sink: FindRecords
    in_other: FindRecords

    def findings(self, results: Sequence[GroupResult]) -> Iterator[SideDifference]:
        """The findings of all groups of a topic-partition."""
        yield from (finding for result in results for finding in result.findings)
        remaining = _without_moved([result for result in results if result.surplus or result.reordered])
        ours = {record.digest for each in remaining for record in each.sink if not record.repeated}
        theirs = {record.digest for each in remaining for record in each.other if not record.repeated}
        known_to_other = self.in_other(ours) if ours else ours
        known_to_sink = self.in_sink(theirs) if theirs else theirs
        for each in remaining:
            yield from _moves(each)
            yield from self._remaining(each, known_to_sink, known_to_other)

    def _remaining(
        self, each: _Remaining, known_to_sink: Set[int], known_to_other: Set[int]
    ) -> Iterator[SideDifference]:
        result = each.result
        sink, sink_copies = _divided(each.sink, known_to_other)
        other, other_copies = _divided(each.other, known_to_sink)
        changed, only, missing = _changed(sink, other)
        if changed:
            ours, theirs = changed[0]
            message = f"{_records(len(changed))} different: the first is record {ours.number:,} of the sink's object"
            records = [one for one, _ in changed]
            yield _finding(DifferenceType.RECORDS_DIFFER, records, message, ours, theirs, result)
        if only:
            message = f"{_records(len(only))} only in the sink: the first is {_number(only)} of its object"
            yield _finding(DifferenceType.RECORDS_ONLY_IN_SINK, only, message, only[0], None, result)
        if missing:
            message = f"{_records(len(missing))} only in the other: the first is {_number(missing)} of its object"
            message += self._known_gaps(missing[0].offset)
            yield _finding(DifferenceType.RECORDS_MISSING, missing, message, None, missing[0], result)
        if sink_copies:
            message = f"{_records(len(sink_copies))} more often in the sink: the first is {_number(sink_copies)}"
            message += " of its object"
            yield _finding(DifferenceType.RECORDS_DOUBLED, sink_copies, message, sink_copies[0], None, result)
        if other_copies:
            yield self._copies_of_other(other_copies, result)

    def _copies_of_other(self, copies: Sequence[SurplusRecord], result: GroupResult) -> SideDifference:
        """Doubled, unless the sink may have left out one of several equal records."""
        message = f"{_records(len(copies))} more often in the other: the first is {_number(copies)} of its object"
        known = self._known_gaps(copies[0].offset)
        if not known:
            return _finding(DifferenceType.RECORDS_DOUBLED, copies, message, None, copies[0], result)
        message += f". They are doubled there, or the sink lacks equal records{known}"
        return _finding(DifferenceType.RECORDS_MISSING, copies, message, None, copies[0], result)

    def _known_gaps(self, offset: int) -> str:
        count = self.gaps(offset)
        return f"; the ledger counts {count:,} offsets without a record in an object around this one" if count else ""


def _moves(each: _Remaining) -> Iterator[SideDifference]:
    if each.moved:
        sink, other = each.moved[0]
        message = f"{_records(len(each.moved))} in another object: the first is record {sink.number:,} of the sink's "
        message += f"object and record {other.number:,} of the other's"
        yield _finding(DifferenceType.RECORDS_MOVED, [one for one, _ in each.moved], message, sink, other, each.result)
    elif each.result.reordered is not None:
        first = each.result.reordered
        message = f"the records are in another order from record {first.number:,} of the sink's object on"
        yield _finding(DifferenceType.RECORDS_REORDERED, [first], message, first, None, each.result)


def _without_moved(results: Sequence[GroupResult]) -> list[_Remaining]:
    """What remains of each group when equal records of different groups are taken as moved."""
    found = [_Remaining(result) for result in results]
    of_sink: dict[int, list[tuple[_Remaining, SurplusRecord]]] = {}
    for each in reversed(found):
        for record in reversed(each.result.sink_surplus):
            of_sink.setdefault(record.digest, []).append((each, record))
    taken: set[tuple[str, int]] = set()
    for each in found:
        for record in each.result.other_surplus:
            if equal := of_sink.get(record.digest):
                owner, moved = equal.pop()
                owner.moved.append((moved, record))
                taken.add((moved.key, moved.number))
            else:
                each.other.append(record)
    for each in found:
        each.sink = [record for record in each.result.sink_surplus if (record.key, record.number) not in taken]
    return found


def _changed(
    sink: Sequence[SurplusRecord], other: Sequence[SurplusRecord]
) -> tuple[list[tuple[SurplusRecord, SurplusRecord]], list[SurplusRecord], list[SurplusRecord]]:
    """The pairs of records at the same place, and the rest of each side."""
    at: dict[int, list[SurplusRecord]] = {}
    for each in reversed(sink):
        at.setdefault(each.rank, []).append(each)
    pairs, missing = [], []
    for each in other:
        if found := at.get(each.rank):
            pairs.append((found.pop(), each))
        else:
            missing.append(each)
    taken = {(one.key, one.number) for one, _ in pairs}
    return pairs, [each for each in sink if (each.key, each.number) not in taken], missing


def _divided(records: Iterable[SurplusRecord], known: Set[int]) -> tuple[list[SurplusRecord], list[SurplusRecord]]:
    """The records without an equal one on the other side, and those with one."""
    alone: list[SurplusRecord] = []
    copies: list[SurplusRecord] = []
    for each in records:
        (copies if each.repeated or each.digest in known else alone).append(each)
    return alone, copies


def _records(count: int) -> str:
    return "1 record is" if count == 1 else f"{count:,} records are"


def _number(records: Sequence[SurplusRecord]) -> str:
    return f"record {records[0].number:,}"


def _finding(
    kind: DifferenceType,
    records: Sequence[SurplusRecord],
    message: str,
    sink: SurplusRecord | None,
    other: SurplusRecord | None,
    result: GroupResult,
) -> SideDifference:
    """A finding about records. The side without the first one is shown by its object in the group, if there is one."""
    keys = [next((each.key for each in side), None) for side in (result.group.sink, result.group.other)]
    key, other_key = (one.key if one else two for one, two in zip((sink, other), keys, strict=True))
    return SideDifference(kind, min(each.offset for each in records), message, key, other_key, len(records))
