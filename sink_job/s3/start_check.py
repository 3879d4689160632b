"""What a start checks of the store, as one call: it may run while Spark starts."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sink_job.s3.client import S3Client
from sink_job.s3.store_probe import (
    has_default_retention,
    lifecycle_warning,
    probe,
    probe_encryption,
    probe_existing,
    probe_object_lock,
)


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
    return [*found, *_warning(lifecycle_warning(s3.of_ledger, root))]


def check_objects_bucket(s3: S3Client, home: str, *, encryption: bool) -> list[StoreAdvice]:
    """As `check_store`, for the objects' bucket of a sink whose ledger is in another place. `home`: the folder with the
    sink's ownership file, which must exist. The bucket may lock whatever is written, so nothing is."""
    probe_existing(s3, f"{home}owner.json")
    if encryption and not has_default_retention(s3):
        probe_encryption(s3, home)
    return _warning(lifecycle_warning(s3, home, has_ledger=False))


def _warning(text: str | None) -> list[StoreAdvice]:
    return [StoreAdvice(logging.WARNING, text)] if text else []
