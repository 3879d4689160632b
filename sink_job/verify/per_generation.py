"""Divides the ledger's content and the bucket's deviations by generation; each is audited separately (docs/adr/0005).
Pure functions.

An object belongs to the generation of the ledger record that lists it first. The objects of an ended generation must be
unchanged, except those that a later generation copies again: users may have moved these away before the reset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from sink_job.api.sections.job_sections import KeySettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.data_loss import accepted_losses
from sink_job.ledger.generations import generation_of
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, Record, RotationRange
from sink_job.verify.audit_input import BucketState, GenerationAudit, UntrackedObject

_NO_END = 1 << 63


def per_generation(
    state: LedgerState,
    objects: Sequence[ClosedObject],
    rotations: Sequence[RotationRange],
    claims: Sequence[Record],
    lost: Sequence[LostObject] = (),
) -> list[GenerationAudit]:
    """The ledger's content for each generation, the current one last. `claims` are all existing claims, in order."""
    resets = [claim for claim in claims if claim.reset is not None]
    numbers = [claim.number for claim in resets]
    accepted = list(accepted_losses(objects, lost))
    lost_unpublished = set(lost) - {each for each, _ in accepted}
    generations = []
    for generation in range(1, len(resets) + 2):
        ended = None if generation > len(resets) else resets[generation - 1].reset
        own_claims = [claim for claim in claims if generation_of(claim.number, numbers) == generation]
        started = resets[generation - 2].reset if generation > 1 else None
        generations.append(
            GenerationAudit(
                state=state
                if ended is None
                else LedgerState(
                    generation=generation,
                    topics_dir=started.topics_dir if started else None,
                    partitions=ended.ended,
                ),
                published=[o for o in objects if generation_of(o.record, numbers) == generation],
                rotations=[r for r in rotations if generation_of(r.record, numbers) == generation],
                starts=_starts(own_claims),
                ended=ended is not None,
                lost=[
                    each
                    for each in lost
                    if each in lost_unpublished and generation_of(each.record, numbers) == generation
                ],
                accepted=frozenset(o.key for _, o in accepted if generation_of(o.record, numbers) == generation),
                previous=[o for claim in own_claims if claim.previous is not None for o in claim.previous.objects],
            )
        )
    return generations


def _starts(claims: Iterable[Record]) -> dict[TopicPartition, int]:
    starts: dict[TopicPartition, int] = {}
    for claim in claims:
        for name, delta in claim.partitions.items():
            starts.setdefault(TopicPartition.parse(name), delta.state.rotation_start)
    return starts


def buckets(
    generations: Sequence[GenerationAudit],
    bucket: BucketState,
    names: Sequence[KeySettings],
    dead_letters: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[BucketState]:
    """The deviations of the bucket from each generation. `names` are the key settings of the manifest, then those of
    previous settings, which may have another delimiter. `dead_letters` are the prefixes of the dead-letter objects by
    the topicsDir of their generation."""
    topics_dir = names[0].topics_dir
    dirs = [topics_dir if each.state.topics_dir is None else each.state.topics_dir for each in generations]
    delimiters = sorted({each.directory_delimiter for each in names})
    all_dirs = [{name, *dead_letters.get(name, ())} for name in dirs]
    untracked = _untracked(generations, bucket.untracked, all_dirs, delimiters)
    states = []
    for index, generation in enumerate(generations):
        later = generations[index + 1 :]
        rewritten = {o.key: o.last for each in later for o in each.objects}
        absent = [o for o in generation.objects if o.key in rewritten or o.key in bucket.missing]
        replaced = {o.key for o in absent if is_copied(later, o) or rewritten.get(o.key, -1) >= o.last}
        present = [o for o in generation.objects if o.key not in rewritten and o.key not in bucket.missing]
        same_directory = [each for each, name in zip(later, dirs[index + 1 :], strict=True) if name == dirs[index]]
        states.append(
            BucketState(
                missing=frozenset({o.key for o in absent} - replaced),
                mismatched={key: text for key, text in bucket.mismatched.items() if key not in rewritten},
                untracked=untracked[index],
                replaced=frozenset(replaced),
                recopied={o.key: at for o in present if (at := _copied_from(same_directory, o)) is not None},
                lowest_starts=_lowest_starts(
                    [each for each, name in zip(generations, dirs, strict=True) if name == dirs[index]]
                ),
            )
        )
    return states


def is_copied(later: Iterable[GenerationAudit], o: ClosedObject, end: int | None = None) -> bool:
    """Whether these generations have copied or will copy all records of the object, or those below `end`."""
    at = o.first
    for start, reached in sorted(_copied_ranges(later, o.topic_partition)):
        if start > at:
            break
        at = max(at, reached)
    return at >= (o.last + 1 if end is None else end)


def _copied_ranges(generations: Iterable[GenerationAudit], tp: TopicPartition) -> Iterator[tuple[int, int]]:
    """The offset range `[start, end)` that each generation copies; that of the current generation has no end."""
    for each in generations:
        p = each.state.partition(tp)
        if p is not None and tp in each.starts:
            yield each.starts[tp], p.committable if each.ended else _NO_END


def _copied_from(later: Iterable[GenerationAudit], o: ClosedObject) -> int | None:
    """The first offset of the object that one of these generations has copied; None if none has."""
    shared = [
        max(o.first, start)
        for each in later
        if (start := each.starts.get(o.topic_partition)) is not None
        and (p := each.state.partition(o.topic_partition)) is not None
        and max(o.first, start) < min(o.last + 1, p.committable)
    ]
    return min(shared, default=None)


def _lowest_starts(generations: Iterable[GenerationAudit]) -> dict[TopicPartition, int]:
    """The lowest start offset of each topic-partition."""
    lowest: dict[TopicPartition, int] = {}
    for each in generations:
        for tp, start in each.starts.items():
            lowest[tp] = min(start, lowest.get(tp, start))
    return lowest


def _untracked(
    generations: Sequence[GenerationAudit],
    untracked: Mapping[TopicPartition, Sequence[UntrackedObject]],
    dirs: Sequence[Collection[str]],
    delimiters: Sequence[str],
) -> list[dict[TopicPartition, list[UntrackedObject]]]:
    """Assigns each untracked object to the generation with the same records: the first ended generation one of whose
    directories and offset range contain it, else the current one if its directory contains it."""
    assigned: list[dict[TopicPartition, list[UntrackedObject]]] = [{} for _ in generations]
    for tp, objects in untracked.items():
        for each in objects:
            names = {name for of_generation in dirs for name in of_generation}
            directory = max((name for name in names if is_below(each.key, name, delimiters)), key=len, default=None)
            candidates = [n for n, of_generation in enumerate(dirs) if directory in of_generation]
            within = [n for n in candidates if generations[n].ended and _is_within(generations[n], tp, each.first)]
            current = [n for n in candidates if not generations[n].ended]
            for n in (within or current)[:1]:
                assigned[n].setdefault(tp, []).append(each)
    return assigned


def is_below(key: str, topics_dir: str, delimiters: Sequence[str]) -> bool:
    """Whether the key is in this directory, with one of the delimiters."""
    return not topics_dir or any(key.startswith(f"{topics_dir}{delimiter}") for delimiter in delimiters)


def _is_within(generation: GenerationAudit, tp: TopicPartition, first: int) -> bool:
    p = generation.state.partition(tp)
    return p is not None and generation.starts.get(tp, p.next) <= first < p.next
