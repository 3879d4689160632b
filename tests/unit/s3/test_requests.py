"""What goes over the wire, and how the client bears a store or a network that fails."""

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
    Part,
    PreconditionFailed,
    RetryPolicy,
    S3Client,
    S3Settings,
    lifecycle_warning,
    probe,
)
from sink_job.s3.checksums import b64, crc64nvme
from tests.unit.s3.conftest import Reply, ScriptedStore, refusal

SLOW_DOWN = refusal(503, "SlowDown")
LOST = Reply(lost=True)
COMPLETED = Reply(body="<CompleteMultipartUploadResult><ETag>&quot;e-1&quot;</ETag></CompleteMultipartUploadResult>")
PART = Part(number=1, etag='"e"', crc=crc64nvme(b"part"), size=4)


def test_a_body_is_not_hashed_for_the_signature_but_checked_by_its_crc(s3: S3Client, store: ScriptedStore) -> None:
    s3.upload_part("k", "u", 1, [b"two ", b"buffers"])
    sent = store.seen[0]
    assert sent.body == b"two buffers"
    assert sent.headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    assert sent.headers["x-amz-checksum-crc64nvme"] == b64(crc64nvme(b"two buffers"))
    assert "x-amz-checksum-crc64nvme" in sent.headers["authorization"]
    assert "content-md5" not in sent.headers


def test_no_round_trip_is_spent_on_asking_whether_a_body_may_be_sent(s3: S3Client, store: ScriptedStore) -> None:
    s3.put("k", b"body")
    assert "expect" not in store.seen[0].headers


def test_the_store_is_told_who_asks(s3: S3Client, store: ScriptedStore) -> None:
    s3.put("k", b"body")
    assert " s3sink/" in store.seen[0].headers["user-agent"]


def test_completion_is_conditional_and_names_every_part_and_the_checksum_of_the_whole(
    s3: S3Client, store: ScriptedStore
) -> None:
    store.replies.append(COMPLETED)
    assert s3.complete("k", "u", [PART]) == '"e-1"'
    sent = store.seen[0]
    assert sent.headers["if-none-match"] == "*"
    assert sent.headers["x-amz-checksum-crc64nvme"] == b64(PART.crc)
    assert sent.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    assert f"<ChecksumCRC64NVME>{b64(PART.crc)}</ChecksumCRC64NVME>".encode() in sent.body
    assert b"<PartNumber>1</PartNumber>" in sent.body


