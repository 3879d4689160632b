"""Compares the footer of a Parquet object with the ledger, without reading its rows."""

from __future__ import annotations

import io
import struct
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.ledger.state import ClosedObject
from sink_job.s3 import NotFound, S3Client
from sink_job.verify.parquet_statistics import statistics_difference

FIRST_READ: Final = 64 << 10
"""Bytes at the end of an object that are read first. Most footers fit."""
_END: Final = struct.Struct("<I4s")
_MAGIC: Final = b"PAR1"


class InvalidFooter(Exception):
    """An object does not end with the footer of a Parquet file."""


def is_parquet(o: ClosedObject) -> bool:
    return o.key.endswith(".parquet")


def footer_difference(s3: S3Client, o: ClosedObject, offset_column: str | None = None) -> str | None:
    """What differs between the footer of a Parquet object and the ledger; None if nothing does, or if the object does
    not exist any more. `offset_column`: see `statistics_difference`. Raises the errors of the store."""
    try:
        metadata = footer_of(s3, o)
    except NotFound:
        return None
    except InvalidFooter as error:
        return str(error)
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if {metadata.num_rows, sum(rows)} != {o.offsets.count}:
        return (
            f"its Parquet footer counts {metadata.num_rows} records, {sum(rows)} of them in row groups, and the ledger "
            f"{o.offsets.count}"
        )
    return statistics_difference(metadata, o, offset_column)


def footer_of(s3: S3Client, o: ClosedObject) -> pq.FileMetaData:
    """The footer of a Parquet object with the size that the ledger says. Raises InvalidFooter, NotFound if there is no
    object of that size, and the errors of the store."""
    try:
        footer = _footer(s3, o)
    except ValueError as error:
        raise InvalidFooter(f"it is not a Parquet file: {error}") from None
    try:
        return pq.read_metadata(io.BytesIO(_MAGIC + footer))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidFooter(f"its Parquet footer cannot be read: {error}") from None


def _footer(s3: S3Client, o: ClosedObject) -> bytes:
    """The metadata with its length and the magic. Raises ValueError if the object does not end with them."""
    tail = _end_of(s3, o, FIRST_READ)
    if len(tail) < _END.size:
        raise ValueError("it is too short")
    length, magic = _END.unpack(tail[-_END.size :])
    size = length + _END.size
    if magic != _MAGIC or size > o.bytes:
        raise ValueError("it does not end with a footer")
    return (tail if size <= len(tail) else _end_of(s3, o, size))[-size:]


def _end_of(s3: S3Client, o: ClosedObject, size: int) -> bytes:
    size = min(size, o.bytes)
    return s3.get_range(o.key, o.bytes - size, size)
