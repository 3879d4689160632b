"""The bucket against the ledger: what one listing decides, what is asked about single objects, and what is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum, Part, PartitionState
from sink_job.rotation.types import RotationState
from sink_job.s3 import Head, Listed, PutResult
from sink_job.s3.checksums import crc64nvme
from sink_job.verify.audit_input import GenerationAudit, UntrackedObject
from sink_job.verify.bucket_scanner import BucketScan, BucketScanner, LedgerContent
from tests.support.memory_s3 import NOW, MemoryS3
from tests.unit.rotation.settings import object_settings

LOG = TopicPartition("log", 0)
BODY = b'{"a": 1}\n'
FIRST, SECOND = (f"topics/log/partition=0/log+0+000000000{n}.json" for n in (0, 5))


class Bucket(MemoryS3):
    """A bucket with ETags as those of multipart uploads, and optionally without checksums. Records HEAD requests."""

    def __init__(self) -> None:
        super().__init__()
        self.has_checksums = True
        self.has_etags = True
        self.requested: list[str] = []

    def put(self, key: str, body: Any, **conditions: Any) -> PutResult:
        super().put(key, body, **conditions)
        etag = f"{hashlib.md5(hashlib.md5(body).digest()).hexdigest()}-1" if self.has_etags else "opaque"
        self.objects[key].etag = f'"{etag}"'
        return PutResult(self.objects[key].etag)

    def head(self, key: str) -> Head | None:
        self.requested.append(key)
        found = super().head(key)
        if found is None or self.has_checksums:
            return found
        return Head(found.size, None, found.etag, found.last_modified_ms)


def closed(key: str, body: bytes = BODY, *, first: int = 0, md5: bool = True, settings: int = 1) -> ClosedObject:
    """An object of one part as the ledger lists it; without `md5` the ETags of the store are none."""
    etag = f'"{hashlib.md5(body).hexdigest()}"' if md5 else "opaque"
    part = Part(1, etag, crc64nvme(body), len(body))
    return ClosedObject(
        key, "log", 0, "partition=0", first, first, len(body), crc64nvme(body), "u", (part,), (), OffsetChecksum(1, 0),
        settings,
    )  # fmt: skip


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def content(
    *objects: ClosedObject,
    settings: Mapping[int, ObjectSettings] | None = None,
    claimed: set[tuple[str, str]] | None = None,
    started: int = 0,
) -> LedgerContent:
    state = LedgerState(partitions={"log-0": PartitionState(RotationState.start(0), rotation_start=0)})
    audit = GenerationAudit(state, objects, [])
    return LedgerContent([audit], settings or {1: object_settings()}, claimed=claimed or set(), started=started)


def scan(bucket: Bucket, ledger: LedgerContent, *latest: ClosedObject, lines: list[str] | None = None) -> BucketScan:
    """`latest` are objects that the sink has closed meanwhile."""
    s3: Any = bucket
    report = (lambda line: None) if lines is None else lines.append
    with ThreadPoolExecutor(2) as pool:
        scanner = BucketScanner(s3, pool, ledger, report)
        return scanner.scan(lambda: ledger.objects | {o.key: o for o in latest})


# -- objects of the ledger ---------------------------------------------------------------------------------------------


def test_an_object_with_the_size_and_etag_of_the_ledger_needs_no_request(bucket: Bucket) -> None:
    bucket.put(FIRST, BODY)
    found = scan(bucket, content(closed(FIRST)))
    assert (found.bucket.missing, found.bucket.mismatched, found.bucket.untracked) == (frozenset(), {}, {})
    assert (found.foreign, found.by_size, bucket.requested) == (0, 0, [])


def test_the_checksum_decides_where_the_etag_is_none_of_the_parts(bucket: Bucket) -> None:
    bucket.has_etags = False
    bucket.put(FIRST, BODY)
    bucket.put(SECOND, BODY.replace(b"1", b"2"))
    found = scan(bucket, content(closed(FIRST, md5=False), closed(SECOND, first=5, md5=False)))
    assert list(found.bucket.mismatched) == [SECOND]
    assert "the same size, but CRC64NVME" in found.bucket.mismatched[SECOND]
    assert (sorted(bucket.requested), found.by_size) == ([FIRST, SECOND], 0)


def test_an_object_of_another_size_is_a_mismatch(bucket: Bucket) -> None:
    bucket.put(FIRST, BODY + b"x")
    assert scan(bucket, content(closed(FIRST))).bucket.mismatched == {FIRST: "10 bytes stored, 9 bytes in the ledger"}


def test_a_key_without_an_object_is_missing(bucket: Bucket) -> None:
    assert scan(bucket, content(closed(FIRST))).bucket.missing == {FIRST}


def test_a_listing_that_lags_behind_is_not_believed(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put(FIRST, BODY)
    monkeypatch.setattr(bucket, "list", lambda prefix: iter(()))
    found = scan(bucket, content(closed(FIRST)))
    assert (found.bucket.missing, bucket.requested) == (frozenset(), [FIRST])


def test_an_object_that_was_rebuilt_meanwhile_is_compared_as_the_ledger_has_it_at_last(bucket: Bucket) -> None:
    rebuilt = BODY + BODY
    bucket.put(FIRST, rebuilt)
    assert scan(bucket, content(closed(FIRST)), closed(FIRST, rebuilt)).bucket.mismatched == {}


def test_without_any_checksum_objects_are_compared_by_size_and_counted(bucket: Bucket) -> None:
    bucket.has_etags = bucket.has_checksums = False
    bucket.put(FIRST, BODY)
    bucket.put(SECOND, BODY + b"x")
    found = scan(bucket, content(closed(FIRST, md5=False), closed(SECOND, first=5, md5=False)))
    assert (list(found.bucket.mismatched), found.by_size) == ([SECOND], 1)
    assert list(found.notes()) == ["1 objects were compared by size only: the store provides no checksum of them"]


def test_a_parquet_object_is_compared_with_its_footer_also_if_its_etag_is_right(bucket: Bucket) -> None:
    key = FIRST.replace(".json", ".parquet")
    bucket.put(key, BODY)
    settings = {1: object_settings(format={"converter": "ConnectJson", "output": "Parquet"})}
    found = scan(bucket, content(closed(key), settings=settings))
    assert found.bucket.mismatched[key].startswith("it is not a Parquet file")


# -- objects that the ledger does not list -----------------------------------------------------------------------------


def test_an_object_with_a_key_of_the_sink_is_untracked_unless_the_ledger_lists_it_by_now(bucket: Bucket) -> None:
    bucket.put(FIRST, BODY)
    bucket.put(SECOND, BODY)
    found = scan(bucket, content(closed(FIRST)))
    assert found.bucket.untracked == {LOG: [UntrackedObject(SECOND, 5, 9)]}
    assert scan(bucket, content(closed(FIRST)), closed(SECOND, first=5)).bucket.untracked == {}


@pytest.mark.parametrize(("started", "unknown", "older"), [(0, 1, 0), (2 * NOW, 0, 1)])
def test_a_partition_that_the_ledger_lacks_is_unknown_unless_its_object_is_older(
    bucket: Bucket, started: int, unknown: int, older: int
) -> None:
    bucket.put("topics/log/partition=7/log+7+0000000003.json", BODY)
    found = scan(bucket, content(started=started))
    assert (len(found.unknown_partitions), found.older_objects, found.bucket.untracked) == (unknown, older, {})
    notes = ["1 objects older than the ledger are of partitions that it does not contain"] if older else []
    assert list(found.notes()) == notes


def test_an_object_of_a_known_partition_is_untracked_however_old_it_is(bucket: Bucket) -> None:
    bucket.put(FIRST, BODY)
    assert list(scan(bucket, content(started=2 * NOW)).bucket.untracked) == [LOG]


def test_an_extension_that_another_sink_has_claimed_is_counted(bucket: Bucket) -> None:
    bucket.put(f"{FIRST}.gz", BODY)
    found = scan(bucket, content(claimed={("log", ".json"), ("log", ".json.gz")}))
    assert (found.other_sinks, found.bucket.untracked) == (1, {})
    assert list(found.notes()) == ["1 objects have an extension that another sink has claimed for the same topic"]


@pytest.mark.parametrize("has_etags", [True, False])
def test_a_copy_under_another_key_is_found_by_its_etag_or_else_its_checksum(bucket: Bucket, has_etags: bool) -> None:
    bucket.has_etags = has_etags
    bucket.put(SECOND, BODY)
    bucket.put("topics/log/backup.json", BODY)
    bucket.put("topics/log/same-size.json", BODY.replace(b"1", b"2"))
    bucket.put("topics/log/README.txt", b"text")
    found = scan(bucket, content(closed(SECOND, first=5, md5=has_etags)))
    assert found.bucket.untracked == {LOG: [UntrackedObject("topics/log/backup.json", 5, 9, copy_of=SECOND)]}
    assert found.foreign == 2
    assert ("topics/log/README.txt" in bucket.requested, "topics/log/same-size.json" in bucket.requested) == (
        False,
        True,
    )


def test_an_object_that_is_older_than_the_sink_is_no_copy(bucket: Bucket) -> None:
    bucket.put("topics/log/backup.json", BODY)
    found = scan(bucket, content(closed(FIRST), started=2 * NOW))
    assert (found.bucket.untracked, found.foreign) == ({}, 1)


def test_names_that_readers_skip_are_only_counted(bucket: Bucket) -> None:
    bucket.put("topics/log/_old/log+0+5.json", BODY)
    assert scan(bucket, content()).foreign == 1


# -- what is listed ----------------------------------------------------------------------------------------------------


def test_each_prefix_is_listed_once_also_under_several_settings() -> None:
    settings = {
        1: object_settings(),
        2: object_settings(rotation={"flushSize": 5}),
        3: object_settings(s3={"topicsDir": "lake"}),
    }
    assert list(content(settings=settings).prefixes()) == ["lake/log/", "topics/log/"]


def test_a_prefix_inside_another_one_is_not_listed_again() -> None:
    settings = {1: object_settings(), 2: object_settings(s3={"topicsDir": "topics/log/x"})}
    assert list(content(settings=settings).prefixes()) == ["topics/log/"]


def test_repeated_settings_count_once_the_newest_first() -> None:
    old, new = object_settings(), object_settings(s3={"topicsDir": "lake"})
    assert content(settings={1: old, 2: new, 3: old}).settings == [old, new]


def test_claims_with_an_envelope_have_records_with_their_offsets() -> None:
    settings = {1: object_settings(), 2: object_settings(format={"envelope": True})}
    assert content(settings=settings).enveloped == {2}


@pytest.mark.parametrize(("size", "modified", "likely"), [(9, 100, True), (8, 100, False), (9, 99, False)])
def test_a_copy_has_the_size_of_an_object_and_is_not_older_than_the_sink(
    size: int, modified: int, likely: bool
) -> None:
    assert content(closed(FIRST), started=100).may_be_copied(Listed("k", size, "", modified)) is likely


def test_the_steps_are_reported_with_their_numbers(bucket: Bucket) -> None:
    bucket.put(FIRST, BODY + b"x")
    bucket.put("topics/log/backup.json", BODY)
    lines: list[str] = []
    scan(bucket, content(closed(FIRST)), lines=lines)
    assert lines == [
        "listed 2 objects",
        "requesting the checksums of 1 objects",
        "comparing 1 other objects with those of the ledger",
    ]


# -- directories that other objects have, too --------------------------------------------------------------------------


def test_objects_in_the_folder_of_ledgers_are_not_those_of_a_topic(bucket: Bucket) -> None:
    """A topic without a directory of its own: dead letters that wait for their topic are below its prefix."""
    ledger = "topics/_s3sink/default.log"
    dead_letters = {"prefix": f"{ledger}/dead-letters/1", "onNullValue": "Fail", "topic": "rejected", "staged": True}
    settings = ObjectSettings.model_validate({"s3": {"topicInPath": False}, "deadLetters": dead_letters})
    first = "topics/partition=0/log+0+0000000000.json"
    bucket.put(first, BODY)
    bucket.put(f"{ledger}/dead-letters/1/log/partition=0/log+0+0000000005.json", BODY + BODY)
    bucket.put("topics/partition=0/log+0+0000000007.json", BODY + BODY)
    bucket.put("topics/partition=0/other+0+0000000007.json", BODY + BODY)
    found = scan(bucket, content(closed(first), settings={1: settings}))
    assert [each.key for each in found.bucket.untracked[LOG]] == ["topics/partition=0/log+0+0000000007.json"]
    assert (found.bucket.missing, found.foreign) == (frozenset(), 1)
