"""Checks of a store at the start: conditional writes (required), and lifecycle rules (recommended)."""

import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sink_job.api.errors import AccessDenied, ConfigurationError, SinkError, TransientError, UnsupportedStore
from sink_job.s3.client import S3Client
from sink_job.s3.errors import Conflict, NoSuchUpload, PreconditionFailed
from sink_job.s3.objects import CUSTOMER

__all__ = [
    "advice",
    "has_default_retention",
    "lifecycle_warning",
    "probe",
    "probe_encryption",
    "probe_existing",
    "probe_object_lock",
    "probe_replacement",
]

_ABORT = "AbortIncompleteMultipartUpload"
_OTHER_ETAG = '"00000000000000000000000000000000"'
_FEW_DAYS = 7
_AN_HOUR_MS = 3_600_000
_log = logging.getLogger(__name__)

PROBES = 3
"""Maximum number of probes of a store that seems to be unsupported."""


class _Overwritten(UnsupportedStore):
    """The store executed a conditional write that it should have rejected."""


def probe(s3: S3Client, prefix: str) -> None:
    """Checks below `prefix` that the store rejects a conditional put and a conditional completion over an object.

    The protocol depends on both. The probe sends ten requests and leaves no object or upload behind. The upload has
    the attributes of objects, so the store must accept them. Another driver
    that starts at the same time may delete the object of the probe; then the store has no reason to reject a write. So
    a store is unsupported only if several probes in a row fail.

    Raises UnsupportedStore for a store that overwrites. Raises ConfigurationError if the bucket does not exist or
    access is denied.
    """
    _delete_old_probes(s3, f"{prefix}probe/")
    for remaining in reversed(range(PROBES)):
        try:
            _probe_once(s3, f"{prefix}probe/{uuid.uuid4().hex}")
            break
        except (_Overwritten, NoSuchUpload):
            if not remaining:
                raise


def _probe_once(s3: S3Client, key: str) -> None:
    with contextlib.suppress(PreconditionFailed):  # the object is from this call: the first reply was lost
        s3.put(key, b"Is this object overwritten? It may be deleted.\n", only_if_absent=True)
    try:
        _check_rejected(s3, "put", lambda: s3.put(key, b"overwritten\n", only_if_absent=True))
        upload_id = s3.create_upload(key)
        try:
            parts = [s3.upload_part(key, upload_id, 1, b"overwritten\n")]
            _check_rejected(s3, "completed upload", lambda: s3.complete(key, upload_id, parts))
        finally:
            s3.abort(key, upload_id)
    finally:
        s3.delete([key])


def probe_encryption(s3: S3Client, prefix: str) -> None:
    """Checks below `prefix` that the store encrypts a put and a completed upload as the settings say, and reads both.

    A completion needs permissions that a put does not (kms:Decrypt). Does nothing without `spec.s3.encryption`. Raises
    UnsupportedStore for a store that ignores it, and ConfigurationError if the key cannot be used.
    """
    has_key = any(s3.settings.customer_keys[:1])
    expected = dict(s3.settings.encryption).get("ServerSideEncryption", CUSTOMER if has_key else None)
    if expected is None:
        return
    keys = [f"{prefix}probe/{uuid.uuid4().hex}" for _ in range(2)]
    upload_id = s3.create_upload(keys[1], temporary=True)
    try:
        s3.put(keys[0], b"Is this object encrypted? It may be deleted.\n")
        with contextlib.suppress(PreconditionFailed):  # completed by this call: the first reply was lost
            s3.complete(keys[1], upload_id, [s3.upload_part(keys[1], upload_id, 1, b"encrypted\n")])
        for key in keys:
            s3.get(key)
            found = s3.encryption_of(key)
            if found != expected:
                raise UnsupportedStore(
                    f"{s3.url}: the store ignores spec.s3.encryption: an object has the encryption {found or 'None'} "
                    f"instead of {expected}. Remove the field, or use another store"
                )
    finally:
        s3.abort(keys[1], upload_id)
        s3.delete(keys)


