"""The objects of both sides: those of the sink by its ledger and a listing, those of the other writer by a listing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.compare.location import Location
from sink_job.engine.thread_pools import pool
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.state import ClosedObject, LedgerState, RotationRange, committable_offsets
from sink_job.ledger.store import Ledger
from sink_job.partitioning.object_keys import is_temporary, topic_prefix
from sink_job.records.batch import DEAD_LETTERS
from sink_job.s3 import Listed, S3Client
from sink_job.verify.bucket_scanner import ReportProgress
from sink_job.verify.duplicate_objects import DuplicateDetector, KeyOrigin
from sink_job.verify.per_generation import per_generation

_BESIDE: Final = re.compile(r"[0-9]\.(keys|headers)\.[^/]+$")
"""The files that a connector writes beside its objects, with store.kafka.keys and store.kafka.headers."""
LISTINGS: Final = 8
"""Number of topics whose objects are listed at the same time."""


class ComparedObject(NamedTuple):
    """An object of one side. `name` is its key without the directory: topic, path and file. `last` (inclusive) and
    `records` (their number) are those of the ledger; None for an object that it does not list. `size` is in bytes."""

    key: str
    name: str
    path: str
    first: int
    size: int
    last: int | None = None
    records: int | None = None


@dataclass(frozen=True)
class SinkPartition:
    """The sink's side of a topic-partition. It starts at `start`; `end` is the first offset that is not in a visible
    object. `objects` are those with records; `rejected` are dead-letter objects. `damaged` are messages by the key of
    an object, `missing` are not in the bucket. `rotations` have the offset gaps."""

    start: int
    end: int
    objects: list[ComparedObject] = field(default_factory=list)
    missing: list[ComparedObject] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    rejected: list[ComparedObject] = field(default_factory=list)
    rotations: list[RotationRange] = field(default_factory=list)


@dataclass(frozen=True)
class SinkSide:
    """The sink's side: its topic-partitions, and the settings under which the newest objects were written. `topics` are
    those of the manifest and of the ledger."""

    partitions: Mapping[TopicPartition, SinkPartition]
    settings: ObjectSettings
    topics: Sequence[str]


def read_sink_side(sink: Sink, s3: S3Client, report: ReportProgress) -> SinkSide:
    """Reads the ledger, then lists the bucket: an object that is acknowledged is visible. The current generation alone
    takes part. Raises ConfigurationError without a ledger, and the errors of the store."""
    ledger = Ledger(s3, ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id), "compare")
    state = ledger.load()
    if not state.number:
        raise ConfigurationError(
            f"there is no ledger below {s3.url_of(ledger.root)}: sink {sink.sink_id} has not written anything "
            "yet, or spec.s3.topicsDir, spec.s3.ledger or spec.sinkId was changed. Check them"
        )
    lines = ledger.published(state)
    claims = ledger.claims(state)
    generation = per_generation(
        state,
        [line.object for line in lines if line.object],
        [line.rotation for line in lines if line.rotation],
        claims,
    )[-1]
    report(f"ledger: {len(generation.published):,} objects")
    texts = {**state.settings, **{each.number: each.settings for each in claims if each.settings is not None}}
    settings = {number: ObjectSettings.model_validate_json(text) for number, text in texts.items()}
    ends = committable_offsets(state)
    partitions = {
        tp: SinkPartition(generation.starts.get(tp, 0), end) for tp, end in ((tp, ends[tp]) for tp in sorted(ends))
    }
    for rotation in generation.rotations:
        if (side := partitions.get(TopicPartition(rotation.topic, rotation.partition))) is not None:
            side.rotations.append(rotation)
    newest = settings.get(state.current_settings(), sink.object_settings())
    topics = sorted({tp.topic for tp in partitions})
    _add_objects(partitions, generation.published, state, settings, _listed(s3, settings.values(), topics, report))
    return SinkSide(partitions, newest, topics)


def _listed(
    s3: S3Client, settings: Iterable[ObjectSettings], topics: Collection[str], report: ReportProgress
) -> dict[str, Listed]:
    prefixes = sorted({topic_prefix(each, topic) for each in settings for topic in topics})
    return {each.key: each for each in _list_all(s3, prefixes, report)}


def _list_all(s3: S3Client, prefixes: Sequence[str], report: ReportProgress) -> Iterator[Listed]:
    """The objects below the sorted prefixes, several prefixes at a time. A prefix below another one is left out."""
    chosen: list[str] = []
    for prefix in prefixes:
        if not chosen or not prefix.startswith(chosen[-1]):
            chosen.append(prefix)
    count = 0
    with pool(LISTINGS, "s3sink-compare-list") as threads:
        for listed in threads.map(lambda prefix: list(s3.list(prefix)), chosen):
            count += len(listed)
            report(f"listed {count:,} objects of s3://{s3.bucket}")
            yield from listed


def _add_objects(
    partitions: Mapping[TopicPartition, SinkPartition],
    published: Iterable[ClosedObject],
    state: LedgerState,
    settings: Mapping[int, ObjectSettings],
    listed: Mapping[str, Listed],
) -> None:
    """Adds the objects of the ledger, and those of the listing that it does not list."""
    known = set()
    newest = settings.get(state.current_settings())
    for o in published:
        known.add(o.key)
        side, of_claim = partitions.get(o.topic_partition), settings.get(o.settings, newest)
        if side is None or of_claim is None:
            continue
        found = listed.get(o.key)
        compared = ComparedObject(o.key, _name(o, state, of_claim), o.path, o.first, o.bytes, o.last, o.offsets.count)
        if o.path == DEAD_LETTERS:
            side.rejected.append(compared)
            continue
        assert not is_temporary(o.path, o.key)
        (side.missing if found is None else side.objects).append(compared)
        if found is not None and found.size != o.bytes:
            side.damaged[o.key] = f"it has {found.size:,} bytes, and {o.bytes:,} in the ledger"
    pending = set(state.pending)
    if newest is None:
        return
    for tp, untracked in _classified(newest, sorted({tp.topic for tp in partitions}), listed.values(), known | pending):
        if tp in partitions:
            partitions[tp].objects.append(untracked)


def _name(o: ClosedObject, state: LedgerState, settings: ObjectSettings) -> str:
    delimiter = settings.s3.directory_delimiter
    directories = [f"{each}{delimiter}" for each in (state.topics_dir, settings.s3.topics_dir) if each]
    front = max((each for each in directories if o.key.startswith(each)), key=len, default="")
    return o.key.removeprefix(front)


@dataclass(frozen=True)
class OtherSide:
    """The other writer's side. `ignored` counts objects below the topics' prefixes with other keys than those of a sink
    or connector with this format."""

    partitions: Mapping[TopicPartition, Sequence[ComparedObject]]
    ignored: int


def read_other_side(
    location: Location, s3: S3Client, side: SinkSide, report: ReportProgress, *, own: str = ""
) -> OtherSide:
    """Lists the directory of the other writer: the topics of the sink alone. `own`: the prefix of the sink's directory,
    if it is in the same bucket; objects in it are left out. Raises the errors of the store."""
    plain = {"topics_dir": location.directory, "prefixes": [], "topic_in_path": True}  # the names of a connector
    names = side.settings.s3.model_copy(update=plain)
    settings = side.settings.model_copy(update={"s3": names, "dead_letters": None})
    prefixes = sorted({topic_prefix(settings, topic) for topic in side.topics})
    around = bool(own) and any(own.startswith(prefix) for prefix in prefixes)
    listed = [each for each in _list_all(s3, prefixes, report) if not around or not each.key.startswith(own)]
    found: dict[TopicPartition, list[ComparedObject]] = {}
    count = 0
    for tp, each in _classified(settings, side.topics, listed, ()):
        found.setdefault(tp, []).append(each)
        count += 1
    return OtherSide(found, len(listed) - count)


def _classified(
    settings: ObjectSettings, topics: Sequence[str], listed: Iterable[Listed], known: Collection[str]
) -> Iterator[tuple[TopicPartition, ComparedObject]]:
    """The objects of the listing with keys of records, but the known ones."""
    plain = settings.model_copy(update={"dead_letters": None})
    detector = DuplicateDetector([plain], topics)
    delimiter, separator = plain.s3.directory_delimiter, plain.s3.file_delimiter
    directory = f"{plain.s3.topics_dir}{delimiter}" if plain.s3.topics_dir else ""
    for each in listed:
        if each.key in known or _BESIDE.search(each.key):
            continue
        origin = detector.origin(each.key)
        if not isinstance(origin, KeyOrigin):
            continue
        topic = origin.topic_partition.topic
        within = each.key[len(topic_prefix(plain, topic)) :]
        path = within[: max(0, within.rfind(f"{delimiter}{topic}{separator}"))]
        name = each.key.removeprefix(directory)
        yield origin.topic_partition, ComparedObject(each.key, name, path, origin.first, each.size)
