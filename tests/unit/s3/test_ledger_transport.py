"""Requests of a sink with its ledger in another bucket: the key decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sink_job.api.errors import AccessDenied
from sink_job.s3 import S3Client, S3Settings
from sink_job.s3.settings import LedgerBucket
from tests.unit.s3.conftest import ScriptedStore, error_reply

FOLDER = "archive/topics/_s3sink/"
RECORD = f"{FOLDER}a/ledger/1.json.gz"
OBJECT = "topics/a/p/a+0+0.json"
OWNER = "topics/_s3sink/a/owner.json"


@pytest.fixture
def two(store: ScriptedStore, settings: S3Settings) -> S3Client:
    ledger = replace(settings, bucket="ledgers", section="spec.s3.ledger", prefix=FOLDER)
    return S3Client(replace(settings, ledger=LedgerBucket(settings=ledger, front="archive/", folder=FOLDER)))


@pytest.mark.parametrize(("key", "bucket"), [(RECORD, "ledgers"), (OBJECT, "bucket"), (OWNER, "bucket")])
@pytest.mark.parametrize(
    "call",
    [
        lambda s3, key: s3.put(key, b""),
        lambda s3, key: s3.get(key),
        lambda s3, key: list(s3.list(key)),
        lambda s3, key: list(s3.list_uploads(key)),
        lambda s3, key: s3.abort(key, "u"),
        lambda s3, key: s3.versions(key),
        lambda s3, key: s3.delete([key]),
    ],
)
def test_each_request_is_sent_to_the_bucket_of_its_key(
    store: ScriptedStore, two: S3Client, call: Callable[[S3Client, str], object], key: str, bucket: str
) -> None:
    call(two, key)
    assert {request.path.split("/")[1].split("?")[0] for request in store.received} == {bucket}
    assert sum(two.meter.snapshot().requests.values()) == 1


def test_keys_of_both_buckets_are_deleted_in_each(store: ScriptedStore, two: S3Client) -> None:
    two.delete([RECORD, OBJECT, f"{FOLDER}a/staging/1"])
    assert [request.path.split("?")[0] for request in store.received] == ["/ledgers", "/bucket"]


def test_the_access_of_both_buckets_is_checked_and_the_error_names_the_ledgers(
    store: ScriptedStore, two: S3Client
) -> None:
    store.replies.append(replace(store.otherwise))
    store.replies.append(error_reply(403, "AccessDenied"))
    with pytest.raises(AccessDenied, match=r"s3://ledgers: .* This is the bucket of spec\.s3\.ledger"):
        two.check_access()
    assert "prefix=archive" in store.received[-1].path


def test_the_shutdown_of_a_process_ends_retries_in_both_buckets(store: ScriptedStore, two: S3Client) -> None:
    two.cancel_retries()
    store.otherwise = error_reply(503, "SlowDown")
    for key in (RECORD, OBJECT):
        with pytest.raises(Exception, match="SlowDown"):
            two.get(key)
    assert len(store.received) == 2
