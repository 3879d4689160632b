"""Columnar batches in the layout of ColumnarBatcher.java, built in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition

_GARBAGE = b"after the end"


class ConsumedRecord(NamedTuple):
    """A record as a consumer returns it."""

    tp: TopicPartition
    offset: int
    value: bytes | None = b"v"
    timestamp: int = -1
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_type: int = 0


def batch_rows(
    *batches: Sequence[ConsumedRecord],
    timestamp: bool = False,
    key: bool = False,
    headers: bool = False,
    timestamp_type: bool = False,
    garbage: bool = False,
) -> pa.RecordBatch:
    """A batch of rows, one for each of `batches`; `garbage` adds bytes after the last value."""
    tail = _GARBAGE if garbage else b""
    asked = {"timestamp": timestamp, "key": key, "headers": headers, "timestamp_type": timestamp_type}
    made = [_row(records, **asked, tail=tail) for records in batches]
    names = _row([], **asked, tail=b"")
    kinds: dict[str, pa.DataType] = {"topic": pa.string(), "partition": pa.int32(), "records": pa.int32()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array([row[name] for row in made], kinds.get(name, pa.binary())) for name in names}
    )


def _row(
    records: Sequence[ConsumedRecord],
    *,
    timestamp: bool,
    key: bool,
    headers: bool,
    timestamp_type: bool,
    tail: bytes,
) -> dict[str, Any]:
    tp = records[0].tp if records else TopicPartition("", 0)
    pairs = list(chain.from_iterable(record.headers for record in records))
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "records": len(records),
        "offsets": _longs(record.offset for record in records),
        **_strings("value", [record.value for record in records], tail),
        **({"timestamps": _longs(record.timestamp for record in records)} if timestamp else {}),
        **(_strings("key", [record.key for record in records], tail) if key else {}),
        **({"headers_valid": _bits([bool(record.headers) for record in records])} if headers else {}),
        **({"headers_bounds": _bounds(len(record.headers) for record in records)} if headers else {}),
        **(_strings("header_key", [name.encode() for name, _ in pairs], tail) if headers else {}),
        **(_strings("header_value", [value for _, value in pairs], tail) if headers else {}),
        **({"timestamp_types": _bytes(record.timestamp_type for record in records)} if timestamp_type else {}),
    }


def _strings(name: str, values: Sequence[bytes | None], tail: bytes) -> dict[str, bytes]:
    return {
        f"{name}_valid": _bits([value is not None for value in values]),
        f"{name}_bounds": _bounds(len(value or b"") for value in values),
        f"{name}_bytes": b"".join(value or b"" for value in values) + tail,
    }


def _bytes(numbers: Iterable[int]) -> bytes:
    return np.array(list(numbers), np.int8).tobytes()


def _longs(numbers: Iterable[int]) -> bytes:
    return np.array(list(numbers), np.int64).tobytes()


def _bounds(sizes: Iterable[int]) -> bytes:
    return np.cumsum([0, *sizes], dtype=np.int32).tobytes()


def _bits(valid: Sequence[bool]) -> bytes:
    return b"" if all(valid) else np.packbits(valid, bitorder="little").tobytes()
