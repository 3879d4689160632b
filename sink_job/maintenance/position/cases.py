"""Where a topic-partition starts after another writer: the table of docs/migrating.md as pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import AcceptedObject
from sink_job.verify.previous.previous_objects import ObjectEnd, PreviousObject, PreviousObjects


class Case(StrEnum):
    """What was found for a topic-partition."""

    NEW = "New"
    """Neither a committed offset nor an object: the sink starts as `kafka.startingOffsets` says."""

    COMMITTED = "Committed"
    """No object reaches beyond the committed offset: the sink starts there."""

    ACCEPTED = "Accepted"
    """Objects beyond the offset hold Kafka's records: the sink starts behind them."""

    AFTER_OBJECTS = "AfterObjects"
    """No committed offset, and the user has asked to start behind the newest object."""

    FORGOTTEN = "Forgotten"
    """Objects, but no committed offset: Kafka has deleted it."""

    DIFFERENT = "Different"
    """Objects beyond the offset do not hold exactly Kafka's records."""

    NOT_COMPARED = "NotCompared"
    """Objects beyond the offset cannot be compared with Kafka's records."""

    AHEAD = "Ahead"
    """The committed offset is behind the end of the log."""

    AHEAD_OF_OBJECTS = "AheadOfObjects"
    """A record before the committed offset is in no object: the group or the place of the objects is another one."""

    RUNNING = "Running"
    """The group has active members: what the other cases depend on changes until they leave."""

    @property
    def starts(self) -> bool:
        """Whether the sink can start."""
        return self in (Case.NEW, Case.COMMITTED, Case.ACCEPTED, Case.AFTER_OBJECTS)


@dataclass(frozen=True)
class FoundObject:
    """An object at a key of the sink: its first offset by the key, and its stored size in bytes."""

    key: str
    first: int
    bytes: int
    etag: str


@dataclass(frozen=True)
class PartitionFacts:
    """What Kafka and the bucket have of a topic-partition.

    `committed`: the group's offset, None without one. `[begin, end)`: the offsets that Kafka holds. `objects` are
    ascending by their first offsets, `uploads` is the number of unfinished uploads at keys of the sink.
    """

    tp: TopicPartition
    committed: int | None
    begin: int
    end: int
    objects: tuple[FoundObject, ...] = ()
    uploads: int = 0

    @property
    def beyond(self) -> tuple[FoundObject, ...]:
        """The objects that begin at or after the committed offset; without an offset the newest one."""
        if self.committed is None:
            return self.objects[-1:]
        return tuple(each for each in self.objects if each.first >= self.committed)

    @property
    def before(self) -> FoundObject | None:
        """The newest object that begins before the committed offset. It may reach beyond it."""
        older = [] if self.committed is None else [each for each in self.objects if each.first < self.committed]
        return older[-1] if older else None


@dataclass(frozen=True)
class PartitionPosition:
    """The decision for a topic-partition. `start` is its first offset (None: `kafka.startingOffsets`, or it does not
    start), `after_objects` the first offset behind the newest object (None: unknown, or no object), `uncovered` the
    first offset before the committed one that is in no object (None: unknown, or there is none), `connectors` the
    groups of other running connectors that prevent the start."""

    facts: PartitionFacts
    case: Case
    start: int | None = None
    after_objects: int | None = None
    accepted: tuple[AcceptedObject, ...] = ()
    message: str = ""
    uncovered: int | None = None
    connectors: tuple[str, ...] = ()

    @property
    def can_start_at_objects(self) -> bool:
        """Whether the topic-partition would start behind its newest object on request."""
        return self.case is Case.FORGOTTEN and self.after_objects is not None and not self.connectors

    @property
    def tp(self) -> TopicPartition:
        return self.facts.tp


