"""Objects of the S3 layer on a real server: conditional writes, ranges, lists, deletes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from sink_job.s3 import (
    NotFound,
    PreconditionFailed,
    S3Client,
)
from sink_job.s3.checksums import crc64nvme

pytestmark = pytest.mark.data


def test_a_stored_object_is_read_back(s3: S3Client, key: str) -> None:
    put = s3.put(key, [b"two ", memoryview(b"buffers")])
    assert s3.get(key) == b"two buffers"
    head = s3.head(key)
    assert head is not None
    assert (head.size, head.crc64nvme, head.etag) == (11, crc64nvme(b"two buffers"), put.etag)


def test_an_empty_object_can_be_put(s3: S3Client, key: str) -> None:
    s3.put(key, b"", only_if_absent=True)
    assert s3.get(key) == b""


def test_a_second_conditional_put_is_rejected_and_changes_nothing(s3: S3Client, key: str) -> None:
    s3.put(key, b"first", only_if_absent=True)
    with pytest.raises(PreconditionFailed, match=r"s3://archive/topics/.*PreconditionFailed"):
        s3.put(key, b"second", only_if_absent=True)
    assert s3.get(key) == b"first"


def test_one_of_many_concurrent_conditional_puts_succeeds(s3: S3Client, key: str) -> None:
    def attempt(n: int) -> bytes | None:
        try:
            s3.put(key, b"%d" % n, only_if_absent=True)
        except PreconditionFailed:
            return None
        return b"%d" % n

    with ThreadPoolExecutor(8) as pool:
        winners = [winner for winner in pool.map(attempt, range(32)) if winner is not None]
    assert winners == [s3.get(key)]


def test_an_unconditional_put_replaces(s3: S3Client, key: str) -> None:
    s3.put(key, b"first")
    s3.put(key, b"second")
    assert s3.get(key) == b"second"


def test_a_missing_object_is_not_found(s3: S3Client, key: str) -> None:
    assert s3.head(key) is None
    with pytest.raises(NotFound):
        s3.get(key)
    with pytest.raises(NotFound):
        list(s3.stream(key))


def test_a_range_is_read(s3: S3Client, key: str) -> None:
    s3.put(key, b"0123456789")
    assert s3.get_range(key, 2, 3) == b"234"
    assert s3.get_range(key, 8, 100) == b"89"
    with pytest.raises(NotFound):
        s3.get_range(key, 10, 1)


def test_an_object_is_streamed_in_chunks(s3: S3Client, key: str) -> None:
    s3.put(key, b"0123456789")
    assert list(s3.stream(key, step=4)) == [b"0123", b"4567", b"89"]


def test_a_stream_does_not_mix_two_versions_of_an_object(s3: S3Client, key: str) -> None:
    s3.put(key, b"0123456789")
    chunks = s3.stream(key, step=4)
    assert next(chunks) == b"0123"
    s3.put(key, b"abcdefghij")
    with pytest.raises(PreconditionFailed):
        next(chunks)


def test_objects_are_listed_in_order_over_pages(s3: S3Client, key: str) -> None:
    names = [f"{key}/{n:02d}" for n in range(7)]
    for name in reversed(names):
        s3.put(name, b"x" * 3)
    listed = list(s3.list(f"{key}/", page=2))
    assert [(found.key, found.size) for found in listed] == [(name, 3) for name in names]
    assert [found.key for found in s3.list(f"{key}/", start_after=names[4], page=1)] == names[5:]


def test_deletes_are_batched_and_accept_missing_keys(s3: S3Client, key: str) -> None:
    s3.put(f"{key}/0", b"")
    s3.put(f"{key}/1000", b"")
    before = s3.meter.snapshot()
    s3.delete(f"{key}/{n}" for n in range(1001))
    assert list(s3.list(key)) == []
    assert (s3.meter.snapshot() - before).requests["DeleteObjects"] == 2


def test_the_stores_clock_is_read(s3: S3Client, key: str) -> None:
    s3.put(key, b"")
    head = s3.head(key)
    assert head is not None
    assert abs(s3.server_now_ms() - head.last_modified_ms) < 60_000
