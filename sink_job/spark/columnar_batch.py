"""Converts columnar batches, the rows of Spark's reader, to Arrow record batches without a copy.

A columnar batch (ColumnarBatcher.java) is one Spark row with records of one topic-partition: `topic`, `partition`, the
number of `records`, and binary columns with the buffers of Arrow arrays. `<name>_bounds` are int32 offsets, one more
than values. `<name>_valid` has one bit per value; it is empty if no value is null. Bytes after the last record are
undefined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition

_EMPTY = pa.py_buffer(b"")
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


class PartitionBatch(NamedTuple):
    """Records of one topic-partition, at least one. `sink_job.engine.types.PartitionFunction` describes the columns."""

    tp: TopicPartition
    records: pa.RecordBatch


def iter_batches(rows: pa.RecordBatch) -> Iterator[PartitionBatch]:
    """The columnar batches in a batch of Spark's rows."""
    topics, partitions, counts = (rows[name].to_pylist() for name in ("topic", "partition", "records"))
    for row, (topic, partition, count) in enumerate(zip(topics, partitions, counts, strict=True)):
        yield PartitionBatch(TopicPartition(topic, partition), _Row(rows, row, count).records())


class _Row:
    """One columnar batch, as views of its buffers."""

    def __init__(self, rows: pa.RecordBatch, row: int, count: int) -> None:
        self._rows = rows
        self._row = row
        self._count = count

    def records(self) -> pa.RecordBatch:
        columns = {"offset": self._longs("offsets"), "value": self._strings("value", self._count)}
        if "timestamps" in self._rows.schema.names:
            columns["timestamp"] = self._longs("timestamps")
        if "key_bytes" in self._rows.schema.names:
            columns["key"] = self._strings("key", self._count)
        if "headers_bounds" in self._rows.schema.names:
            columns["headers"] = self._headers()
        if "timestamp_types" in self._rows.schema.names:
            types = self._buffer("timestamp_types")
            columns["timestamp_type"] = pa.Array.from_buffers(pa.int8(), self._count, [None, types])
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _longs(self, name: str) -> pa.Array:
        return pa.Array.from_buffers(pa.int64(), self._count, [None, self._buffer(name, align=8)])

    def _strings(self, name: str, count: int, kind: pa.DataType | None = None) -> pa.Array:
        bounds = self._buffer(f"{name}_bounds", align=4)
        buffers = [self._valid(name), bounds, self._buffer(f"{name}_bytes")]
        return pa.Array.from_buffers(kind or pa.binary(), count, buffers)

    def _headers(self) -> pa.Array:
        bounds = self._buffer("headers_bounds", align=4)
        count = pa.Array.from_buffers(pa.int32(), self._count + 1, [None, bounds])[-1].as_py()
        pair = [self._strings("header_key", count, pa.string()), self._strings("header_value", count)]
        headers = pa.StructArray.from_arrays(pair, fields=list(_HEADER))
        return pa.Array.from_buffers(
            pa.list_(_HEADER), self._count, [self._valid("headers"), bounds], children=[headers]
        )

    def _valid(self, name: str) -> pa.Buffer | None:
        bits = self._buffer(f"{name}_valid")
        return bits if bits.size else None

    def _buffer(self, name: str, align: int = 1) -> pa.Buffer:
        """The bytes of a column. They are copied only if their address is not a multiple of `align`."""
        column = self._rows[name]
        _, bounds, data = column.buffers()
        start, end = np.frombuffer(bounds, np.int32, count=2, offset=4 * (column.offset + self._row)).tolist()
        if start == end:
            return _EMPTY
        buffer = data.slice(start, end - start)
        return buffer if buffer.address % align == 0 else pa.py_buffer(buffer.to_pybytes())
