"""The requests about uploads: parts, completion, and lists over pages."""

import dataclasses
from urllib.parse import parse_qs, urlsplit

import pytest

from sink_job.s3 import ChecksumMismatch, NoSuchUpload, S3Client, Upload, UploadedPart
from sink_job.s3.checksums import b64, combine_all, crc64nvme
from tests.unit.s3.conftest import COMPLETED, PART, Reply, ScriptedStore, error_reply

STARTED = Reply(body="<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")


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


def test_a_completion_that_replaces_an_object_names_its_etag_alone(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(COMPLETED)
    s3.complete("k", "u", [PART], if_match='"before"')
    sent = store.received[0]
    assert sent.headers["if-match"] == '"before"'
    assert "if-none-match" not in sent.headers


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


def query(store: ScriptedStore, number: int) -> dict[str, str]:
    """The query parameters of a request."""
    found = parse_qs(urlsplit(store.received[number].path).query, keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def test_an_upload_announces_a_checksum_of_the_whole_object(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(STARTED)
    assert s3.create_upload("k") == "u"
    [sent] = store.received
    assert sent.headers["x-amz-checksum-algorithm"] == "CRC64NVME"
    assert sent.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    assert "content-encoding" not in sent.headers


def test_the_type_and_encoding_of_an_object_are_those_of_its_upload(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(STARTED)
    s3.create_upload("k", content_type="application/json", content_encoding="gzip")
    [sent] = store.received
    assert (sent.headers["content-type"], sent.headers["content-encoding"]) == ("application/json", "gzip")


def test_an_upload_without_an_id_in_the_answer_is_started_again(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([Reply(body="<InitiateMultipartUploadResult/>"), STARTED])
    assert s3.create_upload("k") == "u"
    assert s3.meter.snapshot().requests == {"CreateMultipartUpload": 2}


def test_a_part_has_its_number_checksum_and_size(s3: S3Client, store: ScriptedStore) -> None:
    part = s3.upload_part("k", "u", 7, [b"two ", b"buffers"])
    assert part == UploadedPart(7, '"e"', crc64nvme(b"two buffers"), 11)
    assert query(store, 0) == {"partNumber": "7", "uploadId": "u"}


def test_the_checksum_that_the_caller_knows_is_sent_for_the_store_to_verify(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = error_reply(400, "BadDigest")
    with pytest.raises(ChecksumMismatch):
        s3.upload_part("k", "u", 1, b"some bytes", crc64nvme(b"other bytes"))
    assert store.received[0].headers["x-amz-checksum-crc64nvme"] == b64(crc64nvme(b"other bytes"))


def test_the_checksum_of_an_object_is_combined_from_its_parts(s3: S3Client, store: ScriptedStore) -> None:
    parts = [UploadedPart(n, '"e"', crc64nvme(body), len(body)) for n, body in enumerate((b"one", b"second"), start=1)]
    store.replies.extend([COMPLETED, COMPLETED])
    s3.complete("k", "u", parts)
    s3.complete("k", "u", parts, 5)
    sent = [request.headers["x-amz-checksum-crc64nvme"] for request in store.received]
    assert sent == [b64(crc64nvme(b"onesecond")), b64(5)]
    assert combine_all((part.crc, part.size) for part in parts) == crc64nvme(b"onesecond")


@pytest.mark.parametrize(("reply", "existed"), [(Reply(204), True), (error_reply(404, "NoSuchUpload"), False)])
def test_an_abort_reports_whether_the_upload_existed(
    s3: S3Client, store: ScriptedStore, reply: Reply, existed: bool
) -> None:
    store.replies.append(reply)
    assert s3.abort("k", "u") is existed


def uploads_page(*uploads: tuple[str, str], more: tuple[str, str] | None = None) -> Reply:
    """A page of a list of uploads (key, id); `more`: the markers of the next page."""
    items = "".join(
        f"<Upload><Key>{key}</Key><UploadId>{upload}</UploadId><Initiated>1970-01-01T00:00:01Z</Initiated></Upload>"
        for key, upload in uploads
    )
    markers = (
        "<IsTruncated>false</IsTruncated>"
        if more is None
        else f"<IsTruncated>true</IsTruncated><NextKeyMarker>{more[0]}</NextKeyMarker>"
        f"<NextUploadIdMarker>{more[1]}</NextUploadIdMarker>"
    )
    return Reply(body=f"<ListMultipartUploadsResult>{items}{markers}</ListMultipartUploadsResult>")


def test_no_uploads_are_an_empty_list(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(uploads_page())
    assert list(s3.list_uploads("p/")) == []
    assert query(store, 0) == {"uploads": "", "prefix": "p/", "max-uploads": "1000"}


def test_a_key_whose_uploads_are_on_two_pages_is_listed_once_and_whole(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(uploads_page(("a", "1"), ("b", "2"), more=("b", "2")))
    store.replies.append(uploads_page(("b", "2"), ("b", "3"), ("c", "4")))
    assert list(s3.list_uploads("", page=2)) == [
        Upload("a", "1", 1_000), Upload("b", "2", 1_000), Upload("b", "3", 1_000), Upload("c", "4", 1_000),
    ]  # fmt: skip
    assert (query(store, 1)["key-marker"], "upload-id-marker" in query(store, 1)) == ("a", False)


def test_a_page_with_uploads_of_one_key_is_continued_within_the_key(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(uploads_page(("a", "1"), ("a", "2"), more=("a", "2")))
    store.replies.append(uploads_page(("a", "3")))
    assert [upload.upload_id for upload in s3.list_uploads("", page=2)] == ["1", "2", "3"]
    assert (query(store, 1)["key-marker"], query(store, 1)["upload-id-marker"]) == ("a", "2")


def test_parts_are_listed_over_pages(s3: S3Client, store: ScriptedStore) -> None:
    part = "<Part><PartNumber>{0}</PartNumber><ETag>e{0}</ETag><Size>{0}0</Size></Part>"
    more = "<IsTruncated>true</IsTruncated><NextPartNumberMarker>1</NextPartNumberMarker>"
    store.replies.append(Reply(body=f"<ListPartsResult>{part.format(1)}{more}</ListPartsResult>"))
    store.replies.append(Reply(body=f"<ListPartsResult>{part.format(2)}</ListPartsResult>"))
    assert list(s3.list_parts("k", "u", page=1)) == [(1, "e1", 10), (2, "e2", 20)]
    assert query(store, 1)["part-number-marker"] == "1"


def test_the_parts_of_an_unknown_upload_are_an_error(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(404, "NoSuchUpload"))
    with pytest.raises(NoSuchUpload, match="s3://bucket/k"):
        list(s3.list_parts("k", "u"))
