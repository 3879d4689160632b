"""Checks the existing objects in the target directory of an offset reset: no record may be copied twice or skipped
(docs/adr/0005).

The last offset of an object in the ledger is known. An object that is not in the ledger ends at an unknown offset: it
may overlap the new start offset unless another object of its path begins between them. With `schemaCompatibility:
Separate` the objects of a path do not follow each other, so it always may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.errors import ConfigurationError, ExistingObjects
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject
from sink_job.partitioning.object_keys import (
    ObjectName,
    is_internal,
    is_temporary,
    layouts,
    listing_prefixes,
    parse_key,
)
from sink_job.s3 import S3Client
from sink_job.verify.audit_input import GenerationAudit
from sink_job.verify.per_generation import is_copied

MAX_REPORTED = 3
"""Maximum number of objects in a message."""

Starts = Mapping[TopicPartition, int]


def check_empty(s3: S3Client, object_settings: ObjectSettings, starts: Starts) -> None:
    """Raises ExistingObjects when the directories of these topics contain an object."""
    prefixes = listing_prefixes([object_settings], {tp.topic for tp in starts})
    found = next((each for prefix in prefixes for each in s3.list(prefix)), None)
    if found is not None:
        raise ExistingObjects(
            f"the new generation needs an empty directory {object_settings.s3.topics_dir}, but s3://{s3.bucket}/"
            f"{found.key} already exists there. Nothing was changed. Move it away and retry"
        )


def check_existing_objects(
    s3: S3Client, object_settings: ObjectSettings, generations: Sequence[GenerationAudit], starts: Starts
) -> None:
    """Raises ExistingObjects when an object contains, or may contain, a record at or above the start offset of its
    topic-partition. Raises ConfigurationError when a missing object contained records below the start offset that no
    other object contains."""
    recorded = {o.key: o for each in generations for o in each.objects if not is_temporary(o.path, o.key)}
    listed: set[str] = set()
    untracked: dict[str, ObjectName] = {}
    prefixes = listing_prefixes([object_settings], {tp.topic for tp in starts})
    for each in (each for prefix in prefixes for each in s3.list(prefix)):
        listed.add(each.key)
        is_other = each.key in recorded or is_internal(object_settings, each.key)
        parsed = None if is_other else parse_key(object_settings, each.key)
        if parsed is not None:
            untracked[each.key] = parsed
    reaching = [o for o in recorded.values() if o.last >= starts.get(o.topic_partition, o.last + 1)]
    directories = tuple(each.s3.topics_dir for each in layouts(object_settings))
    reaching = [o for o in reaching if o.key.startswith(directories)]  # with any delimiter
    existing = {o.key for o in reaching if o.key in listed or s3.head(o.key)}  # old settings may have another prefix
    conflicts = {o.key: (o.topic_partition, o.last) for o in reaching if o.key in existing}
    conflicts |= {key: (_tp(name), name.first) for key, name in untracked.items() if _is_at_or_above(name, starts)}
    if conflicts:
        raise ExistingObjects(_conflict_message(s3, conflicts))
    separate = object_settings.schema_compatibility is SchemaCompatibility.SEPARATE
    overlapping = sorted(
        key
        for key, name in untracked.items()
        if may_overlap(name, recorded, untracked, generations, starts, separate=separate)
    )
    if overlapping:
        raise ExistingObjects(
            f"{len(overlapping):,} objects that begin below the new offsets are not in the ledger, so their last "
            f"offsets are unknown: {_some(s3, overlapping)}. They may contain records at or above the new offsets. "
            "Nothing was changed. Move them away, or copy to another directory with onExisting: NewPrefix"
        )
    missing = {o.key for o in reaching} - set(generations[-1].state.pending)  # pending: published before the reset
    for o, start in uncovered_objects(generations, starts):
        if o.key in missing:
            raise ConfigurationError(
                f"{s3.url_of(o.key)}, the object of offsets {o.first} to {o.last} of {o.topic_partition}, does "
                f"not exist: with a start at {start}, its records below {start} would be in no object. Nothing was "
                f"changed. Start at {o.first} (to: Offsets), or restore the object and start after it"
            )


def may_overlap(
    name: ObjectName,
    recorded: Mapping[str, ClosedObject],
    untracked: Mapping[str, ObjectName],
    generations: Sequence[GenerationAudit],
    starts: Starts,
    *,
    separate: bool = False,
) -> bool:
    """Whether the object `name`, which is not in the ledger, may contain a record at or above the start offset of its
    topic-partition, though it begins below. Objects before everything that this sink has copied are older than the sink
    and do not count. `separate`: objects of one path may contain interleaved offsets."""
    tp = _tp(name)
    start = starts.get(tp)
    if start is None or name.first >= start:
        return False
    lowest = min((each.starts[tp] for each in generations if tp in each.starts), default=start)
    if name.first < lowest <= start and any(o.topic_partition == tp for o in recorded.values()):
        return False
    if separate:
        return True
    firsts = [other.first for other in untracked.values() if _tp(other) == tp and other.path == name.path]
    firsts += [o.first for o in recorded.values() if o.topic_partition == tp and o.path == name.path]
    return not any(name.first < first <= start for first in firsts)


def uncovered_objects(generations: Sequence[GenerationAudit], starts: Starts) -> Iterator[tuple[ClosedObject, int]]:
    """The objects with records on both sides of the start offset of their topic-partition, and that start offset; only
    if no later generation has copied the records below it."""
    ended = [replace(each, ended=True) for each in generations]
    for index, each in enumerate(ended):
        for o in (o for o in each.objects if not is_temporary(o.path, o.key)):
            start = starts.get(o.topic_partition, 0)
            if o.first < start <= o.last and not is_copied(ended[index + 1 :], o, start):
                yield o, start


def _tp(name: ObjectName) -> TopicPartition:
    return TopicPartition(name.topic, name.partition)


def _is_at_or_above(name: ObjectName, starts: Starts) -> bool:
    return name.first >= starts.get(_tp(name), name.first + 1)


def _some(s3: S3Client, keys: Sequence[str]) -> str:
    first = ", ".join(f"{s3.url_of(key)}" for key in keys[:MAX_REPORTED])
    return first + (" …" if len(keys) > MAX_REPORTED else "")


def _conflict_message(s3: S3Client, conflicts: Mapping[str, tuple[TopicPartition, int]]) -> str:
    last: dict[TopicPartition, int] = {}
    for tp, offset in conflicts.values():
        last[tp] = max(last.get(tp, -1), offset)
    after = ", ".join(f"{tp} at {offset + 1}" for tp, offset in sorted(last.items())[:MAX_REPORTED])
    objects = "1 object holds" if len(conflicts) == 1 else f"{len(conflicts):,} objects hold"
    return (
        f"{objects} records at or above the new offsets, which would be copied a second time: "
        f"{_some(s3, sorted(conflicts))}. Nothing was changed. Move them away, start after them "
        f"({after}{' …' if len(last) > MAX_REPORTED else ''}), or copy to another directory with onExisting: NewPrefix"
    )
