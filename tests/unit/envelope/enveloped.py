"""Kafka records with keys and headers, and their envelopes as an independent reference writes them, row-wise."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from sink_job.api.enums import OnNullValue, SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.avro.encoder import TIMESTAMP_MS
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from tests.unit.avro.avro_data import Table
from tests.unit.rotation.settings import object_settings

TP: Final = TopicPartition('t"ä', 300)
FIRST: Final = 126
"""The first offset: those of a batch have different lengths as Avro data."""
WIRE_FORMAT: Final = {"type": "Confluent", "subjects": "TopicName", "idIn": "Value"}
TYPES: Final = ("CreateTime", "LogAppendTime")
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Consumed(NamedTuple):
    """A record as a consumer returns it. `type` is the id of the timestamp's type."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    timestamp: int = 1_700_000_000_000
    type: int = 0


TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=6)
HEADERS: Final = st.none() | st.lists(st.tuples(TEXT, st.none() | st.binary(max_size=5)), max_size=3)
TIMES: Final = st.just(-1) | st.integers(*TIMESTAMP_MS)
"""Those that objects of all outputs can have."""


def around(values: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Consumed]:
    """Records with these values and keys, and any headers and timestamps."""
    return st.builds(Consumed, values, keys, HEADERS, TIMES, st.sampled_from([-1, 0, 1]))


def pipeline(
    table: Table | None = None,
    *,
    mode: SchemaCompatibility = SchemaCompatibility.NONE,
    on_null: OnNullValue = OnNullValue.FAIL,
    wire_format: dict[str, Any] | None = None,
    partitioner: dict[str, Any] | None = None,
    **of_format: Any,
) -> RecordPipeline:
    """The pipeline of a sink with these settings of its format."""
    sections = object_settings(format={"envelope": True, **of_format}, wire_format=wire_format, partitioner=partitioner)
    sections = sections.model_copy(update={"schema_compatibility": mode})
    return RecordPipeline.of(sections, ErrorsSpec(on_null_value=on_null), SchemaStores(table))


def batch(records: Sequence[Consumed]) -> pa.RecordBatch:
    headers = [None if each.headers is None else [_pair(*pair) for pair in each.headers] for each in records]
    return pa.record_batch(
        {
            "offset": pa.array(range(FIRST, FIRST + len(records)), pa.int64()),
            "value": pa.array([each.value for each in records], pa.binary()),
            "timestamp": pa.array([each.timestamp for each in records], pa.int64()),
            "key": pa.array([each.key for each in records], pa.binary()),
            "headers": pa.array(headers, _HEADERS),
            "timestamp_type": pa.array([each.type for each in records], pa.int8()),
        }
    )


def _pair(name: str, value: bytes | None) -> dict[str, object]:
    return {"key": name, "value": value}


def prepare(found: RecordPipeline, records: Sequence[Consumed]) -> PreparedBatch:
    """The records, in a batch that is a slice of a larger one."""
    given = batch([Consumed(b"", b"before", [("h", b"x")]), *records, Consumed(b"", b"after", [("h", b"x")])])
    return found.prepare(given.slice(1, len(records)), 0, TP)


def rows(found: RecordPipeline, records: Sequence[Consumed]) -> list[bytes]:
    """The rows of records that are all valid."""
    prepared = prepare(found, records)
    assert prepared.errors == []
    encoded: list[bytes] = prepared.encoded.to_pylist()
    return encoded


def fields(record: Consumed, number: int, key: object) -> dict[str, Any]:
    """The fields before the value of record `number` of a slice of `prepare`."""
    return {
        "key": key,
        "headers": [{"name": name, "value": value} for name, value in record.headers or ()],
        "timestamp": None if record.timestamp == -1 else record.timestamp,
        "timestampType": None if record.type < 0 else TYPES[record.type],
        "topic": TP.topic,
        "partition": TP.partition,
        "offset": FIRST + 1 + number,
    }


def json_row(record: Consumed, number: int, value: bytes, key: bytes) -> bytes:
    """The line of a record; `value` and `key` are JSON texts."""
    content = fields(record, number, None)
    texts = json.dumps(_in_base64(content), ensure_ascii=False, separators=(",", ":")).encode()
    return b'{"key":%b%b,"value":%b}\n' % (key, texts[len(b'{"key":null') : -1], value)


def base64_text(value: bytes | None) -> bytes:
    return b"null" if value is None else b'"%b"' % base64.b64encode(value)


def _in_base64(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _in_base64(inner) for name, inner in value.items()}
    return [_in_base64(inner) for inner in value] if isinstance(value, list) else value


def avro_fields(key: object) -> list[dict[str, Any]]:
    """The fields of the Avro schema before the value. `key` is the type of the field `key`."""
    header = [{"name": "name", "type": "string"}, {"name": "value", "type": ["null", "bytes"]}]
    types = {"type": "enum", "name": "T", "symbols": list(TYPES)}
    return [
        {"name": "key", "type": key},
        {"name": "headers", "type": {"type": "array", "items": {"type": "record", "name": "H", "fields": header}}},
        {"name": "timestamp", "type": ["null", "long"]},
        {"name": "timestampType", "type": ["null", types]},
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
    ]


def head_writer(key: object) -> Callable[[dict[str, Any]], bytes]:
    """Encodes the fields before the value as Avro data, by fastavro."""
    schema = fastavro.parse_schema({"type": "record", "name": "E", "fields": avro_fields(key)})

    def write(content: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, content)
        return out.getvalue()

    return write
