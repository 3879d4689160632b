"""The ledger's lists, divided into its generations: each is proved for itself (docs/adr/0005). Pure.

What a generation lists is told by the numbers of the records that named it. One that a reset has ended is held to be
there as it was, save what a later generation copies again: that may have been moved away before the reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sink_job.api.spec import S3Names
from sink_job.api.types import TopicPartition
from sink_job.rounds.audit import Bucket, Lists, Unknown
from sink_job.rounds.generations import generation_of
from sink_job.rounds.state import NamedObject, Record, Rotation, State


def lineage(
    state: State, objects: Sequence[NamedObject], rotations: Sequence[Rotation], claims: Sequence[Record]
) -> list[Lists]:
    """The lists of each generation, the current one last. `claims` are all that the ledger still has, in order."""
    resets = [claim for claim in claims if claim.reset is not None]
    numbers = [claim.number for claim in resets]
    found = []
    for generation in range(1, len(resets) + 2):
        ended = None if generation > len(resets) else resets[generation - 1].reset
        mine = [claim for claim in claims if generation_of(claim.number, numbers) == generation]
        begun = resets[generation - 2].reset if generation > 1 else None
        found.append(
            Lists(
                state=state
                if ended is None
                else State(
                    generation=generation,
                    topics_dir=begun.topics_dir if begun else None,
                    partitions=ended.ended,
                ),
                published=[o for o in objects if generation_of(o.record, numbers) == generation],
                rotations=[r for r in rotations if generation_of(r.record, numbers) == generation],
                starts=_starts(mine),
                ended=ended is not None,
            )
        )
    return found


def _starts(claims: Iterable[Record]) -> dict[TopicPartition, int]:
    starts: dict[TopicPartition, int] = {}
    for claim in claims:
        for name, change in claim.partitions.items():
            starts.setdefault(TopicPartition.parse(name), change.state.rotation_start)
    return starts


def buckets(generations: Sequence[Lists], bucket: Bucket, names: S3Names) -> list[Bucket]:
    """What the bucket says to each generation. `names` are the manifest's."""
    dirs = [names.topics_dir if each.state.topics_dir is None else each.state.topics_dir for each in generations]
    unknown = _unknown(
        generations, bucket.unknown, [f"{name}{names.directory_delimiter}" if name else "" for name in dirs]
    )
    found = []
    for index, lists in enumerate(generations):
        later = generations[index + 1 :]
        named = {o.key for each in later for o in each.objects}
        replaced = {
            o.key for o in lists.objects if o.key in named or (o.key in bucket.missing and _is_copied_again(o, later))
        }
        found.append(
            Bucket(
                missing=bucket.missing - replaced,
                other={key: what for key, what in bucket.other.items() if key not in replaced},
                unknown=unknown[index],
                replaced=frozenset(replaced),
            )
        )
    return found


def _is_copied_again(o: NamedObject, later: Iterable[Lists]) -> bool:
    """Whether a later generation starts at or before this object's last record."""
    return any(each.starts.get(o.topic_partition, o.last + 1) <= o.last for each in later)


def _unknown(
    generations: Sequence[Lists], unknown: Mapping[TopicPartition, Sequence[Unknown]], dirs: Sequence[str]
) -> list[dict[TopicPartition, list[Unknown]]]:
    """Each object that no list names, at the generation whose records it doubles: the first in whose directory and
    range it is, else the current one if it is in that one's directory."""
    found: list[dict[TopicPartition, list[Unknown]]] = [{} for _ in generations]
    for tp, objects in unknown.items():
        for each in objects:
            place = max((name for name in dirs if each.key.startswith(name)), key=len, default=None)
            mine = [n for n, name in enumerate(dirs) if name == place]
            within = [n for n in mine if generations[n].ended and _is_within(generations[n], tp, each.first)]
            current = [n for n in mine if not generations[n].ended]
            for n in (within or current)[:1]:
                found[n].setdefault(tp, []).append(each)
    return found


def _is_within(lists: Lists, tp: TopicPartition, first: int) -> bool:
    p = lists.state.partition(tp)
    return p is not None and lists.starts.get(tp, p.next) <= first < p.next
