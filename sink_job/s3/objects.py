"""Whole objects: put, get, head, list, delete. A body carries its CRC64NVME both ways: the store verifies what we send,
we verify what it sends."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from sink_job.api.errors import AccessDenied
from sink_job.s3 import checksums
from sink_job.s3.bucket import BucketCalls, millis
from sink_job.s3.errors import ChecksumMismatch, NotFound
from sink_job.s3.request_body import Body, ChunkedBody

__all__ = ["Head", "Listed", "ObjectCalls", "PutResult"]

_BATCH = 1000
"""S3 deletes so many keys in one request, and lists as many in one answer."""


@dataclass(frozen=True, slots=True)
class PutResult:
    """What the store says about an object it has taken."""

    etag: str


@dataclass(frozen=True, slots=True)
class Head:
    """An object without its bytes. `crc64nvme` is that of the whole object, None if the store keeps none.

    `last_modified_ms` is by the store's clock, cut to whole seconds, as is an upload's `initiated_ms`: of the two, the
    smaller one was earlier; equal ones tell nothing.
    """

    size: int
    crc64nvme: int | None
    etag: str
    last_modified_ms: int


@dataclass(frozen=True, slots=True)
class Listed:
    """An object as a listing names it."""

    key: str
    size: int
    etag: str
    last_modified_ms: int


class ObjectCalls(BucketCalls):
    """The calls on whole objects. Each raises, besides what it names, ConfigurationError and TransientError."""

    def put(self, key: str, body: Body, *, only_if_absent: bool = False, content_type: str | None = None) -> PutResult:
        """Writes an object, verified by its checksum.

        With `only_if_absent`: raises PreconditionFailed when there is one; that may be our own, if the reply to an
        earlier try was lost: compare what is stored. Raises Conflict when another write of the key is under way.
        """
        pieces = ChunkedBody(body)
        params: dict[str, Any] = {"ChecksumCRC64NVME": checksums.b64(pieces.crc64nvme())}
        if only_if_absent:
            params["IfNoneMatch"] = "*"
        if content_type is not None:
            params["ContentType"] = content_type
        answer = self._transport.call("put_object", key=key, body=pieces, expects="ETag", **params)
        return PutResult(etag=answer["ETag"])

    def get(self, key: str) -> bytes:
        """The whole object, in memory. Raises NotFound."""

        return self._read(key, ChecksumMode="ENABLED")

    def get_range(self, key: str, offset: int, length: int, *, etag: str | None = None) -> bytes:
        """`length` bytes of an object from `offset`, in memory; fewer if it ends before, which is for the caller to
        check.

        Raises NotFound when there is no object or it ends before `offset`; PreconditionFailed if its ETag is not
        `etag`.
        """
        if length == 0:
            return b""
        params: dict[str, Any] = {"Range": f"bytes={offset}-{offset + length - 1}"}
        if etag is not None:
            params["IfMatch"] = etag
        return self._read(key, **params)

    def _read(self, key: str, **params: Any) -> bytes:
        def read(again: bool) -> bytes:
            answer = self._transport.once("get_object", key=key, again=again, **params)
            with contextlib.closing(answer["Body"]) as stream:  # what fails while reading is tried again too
                return bytes(stream.read())

        body = self._transport.persist("get_object", key, read)
        self._transport.meter.received(len(body))
        return body

    def stream(self, key: str, *, step: int = 8 << 20) -> Iterator[bytes]:
        """The object in pieces of `step` bytes, each fetched (and tried again) by itself, all of the same version.

        Raises NotFound; PreconditionFailed when the object is replaced meanwhile; ChecksumMismatch at the end if the
        store keeps a checksum of the whole and the bytes are others.
        """
        head = self.head(key)
        if head is None:
            raise NotFound(f"{self._transport.settings.url}/{key}: no such object", key, "NoSuchKey")
        crc = 0
        for start in range(0, head.size, step):
            piece = self.get_range(key, start, min(step, head.size - start), etag=head.etag)
            crc = checksums.crc64nvme(piece, crc)
            yield piece
        if head.crc64nvme not in (None, crc):
            raise ChecksumMismatch(
                f"{self._transport.settings.url}/{key}: the bytes have the checksum {checksums.b64(crc)}, "
                f"the store says {checksums.b64(head.crc64nvme or 0)}",
                key,
            )

    def head(self, key: str) -> Head | None:
        """What the store says about an object; None: there is no such object (in a bucket that is there)."""
        try:
            answer = self._transport.call("head_object", key=key, ChecksumMode="ENABLED")
        except (NotFound, AccessDenied) as error:
            self.check_access()  # a refused HEAD has no body that says why: the bucket or the keys may be wrong, too
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

    def list(self, prefix: str, start_after: str | None = None, *, page: int = _BATCH) -> Iterator[Listed]:
        """The objects below `prefix`, in the order of their keys' bytes, after `start_after`; pages are fetched as
        needed."""
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
        """Deletes objects; those which are not there are no error."""
        left = list(keys)
        for start in range(0, len(left), _BATCH):
            self._delete(left[start : start + _BATCH])

    def _delete(self, keys: Sequence[str]) -> None:
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}

        def attempt(again: bool) -> None:
            answer = self._transport.once("delete_objects", key=None, again=again, Delete=wanted)
            for failed in answer.get("Errors", ()):
                if failed.get("Code") != "NoSuchKey":
                    message = f"{failed['Key']}: {failed.get('Message', '')}"
                    raise ClientError({"Error": {"Code": failed.get("Code", ""), "Message": message}}, "DeleteObjects")

        self._transport.persist("delete_objects", None, attempt)
