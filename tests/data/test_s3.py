"""The S3 behaviour on which the protocol depends, with a real server: conditional writes, checksums, uploads."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

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
    ChecksumMismatch,
    EntityTooSmall,
    InvalidPart,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
    RetryPolicy,
    S3Client,
    S3Settings,
    UploadedPart,
    lifecycle_warning,
    probe,
)
from sink_job.s3.checksums import combine_all, crc64nvme
from sink_job.s3.request_body import Body

pytestmark = pytest.mark.data

MIN_PART = 5 << 20
QUICK = RetryPolicy(max_elapsed_s=1.0, first_s=0.01, cap_s=0.2)


Server = TypeVar("Server", bound=VersityGW)


@contextlib.contextmanager
def _running(server: Server) -> Iterator[Server]:
    """A server with a bucket `archive`."""
    (server.directory / "data" / "archive").mkdir(parents=True)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VersityGW]:
    with _running(VersityGW(tmp_path_factory.mktemp("gateway"))) as server:
        yield server


@pytest.fixture(scope="module")
def settings(gateway: VersityGW, tmp_path_factory: pytest.TempPathFactory) -> S3Settings:
    return S3Settings(
        bucket="archive",
        region=REGION,
        endpoint=gateway.endpoint,
        path_style=True,
        credentials_dir=credentials_secret(tmp_path_factory.mktemp("secret")),
        retry=QUICK,
    )


@pytest.fixture(scope="module")
def s3(settings: S3Settings) -> Iterator[S3Client]:
    client = S3Client(settings)
    yield client
    client.close()


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A key for this test, with special characters."""
    return f"topics/a=b %2F+é/{request.node.name}+0+0000000000.json"


def _upload(s3: S3Client, key: str, *contents: bytes) -> tuple[str, list[UploadedPart]]:
    upload_id = s3.create_upload(key)
    return upload_id, [s3.upload_part(key, upload_id, n, body) for n, body in enumerate(contents, start=1)]


def _uploads(s3: S3Client, key: str) -> list[str]:
    return [upload.upload_id for upload in s3.list_uploads(key)]


# Objects


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


# Multipart uploads


def test_parts_become_an_object_in_one_step(s3: S3Client, key: str) -> None:
    contents: list[Body] = [os.urandom(MIN_PART), [os.urandom(MIN_PART), b"and a rest"], b"the tail"]
    upload_id = s3.create_upload(key, content_type="application/json", content_encoding="gzip")
    parts = [s3.upload_part(key, upload_id, number, body) for number, body in enumerate(contents, start=1)]
    assert s3.head(key) is None
    etag = s3.complete(key, upload_id, parts)
    head = s3.head(key)
    assert head is not None
    assert head.crc64nvme == combine_all((part.crc, part.size) for part in parts)
    assert (head.size, head.etag) == (sum(part.size for part in parts), etag)
    assert crc64nvme(s3.get(key)) == head.crc64nvme
    assert b"".join(s3.stream(key)) == s3.get(key)
    assert _uploads(s3, key) == []


def test_an_upload_outlives_the_client_that_started_it(s3: S3Client, settings: S3Settings, key: str) -> None:
    upload_id, parts = _upload(s3, key, os.urandom(MIN_PART))
    other = S3Client(settings)
    parts.append(other.upload_part(key, upload_id, 2, b"tail"))
    other.complete(key, upload_id, parts)
    assert s3.head(key) is not None


def test_a_completion_over_an_object_is_rejected_and_the_upload_survives(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, b"ours")
    s3.put(key, b"theirs")
    with pytest.raises(PreconditionFailed):
        s3.complete(key, upload_id, parts)
    assert s3.get(key) == b"theirs"
    assert _uploads(s3, key) == [upload_id]
    s3.delete([key])
    s3.complete(key, upload_id, parts)
    assert s3.get(key) == b"ours"


def test_only_one_of_two_uploads_of_a_key_is_completed(s3: S3Client, key: str) -> None:
    uploads = [_upload(s3, key, b"the same bytes") for _ in range(2)]

    def attempt(upload: tuple[str, list[UploadedPart]]) -> bool:
        try:
            s3.complete(key, *upload)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, uploads)) == [False, True]


def test_a_second_completion_fails_or_has_the_same_reply(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, b"body")
    etag = s3.complete(key, upload_id, parts)
    try:
        assert s3.complete(key, upload_id, parts) == etag
    except (NoSuchUpload, PreconditionFailed):
        assert s3.get(key) == b"body"


def test_a_repeated_part_number_replaces_the_part(s3: S3Client, key: str) -> None:
    upload_id, _ = _upload(s3, key, b"of a failed attempt")
    part = s3.upload_part(key, upload_id, 1, b"of the next one")
    s3.complete(key, upload_id, [part])
    assert s3.get(key) == b"of the next one"


def test_equal_bytes_under_an_equal_number_leave_a_recorded_part_valid(s3: S3Client, key: str) -> None:
    upload_id, recorded = _upload(s3, key, b"the same bytes")
    s3.upload_part(key, upload_id, 1, b"the same bytes")
    s3.complete(key, upload_id, recorded)
    assert s3.get(key) == b"the same bytes"


