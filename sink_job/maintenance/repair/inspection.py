"""Compares what is stored at the key of an object with what the ledger records of it."""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.ledger.state import ClosedObject
from sink_job.ledger.stored_object import compare_stored
from sink_job.s3 import Head, NotFound, PreconditionFailed, S3Client, S3Outcome
from sink_job.s3.checksums import crc64nvme

STEP = 8 << 20
"""Bytes of an object in memory at a time."""
MAX_READS = 3
"""Attempts to read an object that another program changes meanwhile."""


@dataclass(frozen=True)
class StoredState:
    """What is at a key. `etag` is None if nothing is; `damage` is None if it is the recorded object."""

    etag: str | None
    size: int
    damage: str | None


def inspect(s3: S3Client, o: ClosedObject, *, reads: bool = True) -> StoredState:
    """What is at the key of the object now. If the store's size and checksum are the recorded ones, its bytes decide:
    a disk can change them without the store knowing. Without `reads` they are not compared.

    Raises the errors of the store, and S3Outcome if another program changes the object at each attempt.
    """
    for _ in range(MAX_READS):
        head = s3.head(o.key)
        if head is None:
            return StoredState(None, 0, "it is not in the bucket")
        damage = compare_stored(o, head, size_suffices=True)
        if damage is not None or not reads:
            return StoredState(head.etag, head.size, damage)
        try:
            return StoredState(head.etag, head.size, _content_damage(s3, o, head))
        except (NotFound, PreconditionFailed) as changed:
            last: S3Outcome = changed
    raise last


def _content_damage(s3: S3Client, o: ClosedObject, head: Head) -> str | None:
    crc = size = 0
    for start in range(0, o.bytes, STEP):
        chunk = s3.get_range(o.key, start, min(STEP, o.bytes - start), etag=head.etag)
        crc, size = crc64nvme(chunk, crc), size + len(chunk)
    if (size, crc) == (o.bytes, o.crc):
        return None
    return f"the store reports the recorded size and checksum, but its {size:,} bytes differ from the recorded ones"
