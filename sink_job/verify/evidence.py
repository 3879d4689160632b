"""Reads what an audit needs: the ledger's lists, what the bucket really holds, and Kafka's own offsets.

The order makes it safe beside a running sink. The group's offsets are asked first, then the ledger is read, then the
bucket is listed: what was committed was visible by then, and what the lists acknowledge is in the listing. What looks
wrong after that (the sink went on meanwhile) is held against the ledger once more.

An object is what the lists say when its size is the recorded one and so is its content: by the ETag of the listing,
which a multipart upload derives from its parts' MD5s, else by the CRC64NVME of the whole object, asked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin, TopicInfo, describe_topics
from sink_job.engine.thread_pools import pool
from sink_job.ledger.generations import generation_metadata
from sink_job.ledger.ownership import claims_prefix, ledger_root
from sink_job.ledger.publisher import multipart_etag
from sink_job.ledger.state import ClosedObject, KafkaIdentity, LedgerState
from sink_job.ledger.store import Ledger
from sink_job.partitioning.object_keys import topic_prefix
from sink_job.s3 import Head, Listed, S3Client
from sink_job.s3.checksums import b64
from sink_job.verify.audit import (
    BucketState,
    GenerationAudit,
    KafkaOffsets,
    PartitionResult,
    UntrackedObject,
    audit,
    stray,
)
from sink_job.verify.duplicate_objects import DuplicateDetector, KeyOrigin, OtherObject
from sink_job.verify.per_generation import buckets, per_generation

THREADS = 16
"""Requests to S3 at a time."""

ReportProgress = Callable[[str], None]
"""Takes a line about what is being done, for people who wait."""


@dataclass(frozen=True)
class Evidence:
    """All that was read. `foreign` counts objects beside ours that hold no records of ours, as far as their keys, sizes
    and checksums say; `strays` are objects of partitions that the ledger does not know. `live` are the partitions that
    Kafka still has, and `notes` say what it no longer has. `lists`, `bucket` and `objects` are of the current
    generation; `ended` are the ones before, each with what the bucket says to it."""

    lists: GenerationAudit
    bucket: BucketState
    log: KafkaOffsets
    shapings: Mapping[int, ObjectSettings]
    live: Sequence[TopicPartition] = ()
    foreign: int = 0
    notes: tuple[str, ...] = ()
    objects: Mapping[str, ClosedObject] = field(default_factory=dict)
    ended: Sequence[tuple[GenerationAudit, BucketState]] = ()
    strays: Mapping[TopicPartition, Sequence[UntrackedObject]] = field(default_factory=dict)

    def results(self) -> list[PartitionResult]:
        """Of each generation and topic-partition, the current generation first."""
        before = [verdict for lists, bucket in self.ended for verdict in audit(lists, bucket, KafkaOffsets())]
        strays = [stray(tp, self.strays[tp], self.lists.state.generation) for tp in sorted(self.strays)]
        current = audit(self.lists, self.bucket, self.log)
        return [*current, *strays, *(each for each in before if each.objects or each.findings)]


def collect_evidence(sink: Sink, s3: S3Client, admin: KafkaAdmin, tell: ReportProgress = lambda line: None) -> Evidence:
    """Reads everything for the audit of a sink, which may be running.

    Raises ConfigurationError when it has no ledger, and what reading raises.
    """
    return _EvidenceReader(sink, s3, admin, tell).gather()


class _EvidenceReader:
    def __init__(self, sink: Sink, s3: S3Client, admin: KafkaAdmin, tell: ReportProgress) -> None:
        self.sink = sink
        self.s3 = s3
        self.admin = admin
        self.tell = tell
        self.ledger = Ledger(s3, ledger_root(sink.spec.s3.topics_dir, sink.sink_id), "verify")

    def gather(self) -> Evidence:
        with pool(THREADS, "s3sink-verify") as threads:
            known = self.ledger.load()
            if not known.number:
                raise ConfigurationError(
                    f"there is no ledger below s3://{self.s3.bucket}/{self.ledger.root}: nothing was written by sink "
                    f"{self.sink.sink_id} yet, or topicsDir or sinkId are others now"
                )
            group = self.admin.group_offsets(
                self.sink.group_id, _partitions(known), metadata=generation_metadata(known.generation)
            )
            generations, shapings = self._lists()
            if generations[-1].state.generation != known.generation:
                group = {}  # of a generation that a reset has ended meanwhile
            shaped = _distinct(list(shapings.values()))
            claimed, began = self._sinks_claims(shaped), self._began(known)
            looked = _BucketScanner(self.s3, threads, generations, shaped, claimed, began, self.tell)
            whole = looked.bucket(self._named_since)
            names = [self.sink.shaping().s3, *(shaping.s3 for shaping in shapings.values())]
            *before, (lists, bucket) = zip(generations, buckets(generations, whole, names), strict=True)
            live, notes = self._live(lists.state)
            placed = sum(len(found) for _, each in (*before, (lists, bucket)) for found in each.unknown.values())
            if aside := sum(map(len, whole.unknown.values())) - placed:
                notes += (
                    f"{aside:,} objects that no list names stand where an earlier generation wrote, outside of it",
                )
            strange = sum(len(found) for tp, found in bucket.unknown.items() if str(tp) not in lists.state.partitions)
            if strange:
                notes += (f"{strange:,} objects are of partitions that this generation does not copy",)
            notes += tuple(looked.notes())
            if looked.by_size:
                notes += (f"{looked.by_size:,} objects were compared by size alone: the store tells no checksum",)
            return Evidence(
                lists=lists,
                bucket=bucket,
                log=KafkaOffsets(group, self.admin.end_offsets(live)),
                shapings=shapings,
                live=live,
                foreign=looked.foreign,
                notes=notes,
                objects={o.key: o for o in lists.objects},
                ended=tuple(before),
                strays=looked.strays,
            )

    def _began(self, state: LedgerState) -> int:
        """When the sink's first claim was written, by the store's clock: what is older is no copy of its objects. 0
        where that claim is gone."""
        head = self.s3.head(self.ledger.key_of(min(state.claims))) if state.claims else None
        return head.last_modified_ms if head else 0

    def _sinks_claims(self, shapings: Sequence[ObjectSettings]) -> set[tuple[str, str]]:
        """Topic and extension of all that sinks have claimed in the directories of these settings."""
        roots = {claims_prefix(shaping.s3.topics_dir) for shaping in shapings}
        keys = (listed.key.removeprefix(root) for root in roots for listed in self.s3.list(root))
        names = (key.removesuffix(".json").split("/", 1) for key in keys if "/" in key)
        return {(topic, f".{end}") for topic, end in names}

    def _lists(self) -> tuple[list[GenerationAudit], dict[int, ObjectSettings]]:
        """The lists of each generation, and the settings of every claim: objects of long ago have keys of settings of
        long ago."""
        state = self.ledger.load()
        self.tell(f"ledger: record {state.number}, {len(state.partitions)} topic-partitions")
        lines = self.ledger.published(state)
        objects = [line.object for line in lines if line.object]
        rotations = [line.rotation for line in lines if line.rotation]
        lost = [line.lost for line in lines if line.lost]
        self.tell(f"published list: {len(objects):,} objects, {len(rotations):,} rotations")
        settings: dict[int, str] = dict(state.settings)
        claims = self.ledger.claims(state)
        settings |= {claim.number: claim.settings for claim in claims if claim.settings is not None}
        shapings = {number: ObjectSettings.model_validate_json(text) for number, text in settings.items()}
        return per_generation(state, objects, rotations, claims, lost), shapings

    def _named_since(self) -> dict[str, ClosedObject]:
        """What the ledger names by now, which may be more than when it was read."""
        state = self.ledger.load()
        published = [line.object for line in self.ledger.published(state) if line.object]
        return {o.key: o for o in (*published, *state.pending.values())}

    def _live(self, state: LedgerState) -> tuple[list[TopicPartition], tuple[str, ...]]:
        """The partitions that are in Kafka and are those of the ledger, and why the others are not."""
        if state.kafka is not None and self.admin.cluster_id() != state.kafka.cluster:
            return [], (
                f"bootstrapServers lead to another Kafka cluster than {state.kafka.cluster}: nothing is asked of it",
            )
        partitions = _partitions(state)
        topics = describe_topics(self.admin.topics, sorted({tp.topic for tp in partitions}))
        notes = tuple(_changes(state.kafka, topics))
        return [tp for tp in partitions if _is_live(tp, state.kafka, topics)], notes


def _partitions(state: LedgerState) -> list[TopicPartition]:
    return sorted(TopicPartition.parse(name) for name in state.partitions)


def _is_live(tp: TopicPartition, kafka: KafkaIdentity | None, topics: Mapping[str, TopicInfo | None]) -> bool:
    info = topics.get(tp.topic)
    return info is not None and tp.partition < info.partitions and _is_same(tp.topic, info, kafka)


def _is_same(topic: str, info: TopicInfo, kafka: KafkaIdentity | None) -> bool:
    return kafka is None or kafka.topics.get(topic, info.id) == info.id


def _changes(kafka: KafkaIdentity | None, topics: Mapping[str, TopicInfo | None]) -> Iterator[str]:
    for topic, info in topics.items():
        if info is None:
            yield f"topic {topic} is no longer in Kafka"
        elif not _is_same(topic, info, kafka):
            yield f"topic {topic} was deleted and created again: the one in Kafka is not the one in the bucket"


class _BucketScanner:
    """Holds the bucket against the lists."""

    def __init__(
        self,
        s3: S3Client,
        pool: Executor,
        generations: Sequence[GenerationAudit],
        shapings: Sequence[ObjectSettings],
        claimed: Collection[tuple[str, str]],
        began: int,
        tell: ReportProgress,
    ) -> None:
        """`claimed`: see `Beside`. `began`: when the sink did (ms, the store's clock)."""
        self.s3 = s3
        self.pool = pool
        self.shapings = shapings
        self.began = began
        self.tell = tell
        self.objects = {o.key: o for lists in generations for o in lists.objects}
        self.partitions = {TopicPartition.parse(name) for each in generations for name in each.state.partitions}
        self.topics = sorted({tp.topic for tp in self.partitions})
        self.beside = DuplicateDetector(shapings, self.topics, claimed)
        self.sizes = {o.bytes for o in self.objects.values()}
        self.unknown: list[tuple[TopicPartition, UntrackedObject]] = []
        self.strays: dict[TopicPartition, list[UntrackedObject]] = {}
        self.doubtful: list[ClosedObject] = []
        self.likely_copies: list[Listed] = []
        self.foreign = self.other_sinks = self.older_strays = self.by_size = 0

    def bucket(self, named_since: Callable[[], Mapping[str, ClosedObject]]) -> BucketState:
        """How the bucket differs from the lists."""
        unseen = self._list()
        since = named_since() if self.unknown or self.doubtful or unseen else {}
        missing: set[str] = set()
        other: dict[str, str] = {}
        doubtful = [since.get(o.key, o) for o in (*self.doubtful, *(self.objects[key] for key in unseen))]
        if doubtful:
            self.tell(f"asking for the checksums of {len(doubtful):,} objects")
        for o, head in zip(doubtful, self.pool.map(lambda o: self.s3.head(o.key), doubtful), strict=True):
            if head is None:
                missing.add(o.key)
            elif what := difference(o, head):
                other[o.key] = what
            elif head.crc64nvme is None and multipart_etag(o) is None:
                self.by_size += 1
        unknown: dict[TopicPartition, list[UntrackedObject]] = {}
        for tp, found in (*self.unknown, *self._copies()):
            if found.key not in since:
                (unknown if tp in self.partitions else self.strays).setdefault(tp, []).append(found)
        return BucketState(frozenset(missing), other, unknown)

    def notes(self) -> Iterator[str]:
        """What is beside the sink's objects and is nothing wrong."""
        if self.older_strays:
            yield f"{self.older_strays:,} objects are of partitions that the ledger does not know, and older than it"
        if self.other_sinks:
            yield f"{self.other_sinks:,} objects have an extension that another sink has claimed for the same topic"

    def _list(self) -> set[str]:
        """Goes through the listing; returns the keys of the lists that are not in it."""
        unseen = set(self.objects)
        listed = 0
        for found in self._listing():
            listed += 1
            if listed % 100_000 == 0:
                self.tell(f"listed {listed:,} objects")
            o = self.objects.get(found.key)
            if o is None:
                self._not_named(found)
                continue
            unseen.discard(found.key)
            if found.size != o.bytes or found.etag.strip('"') != multipart_etag(o):
                self.doubtful.append(o)
        self.tell(f"listed {listed:,} objects")
        return unseen

    def _listing(self) -> Iterator[Listed]:
        """Everything below the topics' prefixes, once: with unusual delimiters one prefix may begin as another."""
        done: list[str] = []
        for prefix in sorted({topic_prefix(shaping, topic) for shaping in self.shapings for topic in self.topics}):
            if not any(prefix.startswith(other) for other in done):
                done.append(prefix)
                yield from self.s3.list(prefix)

    def _not_named(self, listed: Listed) -> None:
        match self.beside.origin(listed.key):
            case KeyOrigin(tp, first):
                if tp in self.partitions or listed.last_modified_ms >= self.began:
                    self.unknown.append((tp, UntrackedObject(listed.key, first, listed.size)))
                else:
                    self.older_strays += 1
            case OtherObject.ANOTHER_SINKS:
                self.other_sinks += 1
            case OtherObject.FOREIGN if listed.size in self.sizes and listed.last_modified_ms >= self.began:
                self.likely_copies.append(listed)
            case _:
                self.foreign += 1

    def _copies(self) -> Iterator[tuple[TopicPartition, UntrackedObject]]:
        """Those of the likely copies that have the content of an object that the lists name; the rest is foreign."""
        if not self.likely_copies:
            return
        self.tell(f"comparing {len(self.likely_copies):,} other objects with those of the lists")
        by_etag = {etag: o for o in self.objects.values() if (etag := multipart_etag(o)) is not None}
        by_crc = {(o.bytes, o.crc): o for o in self.objects.values()}

        def original(listed: Listed) -> ClosedObject | None:
            if (o := by_etag.get(listed.etag.strip('"'))) is not None:
                return o
            head = self.s3.head(listed.key)
            return None if head is None or head.crc64nvme is None else by_crc.get((head.size, head.crc64nvme))

        for listed, o in zip(self.likely_copies, self.pool.map(original, self.likely_copies), strict=True):
            if o is None:
                self.foreign += 1
            else:
                yield o.topic_partition, UntrackedObject(listed.key, o.first, listed.size, copy_of=o.key)


def difference(o: ClosedObject, stored: Head) -> str | None:
    """In which way the stored object is not `o`, in words; None when it is, as far as the store can tell."""
    if stored.size != o.bytes:
        return f"{stored.size:,} bytes there, {o.bytes:,} recorded"
    if stored.crc64nvme is not None:
        if stored.crc64nvme == o.crc:
            return None
        return f"the same size, but CRC64NVME {b64(stored.crc64nvme)} there, {b64(o.crc)} recorded"
    recorded = multipart_etag(o)
    if recorded in (None, stored.etag.strip('"')):
        return None
    return f"the same size, but ETag {stored.etag} there, {recorded} recorded"


def _distinct(shapings: Sequence[ObjectSettings]) -> list[ObjectSettings]:
    return list({shaping.model_dump_json(): shaping for shaping in reversed(shapings)}.values())
