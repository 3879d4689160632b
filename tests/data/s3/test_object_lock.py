"""Object Lock: of objects, as the server then has it, and of nothing else."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from devtools.s3 import VersityGW, credentials_secret
from sink_job.api.errors import ConfigurationError
from sink_job.cli.store_checks import Outcome, check_store
from sink_job.coordinator.context import StopCondition
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog, loopback_settings

pytestmark = pytest.mark.data

CAUGHT_UP = StopCondition(until_caught_up=True)
LOCK = {"mode": "Governance", "retain": "30d", "legalHold": True}
Locked = Callable[..., SinkFixture]


@pytest.fixture
def locked(gateway: VersityGW, tmp_path: Path) -> Locked:
    """A sink in a new bucket with Object Lock, and its default retention."""

    def sink(default: dict[str, Any] | None = None) -> SinkFixture:
        bucket, client = f"b-{uuid.uuid4().hex[:12]}", gateway.client()
        client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
        if default is not None:
            client.put_object_lock_configuration(
                Bucket=bucket,
                ObjectLockConfiguration={
                    "ObjectLockEnabled": "Enabled",
                    "Rule": {"DefaultRetention": default},  # type: ignore[typeddict-item]
                },
            )
        settings = loopback_settings(gateway.endpoint, bucket, credentials_secret(tmp_path / "secret"))
        return SinkFixture(tmp_path, settings)

    return sink


def run(sink: SinkFixture, lock: dict[str, Any] | None) -> SinkFixture:
    """Runs a sink with this objectLock; returns it with the settings that it has used."""
    from sink_job.api.parser import load_sink
    from sink_job.s3.object_lock import ObjectLock
    from tests.support.sink_fixture import manifest

    s3: dict[str, Any] = {"bucket": sink.bucket, "endpoint": sink.endpoint, "region": "us-east-1", "pathStyle": True}
    spec = {"s3": s3 | ({} if lock is None else {"objectLock": lock})}
    parsed = load_sink(manifest(sink.bucket, sink.endpoint, flush_size=10, spec=spec)).spec.s3.object_lock
    of_lock = None if parsed is None else ObjectLock.of(parsed)
    sink = dataclasses.replace(sink, settings=dataclasses.replace(sink.settings, lock=of_lock))
    sink.run(SyntheticLog(records=25), CAUGHT_UP, flush_size=10, spec=spec)
    return sink


def test_each_object_is_locked_and_nothing_of_the_ledger(gateway: VersityGW, locked: Locked) -> None:
    sink, client = run(locked(), LOCK), gateway.client()
    keys = [each["Key"] for each in client.list_objects_v2(Bucket=sink.bucket)["Contents"]]
    objects = [key for key in keys if "/_s3sink/" not in key]
    assert len(objects) == 2
    for key in objects:
        retention = client.get_object_retention(Bucket=sink.bucket, Key=key)["Retention"]
        assert retention["Mode"] == "GOVERNANCE"
        left = retention["RetainUntilDate"] - datetime.now(UTC)
        assert timedelta(days=29) < left <= timedelta(days=30)
        assert client.get_object_legal_hold(Bucket=sink.bucket, Key=key)["LegalHold"]["Status"] == "ON"
        with pytest.raises(ClientError, match="AccessDenied"):
            client.delete_object(Bucket=sink.bucket, Key=key)
    for key in set(keys) - set(objects):
        client.delete_object(Bucket=sink.bucket, Key=key)


def test_a_bucket_with_a_default_retention_is_rejected_before_the_ledger_is_claimed(
    gateway: VersityGW, locked: Locked
) -> None:
    sink = locked({"Mode": "GOVERNANCE", "Days": 30})
    with pytest.raises(ConfigurationError, match=r"has a default retention \(GOVERNANCE, 30 days\)"):
        run(sink, LOCK)
    assert "Contents" not in gateway.client().list_objects_v2(Bucket=sink.bucket)


def test_a_bucket_without_object_lock_is_rejected(gateway: VersityGW, tmp_path: Path) -> None:
    sink = SinkFixture.new(gateway.endpoint, tmp_path)
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.objectLock needs a bucket with Object Lock"):
        run(sink, LOCK)


def test_check_store_tries_the_lock_and_leaves_nothing(locked: Locked) -> None:
    from sink_job.s3 import S3Client
    from sink_job.s3.object_lock import ObjectLock

    settings = dataclasses.replace(locked().settings, lock=ObjectLock(mode="COMPLIANCE", retain_s=86_400))
    s3 = S3Client(settings)
    checks = {each.name: each for each in check_store(s3, "topics/_s3sink/a/", s3.server_now_ms, has_lock=True)}
    s3.close()
    assert checks["object lock"].outcome is Outcome.OK
    assert list(s3.list("topics/_s3sink/a/")) == []
