"""A bucket in memory with the calls of `sink_job.s3.S3Client` that a sink uses, and faults that a test injects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from sink_job.s3 import (
    Head,
    InvalidPart,
    Listed,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
    PutResult,
    RequestMetrics,
    S3Client,
    S3Settings,
    Upload,
    UploadedPart,
    Version,
)
from sink_job.s3.checksums import crc64nvme
from sink_job.s3.object_lock import BucketLock
from sink_job.s3.request_body import Body, ChunkedBody

NOW = 1_700_000_000_000
Fault = Callable[[str, str], None]
"""Called with the name and key of each call before it is executed; an exception is the store's reply."""


def _no_fault(call: str, key: str) -> None:
    pass


@dataclass
class _Stored:
    body: bytes
    etag: str
    at: int


@dataclass
class _Upload:
    key: str
    at: int
    parts: dict[int, bytes] = field(default_factory=dict)


class MemoryS3:
    """One bucket. Its clock advances by a second with each change, which orders all changes. With `keeps_history` it
    keeps the versions of objects."""

    bucket = "archive"
    url = "s3://archive"
    settings = S3Settings(bucket="archive")

    @property
    def of_ledger(self) -> MemoryS3:
        return self

    def url_of(self, key: str) -> str:
        return self.settings.url_of(key)

    def __init__(self) -> None:
        self.meter = RequestMetrics()
        self.fault: Fault = _no_fault
        self.objects: dict[str, _Stored] = {}
        self.keeps_history = False
        self.history: dict[str, list[_Stored]] = {}
        self.uploads: dict[str, _Upload] = {}
        self.lock = BucketLock()
        self.has_offset_tags = False
        self.tags: dict[str, tuple[int, int, int]] = {}
        self.equal_parts = False
        """Whether a completion needs parts of one size, apart from a smaller last one."""
        self._changes = 0

    def _change(self) -> int:
        self._changes += 1
        return NOW + 1_000 * self._changes

    # -- objects -----------------------------------------------------------------------------------------------------

    def put(
        self,
        key: str,
        body: bytes | Sequence[bytes],
        *,
        only_if_absent: bool = False,
        if_match: str | None = None,
        content_type: str | None = None,
    ) -> PutResult:
        self.fault("put", key)
        if if_match is not None and (key not in self.objects or self.objects[key].etag != if_match):
            raise PreconditionFailed(key, key)
        if only_if_absent and key in self.objects:
            raise PreconditionFailed(key, key)
        whole = body if isinstance(body, bytes) else b"".join(body)
        return PutResult(self._store(key, whole).etag)

    def _store(self, key: str, body: bytes) -> _Stored:
        self.objects[key] = _Stored(body, _etag(body), self._change())
        self.tags.pop(key, None)
        if self.keeps_history:
            self.history.setdefault(key, []).append(self.objects[key])
        return self.objects[key]

    def get(self, key: str) -> bytes:
        self.fault("get", key)
        return self._stored(key).body

    def get_range(
        self, key: str, offset: int, length: int, *, etag: str | None = None, version: str | None = None
    ) -> bytes:
        self.fault("get_range", key)
        stored = self._stored(key) if version is None else self._version(key, version)
        if etag is not None and stored.etag != etag:
            raise PreconditionFailed(key, key)
        return stored.body[offset : offset + length]

    def versions(self, key: str) -> Sequence[Version]:
        self.fault("versions", key)
        return [
            Version(key, str(stored.at), len(stored.body), stored.etag, stored.at, stored is self.objects.get(key))
            for stored in reversed(self.history.get(key, []))
        ]

    def _version(self, key: str, version: str) -> _Stored:
        for stored in self.history.get(key, []):
            if str(stored.at) == version:
                return stored
        raise NotFound(key, key)

    def stream(self, key: str, *, step: int = 8 << 20) -> Iterator[bytes]:
        body = self.get(key)
        for start in range(0, len(body), step):
            yield body[start : start + step]

    def head(self, key: str) -> Head | None:
        self.fault("head", key)
        if key not in self.objects:
            return None
        stored = self.objects[key]
        return Head(len(stored.body), crc64nvme(stored.body), stored.etag, stored.at)

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[Listed]:
        self.fault("list", prefix)
        for key in sorted(self.objects):
            if key.startswith(prefix) and key > (start_after or ""):
                yield Listed(key, len(self.objects[key].body), self.objects[key].etag, self.objects[key].at)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.fault("delete", key)
            self.objects.pop(key, None)

    def _stored(self, key: str) -> _Stored:
        if key not in self.objects:
            raise NotFound(key, key, "NoSuchKey")
        return self.objects[key]

    # -- uploads -----------------------------------------------------------------------------------------------------

    def create_upload(self, key: str, *, temporary: bool = False, locked: bool = True) -> str:
        self.fault("create_upload", key)
        at = self._change()
        self.uploads[f"upload-{at}"] = _Upload(key, at)
        return f"upload-{at}"

    def upload_part(self, key: str, upload_id: str, number: int, body: Body, crc: int | None = None) -> UploadedPart:
        self.fault("upload_part", key)
        data = bytes(ChunkedBody(body).read())
        self._upload(upload_id).parts[number] = data
        return UploadedPart(number, _etag(data), crc64nvme(data), len(data))

    def complete(
        self,
        key: str,
        upload_id: str,
        parts: Sequence[UploadedPart],
        crc: int | None = None,
        *,
        if_match: str | None = None,
    ) -> str:
        self.fault("complete", key)
        upload = self._upload(upload_id)
        if if_match is not None and key not in self.objects:
            raise NotFound(key, key)
        if key in self.objects and self.objects[key].etag != if_match:
            raise PreconditionFailed(key, key)
        if any(_etag(upload.parts.get(part.number, b"")) != part.etag for part in parts):
            raise InvalidPart(key, key)
        if self.equal_parts and (len({p.size for p in parts[:-1]}) > 1 or parts[-1].size > parts[0].size):
            raise InvalidPart("All non-trailing parts must have the same length", key)
        body = b"".join(upload.parts[part.number] for part in parts)
        del self.uploads[upload_id]
        return self._store(key, body).etag

    def tag_offsets(self, key: str, first: int, last: int, count: int) -> None:
        """As a client with offsetTags does, if `has_offset_tags` is set."""
        if self.has_offset_tags:
            self.fault("tag", key)
            self.tags[key] = first, last, count

    def abort(self, key: str, upload_id: str) -> bool:
        self.fault("abort", key)
        return self.uploads.pop(upload_id, None) is not None

    def list_uploads(self, prefix: str) -> Iterator[Upload]:
        self.fault("list_uploads", prefix)
        for upload_id, upload in sorted(self.uploads.items()):
            if upload.key.startswith(prefix):
                yield Upload(upload.key, upload_id, upload.at)

    def _upload(self, upload_id: str) -> _Upload:
        if upload_id not in self.uploads:
            raise NoSuchUpload(upload_id)
        return self.uploads[upload_id]

    # -- the bucket --------------------------------------------------------------------------------------------------

    def check_access(self) -> None:
        self.fault("check_access", "")

    def bucket_lock(self) -> BucketLock:
        self.fault("bucket_lock", "")
        return self.lock

    def clock_ms(self) -> int | None:
        """The store sends no `Date`."""
        return None

    def server_now_ms(self) -> int:
        return NOW + 1_000 * self._changes


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def as_client(memory: MemoryS3) -> S3Client:
    """The bucket with the type of a client."""
    return cast("S3Client", memory)
