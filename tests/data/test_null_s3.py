"""The bench's S3 server, which discards payloads, replies as S3 does where the protocol depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.servers import BUCKET, NullS3
from sink_job.s3 import NoSuchUpload, PreconditionFailed, S3Client, S3Settings, connect, probe

pytestmark = pytest.mark.data


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Client]:
    server = NullS3(tmp_path)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    server.start()
    yield connect(S3Settings(bucket=BUCKET, region="us-east-1", endpoint=server.endpoint, path_style=True))
    server.kill()


def test_the_store_passes_the_start_up_probe(s3: S3Client) -> None:
    probe(s3, "topics/_s3sink/x/")


def test_small_objects_are_stored_and_parts_are_discarded(s3: S3Client) -> None:
    s3.put("a", b"small")
    upload = s3.create_upload("b")
    parts = [s3.upload_part("b", upload, n, bytes(6 << 20)) for n in (1, 2)]
    s3.complete("b", upload, parts)
    head = s3.head("b")
    assert s3.get("a") == b"small"
    assert s3.get_range("a", 1, 2) == b"ma"
    assert head
    assert head.size == 12 << 20
    assert [each.key for each in s3.list("")] == ["a", "b"]


def test_conditional_puts_and_completions_over_an_object_are_rejected(s3: S3Client) -> None:
    s3.put("a", b"1", only_if_absent=True)
    upload = s3.create_upload("a")
    parts = [s3.upload_part("a", upload, 1, b"x")]
    with pytest.raises(PreconditionFailed):
        s3.put("a", b"2", only_if_absent=True)
    with pytest.raises(PreconditionFailed):
        s3.complete("a", upload, parts)
    assert [each.upload_id for each in s3.list_uploads("")] == [upload]


def test_an_abort_removes_the_upload_and_keeps_the_object_at_its_key(s3: S3Client) -> None:
    s3.put("a", b"1")
    upload = s3.create_upload("a")
    assert s3.abort("a", upload)
    assert not s3.abort("a", upload)
    with pytest.raises(NoSuchUpload):
        s3.upload_part("a", upload, 1, b"x")
    assert s3.get("a") == b"1"
    s3.delete(["a"])
    assert s3.head("a") is None


def test_listings_come_in_pages_after_a_key(s3: S3Client) -> None:
    for n in range(5):
        s3.put(f"k/{n}&", b"")
    assert [each.key for each in s3.list("k/", page=2)] == [f"k/{n}&" for n in range(5)]
    assert [each.key for each in s3.list("k/", start_after="k/2&")] == ["k/3&", "k/4&"]
