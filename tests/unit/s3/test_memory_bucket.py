"""The bucket in memory decides as a store does: conditions, uploads, listings."""

from __future__ import annotations

import pytest

from sink_job.s3 import InvalidPart, NoSuchUpload, NotFound, PreconditionFailed, S3Settings, connect, probe
from sink_job.s3.checksums import crc64nvme
from sink_job.s3.client import connected_by
from sink_job.s3.memory_bucket import MemoryBucket

SETTINGS = S3Settings(bucket="memory", region="memory")
NOW = 1_760_000_000_000


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket(SETTINGS, lambda: NOW)


def test_it_passes_the_probe_of_a_store(bucket: MemoryBucket) -> None:
    probe(bucket, "topics/_s3sink/")
    assert not list(bucket.list(""))
    assert not list(bucket.list_uploads(""))


def test_what_was_put_is_read_back(bucket: MemoryBucket) -> None:
    bucket.put("a", [b"0123", b"456"])
    assert bucket.get("a") == b"0123456"
    assert bucket.get_range("a", 2, 3) == b"234"
    head = bucket.head("a")
    assert head is not None
    assert (head.size, head.crc64nvme, head.last_modified_ms) == (7, crc64nvme(b"0123456"), NOW)


def test_conditions_are_kept(bucket: MemoryBucket) -> None:
    etag = bucket.put("a", b"1").etag
    with pytest.raises(PreconditionFailed):
        bucket.put("a", b"2", only_if_absent=True)
    bucket.put("a", b"3", if_match=etag)
    with pytest.raises(PreconditionFailed):
        bucket.put("a", b"4", if_match=etag)
    with pytest.raises(PreconditionFailed):
        bucket.get_range("a", 0, 1, etag=etag)


def test_a_missing_object_is_not_found(bucket: MemoryBucket) -> None:
    assert bucket.head("a") is None
    with pytest.raises(NotFound):
        bucket.get("a")


def test_a_completed_upload_has_its_size_and_no_data(bucket: MemoryBucket) -> None:
    upload = bucket.create_upload("a")
    parts = [bucket.upload_part("a", upload, number, b"x" * 100) for number in (1, 2)]
    assert [each.key for each in bucket.list_uploads("")] == ["a"]
    bucket.complete("a", upload, parts)
    assert [(each.key, each.size) for each in bucket.list("")] == [("a", 200)]
    assert not list(bucket.list_uploads(""))
    with pytest.raises(NoSuchUpload):
        bucket.complete("a", upload, parts)


def test_a_completion_needs_its_parts_and_overwrites_nothing(bucket: MemoryBucket) -> None:
    upload = bucket.create_upload("a")
    part = bucket.upload_part("a", upload, 1, b"x")
    other = bucket.create_upload("a")
    with pytest.raises(InvalidPart):
        bucket.complete("a", other, [part])
    bucket.put("a", b"1")
    with pytest.raises(PreconditionFailed):
        bucket.complete("a", upload, [part])
    assert bucket.abort("a", upload)
    assert not bucket.abort("a", upload)


def test_listings_have_pages_in_the_order_of_keys(bucket: MemoryBucket) -> None:
    for key in ("b", "a", "c", "other"):
        bucket.put(f"p/{key}" if key != "other" else key, b"")
    assert [each.key for each in bucket.list("p/", page=2)] == ["p/a", "p/b", "p/c"]
    assert [each.key for each in bucket.list("p/", "p/a")] == ["p/b", "p/c"]
    bucket.delete(["p/a", "missing"])
    assert [each.key for each in bucket.list("p/")] == ["p/b", "p/c"]


def test_requests_are_counted_by_their_names(bucket: MemoryBucket) -> None:
    bucket.put("a", b"1")
    list(bucket.list(""))
    assert bucket.meter.snapshot().requests == {"PutObject": 1, "ListObjectsV2": 1}


def test_it_replaces_the_client_of_its_settings_inside_a_context(bucket: MemoryBucket) -> None:
    with connected_by(bucket):
        assert connect(SETTINGS) is bucket
    assert connect(S3Settings(bucket="memory", region="memory", anonymous=True)) is not bucket


def test_a_request_that_no_driver_sends_is_an_error(bucket: MemoryBucket) -> None:
    with pytest.raises(NotImplementedError, match="list_parts"):
        list(bucket.list_parts("a", "upload"))
