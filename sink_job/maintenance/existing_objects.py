"""What stands in a directory that a reset of the offsets is to copy to: it must neither double records nor leave some
out (docs/adr/0005).

Of an object that the ledger has named the last offset is known. One that it has not named ends somewhere behind its
first offset: where no other object of its path follows below the new start, it may reach over that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sink_job.api.errors import ConfigurationError, ExistingObjects
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject
from sink_job.partitioning.object_keys import ObjectName, parse_key, topic_prefix
from sink_job.s3 import S3Client
from sink_job.verify.audit import GenerationAudit
from sink_job.verify.per_generation import is_copied

MAX_REPORTED = 3
"""Objects that are named in a message."""

Starts = Mapping[TopicPartition, int]


def check_empty(s3: S3Client, shaping: ObjectSettings, starts: Starts) -> None:
    """Raises ExistingObjects when there is any object below the directories of these topics."""
    for topic in sorted({tp.topic for tp in starts}):
        found = next(iter(s3.list(topic_prefix(shaping, topic))), None)
        if found is not None:
            raise ExistingObjects(
                f"the new generation's objects would go below {shaping.s3.topics_dir}, where s3://{s3.bucket}/"
                f"{found.key} stands already. Nothing was changed. Move it away"
            )


def check_existing_objects(
    s3: S3Client, shaping: ObjectSettings, generations: Sequence[GenerationAudit], starts: Starts
) -> None:
    """Raises ExistingObjects when an object holds, or may hold, a record at or above its topic-partition's start;
    ConfigurationError when one that is gone held records below it that would be in no object."""
    known = {o.key: o for each in generations for o in each.objects}
    listed: set[str] = set()
    strange: dict[str, ObjectName] = {}
    for topic in sorted({tp.topic for tp in starts}):
        for each in s3.list(topic_prefix(shaping, topic)):
            listed.add(each.key)
            parsed = None if each.key in known else parse_key(shaping, each.key)
            if parsed is not None:
                strange[each.key] = parsed
    reaching = [o for o in known.values() if o.last >= starts.get(o.topic_partition, o.last + 1)]
    reaching = [o for o in reaching if o.key.startswith(shaping.s3.topics_dir)]  # under whichever delimiter
    there = {o.key for o in reaching if o.key in listed or s3.head(o.key)}  # settings may have put it elsewhere
    found = {o.key: (o.topic_partition, o.last) for o in reaching if o.key in there}
    found |= {key: (_tp(name), name.first) for key, name in strange.items() if _is_at_or_above(name, starts)}
    if found:
        raise ExistingObjects(_conflict(s3, found))
    doubtful = sorted(key for key, name in strange.items() if may_overlap(name, known, strange, generations, starts))
    if doubtful:
        raise ExistingObjects(
            f"the ledger does not name {len(doubtful):,} of the objects that begin below the new offsets, and nothing "
            f"tells whether they end there: {_some(s3, doubtful)}. Nothing was changed. Move them away, or copy to "
            "another directory by onExisting: NewPrefix"
        )
    gone = {o.key for o in reaching} - set(generations[-1].state.pending)  # those become visible before the last look
    for o, start in uncovered_objects(generations, starts):
        if o.key in gone:
            raise ConfigurationError(
                f"s3://{s3.bucket}/{o.key} is gone, which held offsets {o.first} to {o.last} of {o.topic_partition}: "
                f"with a start at {start} those below would be in no object. Nothing was changed. Start at {o.first} "
                "(to: Offsets), or put the object back and start behind it"
            )


def may_overlap(
    name: ObjectName,
    known: Mapping[str, ClosedObject],
    strange: Mapping[str, ObjectName],
    generations: Sequence[GenerationAudit],
    starts: Starts,
) -> bool:
    """Whether an object that no list names may begin below its topic-partition's start and end at or above it. What
    stands in front of all that this sink has copied was there before it, and is not asked about."""
    tp = _tp(name)
    start = starts.get(tp)
    if start is None or name.first >= start:
        return False
    begins = min((each.starts[tp] for each in generations if tp in each.starts), default=start)
    if name.first < begins <= start and any(o.topic_partition == tp for o in known.values()):
        return False
    behind = [other.first for other in strange.values() if _tp(other) == tp and other.path == name.path]
    behind += [o.first for o in known.values() if o.topic_partition == tp and o.path == name.path]
    return not any(name.first < first <= start for first in behind)


def uncovered_objects(generations: Sequence[GenerationAudit], starts: Starts) -> Iterator[tuple[ClosedObject, int]]:
    """The objects that begin below the start of their topic-partition and reach over it, where no later generation has
    copied what is below; with that start."""
    ended = [replace(each, ended=True) for each in generations]
    for index, each in enumerate(ended):
        for o in each.objects:
            start = starts.get(o.topic_partition, 0)
            if o.first < start <= o.last and not is_copied(ended[index + 1 :], o, start):
                yield o, start


def _tp(name: ObjectName) -> TopicPartition:
    return TopicPartition(name.topic, name.partition)


def _is_at_or_above(name: ObjectName, starts: Starts) -> bool:
    return name.first >= starts.get(_tp(name), name.first + 1)


def _some(s3: S3Client, keys: Sequence[str]) -> str:
    first = ", ".join(f"s3://{s3.bucket}/{key}" for key in keys[:MAX_REPORTED])
    return first + (" …" if len(keys) > MAX_REPORTED else "")


def _conflict(s3: S3Client, found: Mapping[str, tuple[TopicPartition, int]]) -> str:
    last: dict[TopicPartition, int] = {}
    for tp, offset in found.values():
        last[tp] = max(last.get(tp, -1), offset)
    behind = ", ".join(f"{tp} at {offset + 1}" for tp, offset in sorted(last.items())[:MAX_REPORTED])
    objects = "1 object holds" if len(found) == 1 else f"{len(found):,} objects hold"
    return (
        f"{objects} records at or above the new offsets, which would be copied a second time: "
        f"{_some(s3, sorted(found))}. Nothing was changed. Move them away, start behind them "
        f"({behind}{' …' if len(last) > MAX_REPORTED else ''}), or copy to another directory by onExisting: NewPrefix"
    )
