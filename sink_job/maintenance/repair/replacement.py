"""Completes the upload of an object's recorded bytes, over what is at its key.

A missing object is completed with `If-None-Match: *`, a damaged one is replaced with `If-Match` on the ETag that was
read, after its bytes were kept. So an object that another program writes meanwhile is never replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sink_job.api.errors import AccessDenied, ConfigurationError, UnsupportedStore
from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.inspection import StoredState, inspect
from sink_job.maintenance.repair.kept_bytes import keep
from sink_job.s3 import PreconditionFailed, S3Client, S3Outcome, UploadedPart


@dataclass(frozen=True)
class RecordedBytes:
    """An upload with exactly the recorded bytes of an object. Its parts are those of the ledger."""

    upload: str
    parts: Sequence[UploadedPart]


@dataclass(frozen=True)
class Replaced:
    """Whether the object has its recorded bytes now, the key of the copy of its damaged bytes, and the store's error if
    it has rejected the completion for a reason that is none of its outcomes."""

    is_right: bool
    kept: str | None = None
    rejected: ConfigurationError | None = None


def complete(s3: S3Client, root: str, o: ClosedObject, stored: StoredState, content: RecordedBytes) -> Replaced:
    """Completes the upload over `stored`. If the key holds something else meanwhile, or the upload is gone, the upload
    is aborted, and the caller inspects the key again. `root` is the ledger's prefix."""
    kept = None
    try:
        if stored.etag is not None:
            kept = keep(s3, root, o.key, stored.etag, stored.size)
        try:
            s3.complete(o.key, content.upload, content.parts, o.crc, if_match=stored.etag)
        except PreconditionFailed:
            if stored.etag is not None or not _complete_over_delete_marker(s3, o, content):
                raise
    except S3Outcome:
        s3.abort(o.key, content.upload)
        return Replaced(False, kept)
    except ConfigurationError as error:
        # VersityGW 1.8 answers InvalidRequest if another process aborts the upload during its completion.
        s3.abort(o.key, content.upload)
        if type(error) is not ConfigurationError:
            raise
        return Replaced(False, kept, error)
    return Replaced(inspect(s3, o, reads=False).damage is None, kept)


def _complete_over_delete_marker(s3: S3Client, o: ClosedObject, content: RecordedBytes) -> bool:
    """Completes the upload of an object that does not exist, although the store rejects `If-None-Match: *`; returns
    False if there is an object, or no older version.

    For VersityGW 1.8 a delete marker is an object with the ETag of the version before it. On Amazon S3 it is none, so
    the first completion succeeds; this one would be rejected.
    """
    if s3.head(o.key) is not None:
        return False
    try:
        versions = s3.versions(o.key)
    except (AccessDenied, UnsupportedStore):
        return False
    if not versions:
        return False
    s3.complete(o.key, content.upload, content.parts, o.crc, if_match=versions[0].etag)
    return True