def to_compare(facts: PartitionFacts, *, all_objects: bool = False) -> PreviousObjects | None:
    """The objects of a topic-partition to compare with Kafka; None if Kafka lacks the records of required ones, or
    there is nothing to compare. Without an object, records before the committed offset are looked for. `all_objects`:
    without a committed offset, older objects are compared as far back as Kafka has records."""
    beyond = facts.beyond
    if beyond and beyond[0].first < facts.begin:
        return None
    older: tuple[FoundObject, ...] = () if facts.before is None else (facts.before,)
    if facts.committed is None and all_objects:
        older = facts.objects[:-1]
        older = tuple(o for o, next_ in zip(older, facts.objects[1:], strict=True) if next_.first > facts.begin)
    chosen = [PreviousObject(each.key, each.first, is_required=False) for each in older]
    chosen += [PreviousObject(each.key, each.first) for each in beyond]
    if facts.committed is None:
        return PreviousObjects(tuple(chosen), beyond[0].first) if chosen else None
    if not beyond and facts.begin >= min(facts.committed, facts.end):
        return None
    return PreviousObjects(tuple(chosen), facts.committed)


def compared_from(facts: PartitionFacts, objects: PreviousObjects) -> int:
    """The first offset to read. Without an older object it is the first one that Kafka has: no record before the
    committed offset, or between it and an object, may be left out."""
    if facts.committed is not None and facts.before is None:
        return facts.begin
    return max(facts.begin, objects.objects[0].first)


def decide(
    facts: PartitionFacts,
    compared: Sequence[ObjectEnd],
    *,
    reason: str | None,
    start_at_objects: bool,
    uncovered: int | None = None,
) -> PartitionPosition:
    """The decision. `compared` are the results for the objects of `to_compare`, `uncovered` is the offset of a record
    that is in none of them. `reason`: why this sink's objects cannot be compared at all, as a clause; None if they
    can."""
    if facts.committed is not None and facts.committed > facts.end:
        message = f"the committed offset {facts.committed} is behind the end of the log, {facts.end}: the topic was "
        message += "created again or truncated, or (kafka.isolationLevel ReadCommitted) a transaction is open before it"
        return PartitionPosition(facts, Case.AHEAD, message=message)
    equal = {each.key: each for each in compared if each.status == "Equal"}
    newest = equal.get(facts.objects[-1].key) if facts.objects else None
    after = None if newest is None else newest.last + 1
    different = next((each for each in compared if each.status != "Equal"), None)
    if uncovered is not None:
        return _uncovered(facts, compared, after, uncovered)
    if facts.committed is None:
        return _without_offset(facts, after, equal, different, reason, start_at_objects)
    beyond = [equal.get(each.key) for each in facts.beyond]
    if facts.beyond and None in beyond:
        different = next((each for each in reversed(compared) if each.status != "Equal"), None)
        return _rejected(facts, after, different, reason)
    before = None if facts.before is None else equal.get(facts.before.key)
    if different is not None and _reaches_beyond(facts, facts.committed, different):
        return _rejected(facts, after, different, reason)
    accepted = [each for each in (before, *beyond) if each is not None and each.last >= facts.committed]
    if not accepted:
        note = _retention_note(facts) or _unknown_end_note(different)
        return PartitionPosition(facts, Case.COMMITTED, facts.committed, after, message=note)
    return PartitionPosition(facts, Case.ACCEPTED, accepted[-1].last + 1, after, _accepted(facts, accepted))


