"""The sink's own records, states and pure decisions inside the model.

The decisions from a listing (`sequence`), the effect of a record on a state (`apply`) and the offsets to commit
(`committable_offsets`) are the functions that the sink runs. The model passes them other arguments, or bypasses them,
only where a rule is omitted.
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
    LostObject,
    PartitionState,
    Record,
    RotationRange,
    committable_offsets,
    without_audit,
)
from sink_job.ledger.transitions import apply, diff
from sink_job.rotation.types import RotationState

TP = TopicPartition("t", 0)
T = TypeVar("T", bound=msgspec.Struct)


class Interned(Generic[T]):
    """A value of the ledger with one instance per content: comparison and hash use the identity, which is fast."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


_interned: dict[tuple[type, bytes], object] = {}


def intern(value: T) -> Interned[T]:
    """The one instance with this content."""
    name = (type(value), msgspec.json.encode(value))
    found = _interned.get(name)
    if found is None:
        found = _interned[name] = Interned(value)
    return cast("Interned[T]", found)


def partition(state: Interned[LedgerState]) -> PartitionState:
    return state.value.partitions[str(TP)]


EMPTY = intern(LedgerState())
START = PartitionState(RotationState.start(0), rotation_start=0)


def claim(state: Interned[LedgerState], driver: str) -> Interned[Record]:
    """The claim that follows `state`; the first one sets the start of the topic-partition."""
    number = state.value.number + 1
    fresh = {} if state.value.partitions else {str(TP): diff(None, START)}
    settings = settings_of(state.value.topics_dir)
    return intern(
        Record(number=number, epoch=number, attempt=driver, kind="claim", clock=0, settings=settings, partitions=fresh)
    )


def settings_of(topics_dir: str | None) -> str:
    """The settings record of the model: it holds the directory of the objects only."""
    return f"s{topics_dir or ''}"


def below(settings: str) -> str:
    """The directory of the objects under these settings."""
    return settings.removeprefix("s")


def resets(records: Iterable[tuple[int, Interned[Record]]]) -> list[int]:
    """The numbers of the resets. They are claims, so they are never dropped."""
    return [number for number, record in records if record.value.reset is not None]


def generation(records: Iterable[tuple[int, Interned[Record]]], number: int) -> int:
    """The generation of the objects that record `number` closed."""
    return generation_of(number, resets(records))


def step(
    state: Interned[LedgerState],
    *,
    driver: str,
    epoch: int,
    new: PartitionState | None = None,
    closed: Iterable[ClosedObject] = (),
    rotations: Iterable[RotationRange] = (),
    acknowledged: Iterable[str] = (),
    clock: int | None = None,
    lost: Iterable[LostObject] = (),
) -> Interned[Record]:
    """The record that follows `state` and changes its topic-partition to `new`; `clock` can set the ledger's clock
    back."""
    number = state.value.number + 1
    return intern(
        Record(
            number=number,
            epoch=epoch,
            attempt=driver,
            kind="round",
            clock=clock or 0,
            sets_clock_back=clock is not None and clock < state.value.clock,
            partitions={str(TP): diff(partition(state), new)} if new else {},
            closed=tuple(msgspec.structs.replace(o, record=o.record or number) for o in closed),
            rotations=tuple(msgspec.structs.replace(r, record=number) for r in rotations),
            acknowledged=tuple(sorted(acknowledged)),
            lost=tuple(msgspec.structs.replace(each, record=number) for each in lost),
        )
    )


@cache
def after(state: Interned[LedgerState], record: Interned[Record]) -> Interned[LedgerState]:
    """The state after the record, whatever its number: readers check the numbers (`sequence`).

    Raises KeyError if the record refers to an entry that the state does not have.
    """
    return intern(apply(msgspec.structs.replace(state.value, number=record.value.number - 1), record.value))


def read(
    records: tuple[tuple[int, Interned[Record]], ...],
    snapshots: tuple[tuple[int, Interned[LedgerState]], ...],
    chain: Chain,
) -> Interned[LedgerState] | None:
    """The state after the snapshot and records of `chain`; None if one of them has been deleted, or if another driver's
    claim has taken a dropped number."""
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
    records: tuple[tuple[int, Interned[Record]], ...], snapshots: tuple[tuple[int, Interned[LedgerState]], ...]
) -> Interned[LedgerState] | None:
    """The current ledger state; None while the ledger is not readable."""
    chain = sequence.chain([n for n, _ in records], [n for n, _ in snapshots])
    return read(records, snapshots, chain) if chain else None


def choose(rules: Rules, records: Collection[int], snapshots: Collection[int]) -> Chain | None:
    """The chain that a starting driver reads after these listings; None: list again."""
    chain = sequence.chain(records, snapshots)
    if chain is None and not rules.enforce("p4.check-gap"):
        return Chain(max(snapshots, default=0), max([*records, *snapshots]))
    return chain


def read_carelessly(
    rules: Rules,
    records: tuple[tuple[int, Interned[Record]], ...],
    snapshots: tuple[tuple[int, Interned[LedgerState]], ...],
    chain: Chain,
) -> Interned[LedgerState] | None:
    """`read` without the omitted rules.

    Raises KeyError if the records contradict each other.
    """
    state = dict(snapshots).get(chain.snapshot) if chain.snapshot else EMPTY
    if state is None:
        return None
    for number, record in records:
        below = number <= chain.snapshot
        if number <= chain.head and not (below and rules.enforce("p4.above-snapshot")):
            state = after(state, record)
    return intern(msgspec.structs.replace(state.value, number=chain.head))


def is_head(rules: Rules, number: int, records: Collection[int], snapshots: Collection[int]) -> bool:
    """Whether a driver may act under the claim that it has just written."""
    if not rules.enforce("p4.check-higher"):
        records = [n for n in records if n <= number]
    if not rules.enforce("p4.check-snapshot"):
        snapshots = ()
    return sequence.is_head(number, records, snapshots)


def droppable(
    rules: Rules, state: Interned[LedgerState], records: Collection[int], snapshots: Collection[int]
) -> set[int]:
    """The numbers of the records to drop after a snapshot."""
    unacknowledged = min((o.record for o in state.value.pending.values()), default=state.value.number + 1)
    if not rules.enforce("p10.acknowledged"):
        unacknowledged = state.value.number + 1
    if not rules.enforce("p10.two-snapshots"):
        snapshots = [n for newest in snapshots for n in (newest, newest)]
    claims = state.value.claims if rules.enforce("p4.claims-kept") else ()
    return set(sequence.droppable(records, snapshots, claims, unacknowledged))


def snapshot(rules: Rules, state: Interned[LedgerState]) -> Interned[LedgerState]:
    kept = without_audit(state.value)
    return intern(kept if rules.enforce("p9.state-keeps") else msgspec.structs.replace(kept, pending={}))


def to_commit(state: Interned[LedgerState], visible: Collection[str] = ()) -> int:
    return committable_offsets(state.value, frozenset(visible))[TP]


def list_of(state: Interned[LedgerState]) -> Interned[LedgerState]:
    """The content of a published list: the audit since the last snapshot."""
    audit = state.value
    return intern(LedgerState(published=audit.published, rotations=audit.rotations, lost=audit.lost))


def after_snapshot(state: Interned[LedgerState]) -> Interned[LedgerState]:
    """The state that a driver continues with."""
    return intern(without_audit(state.value))


def superseded(snapshots: Collection[int]) -> set[int]:
    return set(sequence.superseded_snapshots(snapshots))


def pending(state: Interned[LedgerState]) -> Mapping[str, ClosedObject]:
    return state.value.pending