def has_default_retention(s3: S3Client) -> bool:
    """Whether the objects' bucket locks all that is written, or does not say so."""
    try:
        return bool(s3.bucket_lock().default)
    except UnsupportedStore:
        return False
    except ConfigurationError:
        return True


def probe_existing(s3: S3Client, key: str) -> None:
    """Checks that the store rejects a conditional completion over the object `key`. It leaves nothing behind: the
    bucket may lock what is written. The upload has the bytes of the object, so that a store that ignores the condition
    changes none.

    Raises UnsupportedStore for a store that overwrites, NotFound, and the errors of the store.
    """
    for remaining in reversed(range(PROBES)):
        try:
            _complete_over(s3, key, s3.get(key))
            break
        except _Overwritten:  # or another driver has removed the upload, which some stores do not report
            if not remaining:
                raise
        except (NoSuchUpload, Conflict) as error:  # another driver has removed it, or writes the file
            if not remaining:
                raise TransientError(f"another process changes {s3.url_of(key)}: {error}. Try again") from error


def _complete_over(s3: S3Client, key: str, content: bytes) -> None:
    upload_id = s3.create_upload(key)
    try:
        parts = [s3.upload_part(key, upload_id, 1, content)]
        _check_rejected(s3, "completed upload", lambda: s3.complete(key, upload_id, parts))
    except AccessDenied:
        if not has_default_retention(s3):
            raise
        _log.info("%s: the store replaces no locked object, so conditional completions were not checked", s3.url)
    finally:
        s3.abort(key, upload_id)


def probe_replacement(s3: S3Client, prefix: str) -> None:
    """Checks below `prefix` that the store rejects a completion over an object with another ETag than `If-Match` names.

    `s3sink repair` replaces damaged objects in this way. Raises UnsupportedStore for a store that overwrites.
    """
    _delete_old_probes(s3, f"{prefix}probe/")
    key = f"{prefix}probe/{uuid.uuid4().hex}"
    with contextlib.suppress(PreconditionFailed):  # the object is from this call: the first reply was lost
        s3.put(key, b"Is this object replaced? It may be deleted.\n", only_if_absent=True)
    try:
        upload_id = s3.create_upload(key, temporary=True)
        try:
            parts = [s3.upload_part(key, upload_id, 1, b"replaced\n")]
            with contextlib.suppress(PreconditionFailed):
                s3.complete(key, upload_id, parts, if_match=_OTHER_ETAG)
                raise UnsupportedStore(
                    f"{s3.url}: the store ignores If-Match: a completed upload replaced an object with another ETag. "
                    "A damaged object can only be replaced after you have moved it away; a missing object needs "
                    "If-None-Match alone"
                )
        finally:
            s3.abort(key, upload_id)
    finally:
        s3.delete([key])


def probe_object_lock(s3: S3Client, *, is_required: bool) -> str | None:
    """Checks that the bucket of the ledger has no default retention, which would lock the ledger and staging objects,
    too, and with `is_required` that the objects' bucket has Object Lock.

    Returns advice if that cannot be read. Raises ConfigurationError if a bucket is not suitable.
    """
    ledger = s3.of_ledger
    if ledger is s3:
        return _probe_lock(s3, is_required=is_required)
    found = [_probe_lock(ledger), _probe_lock(s3, is_required=True, has_ledger=False) if is_required else None]
    return "\n".join(filter(None, found)) or None


def _probe_lock(s3: S3Client, *, is_required: bool = False, has_ledger: bool = True) -> str | None:
    """`probe_object_lock` for one bucket."""
    try:
        found = s3.bucket_lock()
    except UnsupportedStore:  # it has no Object Lock
        if is_required:
            raise
        return None
    except ConfigurationError as error:
        return (
            f"{s3.url}: the default retention of the bucket is not known ({error.reason}: the credentials lack "
            "s3:GetBucketObjectLockConfiguration, or the store has no Object Lock). Make sure that there is none: it "
            "would lock the ledger and staging objects, too"
        )
    if found.default and has_ledger:
        raise ConfigurationError(
            f"{s3.url}: the bucket has a default retention ({found.default}). It would lock the ledger and staging "
            "objects, too, and each deleted version of them would remain until its end. Remove the default (aws s3api "
            f"put-object-lock-configuration --bucket {s3.bucket} --object-lock-configuration "
            "ObjectLockEnabled=Enabled), and set spec.s3.objectLock, which locks objects alone; or put "
            "ledger and staging into another bucket (spec.s3.ledger)"
        )
    if is_required and not found.is_enabled:
        raise ConfigurationError(
            f"{s3.url}: spec.s3.objectLock needs a bucket with Object Lock. Enable it for the bucket, or remove the "
            "field"
        )
    return None


