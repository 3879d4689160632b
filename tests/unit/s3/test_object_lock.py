"""Object Lock: of an object, and of a bucket by default."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sink_job.s3.object_lock import BucketLock, ObjectLock, lock_parameters
from tests.unit.api.manifests import accepted

NOW = datetime(2026, 1, 1, 0, 0, 0, 999, UTC)
RETENTION = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": datetime(2026, 1, 31, tzinfo=UTC)}
HOLD = {"ObjectLockLegalHoldStatus": "ON"}


@pytest.mark.parametrize(
    ("fields", "parameters", "actions"),
    [
        ({"mode": "Governance", "retain": "30d"}, RETENTION, ["s3:PutObjectRetention"]),
        ({"legalHold": True}, HOLD, ["s3:PutObjectLegalHold"]),
        (
            {"mode": "Governance", "retain": "30d", "legalHold": True},
            RETENTION | HOLD,
            ["s3:PutObjectRetention", "s3:PutObjectLegalHold"],
        ),
    ],
)
def test_a_lock_of_a_manifest_is_sent_with_an_upload(
    fields: dict[str, Any], parameters: dict[str, Any], actions: list[str]
) -> None:
    spec = accepted({"spec.s3.objectLock": fields}).spec.s3.object_lock
    assert spec is not None
    lock = ObjectLock.of(spec)
    assert (lock.parameters(NOW), lock.actions) == (parameters, actions)


def test_without_a_lock_nothing_is_sent() -> None:
    assert lock_parameters(None) == {}


@pytest.mark.parametrize(
    ("configuration", "lock"),
    [
        ({}, BucketLock()),
        ({"ObjectLockEnabled": "Enabled"}, BucketLock(True)),
        (
            {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Years": 7}}},
            BucketLock(True, "COMPLIANCE, 7 years"),
        ),
        (
            {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 30}}},
            BucketLock(True, "GOVERNANCE, 30 days"),
        ),
    ],
)
def test_the_lock_of_a_bucket_is_read(configuration: dict[str, Any], lock: BucketLock) -> None:
    assert BucketLock.of(configuration) == lock
