"""The project's own records and states inside the model, and its own pure decisions on them.

What a driver decides from a listing (`history`), what a record makes of a state (`apply`) and which offset may be
committed (`committed`) are the very functions that the sink runs with. Only where a sentence is taken out does the
model feed them something else, or go around them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Generic, TypeVar, cast

import msgspec

from model.protocol_rules import Rules
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger import sequence
from sink_job.ledger.generations import generation_of
from sink_job.ledger.sequence import Chain
from sink_job.ledger.state import (
    ClosedObject,
    LedgerState,
    PartitionState,
    Record,
    RotationRange,
    committable_offsets,
    without_audit,
)
from sink_job.ledger.transitions import apply, diff

TP = TopicPartition("t", 0)
T = TypeVar("T", bound=msgspec.Struct)


class Kept(Generic[T]):
    """A value of the ledger; there is one instance per content, so it is compared and hashed by identity, quickly."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


_kept: dict[tuple[type, bytes], object] = {}


def keep(value: T) -> Kept[T]:
    """The one instance with this content."""
    name = (type(value), msgspec.json.encode(value))
    found = _kept.get(name)
    if found is None:
        found = _kept[name] = Kept(value)
    return cast("Kept[T]", found)


def partition(state: Kept[LedgerState]) -> PartitionState:
    return state.value.partitions[str(TP)]


EMPTY = keep(LedgerState())
START = PartitionState(next=0, committable=0, rotation_start=0)


def claim(state: Kept[LedgerState], driver: str) -> Kept[Record]:
    """The claim that follows `state`; the first one says where the topic-partition starts."""
    number = state.value.number + 1
    fresh = {} if state.value.partitions else {str(TP): diff(None, START)}
    settings = settings_of(state.value.topics_dir)
    return keep(
        Record(number=number, epoch=number, attempt=driver, kind="claim", clock=0, settings=settings, partitions=fresh)
    )


def settings_of(topics_dir: str | None) -> str:
    """The settings in force, as far as the model has any: where objects go."""
    return f"s{topics_dir or ''}"


def below(settings: str) -> str:
    """Where the objects of these settings go."""
    return settings.removeprefix("s")


def resets(records: Iterable[tuple[int, Kept[Record]]]) -> list[int]:
    """The numbers of the resets: claims, so they are never dropped."""
    return [number for number, record in records if record.value.reset is not None]


def generation(records: Iterable[tuple[int, Kept[Record]]], number: int) -> int:
    """The generation of what the record `number` named."""
    return generation_of(number, resets(records))


def step(
    state: Kept[LedgerState],
    *,
    driver: str,
    epoch: int,
    new: PartitionState | None = None,
    named: Iterable[ClosedObject] = (),
    rotations: Iterable[RotationRange] = (),
    acknowledged: Iterable[str] = (),
    clock: int | None = None,
) -> Kept[Record]:
    """The record that follows `state` and makes `new` of its topic-partition; `clock` may set the ledger's back."""
    number = state.value.number + 1
    return keep(
        Record(
            number=number,
            epoch=epoch,
            attempt=driver,
            kind="round",
            clock=clock or 0,
            sets_clock_back=clock is not None and clock < state.value.clock,
            partitions={str(TP): diff(partition(state), new)} if new else {},
            closed=tuple(msgspec.structs.replace(o, record=o.record or number) for o in named),
            rotations=tuple(msgspec.structs.replace(r, record=number) for r in rotations),
            acknowledged=tuple(sorted(acknowledged)),
        )
    )


@cache
def after(state: Kept[LedgerState], record: Kept[Record]) -> Kept[LedgerState]:
    """The state after the record, whatever its number: the numbering is checked by those who read (`history`).

    Raises KeyError when the record builds on something that the state does not have.
    """
    return keep(apply(msgspec.structs.replace(state.value, number=record.value.number - 1), record.value))


