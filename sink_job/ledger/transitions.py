"""State transitions of the ledger: `apply` folds a record into a state, `diff` and `patch` convert between partition
states and deltas.

Pure functions. They use no clock, no S3 and no Kafka: recovery is a function of the files that were read (promises P2,
P4, P5, P9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add

import msgspec

from sink_job.ledger.state import (
    ClosedObject,
    KeptParts,
    LedgerState,
    OpenObject,
    PartitionDelta,
    PartitionState,
    Record,
)


def diff(old: PartitionState | None, new: PartitionState) -> PartitionDelta:
    """The delta from `old` to `new`: `patch(old, diff(old, new)) == new`. `new` has all skipped offsets of `old`."""
    before = {o.id: o for o in old.open} if old else {}
    changed: list[OpenObject] = []
    kept: list[KeptParts] = []
    for o in new.open:
        previous = before.get(o.id)
        if previous == o:
            continue
        keep = _kept(previous, o) if previous is not None and previous.first == o.first else KeptParts()
        changed.append(
            msgspec.structs.replace(
                o,
                parts=o.parts[keep.parts :],
                sources=o.sources[keep.sources :],
                **o.remainder.combine(keep.remainder, lambda extents, kept: extents[kept:]).as_dict(),
            )
        )
        kept.append(keep)
    firsts = {o.id: o.first for o in new.open}
    removed = tuple(id_ for id_, o in before.items() if firsts.get(id_) != o.first)
    skipped = set(old.skipped) if old and new.skipped else set()
    state = msgspec.structs.replace(
        new, open=tuple(changed), skipped=tuple(each for each in new.skipped if each not in skipped)
    )
    return PartitionDelta(state, tuple(kept), removed)


def patch(old: PartitionState | None, delta: PartitionDelta) -> PartitionState:
    """`old` with `delta` applied. Open objects are ordered by first offset, which is the order of their opening.

    Raises KeyError when the delta keeps parts of an object that is not open in `old`.
    """
    objects = {o.id: o for o in old.open} if old else {}
    for id_ in delta.removed:
        objects.pop(id_, None)
    for o, keep in zip(delta.state.open, delta.kept, strict=True):
        if not any(msgspec.structs.astuple(keep)):
            objects[o.id] = o
            continue
        previous = objects[o.id]
        kept = previous.remainder.combine(keep.remainder, lambda extents, number: extents[:number])
        objects[o.id] = msgspec.structs.replace(
            o,
            parts=previous.parts[: keep.parts] + o.parts,
            sources=previous.sources[: keep.sources] + o.sources,
            **kept.combine(o.remainder, add).as_dict(),
        )
    skipped = delta.state.skipped
    if old is not None and old.skipped:
        skipped = tuple(sorted({*old.skipped, *skipped})) if skipped else old.skipped
    opened = tuple(sorted(objects.values(), key=lambda o: o.first))
    return msgspec.structs.replace(delta.state, open=opened, skipped=skipped)


def _kept(old: OpenObject, new: OpenObject) -> KeptParts:
    """The common prefix of each list. The parts of different uploads have no common prefix."""
    return KeptParts(
        parts=_common(old.parts, new.parts) if old.upload == new.upload else 0,
        sources=_common(old.sources, new.sources),
        **old.remainder.combine(new.remainder, _common).as_dict(),
    )


def _common(old: Sequence[object], new: Sequence[object]) -> int:
    """Number of equal leading elements."""
    if new[: len(old)] == old:
        return len(old)
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def apply(state: LedgerState, record: Record) -> LedgerState:
    """The state after `record`.

    Raises ValueError when the record does not have the next number: no gap is skipped. Raises KeyError as `patch`.
    """
    if record.number != state.number + 1:
        raise ValueError(f"record {record.number} does not follow {state.number}")
    reset = record.reset
    partitions = dict(state.partitions) if reset is None else {}
    for name, delta in record.partitions.items():
        partitions[name] = patch(partitions.get(name), delta)
    pending = dict(state.pending)
    published = [_acknowledged(pending.pop(key), record) for key in record.acknowledged if key in pending]
    for lost in record.lost:
        pending.pop(lost.key, None)
    pending.update({o.key: o for o in record.closed})
    settings = state.settings
    if record.settings is not None and record.settings not in (settings.get(max(settings)) if settings else None,):
        settings = {**settings, record.number: record.settings}
    return LedgerState(
        number=record.number,
        epoch=record.epoch,
        clock=record.clock if record.sets_clock_back else max(state.clock, record.clock),
        claims=state.claims + ((record.number,) if record.kind == "claim" else ()),
        settings=_referenced(settings, partitions.values(), pending.values()),
        kafka=record.kafka or state.kafka,
        partitions=partitions,
        pending=pending,
        published=state.published + tuple(published),
        rotations=state.rotations + record.rotations,
        lost=state.lost + record.lost,
        audited_to=state.audited_to,
        generation=state.generation if reset is None else reset.generation,
        topics_dir=state.topics_dir if reset is None else reset.topics_dir,
        nonce=state.nonce if reset is None else reset.nonce,
    )


def _acknowledged(o: ClosedObject, record: Record) -> ClosedObject:
    return msgspec.structs.replace(o, acknowledged=record.number)


def superseded_staging(before: LedgerState, after: LedgerState, changed: Iterable[str]) -> list[str]:
    """Keys of the staging objects that `before` refers to and `after` does not; the states differ in the
    topic-partitions `changed` alone.

    A staging object with data of several topic-partitions is superseded when none of them refers to it.
    """
    referenced: set[str] = set()
    kept: set[str] = set()
    for name in changed:
        previous = before.partitions.get(name)
        referenced |= previous.staged() if previous else set()
        kept |= after.partitions[name].staged()
    superseded = referenced - kept
    return sorted(superseded - after.staged()) if superseded else []


def _referenced(
    settings: Mapping[int, str], partitions: Iterable[PartitionState], pending: Iterable[ClosedObject]
) -> dict[int, str]:
    """The settings of open and pending objects, and the newest."""
    used = {o.settings for p in partitions for o in p.open} | {o.settings for o in pending}
    newest = max(settings, default=0)
    return {number: text for number, text in settings.items() if number in used or number == newest}
