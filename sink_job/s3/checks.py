"""What is found out about a store before anything rests on it."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from sink_job.api.errors import SinkError, StoreUnsuitable
from sink_job.s3.client import S3
from sink_job.s3.errors import PreconditionFailed

__all__ = ["advice", "lifecycle_warning", "probe"]

_ABORT = "AbortIncompleteMultipartUpload"
_FEW_DAYS = 7
_log = logging.getLogger(__name__)


def probe(s3: S3, prefix: str) -> None:
    """Writes an object below `prefix` twice, conditionally; the second write must be refused. Leaves nothing behind.

    Raises StoreUnsuitable for a store that overwrites, ConfigurationError when the bucket is missing or access is
    denied.
    """
    s3.look()
    key = f"{prefix}probe/{uuid.uuid4().hex}"
    s3.put(key, b"Which of two writers was first? May be deleted.\n", only_if_absent=True)
    try:
        s3.put(key, b"The second one.\n", only_if_absent=True)
    except PreconditionFailed:
        return
    finally:
        s3.delete([key])
    raise StoreUnsuitable(
        f"{s3.url}: the store ignores If-None-Match: two drivers could both believe to be the only one. "
        "Use a store with conditional writes (Amazon S3, MinIO, Ceph from Squid, VersityGW)"
    )


def lifecycle_warning(s3: S3, prefix: str) -> str | None:
    """Advice on the bucket's rules for unfinished uploads below `prefix`; None if all is well, or if we may not
    look."""
    try:
        rules = s3.lifecycle_rules()
    except SinkError as error:
        _log.info("the bucket's lifecycle rules cannot be read, so they are not checked: %s", error)
        return None
    return advice(rules, s3.url, prefix)


def advice(rules: Sequence[Mapping[str, Any]], url: str, prefix: str) -> str | None:
    """What to tell about lifecycle `rules` (in S3's words) as far as they touch keys below `prefix`; None: nothing."""
    ours = [rule for rule in rules if rule.get("Status") == "Enabled" and _covers(rule, prefix)]
    days = [rule["AbortIncompleteMultipartUpload"].get("DaysAfterInitiation", 0) for rule in ours if _ABORT in rule]
    if not days:
        return (
            f"{url}: no lifecycle rule clears away unfinished uploads below {prefix!r}. This sink removes its own, "
            f"but lost ones cost money: add a rule AbortIncompleteMultipartUpload after {_FEW_DAYS} days"
        )
    if min(days) < _FEW_DAYS:
        return (
            f"{url}: a rule aborts uploads below {prefix!r} after {min(days)} day(s): an object that stays open, "
            f"or a sink that stands still, for longer has to read its records again. Use {_FEW_DAYS} days or more"
        )
    return None


def _covers(rule: Mapping[str, Any], prefix: str) -> bool:
    where = rule.get("Filter", {})
    if where.keys() - {"Prefix"}:  # by tag or size: not every object
        return False
    begin = str(where.get("Prefix", rule.get("Prefix", "")))
    return prefix.startswith(begin)
