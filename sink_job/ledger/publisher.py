"""Publishes closed objects: completes their multipart uploads, idempotently (P9).

A completion is conditional (`If-None-Match: *`) and lists the recorded parts and the checksum of the whole object. Any
driver can repeat it at any time. The object at the key decides the outcome, not the response to the request.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from concurrent.futures import Executor
from enum import Enum, auto

from sink_job.api.errors import ObjectConflict
from sink_job.ledger.state import ClosedObject
from sink_job.ledger.stored_object import compare_stored
from sink_job.partitioning.object_keys import is_temporary
from sink_job.s3 import (
    ChecksumMismatch,
    Conflict,
    EntityTooSmall,
    InvalidPart,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
    S3Client,
    UploadedPart,
)


class PublishOutcome(Enum):
    """The outcome of publishing an object."""

    VISIBLE = auto()
    """The object is at its key."""

    LOST = auto()
    """Neither the upload nor the object exists."""


def publish_all(
    s3: S3Client, objects: Iterable[ClosedObject], pool: Executor, tried: Container[str] = frozenset()
) -> dict[str, PublishOutcome]:
    """Completes each object and returns the outcomes by key.

    `tried` are the keys that another driver may have completed already: a successful response for them is confirmed by
    a HEAD request. Raises ObjectConflict when a key holds a different object; all other objects were tried by then.
    """
    todo = list(objects)
    futures = [pool.submit(publish, s3, o, o.key in tried) for o in todo]
    failures = [error for error in (future.exception() for future in futures) if error is not None]
    if failures:
        raise failures[0]
    return {o.key: future.result() for o, future in zip(todo, futures, strict=True)}


def publish(s3: S3Client, o: ClosedObject, was_tried: bool = False) -> PublishOutcome:
    """Completes one object; see `publish_all`. Before it counts as visible, it has the tags with its offsets."""
    outcome = _complete(s3, o, was_tried)
    if outcome is PublishOutcome.VISIBLE and not is_temporary(o.path, o.key):
        s3.tag_offsets(o.key, o.first, o.last, o.offsets.count)
    return outcome


def _complete(s3: S3Client, o: ClosedObject, was_tried: bool) -> PublishOutcome:
    try:
        s3.complete(o.key, o.upload, [UploadedPart(p.number, p.etag, p.crc, p.size) for p in o.parts], o.crc)
    except PreconditionFailed:
        outcome = _resolve_existing(s3, o)
        s3.abort(o.key, o.upload)
        return outcome
    except NoSuchUpload:
        return _resolve_existing(s3, o)
    except (InvalidPart, EntityTooSmall, ChecksumMismatch, Conflict, NotFound):
        s3.abort(o.key, o.upload)  # no driver may complete this upload after the object was rebuilt
        return _resolve_existing(s3, o)
    return _resolve_existing(s3, o) if was_tried else PublishOutcome.VISIBLE


def _resolve_existing(s3: S3Client, o: ClosedObject) -> PublishOutcome:
    """The outcome by the object at the key. Raises ObjectConflict."""
    stored = s3.head(o.key)
    if stored is None:
        return PublishOutcome.LOST
    difference = compare_stored(o, stored)
    if difference is not None:
        raise ObjectConflict(
            f"{s3.url_of(o.key)} holds other content than records {o.first} to {o.last} of "
            f"{o.topic}-{o.partition} ({difference}). Nothing was overwritten. Find out which program wrote it, move "
            "it away, then start the sink again."
        )
    return PublishOutcome.VISIBLE