def read(
    records: tuple[tuple[int, Kept[Record]], ...],
    snapshots: tuple[tuple[int, Kept[LedgerState]], ...],
    chain: Chain,
) -> Kept[LedgerState] | None:
    """The state that a chain of numbers stands for; None when one of them is no longer there, or another's claim is in
    the place of one that was dropped."""
    there, snapped = dict(records), dict(snapshots)
    state = snapped.get(chain.snapshot) if chain.snapshot else EMPTY
    for number in chain.records:
        if state is None or number not in there:
            return None
        try:
            state = after(state, there[number])
        except KeyError:
            return None
    return state


@cache
def truth(
    records: tuple[tuple[int, Kept[Record]], ...], snapshots: tuple[tuple[int, Kept[LedgerState]], ...]
) -> Kept[LedgerState] | None:
    """What the ledger says; None while it can't be read."""
    chain = sequence.chain([n for n, _ in records], [n for n, _ in snapshots])
    return read(records, snapshots, chain) if chain else None


def choose(rules: Rules, records: Collection[int], snapshots: Collection[int]) -> Chain | None:
    """What a starting driver reads, given a listing; None: list again."""
    chain = sequence.chain(records, snapshots)
    if chain is None and not rules.say("p4.check-gap"):
        return Chain(max(snapshots, default=0), max([*records, *snapshots]))
    return chain


def read_carelessly(
    rules: Rules,
    records: tuple[tuple[int, Kept[Record]], ...],
    snapshots: tuple[tuple[int, Kept[LedgerState]], ...],
    chain: Chain,
) -> Kept[LedgerState] | None:
    """`read`, without the sentences on what is read.

    Raises KeyError when the records make no sense.
    """
    state = dict(snapshots).get(chain.snapshot) if chain.snapshot else EMPTY
    if state is None:
        return None
    for number, record in records:
        below = number <= chain.snapshot
        if number <= chain.head and not (below and rules.say("p4.above-snapshot")):
            state = after(state, record)
    return keep(msgspec.structs.replace(state.value, number=chain.head))


def is_head(rules: Rules, number: int, records: Collection[int], snapshots: Collection[int]) -> bool:
    """Whether the claim just written may be acted on."""
    if not rules.say("p4.check-higher"):
        records = [n for n in records if n <= number]
    if not rules.say("p4.check-snapshot"):
        snapshots = ()
    return sequence.is_head(number, records, snapshots)


def droppable(rules: Rules, state: Kept[LedgerState], records: Collection[int], snapshots: Collection[int]) -> set[int]:
    """The numbers of the records to drop after a snapshot."""
    unacknowledged = min((o.record for o in state.value.pending.values()), default=state.value.number + 1)
    if not rules.say("p10.acknowledged"):
        unacknowledged = state.value.number + 1
    if not rules.say("p10.two-snapshots"):
        snapshots = [n for newest in snapshots for n in (newest, newest)]
    claims = state.value.claims if rules.say("p4.claims-kept") else ()
    return set(sequence.droppable(records, snapshots, claims, unacknowledged))


def snapshot(rules: Rules, state: Kept[LedgerState]) -> Kept[LedgerState]:
    kept = without_audit(state.value)
    return keep(kept if rules.say("p9.state-keeps") else msgspec.structs.replace(kept, pending={}))


def to_commit(state: Kept[LedgerState], visible: Collection[str] = ()) -> int:
    return committable_offsets(state.value, frozenset(visible))[TP]


def list_of(state: Kept[LedgerState]) -> Kept[LedgerState]:
    """What a published list says: the audit since the last snapshot."""
    return keep(LedgerState(published=state.value.published, rotations=state.value.rotations))


def after_snapshot(state: Kept[LedgerState]) -> Kept[LedgerState]:
    """The state that a driver goes on with."""
    return keep(without_audit(state.value))


def superseded(snapshots: Collection[int]) -> set[int]:
    return set(sequence.superseded_snapshots(snapshots))


def pending(state: Kept[LedgerState]) -> Mapping[str, ClosedObject]:
    return state.value.pending
