"""What `s3sink check-store` checks: what a sink needs of a store, and what is left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sink_job.api.errors import AccessDenied, BucketNotFound, SinkError, TransientError, UnsupportedStore
from sink_job.cli.store_checks import Check, Outcome, check_store, exit_code
from sink_job.s3 import EntityTooSmall, Head, PreconditionFailed, PutResult, UploadedPart
from sink_job.s3.object_lock import BucketLock
from tests.support.memory_s3 import NOW, MemoryS3
from tests.unit.cli.checked_store import NAMES, Store

PREFIX = "topics/_s3sink/default.flights/"


@pytest.fixture
def store() -> Store:
    return Store()


def results(store: Store, **given: Any) -> dict[str, Check]:
    s3: Any = store
    return {check.name: check for check in check_store(s3, PREFIX, lambda: NOW, **given)}


def not_ok(store: Store) -> list[Check]:
    return [check for check in results(store).values() if check.outcome is not Outcome.OK]


def test_a_suitable_store_passes_all_checks_and_nothing_is_left_behind(store: Store) -> None:
    assert [(name, check.outcome) for name, check in results(store).items()] == [(name, "OK") for name in NAMES]
    assert (store.objects, store.uploads) == ({}, {})


def test_without_access_the_other_checks_are_skipped(store: Store) -> None:
    def no_bucket(call: str, key: str) -> None:
        raise BucketNotFound("s3://archive: no such bucket: create it")

    store.fault = no_bucket
    access, *others = results(store).values()
    assert access == Check(
        "access", Outcome.FAILED, "s3://archive: no such bucket: create it", "BucketNotFound", exit_code=7
    )
    assert {check.outcome for check in others} == {Outcome.SKIPPED}


def test_clocks_that_are_more_than_5_minutes_apart_fail_the_check(store: Store) -> None:
    store.clock = NOW + 301_000
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason, failed.exit_code) == ("clock", "ClockSkew", 7)


def test_a_store_that_ignores_if_none_match_fails_the_conditional_writes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(key: str, body: bytes, **ignored: object) -> PutResult:
        return MemoryS3.put(store, key, body)

    monkeypatch.setattr(store, "put", put)
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason) == ("conditional writes", "UnsupportedStore")
    assert "ignores If-None-Match: a put replaced an object" in failed.message


def test_a_store_that_needs_equal_parts_is_reported_with_the_field_to_set(store: Store) -> None:
    store.equal_parts = True
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason) == ("multipart upload", "UnsupportedStore")
    assert "the store needs parts of one size: All non-trailing parts must have the same length" in failed.message
    assert failed.message.endswith("Set spec.s3.equalParts: true")
    assert (store.objects, store.uploads) == ({}, {})


@pytest.mark.parametrize("needed", [True, False])
def test_with_equal_parts_both_kinds_of_stores_pass(store: Store, needed: bool) -> None:
    store.equal_parts = needed
    assert results(store, equal_parts=True)["multipart upload"].outcome is Outcome.OK
    assert (store.objects, store.uploads) == ({}, {})


def test_a_bucket_with_a_default_retention_is_rejected_with_the_way_out(store: Store) -> None:
    store.lock = BucketLock(True, "GOVERNANCE, 30 days")
    failed, *later = not_ok(store)
    assert {check.outcome for check in later} == {Outcome.SKIPPED}
    assert (failed.name, failed.exit_code) == ("object lock", 7)
    assert "has a default retention (GOVERNANCE, 30 days)" in failed.message
    assert "and set spec.s3.objectLock, which locks objects alone" in failed.message


def test_a_lock_needs_a_bucket_with_object_lock(store: Store) -> None:
    assert results(store, has_lock=True)["object lock"].outcome is Outcome.FAILED
    store.lock = BucketLock(True)
    assert results(store, has_lock=True)["object lock"].outcome is Outcome.OK
    assert (store.objects, store.uploads) == ({}, {})


@pytest.mark.parametrize(
    ("error", "outcome", "outcome_with_lock"),
    [
        (AccessDenied("access denied"), Outcome.WARNING, Outcome.WARNING),
        (UnsupportedStore("not implemented"), Outcome.OK, Outcome.FAILED),
    ],
)
def test_a_default_retention_that_cannot_be_read_is_a_warning(
    store: Store, error: SinkError, outcome: Outcome, outcome_with_lock: Outcome
) -> None:
    def unknown(call: str, key: str) -> None:
        if call == "bucket_lock":
            raise error

    store.fault = unknown
    assert results(store)["object lock"].outcome is outcome
    assert results(store, has_lock=True)["object lock"].outcome is outcome_with_lock


def test_a_store_that_accepts_a_wrong_checksum_gets_a_warning(store: Store) -> None:
    store.verifies_checksums = False
    checks = results(store)
    assert checks["checksums"].outcome is Outcome.WARNING
    assert exit_code(list(checks.values())) == 0
    assert store.uploads == {}


def test_missing_lifecycle_rules_are_a_warning_with_the_rule_to_add(store: Store) -> None:
    store.rules = ()
    (warning,) = not_ok(store)
    assert (warning.name, warning.outcome) == ("lifecycle rules", Outcome.WARNING)
    assert "AbortIncompleteMultipartUpload" in warning.message


def test_lifecycle_rules_that_cannot_be_read_are_a_warning(store: Store) -> None:
    def denied(call: str, key: str) -> None:
        if call == "lifecycle_rules":
            raise AccessDenied("access denied")

    store.fault = denied
    (warning,) = not_ok(store)
    assert warning.outcome is Outcome.WARNING
    assert "cannot be read: " in warning.message


def test_the_first_failure_decides_the_exit_code(store: Store) -> None:
    def busy(call: str, key: str) -> None:
        if call == "create_upload":
            raise TransientError("no answer")

    store.fault = busy
    store.clock = NOW + 301_000
    assert exit_code(list(results(store).values())) == 7
    store.clock = None
    assert exit_code(list(results(store).values())) == 75


def test_each_check_is_below_the_ledger_of_the_sink(store: Store) -> None:
    keys: set[str] = set()

    def record(call: str, key: str) -> None:
        keys.update([key] if call in ("put", "create_upload", "delete") else [])

    store.fault = record
    results(store)
    assert keys
    assert all(key.startswith(f"{PREFIX}probe/") for key in keys)


def test_a_store_that_rejects_a_part_below_its_minimum_fails_the_multipart_upload(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def minimum(key: str, upload_id: str, parts: Sequence[UploadedPart], crc: int | None = None) -> str:
        if len(parts) > 1:
            raise EntityTooSmall("part 1 is smaller than 8 MiB", key)
        return MemoryS3.complete(store, key, upload_id, parts)

    monkeypatch.setattr(store, "complete", minimum)
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason) == ("multipart upload", "UnsupportedStore")
    assert "rejects an object of three parts: part 1 is smaller than 8 MiB" in failed.message
    assert (store.objects, store.uploads) == ({}, {})


@pytest.mark.parametrize(
    ("stored", "outcome", "message"),
    [
        (
            lambda head: Head(head.size, None, head.etag, head.last_modified_ms),
            "WARNING",
            "keeps no CRC64NVME checksum",
        ),
        (lambda head: Head(head.size, 1, head.etag, head.last_modified_ms), "FAILED", "does not have their size and"),
        (lambda head: Head(7, head.crc64nvme, head.etag, head.last_modified_ms), "FAILED", "of 3 parts does not have"),
        (lambda head: None, "FAILED", "does not have their size and checksum. Use another store"),
    ],
    ids=["no checksum", "another checksum", "another size", "no object"],
)
def test_the_object_of_several_parts_has_their_size_and_checksum(
    store: Store, monkeypatch: pytest.MonkeyPatch, stored: Any, outcome: str, message: str
) -> None:
    monkeypatch.setattr(store, "head", lambda key: stored(MemoryS3.head(store, key)))
    found = results(store)["multipart upload"]
    assert found.outcome == outcome
    assert message in found.message
    assert (store.objects, store.uploads) == ({}, {})


def test_a_completion_whose_reply_was_lost_passes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(key: str, upload_id: str, parts: Sequence[UploadedPart], crc: int | None = None) -> str:
        etag = MemoryS3.complete(store, key, upload_id, parts)
        if len(parts) > 1:
            raise PreconditionFailed(key, key)
        return etag

    monkeypatch.setattr(store, "complete", complete)
    assert results(store)["multipart upload"].outcome is Outcome.OK


def test_a_failed_check_does_not_prevent_the_later_ones(store: Store) -> None:
    def no_uploads(call: str, key: str) -> None:
        if call == "create_upload":
            raise AccessDenied("access denied: the credentials need s3:PutObject")

    store.fault = no_uploads
    outcomes = {name: check.outcome for name, check in results(store).items()}
    failed = ("conditional writes", "multipart upload", "checksums")
    assert outcomes == {name: "FAILED" if name in failed else "OK" for name in NAMES}


def test_an_error_that_is_none_of_a_sink_is_raised(store: Store) -> None:
    def bug(call: str, key: str) -> None:
        raise ZeroDivisionError

    store.fault = bug
    with pytest.raises(ZeroDivisionError):
        results(store)
