"""Records as rows of objects under the schemas of these objects."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.verify.previous.record_rows import RecordRows
from sink_job.verify.rows.canonical_values import canonical
from sink_job.writer.record_pipeline import RecordPipeline
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("log", 0)
NARROW = {"type": "struct", "name": "r", "version": 1, "fields": [{"field": "n", "type": "int32"}]}
WIDE = {**NARROW, "version": 2, "fields": [*NARROW["fields"], {"field": "m", "type": "int32", "default": 7}]}  # type: ignore[misc]


def record_rows(values: list[dict[str, Any] | None], **format_section: Any) -> RecordRows:
    """The rows of values with a schema in each record; None is a tombstone."""
    compatibility = SchemaCompatibility(format_section.pop("schemaCompatibility", "None"))
    settings = object_settings(format={"converter": "ConnectJson", **format_section})
    settings = settings.model_copy(update={"schema_compatibility": compatibility})
    pipeline = RecordPipeline.of(settings, ErrorsSpec.model_validate({"tolerance": "All"}))
    texts = [None if each is None else json.dumps(each).encode() for each in values]
    columns = {
        "offset": pa.array(range(10, 10 + len(values)), pa.int64()),
        "value": pa.array(texts, pa.binary()),
        "timestamp": pa.array([0] * len(values), pa.int64()),
    }
    return RecordRows(pipeline, TP.topic, pipeline.prepare(pa.RecordBatch.from_pydict(columns), 0, TP))


def narrow(n: int) -> dict[str, Any]:
    return {"schema": NARROW, "payload": {"n": n}}


def wide(n: int, m: int) -> dict[str, Any]:
    return {"schema": WIDE, "payload": {"n": n, "m": m}}


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_rows_of_containers_are_canonical_values_under_their_schemas(output: str) -> None:
    records = record_rows([narrow(1), wide(2, 3)], output=output)
    ids = [records.schema_id(row) for row, _ in records]
    assert len(set(ids)) == 2
    assert [records.value(row, ids[row]) for row in range(2)] == [canonical({"n": 1}), canonical({"n": 2, "m": 3})]


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_a_record_is_projected_to_the_schema_of_its_object(output: str) -> None:
    records = record_rows([wide(2, 3), narrow(1)], output=output, schemaCompatibility="Backward")
    assert records.value(1, records.schema_id(0)) == canonical({"n": 1, "m": 7})


def test_without_projection_a_record_keeps_its_own_schema() -> None:
    records = record_rows([wide(2, 3), narrow(1)], output="Avro")
    assert records.value(1, records.schema_id(0)) == canonical({"n": 1})


def test_rows_of_json_are_lines() -> None:
    records = record_rows([narrow(1)], output="Json")
    assert records.value(0, records.schema_id(0)) == b'{"n":1}\n'


def test_rejected_records_are_left_out() -> None:
    records = record_rows([narrow(1), {"payload": 1}, narrow(3)], output="Avro")
    assert [*records] == [(0, 10), (2, 12)]
    assert records.value(1, records.schema_id(0)) is None
