"""Objects of a ledger."""

from __future__ import annotations

from sink_job.ledger.state import ClosedObject, OffsetChecksum


def closed(number: int, acknowledged: int) -> ClosedObject:
    """The object with this number, which a record has acknowledged."""
    return ClosedObject(
        key=f"topics/log/{number:04}.parquet",
        topic="log",
        partition=0,
        path="partition=0",
        first=number,
        last=number,
        bytes=1,
        crc=0,
        upload="",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(1, 0),
        settings=1,
        acknowledged=acknowledged,
    )
