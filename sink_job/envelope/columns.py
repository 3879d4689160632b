"""What an envelope has before the value (`format.envelope`), column-wise: as JSON text, and as Avro data.

The fields are those of `sink_job.envelope.schema`, in its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.enums import TimestampFormat
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow import json_columns
from sink_job.arrow.arrays import Integers, Mask
from sink_job.arrow.json_columns import one
from sink_job.arrow.varints import encode_long
from sink_job.avro import column_encoder
from sink_job.avro.encoder import TIMESTAMP_MS
from sink_job.connect import logical_types
from sink_job.envelope.schema import TIMESTAMP_TYPES
from sink_job.records.fields import Rejections

Part: TypeAlias = pa.BinaryArray | pa.BinaryScalar
"""A part of each row: a column, or a scalar where all rows have the same one."""

NO_TIMESTAMP: Final = -1
"""The timestamp of a record without one (org.apache.kafka.clients.consumer.ConsumerRecord.NO_TIMESTAMP)."""
_NO_TYPE: Final = len(TIMESTAMP_TYPES)
"""The index of the text and the datum of a record without a timestamp type."""
_MAX_EXPANSION: Final = 6
"""The maximum length of an escaped or encoded byte. The number of bytes of a JSON string for a control character."""
_MAX_FIXED: Final = 200
"""The maximum length of the fields of fixed size, with their names in JSON."""
_PER_HEADER: Final = 40

_TYPE_TEXTS: Final = arrow_columns.binaries([*(b'"%b"' % each.encode() for each in TIMESTAMP_TYPES), b"null"])
_TYPE_DATA: Final = arrow_columns.binaries([*(b"\x02" + encode_long(n) for n in range(len(TIMESTAMP_TYPES))), b"\x00"])


@dataclass(frozen=True)
class Origin:
    """The columns of a batch of `tp` that are not the key or the value. `headers`: null without any."""

    tp: TopicPartition
    offsets: pa.Int64Array
    timestamps: Integers
    types: npt.NDArray[np.int8]
    headers: pa.ListArray

    @classmethod
    def of(cls, batch: pa.RecordBatch, tp: TopicPartition) -> Origin:
        """The columns of a batch (`sink_job.engine.types.Columns`)."""
        types = batch.column("timestamp_type")
        return cls(
            tp=tp,
            offsets=batch.column("offset"),
            timestamps=arrow_columns.numbers(batch.column("timestamp")),
            types=np.frombuffer(types.buffers()[1] or b"", np.int8, len(types), types.offset),
            headers=batch.column("headers"),
        )

    @property
    def timestamp_column(self) -> pa.Int64Array:
        """The timestamps, null for a record without one."""
        absent = self.timestamps == NO_TIMESTAMP
        return arrow_columns.integers(self.timestamps, absent if absent.any() else None)

    def outside_years(self, skip: Mask) -> Rejections:
        """The rows, without those of the mask `skip`, whose timestamp is outside the range of Avro and Parquet."""
        first, last = TIMESTAMP_MS
        outside = ((self.timestamps < first) | (self.timestamps > last)) & ~skip
        return [(row, _outside(int(self.timestamps[row]))) for row in np.flatnonzero(outside).tolist()]

    def typed(self, values: pa.BinaryArray) -> Part:
        """The value of each record's timestamp type: a scalar if they are equal."""
        known = (self.types >= 0) & (self.types < _NO_TYPE)
        indexes = np.where(known, self.types, _NO_TYPE).astype(np.int64)
        if len(indexes) and (indexes == indexes[0]).all():
            return values[int(indexes[0])]
        return values.take(arrow_columns.integers(indexes))

    def check_size(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        """Raises ColumnTooLarge if the rows of an envelope around `keys` and `values` could be too long for a column:
        they are prepared in halves then."""
        pairs = self.headers.flatten()
        names = pairs.field("key").view(pa.binary())
        expanded = _length(keys) + _length(names) + _length(pairs.field("value"))
        fixed = (_MAX_FIXED + _MAX_EXPANSION * len(self.tp.topic)) * len(self.offsets) + _PER_HEADER * len(pairs)
        arrow_columns.check_bytes(_MAX_EXPANSION * expanded + fixed + _length(values))


def _outside(timestamp: int) -> str:
    return f"the timestamp of the record, {timestamp} ms, is outside the years 1 to 9999"


def _length(column: pa.BinaryArray) -> int:
    bounds = arrow_columns.bounds(column)
    return int(bounds[-1]) - int(bounds[0])


# -- JSON --------------------------------------------------------------------------------------------------------------


def json_heads(
    origin: Origin, keys: Part, timestamps: TimestampFormat, without_value: Mask | None = None
) -> pa.BinaryArray:
    """The text of each envelope up to its value, which `}` follows. `keys` are JSON texts, `null`
    without a key. `without_value`: a mask of the records without a value, if these are written."""
    is_iso = timestamps is TimestampFormat.ISO
    times = json_columns.converted(logical_types.iso_timestamp) if is_iso else json_columns.integers
    place = b',"topic":%b,"partition":%d,"offset":' % (msgspec.json.encode(origin.tp.topic), origin.tp.partition)
    return joined(
        one(b'{"key":'),
        keys,
        one(b',"headers":'),
        _header_texts(_Headers(origin.headers)),
        one(b',"timestamp":'),
        json_columns.nullable(times, b"null")(origin.timestamp_column),
        one(b',"timestampType":'),
        origin.typed(_TYPE_TEXTS),
        one(place),
        json_columns.integers(origin.offsets),
        *_value_is_null(without_value, one(b',"valueIsNull":true'), one(b',"valueIsNull":false')),
        one(b',"value":'),
    )


def key_texts(keys: pa.BinaryArray) -> pa.BinaryArray:
    """The JSON texts of keys without a converter: base64, as JsonConverter writes bytes; `null` without a key."""
    return json_columns.nullable(json_columns.base64_texts, b"null")(keys)


def _header_texts(headers: _Headers) -> Part:
    if not len(headers.pairs):
        return one(b"[]")
    return json_columns.bracketed(b"[", _PAIR_TEXTS(headers.pairs), headers.offsets, b"]")


_PAIR_TEXTS: Final = json_columns.structs(
    [("name", json_columns.strings), ("value", json_columns.nullable(json_columns.base64_texts, b"null"))]
)


# -- Avro data ---------------------------------------------------------------------------------------------------------


def data_heads(origin: Origin, keys: Part, without_value: Mask | None = None) -> pa.BinaryArray:
    """The data of the fields before the value. `keys` are data of the field `key`, none of them null. `without_value`:
    as of `json_heads`."""
    topic = origin.tp.topic.encode()
    return joined(
        keys,
        _header_data(_Headers(origin.headers)),
        json_columns.nullable(_present_longs, b"\x00")(origin.timestamp_column),
        origin.typed(_TYPE_DATA),
        one(encode_long(len(topic)) + topic + encode_long(origin.tp.partition)),
        longs(arrow_columns.numbers(origin.offsets)),
        *_value_is_null(without_value, one(b"\x01"), one(b"\x00")),
    )


def optional_bytes(values: pa.BinaryArray) -> pa.BinaryArray:
    """The data of optional bytes or texts."""
    return json_columns.nullable(lambda present: joined(one(b"\x02"), _sized(present)), b"\x00")(values)


def with_branch(data: pa.BinaryArray, branch: bytes) -> pa.BinaryArray:
    """Data as those of a member of a union, after `branch`."""
    return joined(one(branch), data) if branch else data


def with_null_member(data: pa.BinaryArray) -> pa.BinaryArray:
    """Data of a union of at most 63 types as those of the union with null before these types: the index of the type,
    the first byte, is one more. An empty datum stays empty."""
    changed, bounds = arrow_columns.content(data).copy(), arrow_columns.bounds(data)
    changed[bounds[:-1][bounds[1:] > bounds[:-1]]] += 2  # a zigzag long
    ends = pa.py_buffer(bounds.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(data), [None, ends, pa.py_buffer(changed)])


def _present_longs(values: pa.Int64Array) -> pa.BinaryArray:
    return joined(one(b"\x02"), longs(arrow_columns.numbers(values)))


def _header_data(headers: _Headers) -> Part:
    """Arrays of records with a name and an optional value: a block with all of them, and the count 0 at the end."""
    if not len(headers.pairs):
        return one(b"\x00")
    names, values = headers.pairs.field("key").view(pa.binary()), headers.pairs.field("value")
    items = pa.ListArray.from_arrays(headers.offsets, joined(_sized(names), optional_bytes(values)))
    counts = pc.if_else(arrow_columns.booleans(headers.counts > 0), longs(headers.counts), one(b""))
    return joined(counts, pc.binary_join(items, one(b"")), one(b"\x00"))


def _sized(values: pa.BinaryArray) -> pa.BinaryArray:
    """Data of bytes or strings: the length, and the bytes."""
    return joined(longs(np.diff(arrow_columns.bounds(values))), values)


def longs(values: npt.NDArray[Any]) -> pa.BinaryArray:
    """The data of longs."""
    return column_encoder.joined([column_encoder.longs(values.astype(np.int64))], len(values))


# -- both --------------------------------------------------------------------------------------------------------------


def _value_is_null(without_value: Mask | None, true: Part, false: Part) -> list[Part]:
    """The field `valueIsNull`; nothing if there is no such field."""
    if without_value is None:
        return []
    return [pc.if_else(arrow_columns.booleans(without_value), true, false) if without_value.any() else false]


class _Headers:
    """The headers of all records: `pairs` of a key and a value, and the `counts` of the records."""

    def __init__(self, headers: pa.ListArray) -> None:
        self.pairs: pa.StructArray = headers.flatten()
        lengths = pc.fill_null(pc.list_value_length(headers), 0)
        self.counts = np.frombuffer(lengths.buffers()[1] or b"", np.int32, len(lengths), 4 * lengths.offset)

    @property
    def offsets(self) -> pa.Int32Array:
        """The first pair of each record, and the number of all."""
        ends = np.concatenate(([0], np.cumsum(self.counts))).astype(np.int32)
        return pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends)])


def joined(*parts: Part) -> pa.BinaryArray:
    """The parts of each row, one after the other. A scalar is a part of each row; at least one part is none."""
    return pc.binary_join_element_wise(*parts, one(b""))
