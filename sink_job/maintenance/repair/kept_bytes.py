"""Keeps the bytes of a damaged object below the ledger's folder before it is replaced.

The copy is at `repair/damaged/<key of the object>/<ETag>`, with a number if different bytes with this ETag are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from sink_job.api.errors import TransientError
from sink_job.partitioning.object_keys import MAX_KEY_BYTES
from sink_job.s3 import Conflict, PreconditionFailed, S3Client, S3Outcome, UploadedPart
from sink_job.s3.checksums import combine_all, crc64nvme

PART_BYTES = 8 << 20
MAX_PARTS = 9_000
MAX_COPIES = 100
"""Maximum number of copies of different bytes with the same ETag."""
_LONGEST_SUFFIX = 80
"""Bytes of an ETag and a number at the end of a key."""

DAMAGED = "repair/damaged/"


def folder_of(root: str, key: str) -> str:
    """The prefix of the copies of an object's damaged bytes; a digest replaces a key that is too long."""
    folder = f"{root}{DAMAGED}{key}/"
    if len(folder.encode()) + _LONGEST_SUFFIX <= MAX_KEY_BYTES:
        return folder
    return f"{root}{DAMAGED}sha256={hashlib.sha256(key.encode()).hexdigest()}/"


def keep(s3: S3Client, root: str, key: str, etag: str, size: int) -> str:
    """Copies the object with this ETag; returns the key of the copy. A copy with the same bytes is not written again.

    Raises S3Outcome if the object is another one now, or if another command works on the copy.
    """
    name = folder_of(root, key) + etag.strip('"')
    for number in range(1, MAX_COPIES + 1):
        target = name if number == 1 else f"{name}-{number}"
        crc = _copy(s3, key, etag, size, target)
        stored = None if crc is None else s3.head(target)
        if crc is None or (stored and (stored.size, stored.crc64nvme) in ((size, crc), (size, None))):
            return target
    raise TransientError(
        f"{s3.url_of(name)}: {MAX_COPIES} copies of other damaged bytes are there, or other commands write and "
        "discard them at the same time. Run s3sink repair --discard-damaged, then repeat this command"
    )


def kept(s3: S3Client, root: str, keys: Collection[str] = ()) -> Iterator[tuple[str, int]]:
    """Key and size of all copies, or of those of the objects `keys`."""
    for prefix in [folder_of(root, key) for key in keys] or [f"{root}{DAMAGED}"]:
        for listed in s3.list(prefix):
            yield listed.key, listed.size


def _copy(s3: S3Client, key: str, etag: str, size: int, target: str) -> int | None:
    """Copies the bytes to `target`, if nothing is there; else returns their CRC64NVME."""
    if size <= PART_BYTES:
        content = s3.get_range(key, 0, size, etag=etag) if size else b""
        # A store may reject a put at its head and close the connection: the reply is lost while the body is sent.
        if s3.head(target) is not None:
            return crc64nvme(content)
        try:
            s3.put(target, content, only_if_absent=True)
        except (PreconditionFailed, Conflict):
            return crc64nvme(content)
        return None
    step = max(PART_BYTES, -(-size // MAX_PARTS))
    upload = s3.create_upload(target, temporary=True)
    parts: list[UploadedPart] = []
    try:
        for start in range(0, size, step):
            content = s3.get_range(key, start, min(step, size - start), etag=etag)
            parts.append(s3.upload_part(target, upload, len(parts) + 1, content))
        s3.complete(target, upload, parts)
    except PreconditionFailed:
        s3.abort(target, upload)
        if sum(part.size for part in parts) != size:
            raise
        return combine_all((part.crc, part.size) for part in parts)
    except S3Outcome:
        s3.abort(target, upload)
        raise
    return None
