"""Staged remainders of many objects in few staging objects: requests to the store, and detection of damage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from sink_job.ledger import staging
from sink_job.ledger.staging import StagedDataLost, StagingReader, StagingWriter, is_expired, new_prefix
from sink_job.ledger.state import Extent
from sink_job.s3 import NotFound, S3Client, S3Settings


class Store:
    """Stores objects in memory and records the reads."""

    bucket = "bucket"
    settings = S3Settings(bucket="bucket")
    url_of = staticmethod(settings.url_of)

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.reads: list[tuple[str, int, int]] = []

    def put(self, key: str, body: Sequence[bytes]) -> None:
        self.objects[key] = b"".join(body)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        self.reads.append((key, offset, length))
        if offset >= len(self.objects.get(key, b"")):
            raise NotFound(key)
        return self.objects[key][offset : offset + length]


@pytest.fixture
def store() -> Store:
    return Store()


def staged(store: Store, *remainders: bytes, prefix: str = "s") -> list[tuple[Extent, ...]]:
    writer = StagingWriter(cast("S3Client", store), prefix)
    extents = [writer.add(data) for data in remainders]
    writer.flush()
    return extents


def reader(store: Store) -> StagingReader:
    return StagingReader(cast("S3Client", store))


def test_remainders_share_one_object_and_are_read_back(store: Store) -> None:
    extents = staged(store, b"one", b"", b"three")
    assert store.objects == {"s-0": b"onethree"}
    assert [reader(store).read(each) for each in extents] == [b"one", b"", b"three"]


def test_a_full_staging_object_is_written_and_the_next_one_started(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "STAGING_BYTES", 8)
    extents = staged(store, b"12345", b"678", b"9")
    assert store.objects == {"s-0": b"12345678", "s-1": b"9"}
    assert [each[0].name for each in extents] == ["s-0", "s-0", "s-1"]


def test_empty_remainders_write_no_object(store: Store) -> None:
    staged(store, b"")
    assert store.objects == {}


def test_small_remainders_of_one_staging_object_are_read_with_one_request(store: Store) -> None:
    extents = staged(store, *(b"%3d" % n for n in range(100)))
    one_reader = reader(store)
    assert [one_reader.read(each) for each in extents] == [b"%3d" % n for n in range(100)]
    assert len(store.reads) == 1


def test_a_large_remainder_is_read_with_a_request_of_its_own(store: Store) -> None:
    _, large = staged(store, b"a", b"b" * staging.WINDOW)
    assert reader(store).read(large) == b"b" * staging.WINDOW
    assert store.reads == [("s-0", 1, staging.WINDOW)]


def test_a_remainder_across_two_windows_is_complete(store: Store) -> None:
    fill = bytes(staging.WINDOW // 8)
    extents = staged(store, *[fill] * 7, fill[:-5], b"0123456789")
    assert reader(store).read(extents[-1]) == b"0123456789"


def test_the_number_of_windows_in_memory_is_limited(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "WINDOWS", 2)
    first, *others = [staged(store, b"x", prefix=name)[0] for name in "abc"]
    one_reader = reader(store)
    for extents in (first, *others, first):
        assert one_reader.read(extents) == b"x"
    assert [name for name, _, _ in store.reads] == ["a-0", "b-0", "c-0", "a-0"]


def test_each_reader_detects_changes_of_its_own_remainder_only(store: Store) -> None:
    mine, other = staged(store, b"mine", b"other")
    store.objects["s-0"] = b"minEother"
    one_reader = reader(store)
    with pytest.raises(StagedDataLost, match="s3://bucket/s-0 was changed: bytes 0 to 3 do not match their checksum"):
        one_reader.read(mine)
    assert one_reader.read(other) == b"other"


@pytest.mark.parametrize("kept", [None, b"", b"first"])
def test_a_missing_or_truncated_staging_object_is_detected(store: Store, kept: bytes | None) -> None:
    _, last = staged(store, b"first", b"last")
    store.objects = {} if kept is None else {"s-0": kept}
    with pytest.raises(StagedDataLost):
        reader(store).read(last)


def test_each_attempt_has_its_own_staging_prefix() -> None:
    assert new_prefix("root/", 3, 7) != new_prefix("root/", 3, 7)


@pytest.mark.parametrize(("epoch", "number", "expired"), [(2, 99, True), (3, 7, True), (3, 8, False), (4, 1, False)])
def test_staging_objects_of_lower_epochs_and_recorded_rounds_are_expired(
    epoch: int, number: int, expired: bool
) -> None:
    name = f"{new_prefix('root/', epoch, number)}-0".removeprefix("root/staging/")
    assert is_expired(name, epoch=3, recorded=7) is expired


def test_a_foreign_name_is_never_expired() -> None:
    assert not is_expired("a-foreign-name", epoch=3, recorded=7)
