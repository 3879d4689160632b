"""Collects the evidence for an audit: the ledger's published log, the bucket's objects, and Kafka's offsets.

The order of the reads makes the audit safe beside a running sink. First the group's offsets are read, then the ledger,
then the bucket is listed. Committed records were visible before the first read, and acknowledged objects are in the
listing. Deviations are then compared with the ledger once more, since the sink may have written meanwhile.

An object is the listed one if its size and its content are. The content is compared by the ETag in the listing, which
S3 derives from the MD5s of the parts, or by the CRC64NVME of the whole object, which takes one request per object. The
number of records in the footer of a Parquet object is compared with the ledger, which takes one more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin, TopicInfo, describe_topics
from sink_job.engine.thread_pools import pool
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.generations import generation_metadata
from sink_job.ledger.ownership import claims_prefix
from sink_job.ledger.state import ClosedObject, KafkaIdentity, LedgerState
from sink_job.ledger.store import Ledger, published_times
from sink_job.s3 import S3Client
from sink_job.verify.audit import audit, unknown_partition
from sink_job.verify.audit_input import BucketState, GenerationAudit, KafkaOffsets, UntrackedObject
from sink_job.verify.bucket_scanner import BucketScanner, LedgerContent, ReportProgress
from sink_job.verify.per_generation import buckets, per_generation
from sink_job.verify.removed_objects import LedgerTimes, with_removed
from sink_job.verify.results import PartitionResult

THREADS = 16
"""Number of concurrent requests to S3."""


@dataclass(frozen=True)
class Evidence:
    """The input of an audit.

    `current`, `bucket` and `objects` (by key) are those of the current generation; `ended` are the previous
    generations, each with its bucket state. `settings_of_claims` are the settings of all claims by number. `live` are
    the partitions that still exist in Kafka; `notes` report the others. `foreign` counts objects under the topic
    prefixes without records of this sink, by their keys, sizes and checksums. `unknown_partitions` are untracked
    objects of partitions that the ledger does not contain. `root` is the prefix of the ledger."""

    current: GenerationAudit
    bucket: BucketState
    kafka: KafkaOffsets
    settings_of_claims: Mapping[int, ObjectSettings]
    live: Sequence[TopicPartition] = ()
    foreign: int = 0
    notes: tuple[str, ...] = ()
    objects: Mapping[str, ClosedObject] = field(default_factory=dict)
    ended: Sequence[tuple[GenerationAudit, BucketState]] = ()
    unknown_partitions: Mapping[TopicPartition, Sequence[UntrackedObject]] = field(default_factory=dict)
    root: str = ""

    def results(self) -> list[PartitionResult]:
        """The result for each generation and topic-partition, the current generation first."""
        previous = [result for ended, bucket in self.ended for result in audit(ended, bucket, KafkaOffsets())]
        generation = self.current.state.generation
        unknown = [
            unknown_partition(tp, objects, generation) for tp, objects in sorted(self.unknown_partitions.items())
        ]
        current = audit(self.current, self.bucket, self.kafka)
        return [*current, *unknown, *(each for each in previous if each.objects or each.findings)]


def collect_evidence(
    sink: Sink,
    s3: S3Client,
    admin: KafkaAdmin,
    report: ReportProgress = lambda line: None,
    *,
    removed_before: int | None = None,
) -> Evidence:
    """Collects the evidence for the audit of a sink, which may be running. Missing objects that were written before
    `removed_before` (ms), or longer ago than `spec.s3.expireAfter`, count as removed by a lifecycle rule.

    Raises ConfigurationError when the sink has no ledger, and the errors of Kafka and the store.
    """
    return _EvidenceReader(sink, s3, admin, report, removed_before).read()


class _EvidenceReader:
    def __init__(
        self, sink: Sink, s3: S3Client, admin: KafkaAdmin, report: ReportProgress, removed_before: int | None
    ) -> None:
        self.sink = sink
        self.s3 = s3
        self.admin = admin
        self.report = report
        self.removed_before = removed_before
        self.ledger = Ledger(s3, ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id), "verify")

    def read(self) -> Evidence:
        with pool(THREADS, "s3sink-verify") as threads:
            state = self.ledger.load()
            if not state.number:
                raise ConfigurationError(
                    f"there is no ledger below {self.s3.url_of(self.ledger.root)}: sink {self.sink.sink_id} has "
                    "not written anything yet, or spec.s3.topicsDir, spec.s3.ledger or spec.sinkId was changed. Check "
                    "them"
                )
            group = self.admin.group_offsets(
                self.sink.group_id, _partitions(state), metadata=generation_metadata(state.generation)
            )
            generations, settings_of_claims, times = self._generations()
            if generations[-1].state.generation != state.generation:
                group = {}  # a reset has ended the generation of these offsets meanwhile
            content = LedgerContent(
                generations,
                settings_of_claims,
                claimed=self._claimed_extensions(settings_of_claims.values()),
                started=self._started(state),
            )
            scan = BucketScanner(self.s3, threads, content, self.report).scan(self._closed_objects)
            names = [self.sink.object_settings().s3, *(settings.s3 for settings in settings_of_claims.values())]
            prefixes = _dead_letters(settings_of_claims.values())
            cutoff = self._cutoff()
            audits = [
                (generation, with_removed(generation, bucket, times, cutoff))
                for generation, bucket in zip(
                    generations, buckets(generations, scan.bucket, names, prefixes), strict=True
                )
            ]
            *ended, (current, bucket) = audits
            live, notes = self._live(current.state)
            notes += (*_notes_on_generations(scan.bucket, audits), *scan.notes())
            return Evidence(
                current=current,
                bucket=bucket,
                kafka=KafkaOffsets(group, self.admin.end_offsets(live)),
                settings_of_claims=settings_of_claims,
                live=live,
                foreign=scan.foreign,
                notes=notes,
                objects={o.key: o for o in current.objects},
                ended=tuple(ended),
                unknown_partitions=scan.unknown_partitions,
                root=self.ledger.root,
            )

    def _started(self, state: LedgerState) -> int:
        """The time of the sink's first claim in ms, by the store's clock; 0 if the claim is missing. Older objects are
        not copies of the sink's objects."""
        head = self.s3.head(self.ledger.key_of(min(state.claims))) if state.claims else None
        return head.last_modified_ms if head else 0

    def _claimed_extensions(self, settings_of_claims: Collection[ObjectSettings]) -> set[tuple[str, str]]:
        """Topic and extension of all claims of sinks in the directories of these settings."""
        roots = {claims_prefix(object_settings.s3.topics_dir) for object_settings in settings_of_claims}
        keys = (listed.key.removeprefix(root) for root in roots for listed in self.s3.list(root))
        names = (key.removesuffix(".json").split("/", 1) for key in keys if "/" in key)
        return {(topic, f".{suffix}") for topic, suffix in names}

    def _cutoff(self) -> int | None:
        """The time in ms before which missing objects count as removed, by the store's clock."""
        after = self.sink.spec.s3.expire_after
        expired = None if after is None else self.s3.server_now_ms() - after
        return max((at for at in (expired, self.removed_before) if at is not None), default=None)

    def _generations(self) -> tuple[list[GenerationAudit], dict[int, ObjectSettings], LedgerTimes]:
        """The ledger's content for each generation, the settings of every claim (the keys of old objects depend on old
        settings), and the times of records."""
        state = self.ledger.load()
        self.report(f"ledger: record {state.number}, {len(state.partitions)} topic-partitions")
        lines = self.ledger.published(state)
        objects = [line.object for line in lines if line.object]
        rotations = [line.rotation for line in lines if line.rotation]
        lost = [line.lost for line in lines if line.lost]
        self.report(f"published log: {len(objects):,} objects, {len(rotations):,} rotations")
        settings: dict[int, str] = dict(state.settings)
        claims = self.ledger.claims(state)
        settings |= {claim.number: claim.settings for claim in claims if claim.settings is not None}
        settings_of_claims = {number: ObjectSettings.model_validate_json(text) for number, text in settings.items()}
        times = LedgerTimes({claim.number: claim.clock for claim in claims}, published_times(self.s3, self.ledger.root))
        return per_generation(state, objects, rotations, claims, lost), settings_of_claims, times

    def _closed_objects(self) -> dict[str, ClosedObject]:
        """The closed objects by key, from a new read of the ledger."""
        state = self.ledger.load()
        published = [line.object for line in self.ledger.published(state) if line.object]
        return {o.key: o for o in (*published, *state.pending.values())}

    def _live(self, state: LedgerState) -> tuple[list[TopicPartition], tuple[str, ...]]:
        """The partitions of the ledger that still exist in Kafka, and notes about the others."""
        if state.kafka is not None and self.admin.cluster_id() != state.kafka.cluster:
            return [], (
                f"bootstrapServers are not those of Kafka cluster {state.kafka.cluster} of the ledger: no log end "
                "offsets were read",
            )
        partitions = _partitions(state)
        topics = describe_topics(self.admin.topics, sorted({tp.topic for tp in partitions}))
        notes = tuple(_changes(state.kafka, topics))
        return [tp for tp in partitions if _is_live(tp, state.kafka, topics)], notes