def test_a_part_replaced_by_a_late_attempt_is_detected(s3: S3Client, key: str) -> None:
    upload_id, recorded = _upload(s3, key, b"recorded")
    s3.upload_part(key, upload_id, 1, b"of a late attempt")
    with pytest.raises(InvalidPart):
        s3.complete(key, upload_id, recorded)
    assert s3.head(key) is None


def test_a_part_that_was_never_uploaded_is_detected(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, os.urandom(MIN_PART))
    with pytest.raises(InvalidPart):
        s3.complete(key, upload_id, [*parts, dataclasses.replace(parts[0], number=2)])


def test_a_part_below_the_minimum_size_is_rejected_unless_it_is_the_last(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, b"too small", b"tail")
    with pytest.raises(EntityTooSmall):
        s3.complete(key, upload_id, parts)


def test_a_part_with_a_wrong_checksum_is_rejected(s3: S3Client, key: str) -> None:
    upload_id = s3.create_upload(key)
    with pytest.raises(ChecksumMismatch, match=r"s3://archive/.*: UploadPart: BadDigest"):
        s3.upload_part(key, upload_id, 1, b"bytes", crc64nvme(b"others"))
    assert list(s3.list_parts(key, upload_id)) == []


def test_an_object_with_a_wrong_checksum_is_rejected(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, b"bytes")
    with pytest.raises((ChecksumMismatch, InvalidPart)):
        s3.complete(key, upload_id, parts, crc64nvme(b"others"))
    assert s3.head(key) is None


def test_an_aborted_upload_is_not_found(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, b"body")
    assert s3.abort(key, upload_id)
    assert not s3.abort(key, upload_id)
    with pytest.raises(NoSuchUpload):
        s3.upload_part(key, upload_id, 1, b"body")
    with pytest.raises(NoSuchUpload):
        s3.complete(key, upload_id, parts)
    with pytest.raises(NoSuchUpload):
        list(s3.list_parts(key, upload_id))
    assert s3.head(key) is None


def test_unfinished_uploads_are_listed_over_pages(s3: S3Client, key: str) -> None:
    started = {(name, s3.create_upload(name)) for name in [f"{key}/{n}" for n in (1, 1, 2, 3, 3)]}
    s3.create_upload(key.replace("topics/", "elsewhere/"))
    listed = list(s3.list_uploads(f"{key}/", page=3))
    assert {(upload.key, upload.upload_id) for upload in listed} == started
    assert len(listed) == 5


def test_uploads_and_objects_are_dated_by_one_clock(s3: S3Client, key: str) -> None:
    s3.put(f"{key}/before", b"")
    s3.create_upload(f"{key}/upload")
    s3.put(f"{key}/after", b"")
    before, after = s3.head(f"{key}/before"), s3.head(f"{key}/after")
    [upload] = s3.list_uploads(f"{key}/")
    assert before is not None
    assert after is not None
    assert before.last_modified_ms <= upload.initiated_ms <= after.last_modified_ms


def test_the_parts_of_an_upload_are_listed_over_pages(s3: S3Client, key: str) -> None:
    upload_id, parts = _upload(s3, key, b"one", b"two", b"three")
    listed = list(s3.list_parts(key, upload_id, page=2))
    assert listed == [(part.number, part.etag, part.size) for part in parts]


# The start-up probe


def test_the_probe_leaves_nothing_behind(s3: S3Client, key: str) -> None:
    probe(s3, f"{key}/")
    assert list(s3.list(key)) == []
    assert _uploads(s3, key) == []


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
    with _running(WithUsers(tmp_path)) as server:
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
    with _running(VersityGW(tmp_path)) as server, ThreadPoolExecutor(1) as pool:
        s3 = S3Client(dataclasses.replace(settings, endpoint=server.endpoint, retry=patient))
        upload_id, parts = _upload(s3, "k", os.urandom(MIN_PART))
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
    with _running(VersityGW(directory, certificate=self_signed(directory))) as server:
        yield server


def test_a_certificate_of_the_configured_authority_is_trusted(
    certified: VersityGW, settings: S3Settings, key: str
) -> None:
    assert certified.certificate is not None
    authority = certified.certificate.certificate
    s3 = S3Client(dataclasses.replace(settings, endpoint=certified.endpoint, ca_file=authority))
    upload_id, parts = _upload(s3, key, os.urandom(MIN_PART), b"tail")
    s3.complete(key, upload_id, parts)
    assert crc64nvme(s3.get(key)) == combine_all((part.crc, part.size) for part in parts)


def test_an_unknown_certificate_is_rejected_with_the_action_to_take(certified: VersityGW, settings: S3Settings) -> None:
    s3 = S3Client(dataclasses.replace(settings, endpoint=certified.endpoint))
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.caSecret \(certificate verify failed: self-signed"):
        probe(s3, "")
