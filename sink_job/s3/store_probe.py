"""What is found out about a store before anything rests on it."""

import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sink_job.api.errors import SinkError, UnsupportedStore
from sink_job.s3.client import S3Client
from sink_job.s3.errors import NoSuchUpload, PreconditionFailed

__all__ = ["advice", "lifecycle_warning", "probe"]

_ABORT = "AbortIncompleteMultipartUpload"
_FEW_DAYS = 7
_AN_HOUR_MS = 3_600_000
_log = logging.getLogger(__name__)

PROBES = 3
"""How often a store is tried out that seems to be unsuitable."""


class _Overwritten(UnsupportedStore):
    """What should have been refused was done."""


def probe(s3: S3Client, prefix: str) -> None:
    """Tries out below `prefix` what the protocol rests on: a conditional put, and a conditional completion with
    checksums, over an object must both be refused. Leaves nothing behind; ten requests.

    Another driver that starts at the same time clears these files away, and then nothing is there to refuse for: so a
    store is called unsuitable only when it was so several times in a row.

    Raises UnsupportedStore for a store that overwrites, ConfigurationError when the bucket is missing or access is
    denied.
    """
    _sweep(s3, f"{prefix}probe/")
    for left in reversed(range(PROBES)):
        try:
            _try_out(s3, f"{prefix}probe/{uuid.uuid4().hex}")
            break
        except (_Overwritten, NoSuchUpload):
            if not left:
                raise


def _try_out(s3: S3Client, key: str) -> None:
    with contextlib.suppress(PreconditionFailed):  # ours: the reply to the first try was lost
        s3.put(key, b"Is this object overwritten? It may be deleted.\n", only_if_absent=True)
    try:
        _must_be_refused(s3, "put", lambda: s3.put(key, b"overwritten\n", only_if_absent=True))
        upload_id = s3.create_upload(key)
        try:
            parts = [s3.upload_part(key, upload_id, 1, b"overwritten\n")]
            _must_be_refused(s3, "completed upload", lambda: s3.complete(key, upload_id, parts))
        finally:
            s3.abort(key, upload_id)
    finally:
        s3.delete([key])


def _sweep(s3: S3Client, prefix: str) -> None:
    """Removes what probes left behind whose process was killed; younger ones may be another driver's, under way."""
    before = s3.server_now_ms() - _AN_HOUR_MS
    s3.delete([found.key for found in s3.list(prefix) if found.last_modified_ms < before])
    for upload in s3.list_uploads(prefix):
        if upload.initiated_ms < before:
            s3.abort(upload.key, upload.upload_id)


def _must_be_refused(s3: S3Client, what: str, call: Callable[[], object]) -> None:
    with contextlib.suppress(PreconditionFailed):
        call()
        raise _Overwritten(
            f"{s3.url}: the store ignores If-None-Match: a {what} replaced an object, so two drivers "
            "could both believe to be the only one. Use a store with conditional writes, such as Amazon S3"
        )


def lifecycle_warning(s3: S3Client, prefix: str) -> str | None:
    """Advice on the bucket's rules as far as they touch keys below `prefix`, a line each; None if all is well, or if we
    may not look."""
    try:
        said = advice(s3.lifecycle_rules(), prefix, versioned=s3.keeps_versions())
    except SinkError as error:
        _log.info("the bucket's lifecycle rules cannot be read, so they are not checked (%s)", error.reason)
        return None
    return "\n".join(f"{s3.url}: {line}" for line in said) or None


def advice(rules: Sequence[Mapping[str, Any]], prefix: str, *, versioned: bool) -> list[str]:
    """What to tell about lifecycle `rules` (in S3's words) of a bucket for keys below `prefix`; `versioned`: old
    versions of its objects are kept."""
    ours = [rule for rule in rules if rule.get("Status") == "Enabled" and _covers(rule, prefix)]
    days = [rule[_ABORT].get("DaysAfterInitiation", 0) for rule in ours if _ABORT in rule]
    said = []
    if not days:
        said.append(
            f"no lifecycle rule clears away unfinished uploads below {prefix!r}. This sink removes its own, but lost "
            f"ones cost money: add a rule {_ABORT} after {_FEW_DAYS} days"
        )
    elif min(days) < _FEW_DAYS:
        said.append(
            f"a rule aborts uploads below {prefix!r} after {min(days)} day(s): an object that stays open, or a sink "
            f"that stands still, for longer has to read its records again. Use {_FEW_DAYS} days or more"
        )
    if any("Expiration" in rule and "ExpiredObjectDeleteMarker" not in rule["Expiration"] for rule in ours):
        said.append(
            f"a rule expires objects below {prefix!r}, and with them the ledger in '{prefix}_s3sink/': a sink that "
            "stands still for that long loses it. Let the rule name the topics' own prefixes"
        )
    if versioned and not any("NoncurrentVersionExpiration" in rule for rule in ours):
        said.append(
            f"the bucket keeps versions, so what this sink deletes (staging, old ledger records) goes on costing "
            f"money: add a rule NoncurrentVersionExpiration for '{prefix}_s3sink/'"
        )
    return said


def _covers(rule: Mapping[str, Any], prefix: str) -> bool:
    where = rule.get("Filter", {})
    if where.keys() - {"Prefix"}:  # by tag or size: not every object
        return False
    return prefix.startswith(str(where.get("Prefix", rule.get("Prefix", ""))))
