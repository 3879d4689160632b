"""What the S3 layer reports of a real server: the probe, wrong access, outages, certificates."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from devtools.certificates import self_signed
from devtools.processes import free_ports
from devtools.s3 import ACCESS_KEY, REGION, SECRET_KEY, VersityGW, credentials_secret
from sink_job.api.errors import AccessDenied, BucketNotFound, ConfigurationError, InvalidCredentials, TransientError
from sink_job.s3 import (
    RetryPolicy,
    S3Client,
    S3Settings,
    lifecycle_warning,
    probe,
)
from sink_job.s3.checksums import combine_all, crc64nvme
from tests.support.s3_store import MIN_PART, running, upload_parts, uploads_of

pytestmark = pytest.mark.data


def test_the_probe_leaves_nothing_behind(s3: S3Client, key: str) -> None:
    probe(s3, f"{key}/")
    assert list(s3.list(key)) == []
    assert uploads_of(s3, key) == []


def test_the_probe_removes_files_of_an_old_killed_probe(s3: S3Client, gateway: VersityGW, key: str) -> None:
    for name in ("old", "young"):
        s3.put(f"{key}/probe/{name}", b"")
        s3.create_upload(f"{key}/probe/{name}")
    hours_ago = time.time() - 7200
    os.utime(gateway.directory / "data" / "archive" / key / "probe" / "old", (hours_ago, hours_ago))
    for upload in s3.list_uploads(f"{key}/probe/old"):
        [found] = (gateway.directory / "data" / "archive").rglob(upload.upload_id)
        os.utime(found, (hours_ago, hours_ago))
    probe(s3, f"{key}/")
    assert [found.key for found in s3.list(key)] == [f"{key}/probe/young"]
    assert [upload.key for upload in s3.list_uploads(key)] == [f"{key}/probe/young"]


def test_there_is_no_advice_if_the_store_does_not_return_lifecycle_rules(s3: S3Client) -> None:
    assert lifecycle_warning(s3, "topics/") is None


def test_a_missing_bucket_is_reported(settings: S3Settings) -> None:
    missing_bucket = S3Client(dataclasses.replace(settings, bucket="no-such-bucket"))
    for call in (
        missing_bucket.check_access,
        lambda: missing_bucket.put("k", b""),
        lambda: missing_bucket.get("k"),
        lambda: missing_bucket.head("k"),
        lambda: list(missing_bucket.list("")),
        lambda: missing_bucket.create_upload("k"),
        lambda: probe(missing_bucket, ""),
    ):
        with pytest.raises(BucketNotFound, match="s3://no-such-bucket"):
            call()


@pytest.mark.parametrize(
    ("access_key", "secret_key", "message"),
    [
        (ACCESS_KEY, "not-the-secret", "the secret key does not match the access key"),
        ("nobodys-access", SECRET_KEY, "unknown access key"),
    ],
)
def test_invalid_keys_are_reported_without_quoting_them(
    settings: S3Settings, tmp_path: Path, access_key: str, secret_key: str, message: str
) -> None:
    stranger = S3Client(
        dataclasses.replace(
            settings, credentials_dir=credentials_secret(tmp_path, access_key=access_key, secret_key=secret_key)
        )
    )
    for call in (
        stranger.check_access,
        lambda: stranger.put("k", b""),
        lambda: stranger.head("k"),
        lambda: probe(stranger, ""),
    ):
        with pytest.raises(InvalidCredentials, match=message) as raised:
            call()
        assert secret_key not in str(raised.value)
        assert access_key not in str(raised.value)


class WithUsers(VersityGW):
    """A server with additional users."""

    def command(self) -> list[str | Path]:
        (self.directory / "users").mkdir(exist_ok=True)
        binary, *words = super().command()
        return [binary, "--iam-dir", self.directory / "users", *words]

    def add_user(self, access_key: str, secret_key: str) -> None:
        """A user without permissions."""
        user = f"<Account><Access>{access_key}</Access><Secret>{secret_key}</Secret><Role>user</Role></Account>"
        request = AWSRequest("PATCH", f"{self.endpoint}/create-user", data=user.encode())
        S3SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "s3", REGION).add_auth(request)
        answer = URLLib3Session().send(request.prepare())
        assert answer.status_code < 300, answer.text


def test_denied_access_is_reported_with_the_required_permission(settings: S3Settings, tmp_path: Path) -> None:
    keys = credentials_secret(tmp_path / "keys", access_key="guest-access", secret_key="guest-secret")
    with running(WithUsers(tmp_path)) as server:
        server.add_user("guest-access", "guest-secret")
        guest = S3Client(dataclasses.replace(settings, endpoint=server.endpoint, credentials_dir=keys))
        for call in (
            guest.check_access,
            lambda: guest.put("k", b""),
            lambda: guest.head("k"),
            lambda: probe(guest, ""),
        ):
            with pytest.raises(AccessDenied, match=r"the credentials need s3:PutObject, .*s3:ListBucket"):
                call()


# Unavailable servers


def test_a_short_outage_of_the_server_is_bridged_by_retries(settings: S3Settings, tmp_path: Path) -> None:
    patient = RetryPolicy(max_elapsed_s=60, first_s=0.01, cap_s=0.1)
    with running(VersityGW(tmp_path)) as server, ThreadPoolExecutor(1) as pool:
        s3 = S3Client(dataclasses.replace(settings, endpoint=server.endpoint, retry=patient))
        upload_id, parts = upload_parts(s3, "k", os.urandom(MIN_PART))
        server.kill()
        uploading = pool.submit(s3.upload_part, "k", upload_id, 2, b"tail")
        while not s3.meter.snapshot().retries:
            assert not uploading.done()
        server.start()
        s3.complete("k", upload_id, [*parts, uploading.result(timeout=60)])
        assert s3.get("k").endswith(b"tail")


def test_an_unreachable_server_is_a_transient_error(settings: S3Settings) -> None:
    unreachable = S3Client(dataclasses.replace(settings, endpoint=f"http://127.0.0.1:{free_ports(1)[0]}"))
    with pytest.raises(TransientError, match="Could not connect"):
        probe(unreachable, "")


# TLS


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VersityGW]:
    directory = tmp_path_factory.mktemp("certified")
    with running(VersityGW(directory, certificate=self_signed(directory))) as server:
        yield server


def test_a_certificate_of_the_configured_authority_is_trusted(
    certified: VersityGW, settings: S3Settings, key: str
) -> None:
    assert certified.certificate is not None
    authority = certified.certificate.certificate
    s3 = S3Client(dataclasses.replace(settings, endpoint=certified.endpoint, ca_file=authority))
    upload_id, parts = upload_parts(s3, key, os.urandom(MIN_PART), b"tail")
    s3.complete(key, upload_id, parts)
    assert crc64nvme(s3.get(key)) == combine_all((part.crc, part.size) for part in parts)


def test_an_unknown_certificate_is_rejected_with_the_action_to_take(certified: VersityGW, settings: S3Settings) -> None:
    s3 = S3Client(dataclasses.replace(settings, endpoint=certified.endpoint))
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.caSecret \(certificate verify failed: self-signed"):
        probe(s3, "")
