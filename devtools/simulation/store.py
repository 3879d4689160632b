"""A bucket with the documented behaviour of S3, at the level of `sink_job.s3.S3Client`: objects, uploads, conditions,
checksums. It injects no faults; `devtools.simulation.client` does.

`tests/simulation/test_store.py` makes the same random calls on this and on a real server.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sink_job.s3 import (
    ChecksumMismatch,
    EntityTooSmall,
    Head,
    InvalidPart,
    Listed,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
    PutResult,
    Upload,
    UploadedPart,
)
from sink_job.s3.checksums import crc64nvme


@dataclass
class Stored:
    """An object. `at` is its modification time in ms, truncated to seconds."""

    body: bytes
    etag: str
    crc: int
    at: int


@dataclass
class Unfinished:
    """An upload and its acknowledged parts by number, with their bytes."""

    key: str
    at: int
    parts: dict[int, tuple[UploadedPart, bytes]] = field(default_factory=dict)


class SimulatedStore:
    """A bucket. `now` is the store's clock (ms). With `lenient` the completion of a missing upload succeeds if an
    object is at its key, as with VersityGW; other stores reply NoSuchUpload."""

    def __init__(self, now: Callable[[], int], *, min_part: int = 5 << 20) -> None:
        """`min_part` is the minimum size in bytes of a part other than the last."""
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Unfinished] = {}
        self.part_names: set[tuple[str, int]] = set()
        """Keys and numbers of all parts that were ever uploaded."""
        self.foreign_etags: Callable[[], str] | None = None
        self.lenient = False
        self.has_offset_tags = False
        self.tags: dict[str, tuple[int, int, int]] = {}
        """The tags of objects: first and last offset, and number of records."""
        self.equal_parts = False
        """Whether a completion needs parts of one size, apart from a smaller last one (Cloudflare R2)."""
        self.on_put: Callable[[str, bytes], None] = lambda key, body: None
        self.on_complete: Callable[[str, bytes], None] = lambda key, body: None
        self.on_create: Callable[[str], None] = lambda upload_id: None
        self.on_abort: Callable[[str, str], None] = lambda key, upload_id: None
        self.on_delete: Callable[[str], None] = lambda key: None
        self._torn: set[str] = set()
        self._keys: list[str] = []
        self._now = now
        self._min_part = min_part
        self._begun = 0

    # -- objects -----------------------------------------------------------------------------------------------------

    def put(self, key: str, body: bytes, *, only_if_absent: bool = False, if_match: str | None = None) -> PutResult:
        """`if_match`: the ETag of the object that is replaced."""
        if only_if_absent and key in self.objects:
            raise PreconditionFailed(f"{key}: there is an object", key, "PreconditionFailed")
        if if_match is not None and self._object(key).etag != if_match:
            raise PreconditionFailed(f"{key}: another object", key, "PreconditionFailed")
        stored = Stored(body, _etag(body), crc64nvme(body), self.second())
        self._add(key, stored)
        self.on_put(key, body)
        return PutResult(stored.etag)

    def get(self, key: str) -> bytes:
        return self._object(key).body

    def get_range(self, key: str, offset: int, length: int, etag: str | None = None) -> bytes:
        stored = self._object(key)
        if etag is not None and stored.etag != etag:
            raise PreconditionFailed(f"{key}: another object", key, "PreconditionFailed")
        if offset >= len(stored.body):
            raise NotFound(f"{key}: ends before {offset}", key, "InvalidRange")
        return stored.body[offset : offset + length]

    def head(self, key: str) -> Head | None:
        stored = self.objects.get(key)
        if stored is None:
            return None
        return Head(size=len(stored.body), crc64nvme=stored.crc, etag=stored.etag, last_modified_ms=stored.at)

    def page(self, prefix: str, after: str | None, limit: int) -> list[Listed]:
        """The first `limit` objects below `prefix` after the key `after`."""
        start = prefix if after is None or after < prefix else after + "\0"
        found: list[Listed] = []
        for index in range(bisect_left(self._keys, start), len(self._keys)):
            key = self._keys[index]
            if not key.startswith(prefix) or len(found) == limit:
                break
            stored = self.objects[key]
            found.append(Listed(key, len(stored.body), stored.etag, stored.at))
        return found

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self.objects:
                self.on_delete(key)
            self.take(key)

    def take(self, key: str) -> Stored | None:
        """Removes an object and returns it; None if it does not exist."""
        stored = self.objects.pop(key, None)
        if stored is not None:
            del self._keys[bisect_left(self._keys, key)]
        return stored

    def put_back(self, key: str, stored: Stored) -> None:
        self._add(key, stored)

    # -- uploads -----------------------------------------------------------------------------------------------------

    def create_upload(self, key: str) -> str:
        self._begun += 1
        upload_id = f"upload-{self._begun}"
        self.uploads[upload_id] = Unfinished(key, self.second())
        self.on_create(upload_id)
        return upload_id

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes, crc: int | None) -> UploadedPart:
        upload = self._upload(key, upload_id)
        actual = crc64nvme(body)
        if crc is not None and crc != actual:
            raise ChecksumMismatch(f"{key}: part {number} has other bytes", key, "BadDigest")
        etag = _etag(body) if self.foreign_etags is None else self.foreign_etags()
        part = UploadedPart(number=number, etag=etag, crc=actual, size=len(body))
        upload.parts[number] = (part, body)
        self.part_names.add((key, number))
        return part

    def complete(
        self, key: str, upload_id: str, parts: Sequence[UploadedPart], crc: int, *, if_match: str | None = None
    ) -> str:
        """`if_match`: the ETag of the object that is replaced."""
        if upload_id in self._torn or (self.lenient and upload_id not in self.uploads and key in self.objects):
            return _etag_of(parts)
        body = self._body(key, upload_id, parts, crc, if_match)
        etag = _etag_of(parts)
        del self.uploads[upload_id]
        self._add(key, Stored(body, etag, crc, self.second()))
        self.on_complete(key, body)
        return etag

    def tear(
        self, key: str, upload_id: str, parts: Sequence[UploadedPart], crc: int, *, if_match: str | None = None
    ) -> None:
        """The server is killed inside this completion: the upload is gone and there is no object, but each later
        completion of the upload succeeds (VersityGW 1.8). Raises as `complete`."""
        self._body(key, upload_id, parts, crc, if_match)
        del self.uploads[upload_id]
        self._torn.add(upload_id)

    def _body(self, key: str, upload_id: str, parts: Sequence[UploadedPart], crc: int, if_match: str | None) -> bytes:
        upload = self._upload(key, upload_id)
        if if_match is not None and self._object(key).etag != if_match:
            raise PreconditionFailed(f"{key}: another object", key, "PreconditionFailed")
        if if_match is None and key in self.objects:
            raise PreconditionFailed(f"{key}: there is an object", key, "PreconditionFailed")
        self._check(key, upload, parts)
        body = b"".join(upload.parts[part.number][1] for part in parts)
        if crc64nvme(body) != crc:
            raise ChecksumMismatch(f"{key}: the parts have another checksum", key, "BadDigest")
        return body

    def _check(self, key: str, upload: Unfinished, parts: Sequence[UploadedPart]) -> None:
        if not parts:
            raise InvalidPart(f"{key}: no part is named", key, "InvalidPart")
        for index, part in enumerate(parts, start=1):
            stored = upload.parts.get(part.number)
            if stored is None or stored[0].etag != part.etag or stored[0].crc != part.crc:
                raise InvalidPart(f"{key}: part {part.number} is another one", key, "InvalidPart")
            if index < len(parts) and stored[0].size < self._min_part:
                raise EntityTooSmall(f"{key}: part {part.number} is too small", key, "EntityTooSmall")
        if self.equal_parts:
            first, *others, last = [parts[0].size, *(part.size for part in parts)]
            if any(size != first for size in others) or last > first:
                raise InvalidPart(f"{key}: all parts but the last must have one size", key, "InvalidPart")

    def abort(self, key: str, upload_id: str) -> bool:
        found = self.uploads.get(upload_id)
        if found is None or found.key != key:
            return False
        self.on_abort(key, upload_id)
        del self.uploads[upload_id]
        return True

    def list_uploads(self, prefix: str) -> list[Upload]:
        found = [Upload(u.key, upload_id, u.at) for upload_id, u in self.uploads.items() if u.key.startswith(prefix)]
        return sorted(found, key=lambda upload: upload.key)

    def tag(self, key: str, tags: tuple[int, int, int]) -> None:
        self.tags[key] = tags

    # -- helpers -----------------------------------------------------------------------------------------------------

    def second(self) -> int:
        return self._now() // 1000 * 1000

    def _add(self, key: str, stored: Stored) -> None:
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = stored

    def _object(self, key: str) -> Stored:
        stored = self.objects.get(key)
        if stored is None:
            raise NotFound(f"{key}: no such object", key, "NoSuchKey")
        return stored

    def _upload(self, key: str, upload_id: str) -> Unfinished:
        upload = self.uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise NoSuchUpload(f"{key}: no such upload", key, "NoSuchUpload")
        return upload


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _etag_of(parts: Sequence[UploadedPart]) -> str:
    digests = b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts)
    return f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"'
