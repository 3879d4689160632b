"""Multipart uploads of the S3 layer on a real server: checksums, completion, repeated parts, lists."""

from __future__ import annotations

import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from sink_job.s3 import (
    ChecksumMismatch,
    EntityTooSmall,
    InvalidPart,
    NoSuchUpload,
    PreconditionFailed,
    S3Client,
    S3Settings,
    UploadedPart,
)
from sink_job.s3.checksums import combine_all, crc64nvme
from sink_job.s3.request_body import Body
from tests.support.s3_store import MIN_PART, upload_parts, uploads_of

pytestmark = pytest.mark.data


def test_parts_become_an_object_in_one_step(s3: S3Client, key: str) -> None:
    contents: list[Body] = [os.urandom(MIN_PART), [os.urandom(MIN_PART), b"and a rest"], b"the tail"]
    upload_id = s3.create_upload(key, content_type="application/json", content_encoding="gzip")
    parts = [s3.upload_part(key, upload_id, number, body) for number, body in enumerate(contents, start=1)]
    assert s3.head(key) is None
    etag = s3.complete(key, upload_id, parts)
    head = s3.head(key)
    assert head is not None
    assert head.crc64nvme == combine_all((part.crc, part.size) for part in parts)
    assert (head.size, head.etag) == (sum(part.size for part in parts), etag)
    assert crc64nvme(s3.get(key)) == head.crc64nvme
    assert b"".join(s3.stream(key)) == s3.get(key)
    assert uploads_of(s3, key) == []


def test_an_upload_outlives_the_client_that_started_it(s3: S3Client, settings: S3Settings, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, os.urandom(MIN_PART))
    other = S3Client(settings)
    parts.append(other.upload_part(key, upload_id, 2, b"tail"))
    other.complete(key, upload_id, parts)
    assert s3.head(key) is not None


def test_a_completion_over_an_object_is_rejected_and_the_upload_survives(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, b"ours")
    s3.put(key, b"theirs")
    with pytest.raises(PreconditionFailed):
        s3.complete(key, upload_id, parts)
    assert s3.get(key) == b"theirs"
    assert uploads_of(s3, key) == [upload_id]
    s3.delete([key])
    s3.complete(key, upload_id, parts)
    assert s3.get(key) == b"ours"


def test_only_one_of_two_uploads_of_a_key_is_completed(s3: S3Client, key: str) -> None:
    uploads = [upload_parts(s3, key, b"the same bytes") for _ in range(2)]

    def attempt(upload: tuple[str, list[UploadedPart]]) -> bool:
        try:
            s3.complete(key, *upload)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, uploads)) == [False, True]


def test_a_second_completion_fails_or_has_the_same_reply(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, b"body")
    etag = s3.complete(key, upload_id, parts)
    try:
        assert s3.complete(key, upload_id, parts) == etag
    except (NoSuchUpload, PreconditionFailed):
        assert s3.get(key) == b"body"


def test_a_repeated_part_number_replaces_the_part(s3: S3Client, key: str) -> None:
    upload_id, _ = upload_parts(s3, key, b"of a failed attempt")
    part = s3.upload_part(key, upload_id, 1, b"of the next one")
    s3.complete(key, upload_id, [part])
    assert s3.get(key) == b"of the next one"


def test_equal_bytes_under_an_equal_number_leave_a_recorded_part_valid(s3: S3Client, key: str) -> None:
    upload_id, recorded = upload_parts(s3, key, b"the same bytes")
    s3.upload_part(key, upload_id, 1, b"the same bytes")
    s3.complete(key, upload_id, recorded)
    assert s3.get(key) == b"the same bytes"


def test_a_part_replaced_by_a_late_attempt_is_detected(s3: S3Client, key: str) -> None:
    upload_id, recorded = upload_parts(s3, key, b"recorded")
    s3.upload_part(key, upload_id, 1, b"of a late attempt")
    with pytest.raises(InvalidPart):
        s3.complete(key, upload_id, recorded)
    assert s3.head(key) is None


def test_a_part_that_was_never_uploaded_is_detected(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, os.urandom(MIN_PART))
    with pytest.raises(InvalidPart):
        s3.complete(key, upload_id, [*parts, dataclasses.replace(parts[0], number=2)])


def test_a_part_below_the_minimum_size_is_rejected_unless_it_is_the_last(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, b"too small", b"tail")
    with pytest.raises(EntityTooSmall):
        s3.complete(key, upload_id, parts)


def test_a_part_with_a_wrong_checksum_is_rejected(s3: S3Client, key: str) -> None:
    upload_id = s3.create_upload(key)
    with pytest.raises(ChecksumMismatch, match=r"s3://archive/.*: UploadPart: BadDigest"):
        s3.upload_part(key, upload_id, 1, b"bytes", crc64nvme(b"others"))
    assert list(s3.list_parts(key, upload_id)) == []


def test_an_object_with_a_wrong_checksum_is_rejected(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, b"bytes")
    with pytest.raises((ChecksumMismatch, InvalidPart)):
        s3.complete(key, upload_id, parts, crc64nvme(b"others"))
    assert s3.head(key) is None


def test_an_aborted_upload_is_not_found(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, b"body")
    assert s3.abort(key, upload_id)
    assert not s3.abort(key, upload_id)
    with pytest.raises(NoSuchUpload):
        s3.upload_part(key, upload_id, 1, b"body")
    with pytest.raises(NoSuchUpload):
        s3.complete(key, upload_id, parts)
    with pytest.raises(NoSuchUpload):
        list(s3.list_parts(key, upload_id))
    assert s3.head(key) is None


def test_unfinished_uploads_are_listed_over_pages(s3: S3Client, key: str) -> None:
    started = {(name, s3.create_upload(name)) for name in [f"{key}/{n}" for n in (1, 1, 2, 3, 3)]}
    s3.create_upload(key.replace("topics/", "elsewhere/"))
    listed = list(s3.list_uploads(f"{key}/", page=3))
    assert {(upload.key, upload.upload_id) for upload in listed} == started
    assert len(listed) == 5


def test_uploads_and_objects_are_dated_by_one_clock(s3: S3Client, key: str) -> None:
    s3.put(f"{key}/before", b"")
    s3.create_upload(f"{key}/upload")
    s3.put(f"{key}/after", b"")
    before, after = s3.head(f"{key}/before"), s3.head(f"{key}/after")
    [upload] = s3.list_uploads(f"{key}/")
    assert before is not None
    assert after is not None
    assert before.last_modified_ms <= upload.initiated_ms <= after.last_modified_ms


def test_the_parts_of_an_upload_are_listed_over_pages(s3: S3Client, key: str) -> None:
    upload_id, parts = upload_parts(s3, key, b"one", b"two", b"three")
    listed = list(s3.list_parts(key, upload_id, page=2))
    assert listed == [(part.number, part.etag, part.size) for part in parts]