def _delete_old_probes(s3: S3Client, prefix: str) -> None:
    """Deletes the objects and uploads of probes whose process was killed. Those of the last hour may be in use."""
    before = s3.server_now_ms() - _AN_HOUR_MS
    s3.delete([found.key for found in s3.list(prefix) if found.last_modified_ms < before])
    for upload in s3.list_uploads(prefix):
        if upload.initiated_ms < before:
            s3.abort(upload.key, upload.upload_id)


def _check_rejected(s3: S3Client, what: str, call: Callable[[], object]) -> None:
    with contextlib.suppress(PreconditionFailed):
        call()
        raise _Overwritten(
            f"{s3.url}: the store ignores If-None-Match: a {what} replaced an object. Two drivers of a sink could not "
            "be kept apart. Use a store with conditional writes, such as Amazon S3"
        )


def lifecycle_warning(s3: S3Client, prefix: str, *, has_ledger: bool = True) -> str | None:
    """Advice on the bucket's lifecycle rules for keys below `prefix`, one line each. `has_ledger`: the ledger is among
    them.

    None if there is no advice, or if the rules cannot be read.
    """
    try:
        lines = advice(s3.lifecycle_rules(), prefix, versioned=s3.keeps_versions(), has_ledger=has_ledger)
    except SinkError as error:
        _log.info("the bucket's lifecycle rules cannot be read, so they are not checked (%s)", error.reason)
        return None
    return "\n".join(f"{s3.url}: {line}" for line in lines) or None


def advice(rules: Sequence[Mapping[str, Any]], prefix: str, *, versioned: bool, has_ledger: bool = True) -> list[str]:
    """Advice on lifecycle `rules`, in the form of S3's API, for keys below `prefix`, one line each. `versioned`:
    versioning is enabled for the bucket. `has_ledger`: the ledger is among the keys."""
    applicable = [rule for rule in rules if rule.get("Status") == "Enabled" and _covers(rule, prefix)]
    days = [rule[_ABORT].get("DaysAfterInitiation", 0) for rule in applicable if _ABORT in rule]
    lines = []
    if not days:
        lines.append(
            f"no lifecycle rule aborts incomplete uploads below {prefix!r}. The sink aborts its own, but uploads with "
            f"an unknown id remain and cost money: add a rule {_ABORT} after {_FEW_DAYS} days"
        )
    elif min(days) < _FEW_DAYS:
        lines.append(
            f"a lifecycle rule aborts uploads below {prefix!r} after {min(days)} day(s). If an object is open for "
            f"longer, or the sink is stopped for longer, the sink must read its records again: use {_FEW_DAYS} days or "
            "more"
        )
    if not has_ledger:
        return lines
    if any("Expiration" in rule and "ExpiredObjectDeleteMarker" not in rule["Expiration"] for rule in applicable):
        lines.append(
            f"a lifecycle rule expires objects below {prefix!r}, including the ledger in '{prefix}_s3sink/'. A sink "
            "that is stopped for that time loses its ledger: limit the rule to the prefixes of the topics"
        )
    if versioned and not any("NoncurrentVersionExpiration" in rule for rule in applicable):
        lines.append(
            "versioning is enabled for the bucket, so deleted staging objects and ledger records continue to cost "
            f"money: add a rule NoncurrentVersionExpiration for '{prefix}_s3sink/'"
        )
    return lines


def _covers(rule: Mapping[str, Any], prefix: str) -> bool:
    conditions = rule.get("Filter", {})
    if conditions.keys() - {"Prefix"}:  # a filter by tag or size does not cover every object
        return False
    return prefix.startswith(str(conditions.get("Prefix", rule.get("Prefix", ""))))