def _notes_on_generations(whole: BucketState, audits: Sequence[tuple[GenerationAudit, BucketState]]) -> Iterator[str]:
    """Notes on untracked objects of `whole` that no generation's audit reports. The current generation is the last."""
    assigned = sum(len(objects) for _, bucket in audits for objects in bucket.untracked.values())
    if outside := sum(map(len, whole.untracked.values())) - assigned:
        yield (
            f"{outside:,} objects in the directory of a previous generation are not listed in the ledger and are "
            "outside of its offsets"
        )
    current, bucket = audits[-1]
    uncopied = sum(len(objects) for tp, objects in bucket.untracked.items() if str(tp) not in current.state.partitions)
    if uncopied:
        yield f"{uncopied:,} objects are of partitions that this generation does not copy"


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
            yield f"topic {topic} does not exist in Kafka any more"
        elif not _is_same(topic, info, kafka):
            yield f"topic {topic} was deleted and created again: the objects are those of the deleted topic"


def _dead_letters(settings_of_claims: Iterable[ObjectSettings]) -> dict[str, set[str]]:
    """The prefixes of dead-letter objects by the topicsDir of their generation."""
    found: dict[str, set[str]] = {}
    for each in settings_of_claims:
        if each.dead_letters is not None and not each.dead_letters.staged:
            found.setdefault(each.s3.topics_dir, set()).add(each.dead_letters.prefix)
    return found