def test_the_keys_of_a_secret_are_used_and_nothing_else(
    s3: S3Client, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-environments-key")
    s3.put("k", b"")
    assert "Credential=the-access-key/" in store.seen[0].headers["authorization"]


def test_a_rotated_key_is_used_without_a_new_client(s3: S3Client, store: ScriptedStore, secret: Path) -> None:
    s3.put("k", b"")
    (secret / "AWS_ACCESS_KEY_ID").write_text("the-rotated-key")
    s3.put("k", b"")
    assert "Credential=the-rotated-key/" in store.seen[1].headers["authorization"]


def test_a_secret_without_keys_is_an_error_before_anything_is_asked(settings: S3Settings, secret: Path) -> None:
    (secret / "AWS_SECRET_ACCESS_KEY").unlink()
    with pytest.raises(SecretNotFound, match="AWS_SECRET_ACCESS_KEY"):
        S3Client(settings)


def test_having_no_credentials_at_all_says_where_they_are_looked_for(
    settings: S3Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InvalidCredentials, match=r"spec\.s3\.credentials.*spec\.serviceAccount.*AWS_ACCESS_KEY_ID"):
        S3Client(dataclasses.replace(settings, credentials_dir=None)).check_access()


@pytest.mark.parametrize("trouble", [SLOW_DOWN, refusal(500, "InternalError"), Reply(502, "<html>"), LOST])
def test_a_request_is_tried_again_with_the_same_body_until_the_trouble_is_over(
    s3: S3Client, store: ScriptedStore, trouble: Reply
) -> None:
    store.replies.extend([trouble] * 3)
    part = s3.upload_part("k", "u", 1, [b"the ", b"same ", b"body"])
    assert part.etag == '"e"'
    assert [seen.body for seen in store.seen] == [b"the same body"] * 4
    assert s3.meter.snapshot().requests == {"UploadPart": 4}
    assert s3.meter.snapshot().retries == {"UploadPart": 3}
    assert s3.meter.snapshot().bytes_sent == 4 * 13


def test_trouble_that_lasts_is_worth_trying_again_later(impatient: S3Client, store: ScriptedStore) -> None:
    store.otherwise = SLOW_DOWN
    with pytest.raises(TransientError, match=r"s3://bucket/k: PutObject failed for 0 s: SlowDown"):
        impatient.put("k", b"body")
    assert len(store.seen) > 1
    assert impatient.meter.snapshot().failures == {"SlowDown": len(store.seen)}


def test_trouble_that_lasts_is_told_once_while_it_lasts(
    s3: S3Client, store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.replies.extend([SLOW_DOWN] * 6)
    s3.put("k", b"body")
    [told] = caplog.messages
    assert told.startswith("s3://bucket: PutObject keeps failing and is tried again for up to 60 s: SlowDown")


def test_a_passing_trouble_is_not_told(s3: S3Client, store: ScriptedStore, caplog: pytest.LogCaptureFixture) -> None:
    store.replies.extend([SLOW_DOWN] * 2)
    s3.put("k", b"body")
    assert caplog.messages == []


def test_a_store_that_does_not_listen_is_worth_trying_again_later(impatient: S3Client, store: ScriptedStore) -> None:
    store.stop()
    with pytest.raises(TransientError, match=f'Could not connect to the endpoint URL: "{store.endpoint}'):
        impatient.put("k", b"body")
    assert impatient.meter.snapshot().requests["PutObject"] > 1


def test_a_store_that_does_not_answer_in_time_is_asked_again(settings: S3Settings, store: ScriptedStore) -> None:
    never = threading.Event()
    store.replies.append(Reply(after=never))
    s3 = S3Client(dataclasses.replace(settings, read_timeout_s=0.1))
    assert s3.put("k", b"body").etag == '"e"'
    assert s3.meter.snapshot().failures == {"ReadTimeoutError": 1}
    never.set()


def test_an_error_inside_a_200_of_a_completion_is_an_error(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(dataclasses.replace(refusal(503, "InternalError"), status=200))
    store.replies.append(refusal(404, "NoSuchUpload"))
    with pytest.raises(NoSuchUpload):
        s3.complete("k", "u", [PART])
    assert s3.meter.snapshot().failures == {"InternalError": 1, "NoSuchUpload": 1}


def test_a_completion_that_succeeds_when_it_is_repeated_and_leaves_no_object_is_no_success(
    s3: S3Client, store: ScriptedStore
) -> None:
    """A server that was killed inside a completion may answer so: it renames the upload before it makes the object."""
    store.replies.extend([Reply(lost=True), COMPLETED, Reply(404), Reply(body="<ListBucketResult/>")])
    with pytest.raises(NoSuchUpload, match="succeeded when it was repeated, and no object is there"):
        s3.complete("k", "u", [PART])


def test_a_completion_that_succeeds_at_once_is_one_request(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(COMPLETED)
    s3.complete("k", "u", [PART])
    assert s3.meter.snapshot().requests == {"CompleteMultipartUpload": 1}


@pytest.mark.parametrize("body", ["", "<html>a proxy's page</html>", "<CompleteMultipartUploadResult><ETag>&quot;e"])
def test_a_completion_that_does_not_say_what_became_of_it_is_asked_again(
    s3: S3Client, store: ScriptedStore, body: str
) -> None:
    store.replies.extend([Reply(body=body), COMPLETED])
    assert s3.complete("k", "u", [PART]) == '"e-1"'


def test_a_lost_reply_of_a_conditional_put_is_told_as_it_is(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([LOST, refusal(412, "PreconditionFailed")])
    with pytest.raises(PreconditionFailed):
        s3.put("k", b"body", only_if_absent=True)


def test_a_conflict_is_tried_a_few_times_and_then_told(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = refusal(409, "ConditionalRequestConflict")
    with pytest.raises(Conflict):
        s3.put("k", b"body", only_if_absent=True)
    assert len(store.seen) == 4


def test_a_conflict_that_passes_is_not_noticed(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(refusal(409, "OperationAborted"))
    assert s3.put("k", b"body", only_if_absent=True).etag == '"e"'


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda s3: s3.get("k"), refusal(404, "NoSuchKey")),
        (lambda s3: s3.put("k", b"", only_if_absent=True), refusal(412, "PreconditionFailed")),
        (lambda s3: s3.put("k", b""), refusal(404, "NoSuchBucket")),
        (lambda s3: s3.put("k", b""), refusal(403, "AccessDenied")),
    ],
    ids=["missing object", "failed precondition", "missing bucket", "access denied"],
)
def test_what_will_not_change_is_not_tried_again(
    s3: S3Client, store: ScriptedStore, call: Callable[[S3Client], object], outcome: Reply
) -> None:
    store.otherwise = outcome
    with pytest.raises(Exception, match="s3://bucket/k"):
        call(s3)
    assert len(store.seen) == 1


def test_giving_up_ends_a_pause_at_once(settings: S3Settings, store: ScriptedStore) -> None:
    store.otherwise = SLOW_DOWN
    s3 = S3Client(dataclasses.replace(settings, retry=RetryPolicy(first_s=3600, cap_s=3600, patience_s=7200)))
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


def test_an_object_cut_short_on_its_way_is_fetched_again(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend(
        [Reply(body="cut", headers={"Content-Length": "9", "Connection": "close"}), Reply(body="whole")]
    )
    assert s3.get("k") == b"whole"


def test_deleting_says_which_key_was_refused(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = Reply(body="<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error></DeleteResult>")
    with pytest.raises(Exception, match="access denied"):
        s3.delete(["a", "b"])


def test_keys_that_could_not_be_deleted_just_now_are_deleted_again(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(Reply(body="<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code></Error></DeleteResult>"))
    store.otherwise = Reply(body="<DeleteResult/>")
    s3.delete(["a", "b"])
    assert len(store.seen) == 2


def test_deleting_nothing_asks_nothing(s3: S3Client, store: ScriptedStore) -> None:
    s3.delete([])
    assert store.seen == []


def test_a_missing_object_in_a_missing_bucket_is_a_missing_bucket(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([Reply(404), refusal(404, "NoSuchBucket")])
    with pytest.raises(BucketNotFound):
        s3.head("k")


def test_the_checksum_of_parts_is_not_taken_for_one_of_the_object(s3: S3Client, store: ScriptedStore) -> None:
    modified = {"ETag": '"e-2"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}
    composite = {"x-amz-checksum-crc64nvme": base64.b64encode(bytes(8)).decode(), "x-amz-checksum-type": "COMPOSITE"}
    store.replies.append(Reply(headers=modified | composite))
    head = s3.head("k")
    assert head is not None
    assert head.crc64nvme is None


def test_no_bytes_cost_no_request(s3: S3Client, store: ScriptedStore) -> None:
    assert s3.get_range("k", 5, 0) == b""
    assert store.seen == []


def test_a_range_behind_the_end_is_not_found(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(refusal(416, "InvalidRange"))
    with pytest.raises(NotFound):
        s3.get_range("k", 5, 1)


def _store_that_overwrites(store: ScriptedStore, *, puts: bool) -> None:
    begun = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    stored = Reply(headers={"ETag": '"e"'})
    second = stored if puts else refusal(412, "PreconditionFailed")
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    completed = [Reply(body=begun), stored, COMPLETED, refusal(404, "NoSuchUpload")]
    once = [stored, second, *([] if puts else completed), Reply(body="<DeleteResult/>")]
    store.replies.extend([*empty, *once, *once, *once])


@pytest.mark.parametrize(("puts", "told"), [(True, "a put replaced"), (False, "a completed upload replaced")])
def test_a_store_that_ignores_conditions_is_refused_and_left_clean(
    s3: S3Client, store: ScriptedStore, puts: bool, told: str
) -> None:
    _store_that_overwrites(store, puts=puts)
    with pytest.raises(UnsupportedStore, match=f"ignores If-None-Match: {told} an object"):
        probe(s3, "topics/_s3sink/")
    keys = {seen.path.removeprefix("/bucket/") for seen in store.seen if seen.method == "PUT" and "?" not in seen.path}
    deleted = b"".join(seen.body for seen in store.seen if seen.path == "/bucket?delete")
    assert len(keys) == 3
    assert all(key.encode() in deleted for key in keys)


@pytest.mark.parametrize("gone", ["the object", "the upload"])
def test_a_store_is_tried_out_again_where_another_driver_has_cleared_the_files_of_the_try_out(
    s3: S3Client, store: ScriptedStore, gone: str
) -> None:
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    begun = Reply(body="<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
    stored, refused = Reply(headers={"ETag": '"e"'}), refusal(412, "PreconditionFailed")
    no_upload, deleted = refusal(404, "NoSuchUpload"), Reply(body="<DeleteResult/>")
    disturbed = [stored, stored] if gone == "the object" else [stored, refused, begun, no_upload, no_upload]
    undisturbed = [stored, refused, begun, stored, refused, Reply(status=204)]
    store.replies.extend([*empty, *disturbed, deleted, *undisturbed, deleted])
    probe(s3, "topics/_s3sink/")
    assert not store.replies


def test_the_rules_of_a_bucket_are_read(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([refusal(404, "NoSuchLifecycleConfiguration"), Reply(body="<VersioningConfiguration/>")])
    warning = lifecycle_warning(s3, "topics/")
    assert warning is not None
    assert warning.startswith("s3://bucket: no lifecycle rule clears away unfinished uploads below 'topics/'")


def test_rules_that_may_not_be_read_are_not_advised_on(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(refusal(403, "AccessDenied"))
    assert lifecycle_warning(s3, "topics/") is None


# -- the store's clock -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [Reply(), refusal(403, "RequestTimeTooSkewed")], ids=["an answer", "a refusal"])
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
    assert len(store.seen) == 1


@pytest.mark.parametrize("date", ["yesterday", ""])
def test_a_store_without_a_readable_date_has_no_clock(
    s3: S3Client, store: ScriptedStore, date: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: date)
    s3.check_access()
    assert s3.clock_ms() is None
