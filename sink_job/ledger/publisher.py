"""Making objects visible: completing the uploads that a record has named, however often it takes (P9).

Completion is conditional (`If-None-Match: *`) and names the recorded parts and the whole object's checksum, so it can
be tried again by anyone at any time. What stands at the key decides, not what a reply said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from concurrent.futures import Executor
from enum import Enum, auto

from sink_job.api.errors import ObjectConflict
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import (
    ChecksumMismatch,
    Conflict,
    EntityTooSmall,
    Head,
    InvalidPart,
    NoSuchUpload,
    NotFound,
    Part,
    PreconditionFailed,
    S3Client,
)


class PublishOutcome(Enum):
    """What became of a named object."""

    VISIBLE = auto()
    LOST = auto()


def publish_all(
    s3: S3Client, objects: Iterable[ClosedObject], pool: Executor, tried: Container[str] = frozenset()
) -> dict[str, PublishOutcome]:
    """Completes each object; by key what became of it. One that is neither uploaded nor at its key is lost. `tried` are
    the keys whose completion another driver may have tried before: a success is confirmed by what is stored.

    Raises ObjectConflict when a key holds other content; the other objects have been tried by then.
    """
    todo = list(objects)
    futures = [pool.submit(publish, s3, o, o.key in tried) for o in todo]
    failures = [error for error in (future.exception() for future in futures) if error is not None]
    if failures:
        raise failures[0]
    return {o.key: future.result() for o, future in zip(todo, futures, strict=True)}


def publish(s3: S3Client, o: ClosedObject, was_tried: bool = False) -> PublishOutcome:
    """Completes one object; see `publish_all`."""
    try:
        s3.complete(o.key, o.upload, [Part(p.number, p.etag, p.crc, p.size) for p in o.parts], o.crc)
    except PreconditionFailed:
        outcome = _resolve_existing(s3, o)
        s3.abort(o.key, o.upload)
        return outcome
    except NoSuchUpload:
        return _resolve_existing(s3, o)
    except (InvalidPart, EntityTooSmall, ChecksumMismatch, Conflict, NotFound):
        s3.abort(o.key, o.upload)  # before it is made again: nobody may complete it any more
        return _resolve_existing(s3, o)
    return _resolve_existing(s3, o) if was_tried else PublishOutcome.VISIBLE


def _resolve_existing(s3: S3Client, o: ClosedObject) -> PublishOutcome:
    """The outcome by what is stored at the object's key, whatever the completion's reply. Raises ObjectConflict."""
    stored = s3.head(o.key)
    if stored is None:
        return PublishOutcome.LOST
    if not equals(o, stored):
        raise ObjectConflict(
            f"s3://{s3.bucket}/{o.key} holds other content than records {o.first} to {o.last} of "
            f"{o.topic}-{o.partition} ({stored.size} bytes there, {o.bytes} ours). Nothing was "
            "overwritten. Find out who wrote it, move it away, then start the sink again."
        )
    return PublishOutcome.VISIBLE


def equals(o: ClosedObject, stored: Head) -> bool:
    """Whether the stored object is `o`: by size and checksum of the whole, or by ETag where the store keeps none."""
    if stored.size != o.bytes:
        return False
    if stored.crc64nvme is not None:
        return stored.crc64nvme == o.crc
    return stored.etag.strip('"') == multipart_etag(o)


def multipart_etag(o: ClosedObject) -> str | None:
    """The ETag that S3 gives a multipart object: the MD5 of its parts' MD5s, and their number. None where the store's
    ETags are something else."""
    try:
        digests = b"".join(bytes.fromhex(p.etag.strip('"')) for p in o.parts)
    except ValueError:
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(o.parts)}"
