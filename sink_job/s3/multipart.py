"""Multipart uploads: parts that nobody sees, and the one step that makes an object of them.

An upload belongs to no process: it is named by its key and id, so one process may begin it, others add parts, and
another complete it. Each part is verified by the store when it arrives, the whole object when it is completed, and
completion never replaces an object (`If-None-Match: *`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.parsers import ResponseParserError

from sink_job.s3 import checksums
from sink_job.s3.bucket import millis
from sink_job.s3.errors import NoSuchUpload, NotFound
from sink_job.s3.request_body import Body, ChunkedBody
from sink_job.s3.transport import Transport

__all__ = ["MultipartCalls", "Part", "Upload"]

MAX_PARTS = 10_000
MIN_PART_SIZE = 5 << 20
"""S3's limits: parts an upload, and bytes a part that is not the last."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part as the store acknowledged it: what completion has to name. `crc` is its CRC64NVME, `size` in bytes."""

    number: int
    etag: str
    crc: int
    size: int


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload that is neither completed nor aborted. `initiated_ms` by the store's clock."""

    key: str
    upload_id: str
    initiated_ms: int


class MultipartCalls:
    """The calls on uploads. Each raises, besides what it names, ConfigurationError and TransientError."""

    _transport: Transport

    def create_upload(self, key: str, *, content_type: str | None = None, content_encoding: str | None = None) -> str:
        """Begins an upload and returns its id. If a reply is lost, an upload that nobody knows is left behind."""
        headers: dict[str, Any] = {"ContentType": content_type, "ContentEncoding": content_encoding}
        answer = self._transport.call(
            "create_multipart_upload",
            key=key,
            expects="UploadId",
            ChecksumAlgorithm="CRC64NVME",
            ChecksumType="FULL_OBJECT",
            **{name: value for name, value in headers.items() if value is not None},
        )
        return str(answer["UploadId"])

    def upload_part(self, key: str, upload_id: str, number: int, body: Body, crc: int | None = None) -> Part:
        """Uploads part `number` (from 1); `crc`, if known, is the CRC64NVME of `body`. The same number again replaces
        it.

        Raises NoSuchUpload, and ChecksumMismatch when the store received other bytes than `crc` was computed from.
        """
        pieces = ChunkedBody(body)
        crc = pieces.crc64nvme() if crc is None else crc
        answer = self._transport.call(
            "upload_part",
            key=key,
            expects="ETag",
            body=pieces,
            UploadId=upload_id,
            PartNumber=number,
            ChecksumCRC64NVME=checksums.b64(crc),
        )
        return Part(number=number, etag=answer["ETag"], crc=crc, size=len(pieces))

    def complete(self, key: str, upload_id: str, parts: Sequence[Part], crc: int | None = None) -> str:
        """Makes the object of `parts`, in order of their numbers, and returns its ETag; `crc` is that of the whole
        object (by default combined from the parts').

        Raises PreconditionFailed (there is an object at the key; the upload is still there), NoSuchUpload, InvalidPart,
        EntityTooSmall, ChecksumMismatch, Conflict. After a lost reply the answer to the next try may be
        PreconditionFailed or NoSuchUpload although the object is ours: compare what is stored. A success after a failed
        try is confirmed by a HEAD: a server that was killed inside a completion may answer so although there is no
        object (VersityGW 1.8 does); that is NoSuchUpload.
        """
        whole = checksums.combine_all((part.crc, part.size) for part in parts) if crc is None else crc
        named = [
            {"PartNumber": part.number, "ETag": part.etag, "ChecksumCRC64NVME": checksums.b64(part.crc)}
            for part in parts
        ]
        tries: list[bool] = []

        def attempt(again: bool) -> Mapping[str, Any]:
            tries.append(again)
            answer = self._transport.once(
                "complete_multipart_upload",
                key=key,
                again=again,
                UploadId=upload_id,
                MultipartUpload={"Parts": named},
                IfNoneMatch="*",
                ChecksumCRC64NVME=checksums.b64(whole),
                ChecksumType="FULL_OBJECT",
            )
            if "ETag" not in answer:
                raise ResponseParserError("the answer lacks ETag")
            return answer

        answer = self._transport.persist("complete_multipart_upload", key, attempt)
        if tries[-1]:
            self._expect_object(key)
        return str(answer["ETag"])

    def _expect_object(self, key: str) -> None:
        try:
            self._transport.call("head_object", key=key)
        except NotFound:
            where = f"{self._transport.settings.url}/{key}"
            raise NoSuchUpload(
                f"{where}: the completion succeeded when it was repeated, and no object is there", key
            ) from None

    def abort(self, key: str, upload_id: str) -> bool:
        """Throws an upload and its parts away. False: it was gone already."""
        try:
            self._transport.call("abort_multipart_upload", key=key, UploadId=upload_id)
        except NoSuchUpload:
            return False
        return True

    def list_uploads(self, prefix: str, *, page: int = 1000) -> Iterator[Upload]:
        """The unfinished uploads of keys below `prefix`, by key; pages are fetched as needed."""
        after: dict[str, Any] = {}
        while True:
            answer = self._transport.call("list_multipart_uploads", Prefix=prefix, MaxUploads=page, **after)
            found = [Upload(it["Key"], it["UploadId"], millis(it["Initiated"])) for it in answer.get("Uploads", ())]
            if not answer.get("IsTruncated"):
                yield from found
                return
            whole = _keys_that_ended(found)
            yield from whole or found
            if whole:
                after = {"KeyMarker": whole[-1].key}
            else:
                after = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    def list_parts(self, key: str, upload_id: str, *, page: int = 1000) -> Iterator[tuple[int, str, int]]:
        """Number, ETag and size in bytes of the parts an upload has. Raises NoSuchUpload."""
        params: dict[str, Any] = {"UploadId": upload_id, "MaxParts": page}
        while True:
            answer = self._transport.call("list_parts", key=key, **params)
            for found in answer.get("Parts", ()):
                yield found["PartNumber"], found["ETag"], found["Size"]
            if not answer.get("IsTruncated"):
                return
            params["PartNumberMarker"] = answer["NextPartNumberMarker"]


def _keys_that_ended(page: Sequence[Upload]) -> Sequence[Upload]:
    """The uploads of a page without those of its last key, which may go on in the next one.

    That one then begins with the last key anew: stores differ (VersityGW fails) when they have to go on within a key.
    """
    return [upload for upload in page if upload.key != page[-1].key]
