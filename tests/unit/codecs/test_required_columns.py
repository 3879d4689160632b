"""The Kafka columns that a sink reads: none that it does not need."""

from __future__ import annotations

import pytest

from sink_job.codecs.required_columns import required_columns, task_columns
from sink_job.engine.types import Columns
from tests.unit.api.manifests import HOURLY, accepted

APICURIO = {"spec.format": {"converter": "Avro", "registry": {"url": ["https://registry"], "type": "Apicurio"}}}
CONFLUENT = {"spec.format": {"converter": "Avro", "registry": {"url": ["https://registry"]}}}

RECORD_TIME = {"spec.partitioner": {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}}


def fields(*names: str) -> dict[str, object]:
    return {"spec.partitioner": {"type": "Field", "fields": list(names)}}


TYPED = {"converter": "Json", "output": "Avro", "schema": {"text": '[{"name": "a", "type": "string"}]'}}
INFERRED = {"converter": "Json", "output": "Parquet", "inference": "Once"}


@pytest.mark.parametrize(
    ("changes", "separator"),
    [
        ({}, b"\n"),
        ({"spec.format": {"converter": "Bytes", "output": "Bytes", "bytes": {"separator": ";"}}}, b";"),
        ({"spec.format": {"envelope": True}}, b""),
        ({"spec.format": TYPED}, b"\n"),
        ({"spec.format": {**TYPED, "envelope": True}}, b""),
        ({"spec.format": INFERRED}, b""),
        (CONFLUENT, b""),
    ],
)
def test_json_and_bytes_are_read_with_their_separator(changes: dict[str, object], separator: bytes) -> None:
    assert task_columns(accepted(changes).object_settings()).separator == separator


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({}, Columns()),
        (fields("a", "$topic", "$partition"), Columns()),
        (HOURLY, Columns()),
        (RECORD_TIME, Columns(timestamp=True)),
        (fields("$header.tenant"), Columns(headers=True)),
        (fields("$key.a") | {"spec.format": {"keyConverter": "Json"}}, Columns(key=True)),
        (CONFLUENT, Columns(headers=True)),
        (APICURIO, Columns(headers=True)),
        ({"spec.format": {"envelope": True}}, Columns(timestamp=True, key=True, headers=True, timestamp_type=True)),
    ],
)
def test_the_columns_are_those_of_paths_schemas_and_the_envelope(changes: dict[str, object], columns: Columns) -> None:
    assert required_columns(accepted(changes).object_settings()) == columns
