"""Generations of a ledger: what a reset of the offsets ends, and what begins behind it (docs/adr/0005).

Pure. A generation is all that was copied from one set of starts; the first begins with the ledger, each reset begins
the next. Its objects are proved for themselves: they overlap those of others where a reset went back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sink_job.api.spec import ObjectSettings
from sink_job.ledger.offset_checksum import total_checksum
from sink_job.ledger.state import LedgerState, PartitionState


def new_topics_dir(shaping: ObjectSettings, generation: int) -> str:
    """Where a generation's objects go that keep apart from those of before: below the sink's own topicsDir, so that
    what may be written there may be written here, and by a name that no topic can have."""
    names = shaping.s3
    front = f"{names.topics_dir}{names.directory_delimiter}" if names.topics_dir else ""
    return f"{front}generation={generation}"


def shaping_below(shaping: ObjectSettings, topics_dir: str | None) -> ObjectSettings:
    """The settings with another topicsDir; None leaves them as they are."""
    if topics_dir is None:
        return shaping
    return shaping.model_copy(update={"s3": shaping.s3.model_copy(update={"topics_dir": topics_dir})})


def generation_metadata(generation: int) -> str:
    """What the metadata of a generation's commits begins with; of the first one anything. The group's offset can only
    be held against the objects of the generation that it was committed in: a driver that slept through a reset may
    still commit those of before."""
    return "" if generation == 1 else f"generation {generation}"


def commit_metadata(generation: int, ledger: str) -> str:
    """The metadata of commits: the generation, and the ledger (its URL) that the offsets are of."""
    return f"generation {generation}, ledger {ledger}"


def ledger_of(mark: str) -> str | None:
    """The ledger that the metadata of a commit names; None where it names none, as with another consumer's."""
    found = re.fullmatch(r"generation [0-9]+, ledger (s3://.+/)", mark)
    return found[1] if found else None


def generation_of(record: int, resets: Sequence[int]) -> int:
    """The generation that the record numbered `record` belongs to; `resets` are the numbers of resets, in order."""
    return 1 + bisect_right(resets, record)


def without_open_bytes(p: PartitionState) -> PartitionState:
    """The partition once the bytes of its open objects are given up: their records are in no object yet (P2).

    Where no object was closed since nothing was open, it is read again from the first offset that is in no object. With
    `scope: Object` others may have been closed behind that offset; then the open ones stay as they were cut, without
    bytes, and are made again from their members.
    """
    if not p.open:
        return p
    if p.accepted == total_checksum(p.open):
        return rewind(p)
    bare = tuple(replace(o, upload=None, parts=(), blocks=(), partial_block=()) for o in p.open)
    return replace(p, open=bare)


def rewind(p: PartitionState) -> PartitionState:
    """The partition with nothing read behind `committable`."""
    return PartitionState(
        next=p.committable,
        committable=p.committable,
        rotation_start=p.rotation_start,
        accepted_end=p.rotation_start,
        settings=p.settings,
    )


def end_of_generation(p: PartitionState) -> PartitionState:
    """The partition as the last word of its generation: what was open in it is in no object."""
    if p.accepted == total_checksum(p.open):
        return rewind(p)
    return replace(p, open=(), accepted=p.accepted - total_checksum(p.open))


def open_object_ranges(state: LedgerState) -> dict[str, tuple[int, int]]:
    """Per topic-partition the offsets `[start, end)` at which its open objects begin: the intent by which a clean-up
    finds their uploads once no state names them any more (P10)."""
    firsts = {name: [o.first for o in p.open] for name, p in state.partitions.items() if p.open}
    return {name: (min(offsets), max(offsets) + 1) for name, offsets in firsts.items()}


def open_records(partitions: Mapping[str, PartitionState]) -> int:
    """How many records are in open objects."""
    return sum(o.count for p in partitions.values() for o in p.open)
