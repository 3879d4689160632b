"""The requests that the client sends, and its reaction to failures of the store and the network."""

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from botocore.awsrequest import AWSResponse, HeadersDict

from sink_job.api.errors import (
    ConfigurationError,
    InvalidCredentials,
    SecretNotFound,
    TransientError,
)
from sink_job.s3 import (
    Conflict,
    RetryPolicy,
    S3Client,
    S3Settings,
)
from sink_job.s3.checksums import b64, crc64nvme
from tests.unit.s3.conftest import LOST, SLOW_DOWN, Reply, ScriptedStore, error_reply


def test_content_is_not_hashed_for_the_signature_but_verified_by_its_crc(s3: S3Client, store: ScriptedStore) -> None:
    s3.upload_part("k", "u", 1, [b"two ", b"buffers"])
    sent = store.received[0]
    assert sent.body == b"two buffers"
    assert sent.headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    assert sent.headers["x-amz-checksum-crc64nvme"] == b64(crc64nvme(b"two buffers"))
    assert "x-amz-checksum-crc64nvme" in sent.headers["authorization"]
    assert "content-md5" not in sent.headers


def test_a_request_does_not_wait_for_100_continue(s3: S3Client, store: ScriptedStore) -> None:
    s3.put("k", b"body")
    assert "expect" not in store.received[0].headers


def test_the_user_agent_names_the_sink(s3: S3Client, store: ScriptedStore) -> None:
    s3.put("k", b"body")
    assert store.received[0].headers["user-agent"].startswith("Botocore/")
    assert " s3sink/" in store.received[0].headers["user-agent"]


def test_the_credentials_of_a_secret_override_those_of_the_environment(
    s3: S3Client, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-environments-key")
    s3.put("k", b"")
    assert "Credential=the-access-key/" in store.received[0].headers["authorization"]


def test_rotated_credentials_are_used_without_a_new_client(s3: S3Client, store: ScriptedStore, secret: Path) -> None:
    s3.put("k", b"")
    (secret / "AWS_ACCESS_KEY_ID").write_text("the-rotated-key")
    s3.put("k", b"")
    assert "Credential=the-rotated-key/" in store.received[1].headers["authorization"]


def test_a_secret_without_keys_is_an_error_before_the_first_request(settings: S3Settings, secret: Path) -> None:
    (secret / "AWS_SECRET_ACCESS_KEY").unlink()
    with pytest.raises(SecretNotFound, match="AWS_SECRET_ACCESS_KEY"):
        S3Client(settings)


def test_the_error_for_missing_credentials_names_all_sources(
    settings: S3Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InvalidCredentials, match=r"spec\.s3\.credentials.*spec\.serviceAccount.*AWS_ACCESS_KEY_ID"):
        S3Client(dataclasses.replace(settings, credentials_dir=None)).check_access()


@pytest.mark.parametrize("failure", [SLOW_DOWN, error_reply(500, "InternalError"), Reply(502, "<html>"), LOST])
def test_a_request_is_retried_with_the_same_content_until_it_succeeds(
    s3: S3Client, store: ScriptedStore, failure: Reply
) -> None:
    store.replies.extend([failure] * 3)
    part = s3.upload_part("k", "u", 1, [b"the ", b"same ", b"body"])
    assert part.etag == '"e"'
    assert [request.body for request in store.received] == [b"the same body"] * 4
    assert s3.meter.snapshot().requests == {"UploadPart": 4}
    assert s3.meter.snapshot().retries == {"UploadPart": 3}
    assert s3.meter.snapshot().bytes_sent == 4 * 13


def test_a_failure_that_persists_is_a_transient_error(impatient: S3Client, store: ScriptedStore) -> None:
    store.otherwise = SLOW_DOWN
    with pytest.raises(TransientError, match=r"s3://bucket/k: PutObject failed for 0 s: SlowDown"):
        impatient.put("k", b"body")
    assert len(store.received) > 1
    assert impatient.meter.snapshot().failures == {"SlowDown": len(store.received)}


def test_a_failure_that_persists_is_logged_once(
    s3: S3Client, store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.replies.extend([SLOW_DOWN] * 6)
    s3.put("k", b"body")
    [message] = caplog.messages
    assert message.startswith("s3://bucket: PutObject failed 4 times in a row and is retried for up to 60 s: SlowDown")


def test_a_short_failure_is_not_logged(s3: S3Client, store: ScriptedStore, caplog: pytest.LogCaptureFixture) -> None:
    store.replies.extend([SLOW_DOWN] * 2)
    s3.put("k", b"body")
    assert caplog.messages == []


def test_a_store_that_refuses_connections_is_a_transient_error(impatient: S3Client, store: ScriptedStore) -> None:
    store.stop()
    with pytest.raises(TransientError, match=f'Could not connect to the endpoint URL: "{store.endpoint}'):
        impatient.put("k", b"body")
    assert impatient.meter.snapshot().requests["PutObject"] > 1


def test_a_request_without_an_answer_in_time_is_retried(settings: S3Settings, store: ScriptedStore) -> None:
    never = threading.Event()
    store.replies.append(Reply(after=never))
    s3 = S3Client(dataclasses.replace(settings, read_timeout_s=0.1))
    assert s3.put("k", b"body").etag == '"e"'
    assert s3.meter.snapshot().failures == {"ReadTimeoutError": 1}
    never.set()


def test_a_conflict_is_retried_a_few_times_and_then_raised(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = error_reply(409, "ConditionalRequestConflict")
    with pytest.raises(Conflict):
        s3.put("k", b"body", only_if_absent=True)
    assert len(store.received) == 4


def test_a_short_conflict_is_not_raised(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(409, "OperationAborted"))
    assert s3.put("k", b"body", only_if_absent=True).etag == '"e"'


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda s3: s3.get("k"), error_reply(404, "NoSuchKey")),
        (lambda s3: s3.put("k", b"", only_if_absent=True), error_reply(412, "PreconditionFailed")),
        (lambda s3: s3.put("k", b""), error_reply(404, "NoSuchBucket")),
        (lambda s3: s3.put("k", b""), error_reply(403, "AccessDenied")),
    ],
    ids=["missing object", "failed precondition", "missing bucket", "access denied"],
)
def test_a_permanent_failure_is_not_retried(
    s3: S3Client, store: ScriptedStore, call: Callable[[S3Client], object], outcome: Reply
) -> None:
    store.otherwise = outcome
    with pytest.raises(Exception, match="s3://bucket/k"):
        call(s3)
    assert len(store.received) == 1


