"""Comparison of a stored object with the ledger's description of it."""

from __future__ import annotations

import hashlib

from sink_job.ledger.state import ClosedObject
from sink_job.s3 import Head
from sink_job.s3.checksums import b64


def compare_stored(o: ClosedObject, stored: Head, *, size_suffices: bool = False) -> str | None:
    """The difference between the stored object and `o`, as text; None if they are equal.

    Compares the size in bytes and the CRC64NVME of the whole object; without a CRC64NVME the ETag. If the store
    provides neither a CRC64NVME nor an ETag that is derived from the MD5s of the parts, objects of the same size
    differ, unless `size_suffices`.
    """
    if stored.size != o.bytes:
        return f"{stored.size:,} bytes stored, {o.bytes:,} bytes in the ledger"
    if stored.crc64nvme is not None:
        if stored.crc64nvme == o.crc:
            return None
        return f"the same size, but CRC64NVME {b64(stored.crc64nvme)} stored, {b64(o.crc)} in the ledger"
    etag = multipart_etag(o)
    if etag is None:
        return None if size_suffices else "the same size, but the store provides no checksum of the content"
    if stored.etag.strip('"') == etag:
        return None
    return f"the same size, but ETag {stored.etag} stored, {etag} in the ledger"


def multipart_etag(o: ClosedObject) -> str | None:
    """The ETag of a multipart object in S3: the MD5 of the parts' MD5s, `-` and the number of parts. None if the
    store's ETags of parts are not MD5s."""
    try:
        digests = b"".join(bytes.fromhex(p.etag.strip('"')) for p in o.parts)
    except ValueError:
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(o.parts)}"