def _uncovered(
    facts: PartitionFacts, compared: Sequence[ObjectEnd], after: int | None, uncovered: int
) -> PartitionPosition:
    """A record is in no object, and no later driver would look for it."""
    last = compared[-1] if compared else None
    if facts.committed is None:
        exact = None if any(each.status != "Equal" for each in compared) else uncovered
        message = (
            f"is kafka.groupId the connector's group? It has no offset, and the record at offset {uncovered} is in no "
            "object, though later ones are"
        )
        return PartitionPosition(facts, Case.FORGOTTEN, after_objects=after, message=message, uncovered=exact)
    said = f"the group has committed offset {facts.committed}, and"
    if last is None:
        found, exact = f"the record at offset {uncovered}, which is before it, is in no object", uncovered
    elif last.status == "Equal":
        found, exact = f"the newest object before it, {last.key}, ends before offset {last.last + 1}", last.last + 1
        found += f": the record at offset {uncovered} is in no object"
    else:
        rows = f"the newest object before it, {last.key}, has {last.rows:,} records"
        found, exact = f"{rows}, fewer than Kafka has up to offset {uncovered} ({last.message})", None
    advice = "Check kafka.groupId, s3.bucket, s3.topicsDir and format: they must be the connector's"
    return PartitionPosition(
        facts, Case.AHEAD_OF_OBJECTS, after_objects=after, message=f"{said} {found}. {advice}", uncovered=exact
    )


def _unknown_end_note(different: ObjectEnd | None) -> str:
    if different is None:
        return ""
    return (
        f"{different.key}, which ends before the committed offset, is not what Kafka has, as after compaction or "
        f"retention: {different.message}. Only the number of its records was checked"
    )


def _reaches_beyond(facts: PartitionFacts, committed: int, different: ObjectEnd) -> bool:
    """Whether an object that begins before the committed offset, and differs from Kafka, has records beyond it: it is
    equal up to the offset, or it has so many rows."""
    first = next(each.first for each in facts.objects if each.key == different.key)
    return different.last + 1 >= committed or first + different.rows > committed


def _without_offset(
    facts: PartitionFacts,
    after: int | None,
    equal: dict[str, ObjectEnd],
    different: ObjectEnd | None,
    reason: str | None,
    start_at_objects: bool,
) -> PartitionPosition:
    if not facts.objects:
        return PartitionPosition(facts, Case.NEW)
    key = facts.objects[-1].key
    if after is not None and start_at_objects:
        return PartitionPosition(facts, Case.AFTER_OBJECTS, after, after, _accepted(facts, [equal[key]]))
    if after is not None:
        message = f"is kafka.groupId the connector's group? It has no offset; the newest object, {key}, ends before "
        message += f"offset {after}"
    else:
        cause = _cause(facts, different, reason)
        message = "is kafka.groupId the connector's group? It has no offset, and the newest object does not show one: "
        message += f"{key}: {cause}"
    return PartitionPosition(facts, Case.FORGOTTEN, after_objects=after, message=message)


def _rejected(
    facts: PartitionFacts, after: int | None, different: ObjectEnd | None, reason: str | None
) -> PartitionPosition:
    key = facts.beyond[0].key if different is None else different.key
    case = Case.NOT_COMPARED if different is None else Case.DIFFERENT
    return PartitionPosition(facts, case, after_objects=after, message=f"{key}: {_cause(facts, different, reason)}")


def _cause(facts: PartitionFacts, different: ObjectEnd | None, reason: str | None) -> str:
    if reason is not None:
        return reason
    if different is not None:
        return different.message or "it has more records than Kafka"
    return f"Kafka no longer holds its records: the log begins at offset {facts.begin}"


def _retention_note(facts: PartitionFacts) -> str:
    if facts.committed is not None and facts.committed < facts.begin:
        return f"Kafka has deleted the records from {facts.committed} to {facts.begin - 1} (onDataLoss decides)"
    return ""


def _accepted(facts: PartitionFacts, ends: Sequence[ObjectEnd]) -> tuple[AcceptedObject, ...]:
    found = {each.key: each for each in facts.objects}
    return tuple(
        AcceptedObject(
            key=each.key,
            topic=facts.tp.topic,
            partition=facts.tp.partition,
            first=found[each.key].first,
            last=each.last,
            records=each.records,
            bytes=found[each.key].bytes,
            etag=found[each.key].etag,
        )
        for each in ends
    )
