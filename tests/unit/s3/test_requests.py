"""The requests that the client sends, and its reaction to failures of the store and the network."""

import base64
import contextlib
import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sink_job.api.errors import (
    BucketNotFound,
    ClockSkew,
    InvalidCredentials,
    SecretNotFound,
    TransientError,
    UnsupportedStore,
)
from sink_job.s3 import (
    Conflict,
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
from sink_job.s3.checksums import b64, crc64nvme
from tests.unit.s3.conftest import Reply, ScriptedStore, error_reply

SLOW_DOWN = error_reply(503, "SlowDown")
LOST = Reply(lost=True)
COMPLETED = Reply(body="<CompleteMultipartUploadResult><ETag>&quot;e-1&quot;</ETag></CompleteMultipartUploadResult>")
PART = UploadedPart(number=1, etag='"e"', crc=crc64nvme(b"part"), size=4)


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
    assert " s3sink/" in store.received[0].headers["user-agent"]


def test_a_completion_is_conditional_and_names_every_part_and_the_objects_checksum(
    s3: S3Client, store: ScriptedStore
) -> None:
    store.replies.append(COMPLETED)
    assert s3.complete("k", "u", [PART]) == '"e-1"'
    sent = store.received[0]
    assert sent.headers["if-none-match"] == "*"
    assert sent.headers["x-amz-checksum-crc64nvme"] == b64(PART.crc)
    assert sent.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    assert f"<ChecksumCRC64NVME>{b64(PART.crc)}</ChecksumCRC64NVME>".encode() in sent.body
    assert b"<PartNumber>1</PartNumber>" in sent.body


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


def test_an_error_inside_a_200_of_a_completion_is_an_error(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(dataclasses.replace(error_reply(503, "InternalError"), status=200))
    store.replies.append(error_reply(404, "NoSuchUpload"))
    with pytest.raises(NoSuchUpload):
        s3.complete("k", "u", [PART])
    assert s3.meter.snapshot().failures == {"InternalError": 1, "NoSuchUpload": 1}


def test_a_repeated_completion_that_succeeds_without_an_object_is_no_success(
    s3: S3Client, store: ScriptedStore
) -> None:
    """A server that was killed during a completion may answer so: it renames the upload before it creates the
    object."""
    store.replies.extend([Reply(lost=True), COMPLETED, Reply(404), Reply(body="<ListBucketResult/>")])
    with pytest.raises(NoSuchUpload, match="reported success for a repeated completion, but no object exists"):
        s3.complete("k", "u", [PART])


def test_a_completion_that_succeeds_at_the_first_attempt_is_one_request(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(COMPLETED)
    s3.complete("k", "u", [PART])
    assert s3.meter.snapshot().requests == {"CompleteMultipartUpload": 1}


@pytest.mark.parametrize("body", ["", "<html>a proxy's page</html>", "<CompleteMultipartUploadResult><ETag>&quot;e"])
def test_a_completion_with_an_incomplete_answer_is_retried(s3: S3Client, store: ScriptedStore, body: str) -> None:
    store.replies.extend([Reply(body=body), COMPLETED])
    assert s3.complete("k", "u", [PART]) == '"e-1"'


def test_a_conditional_put_after_a_lost_reply_raises_precondition_failed(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([LOST, error_reply(412, "PreconditionFailed")])
    with pytest.raises(PreconditionFailed):
        s3.put("k", b"body", only_if_absent=True)


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


def test_cancel_retries_ends_a_pause_at_once(settings: S3Settings, store: ScriptedStore) -> None:
    store.otherwise = SLOW_DOWN
    s3 = S3Client(dataclasses.replace(settings, retry=RetryPolicy(first_s=3600, cap_s=3600, max_elapsed_s=7200)))
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(s3.put, "k", b"body")
        s3.cancel_retries()
        with pytest.raises(TransientError):
            put.result(timeout=30)


def test_bytes_that_do_not_match_their_checksum_are_fetched_again(s3: S3Client, store: ScriptedStore) -> None:
    headers = {"x-amz-checksum-crc64nvme": b64(crc64nvme(b"right")), "x-amz-checksum-type": "FULL_OBJECT"}
    store.replies.extend([Reply(body="wrong", headers=headers), Reply(body="right", headers=headers)])
    assert s3.get("k") == b"right"
    assert s3.meter.snapshot().failures == {"FlexibleChecksumError": 1}


def test_a_truncated_object_is_fetched_again(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend(
        [Reply(body="cut", headers={"Content-Length": "9", "Connection": "close"}), Reply(body="whole")]
    )
    assert s3.get("k") == b"whole"


def test_a_deletion_raises_the_error_of_a_single_key(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = Reply(body="<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error></DeleteResult>")
    with pytest.raises(Exception, match="access denied"):
        s3.delete(["a", "b"])


def test_a_deletion_with_a_transient_error_of_a_single_key_is_retried(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(Reply(body="<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code></Error></DeleteResult>"))
    store.otherwise = Reply(body="<DeleteResult/>")
    s3.delete(["a", "b"])
    assert len(store.received) == 2


def test_a_deletion_of_no_keys_sends_no_request(s3: S3Client, store: ScriptedStore) -> None:
    s3.delete([])
    assert store.received == []


def test_a_missing_object_in_a_missing_bucket_is_a_missing_bucket(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([Reply(404), error_reply(404, "NoSuchBucket")])
    with pytest.raises(BucketNotFound):
        s3.head("k")


def test_a_composite_checksum_is_not_the_checksum_of_the_object(s3: S3Client, store: ScriptedStore) -> None:
    modified = {"ETag": '"e-2"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}
    composite = {"x-amz-checksum-crc64nvme": base64.b64encode(bytes(8)).decode(), "x-amz-checksum-type": "COMPOSITE"}
    store.replies.append(Reply(headers=modified | composite))
    head = s3.head("k")
    assert head is not None
    assert head.crc64nvme is None


def test_an_empty_range_sends_no_request(s3: S3Client, store: ScriptedStore) -> None:
    assert s3.get_range("k", 5, 0) == b""
    assert store.received == []


def test_a_range_after_the_end_is_not_found(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(416, "InvalidRange"))
    with pytest.raises(NotFound):
        s3.get_range("k", 5, 1)


def _store_that_overwrites(store: ScriptedStore, *, puts: bool) -> None:
    started = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    stored = Reply(headers={"ETag": '"e"'})
    second = stored if puts else error_reply(412, "PreconditionFailed")
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    completed = [Reply(body=started), stored, COMPLETED, error_reply(404, "NoSuchUpload")]
    once = [stored, second, *([] if puts else completed), Reply(body="<DeleteResult/>")]
    store.replies.extend([*empty, *once, *once, *once])


@pytest.mark.parametrize(("puts", "message"), [(True, "a put replaced"), (False, "a completed upload replaced")])
def test_a_store_that_ignores_conditions_is_rejected_and_left_clean(
    s3: S3Client, store: ScriptedStore, puts: bool, message: str
) -> None:
    _store_that_overwrites(store, puts=puts)
    with pytest.raises(UnsupportedStore, match=f"ignores If-None-Match: {message} an object"):
        probe(s3, "topics/_s3sink/")
    puts_of_objects = [each for each in store.received if each.method == "PUT" and "?" not in each.path]
    keys = {each.path.removeprefix("/bucket/") for each in puts_of_objects}
    deleted = b"".join(each.body for each in store.received if each.path == "/bucket?delete")
    assert len(keys) == 3
    assert all(key.encode() in deleted for key in keys)


@pytest.mark.parametrize("gone", ["the object", "the upload"])
def test_a_store_is_probed_again_if_another_driver_has_deleted_the_probes_object_or_upload(
    s3: S3Client, store: ScriptedStore, gone: str
) -> None:
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    started = Reply(body="<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
    stored, rejected = Reply(headers={"ETag": '"e"'}), error_reply(412, "PreconditionFailed")
    no_upload, deleted = error_reply(404, "NoSuchUpload"), Reply(body="<DeleteResult/>")
    disturbed = [stored, stored] if gone == "the object" else [stored, rejected, started, no_upload, no_upload]
    undisturbed = [stored, rejected, started, stored, rejected, Reply(status=204)]
    store.replies.extend([*empty, *disturbed, deleted, *undisturbed, deleted])
    probe(s3, "topics/_s3sink/")
    assert not store.replies


def test_a_bucket_without_lifecycle_rules_gets_a_warning(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([error_reply(404, "NoSuchLifecycleConfiguration"), Reply(body="<VersioningConfiguration/>")])
    warning = lifecycle_warning(s3, "topics/")
    assert warning is not None
    assert warning.startswith("s3://bucket: no lifecycle rule aborts incomplete uploads below 'topics/'")


def test_without_permission_to_read_the_lifecycle_rules_there_is_no_warning(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(403, "AccessDenied"))
    assert lifecycle_warning(s3, "topics/") is None


# -- the store's clock -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [Reply(), error_reply(403, "RequestTimeTooSkewed")], ids=["an answer", "an error"])
def test_the_stores_clock_is_that_of_its_last_answer(
    s3: S3Client, store: ScriptedStore, reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3.clock_ms() is None
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: "Tue, 14 Nov 2023 22:13:20 GMT")
    store.otherwise = reply
    with contextlib.suppress(ClockSkew):
        s3.check_access()
    shown = s3.clock_ms()
    assert shown is not None
    assert 1_700_000_000_000 <= shown < 1_700_000_060_000
    assert len(store.received) == 1


@pytest.mark.parametrize("date", ["yesterday", ""])
def test_a_store_without_a_readable_date_has_no_clock(
    s3: S3Client, store: ScriptedStore, date: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: date)
    s3.check_access()
    assert s3.clock_ms() is None
