"""The Kafka columns that a sink reads: none that it does not need."""

from __future__ import annotations

import pytest

from sink_job.codecs.required_columns import required_columns
from sink_job.engine.types import Columns
from tests.unit.api.manifests import HOURLY, accepted

APICURIO = {"spec.format": {"converter": "Avro", "registry": {"url": ["https://registry"], "type": "Apicurio"}}}
CONFLUENT = {"spec.format": {"converter": "Avro", "registry": {"url": ["https://registry"]}}}

RECORD_TIME = {"spec.partitioner": {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}}


def fields(*names: str) -> dict[str, object]:
    return {"spec.partitioner": {"type": "Field", "fields": list(names)}}


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
