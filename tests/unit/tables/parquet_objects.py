"""Parquet objects of any columns, as the ledger lists them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.parquet.types import FIELD_ID
from sink_job.s3.checksums import crc64nvme


def column(number: int, name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={FIELD_ID: str(number).encode()})


def parquet(fields: list[pa.Field], values: dict[str, list[Any]], row_group: int = 1_000, **options: Any) -> bytes:
    """The bytes of an object."""
    schema = pa.schema(fields)
    arrays = [pa.array(values[each.name], each.type) for each in fields]
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema, store_schema=False, **options) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=row_group)
    return out.getvalue()


def footer(content: bytes) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(content))


def listed(key: str, content: bytes, count: int, acknowledged: int = 1) -> ClosedObject:
    """The object in the published log."""
    return ClosedObject(
        key=key,
        topic="log",
        partition=0,
        path="partition=0",
        first=0,
        last=count - 1,
        bytes=len(content),
        crc=crc64nvme(content),
        upload="",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(count, 0),
        settings=1,
        acknowledged=acknowledged,
    )