def test_a_head_that_is_a_bad_request_names_both_reasons(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = Reply(400)
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.region is not the region of the bucket, or .*SSE-C"):
        s3.head("k")


def test_cancel_retries_ends_a_pause_at_once(settings: S3Settings, store: ScriptedStore) -> None:
    store.otherwise = SLOW_DOWN
    s3 = S3Client(dataclasses.replace(settings, retry=RetryPolicy(first_s=3600, cap_s=3600, max_elapsed_s=7200)))
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(s3.put, "k", b"body")
        s3.cancel_retries()
        with pytest.raises(TransientError):
            put.result(timeout=30)


def test_each_request_names_the_expected_owner_and_the_payer_if_it_can(
    settings: S3Settings, store: ScriptedStore
) -> None:
    named = (("RequestPayer", "requester"), ("ExpectedBucketOwner", "123456789012"))
    store.otherwise = Reply(body="<ListBucketResult></ListBucketResult>", headers={"ETag": '"e"'})
    s3 = S3Client(dataclasses.replace(settings, every_request=named))
    s3.put("a", b"")
    s3.get("a")
    s3.check_access()
    s3.abort("a", "u")
    s3.keeps_versions()
    s3.close()
    *objects, versioning = store.received
    assert {each.headers.get("x-amz-request-payer") for each in objects} == {"requester"}
    assert "x-amz-request-payer" not in versioning.headers
    assert {each.headers.get("x-amz-expected-bucket-owner") for each in store.received} == {"123456789012"}


def test_anonymous_requests_have_no_signature(settings: S3Settings, store: ScriptedStore) -> None:
    s3 = S3Client(dataclasses.replace(settings, credentials_dir=None, anonymous=True))
    s3.put("a", b"content")
    s3.close()
    (request,) = store.received
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("field", "host"),
    [
        ("accelerate", "archive.s3-accelerate.amazonaws.com"),
        ("dual_stack", "archive.s3.dualstack.eu-central-1.amazonaws.com"),
    ],
)
def test_endpoints_of_aws_are_chosen(secret: Path, field: str, host: str) -> None:
    named: dict[str, Any] = {"bucket": "archive", "region": "eu-central-1", "credentials_dir": secret, field: True}
    s3 = S3Client(S3Settings(**named))
    asked: list[str] = []

    def answer(request: Any, **_: object) -> Any:
        asked.append(urlsplit(request.url).hostname or "")
        response: Any = AWSResponse(request.url, 200, cast("Any", HeadersDict()), None)
        response._content = b"<ListBucketResult></ListBucketResult>"
        return response

    s3._transport._client.meta.events.register("before-send.s3", answer)
    s3.check_access()
    s3.close()
    assert asked == [host]
