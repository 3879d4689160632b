"""The ledger's lists, divided into its generations: each is proved for itself (docs/adr/0005). Pure.

What a generation lists is told by the numbers of the records that named it. One that a reset has ended is held to be
there as it was, save what a later generation copies again: that may have been moved away before the reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sink_job.api.spec import KeySettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import generation_of
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, Record, RotationRange
from sink_job.verify.audit import BucketState, GenerationAudit, UntrackedObject

_NO_END = 1 << 63


def per_generation(
    state: LedgerState,
    objects: Sequence[ClosedObject],
    rotations: Sequence[RotationRange],
    claims: Sequence[Record],
    lost: Sequence[LostObject] = (),
) -> list[GenerationAudit]:
    """The lists of each generation, the current one last. `claims` are all that the ledger still has, in order."""
    resets = [claim for claim in claims if claim.reset is not None]
    numbers = [claim.number for claim in resets]
    found = []
    for generation in range(1, len(resets) + 2):
        ended = None if generation > len(resets) else resets[generation - 1].reset
        mine = [claim for claim in claims if generation_of(claim.number, numbers) == generation]
        begun = resets[generation - 2].reset if generation > 1 else None
        found.append(
            GenerationAudit(
                state=state
                if ended is None
                else LedgerState(
                    generation=generation,
                    topics_dir=begun.topics_dir if begun else None,
                    partitions=ended.ended,
                ),
                published=[o for o in objects if generation_of(o.record, numbers) == generation],
                rotations=[r for r in rotations if generation_of(r.record, numbers) == generation],
                starts=_starts(mine),
                ended=ended is not None,
                lost=[each for each in lost if generation_of(each.record, numbers) == generation],
            )
        )
    return found


def _starts(claims: Iterable[Record]) -> dict[TopicPartition, int]:
    starts: dict[TopicPartition, int] = {}
    for claim in claims:
        for name, change in claim.partitions.items():
            starts.setdefault(TopicPartition.parse(name), change.state.rotation_start)
    return starts


def buckets(
    generations: Sequence[GenerationAudit], bucket: BucketState, names: Sequence[KeySettings]
) -> list[BucketState]:
    """What the bucket says to each generation. `names` are the manifest's, then those of former settings, which may
    have had another delimiter."""
    topics_dir = names[0].topics_dir
    dirs = [topics_dir if each.state.topics_dir is None else each.state.topics_dir for each in generations]
    delimiters = sorted({each.directory_delimiter for each in names})
    unknown = _unknown(generations, bucket.unknown, dirs, delimiters)
    found = []
    for index, lists in enumerate(generations):
        later = generations[index + 1 :]
        named = {o.key: o.last for each in later for o in each.objects}
        gone = [o for o in lists.objects if o.key in named or o.key in bucket.missing]
        replaced = {o.key for o in gone if is_copied(later, o) or named.get(o.key, -1) >= o.last}
        there = [o for o in lists.objects if o.key not in named and o.key not in bucket.missing]
        beside = [each for each, place in zip(later, dirs[index + 1 :], strict=True) if place == dirs[index]]
        found.append(
            BucketState(
                missing=frozenset({o.key for o in gone} - replaced),
                other={key: what for key, what in bucket.other.items() if key not in named},
                unknown=unknown[index],
                replaced=frozenset(replaced),
                doubled={o.key: at for o in there if (at := _copied_from(beside, o)) is not None},
                begins=_begins([g for g, place in zip(generations, dirs, strict=True) if place == dirs[index]]),
            )
        )
    return found


def is_copied(later: Iterable[GenerationAudit], o: ClosedObject, end: int | None = None) -> bool:
    """Whether these generations copy all that the object holds, or its records below `end`: those that have ended did,
    the current one does or will."""
    at = o.first
    for start, reached in sorted(_spans(later, o.topic_partition)):
        if start > at:
            break
        at = max(at, reached)
    return at >= (o.last + 1 if end is None else end)


def _spans(generations: Iterable[GenerationAudit], tp: TopicPartition) -> Iterator[tuple[int, int]]:
    """The offsets `[start, end)` that each generation copies."""
    for each in generations:
        p = each.state.partition(tp)
        if p is not None and tp in each.starts:
            yield each.starts[tp], p.committable if each.ended else _NO_END


def _copied_from(later: Iterable[GenerationAudit], o: ClosedObject) -> int | None:
    """The first of the object's offsets that one of these generations has copied; None where none has."""
    shared = [
        max(o.first, start)
        for each in later
        if (start := each.starts.get(o.topic_partition)) is not None
        and (p := each.state.partition(o.topic_partition)) is not None
        and max(o.first, start) < min(o.last + 1, p.committable)
    ]
    return min(shared, default=None)


def _begins(generations: Iterable[GenerationAudit]) -> dict[TopicPartition, int]:
    """The lowest start of each topic-partition."""
    lowest: dict[TopicPartition, int] = {}
    for each in generations:
        for tp, start in each.starts.items():
            lowest[tp] = min(start, lowest.get(tp, start))
    return lowest


def _unknown(
    generations: Sequence[GenerationAudit],
    unknown: Mapping[TopicPartition, Sequence[UntrackedObject]],
    dirs: Sequence[str],
    delimiters: Sequence[str],
) -> list[dict[TopicPartition, list[UntrackedObject]]]:
    """Each object that no list names, at the generation whose records it doubles: the first in whose directory and
    range it is, else the current one if it is in that one's directory."""
    found: list[dict[TopicPartition, list[UntrackedObject]]] = [{} for _ in generations]
    for tp, objects in unknown.items():
        for each in objects:
            place = max((name for name in dirs if is_below(each.key, name, delimiters)), key=len, default=None)
            mine = [n for n, name in enumerate(dirs) if name == place]
            within = [n for n in mine if generations[n].ended and _is_within(generations[n], tp, each.first)]
            current = [n for n in mine if not generations[n].ended]
            for n in (within or current)[:1]:
                found[n].setdefault(tp, []).append(each)
    return found


def is_below(key: str, topics_dir: str, delimiters: Sequence[str]) -> bool:
    """Whether an object's key lies in this directory, under one of the delimiters."""
    return not topics_dir or any(key.startswith(f"{topics_dir}{delimiter}") for delimiter in delimiters)


def _is_within(lists: GenerationAudit, tp: TopicPartition, first: int) -> bool:
    p = lists.state.partition(tp)
    return p is not None and lists.starts.get(tp, p.next) <= first < p.next
