"""Whole objects: put, get, head, list, delete.

Content has its CRC64NVME in both directions: the store verifies uploads, and the client verifies downloads.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from botocore.exceptions import ClientError

from sink_job.api.errors import AccessDenied
from sink_job.s3 import checksums
from sink_job.s3.bucket import BucketCalls, millis
from sink_job.s3.errors import ChecksumMismatch, NotFound
from sink_job.s3.request_body import Body, ChunkedBody
from sink_job.s3.transport import Transport

__all__ = ["Head", "Listed", "ObjectCalls", "PutResult"]

CUSTOMER = "SSE-C"
"""Encryption with a key of the customer."""
_BATCH = 1000
"""S3's maximum number of keys per delete request and per page of a listing."""


@dataclass(frozen=True, slots=True)
class PutResult:
    """The store's answer to a put."""

    etag: str


@dataclass(frozen=True, slots=True)
class Head:
    """The metadata of an object. `size` is in bytes; `crc64nvme` is of the whole object, None if the store has none.

    `last_modified_ms` is in ms since the epoch, by the store's clock and truncated to seconds, like an upload's
    `initiated_ms`. Of two different times the smaller one was earlier. Equal times do not have an order.
    """

    size: int
    crc64nvme: int | None
    etag: str
    last_modified_ms: int


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of a listing. `size` is in bytes, `last_modified_ms` in ms since the epoch."""

    key: str
    size: int
    etag: str
    last_modified_ms: int


class ObjectCalls(BucketCalls):
    """The requests about objects. Each raises ConfigurationError and TransientError, and the errors that it names."""

    def put(
        self,
        key: str,
        body: Body,
        *,
        only_if_absent: bool = False,
        if_match: str | None = None,
        content_type: str | None = None,
    ) -> PutResult:
        """Writes an object. The store verifies its checksum.

        With `only_if_absent`: raises PreconditionFailed if an object exists. After a lost reply that object may be from
        this call: compare the stored object. Raises Conflict if another write of the key is in progress.
        With `if_match`: raises PreconditionFailed if no object with this ETag exists, also after a lost reply.
        """
        content = ChunkedBody(body)
        params: dict[str, Any] = {"ChecksumCRC64NVME": checksums.b64(content.crc64nvme())}
        params.update(self._transport.settings.encryption)
        if self._transport.settings.acl is not None:
            params["ACL"] = self._transport.settings.acl
        if only_if_absent:
            params["IfNoneMatch"] = "*"
        if if_match is not None:
            params["IfMatch"] = if_match
        if content_type is not None:
            params["ContentType"] = content_type
        answer = self._transport.call("put_object", key=key, body=content, expects="ETag", **params)
        return PutResult(etag=answer["ETag"])

    def get(self, key: str) -> bytes:
        """The whole object, in memory. Raises NotFound."""
        return self._read(key, ChecksumMode="ENABLED")

    def get_range(
        self, key: str, offset: int, length: int, *, etag: str | None = None, version: str | None = None
    ) -> bytes:
        """`length` bytes of an object, or of this version of it, from byte `offset` on, in memory. Fewer bytes if the
        object ends earlier; the caller must check this.

        Raises NotFound if the object does not exist or ends at or before `offset`. Raises PreconditionFailed if its
        ETag is not `etag`.
        """
        if length == 0:
            return b""
        params: dict[str, Any] = {"Range": f"bytes={offset}-{offset + length - 1}"}
        if etag is not None:
            params["IfMatch"] = etag
        if version is not None:
            params["VersionId"] = version
        return self._read(key, **params)

    def _read(self, key: str, **params: Any) -> bytes:
        def read(again: bool) -> bytes:
            answer = self._transport.once("get_object", key=key, again=again, **params)
            with contextlib.closing(answer["Body"]) as stream:  # a failure of the read is retried, too
                return bytes(stream.read())

        content = self._transport.persist("get_object", key, read)
        self._transport.meter.received(len(content))
        return content

    def stream(self, key: str, *, step: int = 8 << 20) -> Iterator[bytes]:
        """The object in chunks of `step` bytes. Each chunk is fetched and retried separately; all are of one version.

        Raises NotFound. Raises PreconditionFailed if the object is replaced during the read. Raises ChecksumMismatch at
        the end if the bytes do not match the object's CRC64NVME.
        """
        head = self.head(key)
        if head is None:
            raise NotFound(f"{self._transport.settings.url_of(key)}: no such object", key, "NoSuchKey")
        crc = 0
        for start in range(0, head.size, step):
            chunk = self.get_range(key, start, min(step, head.size - start), etag=head.etag)
            crc = checksums.crc64nvme(chunk, crc)
            yield chunk
        if head.crc64nvme not in (None, crc):
            raise ChecksumMismatch(
                f"{self._transport.settings.url_of(key)}: the CRC64NVME of the downloaded bytes is "
                f"{checksums.b64(crc)}, the store reports {checksums.b64(head.crc64nvme or 0)}. Try again; "
                "if it repeats, the stored object is damaged.",
                key,
            )

    def head(self, key: str) -> Head | None:
        """The metadata of an object; None if the bucket exists and the object does not."""
        try:
            answer = self._transport.call("head_object", key=key, ChecksumMode="ENABLED")
        except (NotFound, AccessDenied) as error:
            self._list_one(self._transport.for_key(key))  # a HEAD has no error code: check bucket and credentials
            if isinstance(error, NotFound):
                return None
            raise
        crc = answer.get("ChecksumCRC64NVME") if answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT" else None
        return Head(
            size=answer["ContentLength"],
            crc64nvme=None if crc is None else checksums.from_b64(crc),
            etag=answer["ETag"],
            last_modified_ms=millis(answer["LastModified"]),
        )

    def encryption_of(self, key: str) -> str:
        """How the store says that an object is encrypted, such as `aws:kms` or CUSTOMER; empty if it does not. Raises
        NotFound."""
        answer = self._transport.call("head_object", key=key)
        return CUSTOMER if "SSECustomerAlgorithm" in answer else str(answer.get("ServerSideEncryption", ""))

    def ignored_attributes(self, key: str) -> Sequence[str]:
        """The fields of `spec.s3` that the store has not applied to an object: storageClass and tags. It does not check
        acl. Raises NotFound, and AccessDenied without s3:GetObjectTagging."""
        expected, found = dict(self._transport.settings.attributes), []
        storage_class = expected.get("StorageClass")
        if storage_class is not None:
            answer = self._transport.call("head_object", key=key)
            if answer.get("StorageClass", "STANDARD") != storage_class:
                found.append("storageClass")
        if "Tagging" in expected:
            answer = self._transport.call("get_object_tagging", key=key)
            if {(tag["Key"], tag["Value"]) for tag in answer["TagSet"]} != set(
                parse_qsl(expected["Tagging"], keep_blank_values=True)
            ):
                found.append("tags")
        return found

    def list(self, prefix: str, start_after: str | None = None, *, page: int = _BATCH) -> Iterator[Listed]:
        """The objects below `prefix` whose keys are after `start_after`, in the order of the keys' bytes. Fetches pages
        of `page` objects on demand."""
        params: dict[str, Any] = {"Prefix": prefix, "MaxKeys": page}
        if start_after is not None:
            params["StartAfter"] = start_after
        while True:
            answer = self._transport.call("list_objects_v2", **params)
            for found in answer.get("Contents", ()):
                yield Listed(found["Key"], found["Size"], found.get("ETag", ""), millis(found["LastModified"]))
            if not answer.get("IsTruncated"):
                return
            params["ContinuationToken"] = answer["NextContinuationToken"]

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes objects. A key without an object is no error."""
        by_bucket: dict[Transport, list[str]] = {}
        for key in keys:
            by_bucket.setdefault(self._transport.for_key(key), []).append(key)
        for transport, remaining in by_bucket.items():
            for start in range(0, len(remaining), _BATCH):
                self._delete(transport, remaining[start : start + _BATCH])

    def _delete(self, _transport: Transport, keys: Sequence[str]) -> None:
        objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}

        def attempt(again: bool) -> None:
            answer = _transport.once("delete_objects", key=None, again=again, Delete=objects)
            for failed in answer.get("Errors", ()):
                if failed.get("Code") != "NoSuchKey":
                    message = f"{failed['Key']}: {failed.get('Message', '')}"
                    raise ClientError({"Error": {"Code": failed.get("Code", ""), "Message": message}}, "DeleteObjects")

        _transport.persist("delete_objects", None, attempt)
