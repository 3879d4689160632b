"""Whole objects: what is sent, and what an answer means."""

import base64
import dataclasses
from urllib.parse import parse_qs, urlsplit

import pytest

from sink_job.api.errors import AccessDenied, BucketNotFound
from sink_job.s3 import ChecksumMismatch, Head, Listed, NotFound, PreconditionFailed, S3Client, S3Settings
from sink_job.s3.checksums import b64, crc64nvme
from tests.unit.s3.conftest import LOST, Reply, ScriptedStore, error_reply

MODIFIED = {"ETag": '"e"', "Last-Modified": "Thu, 01 Jan 1970 00:00:02 GMT"}


def test_a_conditional_put_after_a_lost_reply_raises_precondition_failed(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([LOST, error_reply(412, "PreconditionFailed")])
    with pytest.raises(PreconditionFailed):
        s3.put("k", b"body", only_if_absent=True)


@pytest.mark.parametrize("acl", [None, "bucket-owner-full-control"])
def test_the_acl_of_all_that_is_written_is_sent_with_puts_and_temporary_uploads(
    settings: S3Settings, store: ScriptedStore, acl: str | None
) -> None:
    client = S3Client(dataclasses.replace(settings, acl=acl))
    store.replies.append(Reply(headers={"ETag": '"e"'}))
    store.otherwise = Reply(
        body="<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    )
    client.put("k", b"body")
    client.create_upload("k", temporary=True)
    client.close()
    assert [each.headers.get("x-amz-acl") for each in store.received] == [acl, acl]


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


def head_reply(content: bytes, *, crc: int | None = None) -> Reply:
    """The answer to a HEAD of an object; `crc` is the checksum that the store reports."""
    checksum = {} if crc is None else {"x-amz-checksum-crc64nvme": b64(crc), "x-amz-checksum-type": "FULL_OBJECT"}
    return Reply(body=content.decode(), headers=MODIFIED | checksum)


@pytest.mark.parametrize(
    ("arguments", "header", "value"),
    [
        ({"only_if_absent": True}, "if-none-match", "*"),
        ({"if_match": '"e-1"'}, "if-match", '"e-1"'),
        ({"content_type": "application/json"}, "content-type", "application/json"),
    ],
)
def test_a_put_sends_only_the_conditions_that_it_is_given(
    s3: S3Client, store: ScriptedStore, arguments: dict[str, object], header: str, value: str
) -> None:
    assert s3.put("k", [b"a ", b"body"]).etag == '"e"'
    s3.put("k", b"a body", **arguments)  # type: ignore[arg-type]
    plain, sent = store.received
    assert (plain.headers.get(header), sent.headers[header]) == (None, value)
    assert plain.body == sent.body == b"a body"
    assert sent.headers["x-amz-checksum-crc64nvme"] == b64(crc64nvme(b"a body"))


def test_a_put_over_another_version_is_rejected(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(412, "PreconditionFailed"))
    with pytest.raises(PreconditionFailed, match="s3://bucket/k"):
        s3.put("k", b"", if_match='"e-1"')


def test_a_range_is_requested_of_one_version_and_may_be_short(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(Reply(206, "abc"))
    assert s3.get_range("k", 5, 10, etag='"e"') == b"abc"
    [sent] = store.received
    assert (sent.headers["range"], sent.headers["if-match"]) == ("bytes=5-14", '"e"')
    assert s3.meter.snapshot().bytes_received == 3


def test_a_range_of_a_replaced_object_fails_its_condition(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(412, "PreconditionFailed"))
    with pytest.raises(PreconditionFailed):
        s3.get_range("k", 0, 1, etag='"old"')


def test_a_stream_is_fetched_in_steps_and_its_checksum_is_compared(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend(
        [head_reply(b"abcde", crc=crc64nvme(b"abcde")), *(Reply(206, body=x) for x in ("ab", "cd", "e"))]
    )
    assert list(s3.stream("k", step=2)) == [b"ab", b"cd", b"e"]
    assert [request.headers.get("range") for request in store.received] == [None, "bytes=0-1", "bytes=2-3", "bytes=4-4"]
    assert {request.headers.get("if-match") for request in store.received[1:]} == {'"e"'}


def test_an_empty_object_is_streamed_without_a_chunk(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(head_reply(b"", crc=0))
    assert list(s3.stream("k")) == []


def test_a_stream_of_a_store_without_checksums_is_not_compared(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([head_reply(b"ab"), Reply(206, "xy")])
    assert list(s3.stream("k")) == [b"xy"]


def test_a_stream_that_differs_from_its_checksum_fails_at_the_end(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([head_reply(b"ab", crc=crc64nvme(b"ab")), Reply(206, "xy")])
    chunks = s3.stream("k")
    assert next(chunks) == b"xy"
    with pytest.raises(ChecksumMismatch, match=r"s3://bucket/k: the CRC64NVME .* is damaged\.$"):
        next(chunks)


def test_a_stream_of_a_missing_object_is_not_found(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([Reply(404), Reply(body="<ListBucketResult/>")])
    with pytest.raises(NotFound, match="s3://bucket/k: no such object"):
        list(s3.stream("k"))


def test_a_head_has_size_checksum_etag_and_time(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(head_reply(b"abc", crc=9))
    assert s3.head("k") == Head(3, 9, '"e"', 2_000)


def test_a_missing_object_in_an_existing_bucket_has_no_head(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([Reply(404), Reply(body="<ListBucketResult/>")])
    assert s3.head("k") is None


def test_a_denied_head_of_a_bucket_that_can_be_listed_is_denied(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([Reply(403), Reply(body="<ListBucketResult/>")])
    with pytest.raises(AccessDenied):
        s3.head("k")


def test_objects_are_listed_over_pages_after_a_key(s3: S3Client, store: ScriptedStore) -> None:
    item = "<Contents><Key>{0}</Key><Size>3</Size>{1}<LastModified>1970-01-01T00:00:02Z</LastModified></Contents>"
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    first = item.format("p/b", "<ETag>&quot;e&quot;</ETag>")
    store.replies.append(Reply(body=f"<ListBucketResult>{first}{more}</ListBucketResult>"))
    store.replies.append(Reply(body=f"<ListBucketResult>{item.format('p/c', '')}</ListBucketResult>"))
    assert list(s3.list("p/", "p/a", page=1)) == [Listed("p/b", 3, '"e"', 2_000), Listed("p/c", 3, "", 2_000)]
    queries = [parse_qs(urlsplit(request.path).query) for request in store.received]
    assert [(each["start-after"], each.get("continuation-token")) for each in queries] == [
        (["p/a"], None), (["p/a"], ["t"]),
    ]  # fmt: skip


def test_many_keys_are_deleted_a_thousand_at_a_time(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = Reply(body="<DeleteResult/>")
    s3.delete(f"k{n}" for n in range(2001))
    assert [request.body.count(b"<Key>") for request in store.received] == [1000, 1000, 1]


def test_the_deletion_of_a_key_without_an_object_is_no_error(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = Reply(body="<DeleteResult><Error><Key>a</Key><Code>NoSuchKey</Code></Error></DeleteResult>")
    s3.delete(["a"])
    assert len(store.received) == 1
