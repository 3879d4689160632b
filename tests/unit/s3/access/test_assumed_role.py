"""Credentials of a role: when they are renewed, and what a failed renewal does."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, NoCredentialsError

from sink_job.api.sections.aws_access import AssumeRoleSpec
from sink_job.s3.access import assumed_role
from sink_job.s3.access.assumed_role import AssumedRole, RoleCredentials, RoleProvider

ARN = "arn:aws:iam::123456789012:role/archive"
NOW = datetime(2026, 11, 26, tzinfo=UTC)


class Sts:
    """AWS STS: each session has the number of its request as its access key."""

    def __init__(self, lifetime_s: float = 3600.0) -> None:
        self.lifetime_s = lifetime_s
        self.requests: list[dict[str, Any]] = []
        self.sources: list[str] = []
        self.down = False
        self.entered = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def create_client(self, service: str, **keys: Any) -> Sts:
        assert service == "sts"
        self.sources.append(keys["aws_access_key_id"])
        return self

    def assume_role(self, **request: Any) -> dict[str, Any]:
        self.entered.set()
        assert self.may_answer.wait(30)
        if self.down:
            raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "later"}}, "AssumeRole")
        self.requests.append(request)
        number = len(self.requests)
        keys = {"AccessKeyId": f"ASIA{number}", "SecretAccessKey": "the-secret", "SessionToken": "the-token"}
        # The clock of STS is an hour ahead of this host's.
        date = NOW + timedelta(hours=1)
        return {
            "Credentials": {**keys, "Expiration": date + timedelta(seconds=self.lifetime_s)},
            "ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(date, usegmt=True)}},
        }

    def close(self) -> None:
        pass


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(assumed_role, "time", clock)
    return clock


def credentials(sts: Sts, role: AssumedRole | None = None) -> RoleCredentials:
    return RoleCredentials(role or AssumedRole(arn=ARN), Credentials("source-key", "s"), sts.create_client)


def test_the_role_of_a_manifest_has_its_fields_and_the_policy() -> None:
    spec = AssumeRoleSpec(arn=ARN, external_id="x1", session_name="flights", duration=900_000)
    assert AssumedRole.of(spec, "{}").request() == {
        "RoleArn": ARN,
        "ExternalId": "x1",
        "RoleSessionName": "flights",
        "DurationSeconds": 900,
        "Policy": "{}",
    }


def test_a_role_without_optional_fields_sends_none_of_them() -> None:
    assert AssumedRole.of(AssumeRoleSpec(arn=ARN)).request() == {
        "RoleArn": ARN,
        "RoleSessionName": "s3sink",
        "DurationSeconds": 3600,
    }


def test_nothing_is_requested_before_the_first_use(clock: Clock) -> None:
    sts = Sts()
    role = credentials(sts)
    assert sts.requests == []
    assert role.get_frozen_credentials().access_key == "ASIA1"
    assert sts.sources == ["source-key"]


@pytest.mark.parametrize(("lifetime_s", "renewed_after_s"), [(3600.0, 2998.0), (900.0, 673.5), (62.0, 45.0)])
def test_a_session_is_renewed_before_its_end(clock: Clock, lifetime_s: float, renewed_after_s: float) -> None:
    sts = Sts(lifetime_s)
    role = credentials(sts)
    role.get_frozen_credentials()
    clock.now += renewed_after_s - 0.1
    assert role.get_frozen_credentials().access_key == "ASIA1"
    clock.now += 0.2
    assert role.get_frozen_credentials().access_key == "ASIA2"


def test_a_failed_renewal_leaves_the_keys_until_their_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    sts = Sts(102.0)
    role = credentials(sts)
    role.get_frozen_credentials()
    sts.down = True
    clock.now += 80
    with caplog.at_level(logging.WARNING):
        assert role.get_frozen_credentials().access_key == "ASIA1"
        assert role.get_frozen_credentials().access_key == "ASIA1"  # not asked again at once
    assert [record.message for record in caplog.records] == [
        f"{ARN}: the credentials of the role cannot be renewed yet: An error occurred (ServiceUnavailable) when "
        "calling the AssumeRole operation: later"
    ]
    clock.now += 20
    with pytest.raises(ClientError):
        role.get_frozen_credentials()
    sts.down = False
    assert role.get_frozen_credentials().access_key == "ASIA2"


def test_other_threads_use_the_previous_keys_during_a_renewal(clock: Clock) -> None:
    sts = Sts(102.0)
    role = credentials(sts)
    role.get_frozen_credentials()
    clock.now += 80
    sts.entered.clear()
    sts.may_answer.clear()
    renewal = threading.Thread(target=role.get_frozen_credentials)
    renewal.start()
    assert sts.entered.wait(30)
    assert role.get_frozen_credentials().access_key == "ASIA1"
    sts.may_answer.set()
    renewal.join(30)
    assert role.get_frozen_credentials().access_key == "ASIA2"


def test_expired_credentials_are_renewed_for_the_next_request(clock: Clock) -> None:
    role = credentials(Sts())
    role.get_frozen_credentials()
    role.expire(role.keys)
    assert role.get_frozen_credentials().access_key == "ASIA2"


def test_credentials_that_another_thread_has_renewed_are_not_renewed_again(clock: Clock) -> None:
    role = credentials(Sts())
    rejected = role.get_frozen_credentials()
    for _ in range(3):
        role.expire(rejected)
        assert role.get_frozen_credentials().access_key == "ASIA2"


class CountingLock:
    """A lock that counts the threads that have asked for it."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.asked.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_that_wait_for_a_session_share_its_error(clock: Clock) -> None:
    """Each would wait for STS after the other otherwise."""
    sts, lock = Sts(), CountingLock()
    sts.down = True
    sts.may_answer.clear()
    role = credentials(sts)
    role._lock = lock  # type: ignore[assignment]
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(role.get_frozen_credentials) for _ in range(4)]
        for _ in asked:
            assert lock.asked.acquire(timeout=30)
        sts.may_answer.set()
        assert {type(each.exception()) for each in asked} == {ClientError}
    assert sts.sources == ["source-key"]
    sts.down = False
    assert role.get_frozen_credentials().access_key == "ASIA1"


def test_without_credentials_a_role_cannot_be_assumed() -> None:
    class NoSession:
        def get_credentials(self) -> None:
            return None

    with pytest.raises(NoCredentialsError):
        RoleProvider(AssumedRole(arn=ARN), NoSession(), Sts().create_client).load()


def test_no_secret_is_in_the_text_of_the_credentials(clock: Clock) -> None:
    role = credentials(Sts())
    role.get_frozen_credentials()
    assert repr(role) == f"RoleCredentials('{ARN}')"
