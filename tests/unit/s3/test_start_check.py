"""What a start checks of the store, against a bucket in memory."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, UnsupportedStore
from sink_job.s3 import S3Settings, check_objects_bucket, check_store, start_check
from sink_job.s3.object_lock import BucketLock
from sink_job.s3.settings import LedgerBucket
from tests.support.memory_s3 import MemoryS3, as_client

ROOT = "topics/_s3sink/a/"


def check(s3: MemoryS3, **required: bool) -> list[tuple[int, str]]:
    given: Any = s3
    found = check_store(given, ROOT, **{"object_lock": False, "encryption": False, **required})
    return [(each.level, each.message) for each in found]


@pytest.fixture(autouse=True)
def no_lifecycle_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_check, "lifecycle_warning", lambda _s3, _root, **_: None)


def test_a_store_that_is_suitable_is_left_without_objects_and_uploads() -> None:
    s3 = MemoryS3()
    assert check(s3) == []
    assert not s3.objects
    assert not s3.uploads


def test_advice_on_lifecycle_rules_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_check, "lifecycle_warning", lambda _s3, root, **_: f"a rule below {root}")
    assert check(MemoryS3()) == [(logging.WARNING, f"a rule below {ROOT}")]


@pytest.mark.parametrize(("object_lock", "level"), [(True, logging.WARNING), (False, logging.INFO)])
def test_an_unknown_default_retention_is_a_warning_only_for_a_sink_that_locks_objects(
    object_lock: bool, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_check, "probe_object_lock", lambda _s3, is_required: f"unknown, required {is_required}")
    assert check(MemoryS3(), object_lock=object_lock) == [(level, f"unknown, required {object_lock}")]


def test_a_default_retention_is_found_before_anything_is_written() -> None:
    s3 = MemoryS3()
    s3.lock = BucketLock(is_enabled=True, default="GOVERNANCE for 1 day")
    with pytest.raises(ConfigurationError, match="has a default retention"):
        check(s3)
    assert not s3.objects


def test_encryption_is_checked_only_where_the_sink_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def ignored(_s3: object, root: str) -> None:
        raise UnsupportedStore(f"ignores the encryption below {root}")

    monkeypatch.setattr(start_check, "probe_encryption", ignored)
    assert check(MemoryS3()) == []
    with pytest.raises(UnsupportedStore, match=ROOT):
        check(MemoryS3(), encryption=True)


# -- the objects' bucket beside the ledger's ---------------------------------------------------------------------------

OWNER = f"{ROOT}owner.json"


@pytest.fixture
def objects() -> MemoryS3:
    """The objects' bucket of a sink with its ledger in another one."""
    bucket = MemoryS3()
    place = LedgerBucket(settings=S3Settings(bucket="ledgers"), front="archive/", folder="archive/topics/_s3sink/")
    bucket.settings = replace(bucket.settings, ledger=place)
    bucket.put(OWNER, b"owner")
    return bucket


@pytest.mark.parametrize("default", ["", "GOVERNANCE for 1 day"])
def test_nothing_is_written_into_a_bucket_that_may_lock_it(objects: MemoryS3, default: str) -> None:
    objects.lock = BucketLock(is_enabled=True, default=default)
    put = objects.objects[OWNER]
    assert check_objects_bucket(as_client(objects), ROOT, encryption=bool(default)) == []
    assert objects.objects == {OWNER: put}
    assert not objects.uploads


def test_a_store_that_completes_over_an_object_is_rejected_and_the_bytes_stay(
    objects: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = objects.complete

    def over(key: str, upload_id: str, parts: Any, *_: object, **__: object) -> str:
        objects.objects.pop(key)
        return complete(key, upload_id, parts)

    monkeypatch.setattr(objects, "complete", over)
    with pytest.raises(UnsupportedStore, match="a completed upload replaced an object"):
        check_objects_bucket(as_client(objects), ROOT, encryption=False)
    assert objects.get(OWNER) == b"owner"
