"""Generations of a ledger: an offset reset ends one generation and starts the next (docs/adr/0005). Pure functions.

A generation consists of all objects that were copied from one set of start offsets. The first starts with the ledger.
Each generation is verified separately: after a reset to an earlier offset its objects overlap those of previous ones.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sink_job.api.sections.job_sections import DeadLetterSettings
from sink_job.api.spec import ObjectSettings
from sink_job.ledger.offset_checksum import total_checksum
from sink_job.ledger.state import NOTHING_STAGED, LedgerState, PartitionState
from sink_job.rotation.types import RotationState


def new_topics_dir(object_settings: ObjectSettings, generation: int) -> str:
    """The topicsDir of a generation that is separate from the previous ones. It is below the sink's own topicsDir,
    where the same access policies apply. Its name is not a valid topic name."""
    names = object_settings.s3
    parent = f"{names.topics_dir}{names.directory_delimiter}" if names.topics_dir else ""
    return f"{parent}generation={generation}"


def settings_below(object_settings: ObjectSettings, topics_dir: str | None) -> ObjectSettings:
    """The settings with another topicsDir; unchanged if it is None."""
    if topics_dir is None:
        return object_settings
    update = {"s3": object_settings.s3.model_copy(update={"topics_dir": topics_dir})}
    return object_settings.model_copy(update=update | _dead_letters_below(object_settings, topics_dir))


def settings_of_generation(object_settings: ObjectSettings, topics_dir: str | None, generation: int) -> ObjectSettings:
    """The settings of a claim: those below the topicsDir of its generation. Dead-letter objects in the ledger's folder
    have a directory for each generation: it may write objects with the first offsets of an earlier one."""
    found = settings_below(object_settings, topics_dir)
    dead_letters = object_settings.dead_letters
    if dead_letters is None or not dead_letters.staged:
        return found
    staged = dead_letters.model_copy(update={"prefix": f"{dead_letters.prefix}/{generation}"})
    return found.model_copy(update={"dead_letters": staged})


def _dead_letters_below(object_settings: ObjectSettings, topics_dir: str) -> dict[str, DeadLetterSettings]:
    """The dead letters of a generation with its own topicsDir have a directory of their own, too: its records are
    rejected again."""
    names, dead_letters = object_settings.s3, object_settings.dead_letters
    if dead_letters is None:
        return {}
    below = (
        topics_dir.removeprefix(names.topics_dir) if names.topics_dir else f"{names.directory_delimiter}{topics_dir}"
    )
    return {"dead_letters": dead_letters.model_copy(update={"prefix": f"{dead_letters.prefix}{below}"})}


def generation_metadata(generation: int) -> str:
    """The prefix of the commit metadata of a generation. It is empty for the first generation: any metadata matches.

    A committed offset refers to the objects of the generation in its metadata alone: a driver that was suspended during
    a reset may still commit offsets of the previous generation.
    """
    return "" if generation == 1 else f"generation {generation}"


def commit_metadata(generation: int, ledger: str) -> str:
    """The metadata of offset commits: the generation and the URL of the ledger."""
    return f"generation {generation}, ledger {ledger}"


def ledger_of(metadata: str) -> str | None:
    """The URL of the ledger in commit metadata; None if there is none, as in the commits of other consumers."""
    match = re.fullmatch(r"generation [0-9]+, ledger (s3://.+/)", metadata)
    return match[1] if match else None


def generation_of(record: int, resets: Sequence[int]) -> int:
    """The generation of the ledger record number `record`; `resets` are the record numbers of the resets, ascending."""
    return 1 + bisect_right(resets, record)


def is_split(p: PartitionState) -> bool:
    """Whether a closed object has records after the first one of an open object."""
    return bool(p.open) and p.accepted != total_checksum(p.open)


def without_open_bytes(p: PartitionState) -> PartitionState:
    """The partition after its open objects' uploads and staged data are discarded (P2).

    If no object was closed since the last rotation range, reading resumes at the first offset that is in no object.
    With `scope: Object` closed objects may contain later offsets. Then the open objects keep their source ranges, lose
    their bytes, and are rebuilt.
    """
    if not p.open:
        return p
    if not is_split(p):
        return rewind(p)
    bare = tuple(replace(o, upload=None, parts=(), **NOTHING_STAGED.as_dict()) for o in p.open)
    return replace(p, open=bare)


def rewind(p: PartitionState) -> PartitionState:
    """The partition with `committable` as the next offset to read. What was skipped stays so: the records after it are
    divided as before."""
    return PartitionState(
        RotationState.start(p.committable),
        rotation_start=p.rotation_start,
        accepted_end=p.rotation_start,
        settings=p.settings,
        skipped=p.skipped,
    )


def end_of_generation(p: PartitionState) -> PartitionState:
    """The final state of the partition in its generation. The records of its open objects are in no object."""
    if not is_split(p):
        return rewind(p)
    return replace(p, open=(), accepted=p.accepted - total_checksum(p.open))


def open_object_ranges(state: LedgerState) -> dict[str, tuple[int, int]]:
    """Per topic-partition the range `[start, end)` of the first offsets of its open objects. In an intent it leads a
    clean-up to their uploads after the state no longer lists them (P10)."""
    firsts = {name: [o.first for o in p.open] for name, p in state.partitions.items() if p.open}
    return {name: (min(offsets), max(offsets) + 1) for name, offsets in firsts.items()}


def open_records(partitions: Mapping[str, PartitionState]) -> int:
    """Number of records in open objects."""
    return sum(o.count for p in partitions.values() for o in p.open)
