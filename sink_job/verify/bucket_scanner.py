"""Compares the bucket with the ledger: one listing, and requests for what the listing does not decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject
from sink_job.ledger.stored_object import compare_stored, multipart_etag
from sink_job.partitioning.object_keys import is_internal, is_temporary, listing_prefixes
from sink_job.s3 import Listed, S3Client
from sink_job.verify.audit_input import BucketState, GenerationAudit, UntrackedObject
from sink_job.verify.duplicate_objects import DuplicateDetector, KeyOrigin, OtherObject
from sink_job.verify.parquet_footers import footer_difference, is_parquet
from sink_job.verify.parquet_statistics import OFFSET

ReportProgress = Callable[[str], None]
"""Receives a line of progress output."""


class LedgerContent:
    """What the ledger lists, of all generations."""

    def __init__(
        self,
        generations: Sequence[GenerationAudit],
        settings_of_claims: Mapping[int, ObjectSettings],
        *,
        claimed: Collection[tuple[str, str]],
        started: int,
    ) -> None:
        """`claimed`: see `DuplicateDetector`. `started`: the time of the sink's first claim (ms, by the store's
        clock)."""
        self.objects = {o.key: o for each in generations for o in each.objects if not is_temporary(o.path, o.key)}
        self.partitions = {TopicPartition.parse(name) for each in generations for name in each.state.partitions}
        self.topics = sorted({tp.topic for tp in self.partitions})
        self.settings = _distinct(settings_of_claims.values())
        self.started = started
        self.enveloped = {number for number, settings in settings_of_claims.items() if settings.format.envelope}
        """The claims under which records contain their offsets."""
        self._detector = DuplicateDetector(self.settings, self.topics, claimed)
        self._sizes = {o.bytes for o in self.objects.values()}

    def origin(self, key: str) -> KeyOrigin | OtherObject:
        return self._detector.origin(key)

    def may_be_copied(self, listed: Listed) -> bool:
        """Whether an object can be a copy of a listed one, by its size and age."""
        return listed.size in self._sizes and listed.last_modified_ms >= self.started

    def prefixes(self) -> list[str]:
        """The topic prefixes, each object below one alone."""
        return listing_prefixes(self.settings, self.topics)

    def is_internal(self, key: str) -> bool:
        """Whether a listed object is in the folder of ledgers."""
        return any(is_internal(each, key) for each in self.settings)


@dataclass
class _Listing:
    """The objects of the bucket by what is known of them after the listing."""

    not_listed: set[str]
    parquet: list[ClosedObject] = field(default_factory=list)
    unconfirmed: list[ClosedObject] = field(default_factory=list)
    untracked: list[tuple[TopicPartition, UntrackedObject]] = field(default_factory=list)
    likely_copies: list[Listed] = field(default_factory=list)
    foreign: int = 0
    other_sinks: int = 0
    older_objects: int = 0


@dataclass(frozen=True)
class BucketScan:
    """The deviations of the bucket from the ledger. `unknown_partitions` are untracked objects of partitions that the
    ledger does not contain. `foreign` counts objects of other programs, `other_sinks` those with an extension of
    another sink, `older_objects` those that are older than the ledger, and `by_size` the objects that were compared by
    size only."""

    bucket: BucketState
    unknown_partitions: Mapping[TopicPartition, Sequence[UntrackedObject]]
    foreign: int
    other_sinks: int
    older_objects: int
    by_size: int

    def notes(self) -> Iterator[str]:
        """Notes about objects of other programs and about what was not compared."""
        if self.older_objects:
            yield f"{self.older_objects:,} objects older than the ledger are of partitions that it does not contain"
        if self.other_sinks:
            yield f"{self.other_sinks:,} objects have an extension that another sink has claimed for the same topic"
        if self.by_size:
            yield f"{self.by_size:,} objects were compared by size only: the store provides no checksum of them"


class BucketScanner:
    """Reads the bucket with the threads of `pool`."""

    def __init__(self, s3: S3Client, pool: Executor, ledger: LedgerContent, report: ReportProgress) -> None:
        self._s3 = s3
        self._pool = pool
        self._ledger = ledger
        self._report = report

    def scan(self, closed_objects: Callable[[], Mapping[str, ClosedObject]]) -> BucketScan:
        """`closed_objects` reads the ledger's closed objects again: the sink may be running. Raises the errors of the
        store."""
        listing = self._list()
        deviates = listing.untracked or listing.unconfirmed or listing.not_listed
        latest = closed_objects() if deviates else {}
        missing, mismatched, by_size = self._compare(listing, latest)
        for key, difference in self._footers(listing.parquet):
            mismatched.setdefault(key, difference)
        untracked: dict[TopicPartition, list[UntrackedObject]] = {}
        unknown: dict[TopicPartition, list[UntrackedObject]] = {}
        copies, foreign = self._copies(listing.likely_copies)
        for tp, o in (*listing.untracked, *copies):
            if o.key not in latest:
                (untracked if tp in self._ledger.partitions else unknown).setdefault(tp, []).append(o)
        return BucketScan(
            BucketState(frozenset(missing), mismatched, untracked),
            unknown,
            foreign=listing.foreign + foreign,
            other_sinks=listing.other_sinks,
            older_objects=listing.older_objects,
            by_size=by_size,
        )

    def _list(self) -> _Listing:
        listing = _Listing(not_listed=set(self._ledger.objects))
        count = 0
        for listed in (each for prefix in self._ledger.prefixes() for each in self._s3.list(prefix)):
            count += 1
            if count % 100_000 == 0:
                self._report(f"listed {count:,} objects")
            o = self._ledger.objects.get(listed.key)
            if o is None:
                if not self._ledger.is_internal(listed.key):
                    self._classify(listed, listing)
                continue
            listing.not_listed.discard(listed.key)
            if is_parquet(o):
                listing.parquet.append(o)
            if listed.size != o.bytes or listed.etag.strip('"') != multipart_etag(o):
                listing.unconfirmed.append(o)
        self._report(f"listed {count:,} objects")
        return listing

    def _classify(self, listed: Listed, listing: _Listing) -> None:
        """Adds an object that the ledger does not list."""
        match self._ledger.origin(listed.key):
            case KeyOrigin(tp, first):
                if tp in self._ledger.partitions or listed.last_modified_ms >= self._ledger.started:
                    listing.untracked.append((tp, UntrackedObject(listed.key, first, listed.size)))
                else:
                    listing.older_objects += 1
            case OtherObject.ANOTHER_SINKS:
                listing.other_sinks += 1
            case OtherObject.FOREIGN if self._ledger.may_be_copied(listed):
                listing.likely_copies.append(listed)
            case _:
                listing.foreign += 1

    def _compare(self, listing: _Listing, latest: Mapping[str, ClosedObject]) -> tuple[set[str], dict[str, str], int]:
        """The keys of missing objects, the differences of others by key, and the number of those that were compared by
        size only: of the objects that the listing does not confirm, as the ledger has them at last."""
        missing: set[str] = set()
        mismatched: dict[str, str] = {}
        by_size = 0
        not_listed = (self._ledger.objects[key] for key in listing.not_listed)
        unconfirmed = [latest.get(o.key, o) for o in (*listing.unconfirmed, *not_listed)]
        if unconfirmed:
            self._report(f"requesting the checksums of {len(unconfirmed):,} objects")
        for o, head in zip(unconfirmed, self._pool.map(lambda o: self._s3.head(o.key), unconfirmed), strict=True):
            if head is None:
                missing.add(o.key)
            elif difference := compare_stored(o, head, size_suffices=True):
                mismatched[o.key] = difference
            elif head.crc64nvme is None and multipart_etag(o) is None:
                by_size += 1
        return missing, mismatched, by_size

    def _footers(self, objects: Sequence[ClosedObject]) -> Iterator[tuple[str, str]]:
        """The key of each Parquet object whose footer differs from the ledger, and the difference."""
        if objects:
            self._report(f"reading the footers of {len(objects):,} Parquet objects")
        for o, difference in zip(objects, self._pool.map(self._footer, objects), strict=True):
            if difference is not None:
                yield o.key, difference

    def _footer(self, o: ClosedObject) -> str | None:
        return footer_difference(self._s3, o, OFFSET if o.settings in self._ledger.enveloped else None)

    def _copies(self, likely: Sequence[Listed]) -> tuple[list[tuple[TopicPartition, UntrackedObject]], int]:
        """The likely copies with the content of a listed object, and the number of the others."""
        if not likely:
            return [], 0
        self._report(f"comparing {len(likely):,} other objects with those of the ledger")
        objects = self._ledger.objects.values()
        by_etag = {etag: o for o in objects if (etag := multipart_etag(o)) is not None}
        by_crc = {(o.bytes, o.crc): o for o in objects}

        def original(listed: Listed) -> ClosedObject | None:
            if (o := by_etag.get(listed.etag.strip('"'))) is not None:
                return o
            head = self._s3.head(listed.key)
            return None if head is None or head.crc64nvme is None else by_crc.get((head.size, head.crc64nvme))

        originals = zip(likely, self._pool.map(original, likely), strict=True)
        copies = [
            (o.topic_partition, UntrackedObject(listed.key, o.first, listed.size, copy_of=o.key))
            for listed, o in originals
            if o is not None
        ]
        return copies, len(likely) - len(copies)


def _distinct(settings_of_claims: Collection[ObjectSettings]) -> list[ObjectSettings]:
    """The settings without repetitions, the newest first."""
    return list({settings.model_dump_json(): settings for settings in reversed([*settings_of_claims])}.values())
