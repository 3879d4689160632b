"""Multipart uploads: parts are invisible to readers until one request completes the object.

An upload is identified by its key and id and belongs to no process. One process may start it, others may add parts, and
another may complete it. The store verifies each part on arrival and the whole object on completion. Completion never
replaces an object (`If-None-Match: *`), unless the caller names the ETag of the one to replace (`If-Match`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.parsers import ResponseParserError

from sink_job.s3 import checksums
from sink_job.s3.bucket import millis
from sink_job.s3.errors import NoSuchUpload, NotFound
from sink_job.s3.object_lock import lock_parameters
from sink_job.s3.request_body import Body, ChunkedBody
from sink_job.s3.transport import Transport

__all__ = ["MultipartCalls", "Upload", "UploadedPart"]


@dataclass(frozen=True, slots=True)
class UploadedPart:
    """A part that the store has acknowledged. Completion names its number and ETag.

    `number` is from 1 to `sink_job.api.units.s3_limits.MAX_PARTS`, `crc` its CRC64NVME, `size` in bytes.
    """

    number: int
    etag: str
    crc: int
    size: int


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload that is neither completed nor aborted. `initiated_ms` is in ms since the epoch, by the store's
    clock."""

    key: str
    upload_id: str
    initiated_ms: int


class MultipartCalls:
    """The requests about uploads. Each raises ConfigurationError and TransientError, and the errors that it names."""

    _transport: Transport

    def create_upload(
        self,
        key: str,
        *,
        content_type: str | None = None,
        content_encoding: str | None = None,
        temporary: bool = False,
        locked: bool = True,
    ) -> str:
        """Starts an upload of an object, and returns its id. It has the attributes of the settings unless it is
        `temporary`, and their lock if it is also `locked`. After a lost reply an upload with an unknown id remains
        in the store."""
        settings = self._transport.settings
        headers: dict[str, Any] = {
            "ContentType": content_type,
            "ContentEncoding": content_encoding,
            "ACL": settings.acl,
        }
        headers.update((*(() if temporary else settings.attributes), *settings.encryption))
        headers.update({} if temporary or not locked else lock_parameters(settings.lock))
        answer = self._transport.call(
            "create_multipart_upload",
            key=key,
            expects="UploadId",
            ChecksumAlgorithm="CRC64NVME",
            ChecksumType="FULL_OBJECT",
            **{name: value for name, value in headers.items() if value is not None},
        )
        return str(answer["UploadId"])

    def upload_part(self, key: str, upload_id: str, number: int, body: Body, crc: int | None = None) -> UploadedPart:
        """Uploads part `number` (from 1). A part with the same number is replaced.

        `crc` is the CRC64NVME of `body`, if known. Raises NoSuchUpload. Raises ChecksumMismatch if the bytes that the
        store received do not match `crc`.
        """
        chunks = ChunkedBody(body)
        crc = chunks.crc64nvme() if crc is None else crc
        answer = self._transport.call(
            "upload_part",
            key=key,
            expects="ETag",
            body=chunks,
            UploadId=upload_id,
            PartNumber=number,
            ChecksumCRC64NVME=checksums.b64(crc),
        )
        return UploadedPart(number=number, etag=answer["ETag"], crc=crc, size=len(chunks))

    def complete(
        self,
        key: str,
        upload_id: str,
        parts: Sequence[UploadedPart],
        crc: int | None = None,
        *,
        if_match: str | None = None,
    ) -> str:
        """Completes the upload with `parts`, in the order of their numbers, and returns the object's ETag.

        `crc` is the CRC64NVME of the whole object (default: combined from the parts). `if_match` is the ETag of the
        object to replace (None: there must be no object).

        Raises PreconditionFailed if an object exists at the key, or one with another ETag than `if_match`; the upload
        remains. Raises NotFound if the object to replace does not exist. Raises NoSuchUpload, InvalidPart,
        EntityTooSmall, ChecksumMismatch, Conflict.

        After a lost reply, the next attempt may raise PreconditionFailed or NoSuchUpload although this process has
        completed the object: compare the stored object. A success after a failed attempt is confirmed by a HEAD. A
        server that was killed during a completion may report success although no object exists (VersityGW 1.8 does);
        this raises NoSuchUpload.
        """
        object_crc = checksums.combine_all((part.crc, part.size) for part in parts) if crc is None else crc
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if if_match is None else {"IfMatch": if_match}
        retries: list[bool] = []

        def attempt(again: bool) -> Mapping[str, Any]:
            retries.append(again)
            answer = self._transport.once(
                "complete_multipart_upload",
                key=key,
                again=again,
                UploadId=upload_id,
                MultipartUpload={"Parts": [_named(part) for part in parts]},
                ChecksumCRC64NVME=checksums.b64(object_crc),
                ChecksumType="FULL_OBJECT",
                **condition,
            )
            if "ETag" not in answer:
                raise ResponseParserError("the answer lacks ETag")
            return answer

        answer = self._transport.persist("complete_multipart_upload", key, attempt)
        if retries[-1]:
            self._check_exists(key)
        return str(answer["ETag"])

    def _check_exists(self, key: str) -> None:
        try:
            self._transport.call("head_object", key=key)
        except NotFound:
            where = self._transport.settings.url_of(key)
            raise NoSuchUpload(
                f"{where}: the store reported success for a repeated completion, but no object exists", key
            ) from None

    def abort(self, key: str, upload_id: str) -> bool:
        """Aborts an upload and deletes its parts. Returns False if the upload did not exist any more."""
        try:
            self._transport.call("abort_multipart_upload", key=key, UploadId=upload_id)
        except NoSuchUpload:
            return False
        return True

    def list_uploads(self, prefix: str, *, page: int = 1000) -> Iterator[Upload]:
        """The unfinished uploads below `prefix`, ordered by key. Fetches pages of `page` uploads on demand."""
        after: dict[str, Any] = {}
        while True:
            answer = self._transport.call("list_multipart_uploads", Prefix=prefix, MaxUploads=page, **after)
            found = [Upload(it["Key"], it["UploadId"], millis(it["Initiated"])) for it in answer.get("Uploads", ())]
            if not answer.get("IsTruncated"):
                yield from found
                return
            complete = _without_last_key(found)
            yield from complete or found
            if complete:
                after = {"KeyMarker": complete[-1].key}
            else:
                after = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    def list_parts(self, key: str, upload_id: str, *, page: int = 1000) -> Iterator[tuple[int, str, int]]:
        """Number, ETag and size in bytes of each part of an upload. Raises NoSuchUpload."""
        params: dict[str, Any] = {"UploadId": upload_id, "MaxParts": page}
        while True:
            answer = self._transport.call("list_parts", key=key, **params)
            for found in answer.get("Parts", ()):
                yield found["PartNumber"], found["ETag"], found["Size"]
            if not answer.get("IsTruncated"):
                return
            params["PartNumberMarker"] = answer["NextPartNumberMarker"]


def _named(part: UploadedPart) -> Mapping[str, Any]:
    """A part as a completion names it."""
    return {"PartNumber": part.number, "ETag": part.etag, "ChecksumCRC64NVME": checksums.b64(part.crc)}


def _without_last_key(page: Sequence[Upload]) -> Sequence[Upload]:
    """The uploads of a page without those of its last key, which may have more uploads on the next page.

    The next page then starts with the last key. Stores differ in the continuation within a key (VersityGW fails there).
    """
    return [upload for upload in page if upload.key != page[-1].key]
