"""What a start checks of the store, as one call: it may run while Spark starts."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sink_job.s3.client import S3Client
from sink_job.s3.store_probe import lifecycle_warning, probe, probe_encryption, probe_object_lock


@dataclass(frozen=True)
class StoreAdvice:
    """A message for the log about the bucket; `level` as in `logging`."""

    level: int
    message: str


def check_store(s3: S3Client, root: str, *, object_lock: bool, encryption: bool) -> list[StoreAdvice]:
    """Checks conditional writes, the default retention, and with `encryption` (`spec.s3.encryption` is set) what the
    store encrypts; reads the lifecycle rules. `root`: the ledger's folder. `object_lock`: the bucket must have it.

    Leaves no object or upload behind. Raises UnsupportedStore, and ConfigurationError for a bucket that is not
    suitable, does not exist or denies access.
    """
    found = []
    unknown_lock = probe_object_lock(s3, is_required=object_lock)
    if unknown_lock:
        found.append(StoreAdvice(logging.WARNING if object_lock else logging.INFO, unknown_lock))
    probe(s3, root)
    if encryption:
        probe_encryption(s3, root)
    warning = lifecycle_warning(s3, root)
    if warning:
        found.append(StoreAdvice(logging.WARNING, warning))
    return found
