"""JSON with an inferred schema in an envelope."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.sections.schema_section import INFERRED_ID, BareValueSettings
from sink_job.avro.from_connect import avro_schema
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from tests.unit.avro.avro_data import Table
from tests.unit.envelope.enveloped import Consumed, fields, prepare
from tests.unit.rotation.settings import object_settings

FIELDS = '[{"name":"a","type":"int64","optional":true}]'
RECORDS = [Consumed(b"1"), Consumed(b'{"a": 1}', b"k"), Consumed(b'{"a": 2, "b": 3}', b"k")]


def pipeline(table: Table) -> RecordPipeline:
    given = {"envelope": True, "converter": "Json", "output": "Avro", "inference": "Once", "unknownFields": "Json"}
    sections = object_settings(format=given).model_copy(update={"bare_values": BareValueSettings(id=INFERRED_ID)})
    return RecordPipeline.of(sections, ErrorsSpec(), SchemaStores(table))


def test_the_records_before_the_first_object_need_no_schema() -> None:
    prepared = prepare(pipeline(Table({})), RECORDS)
    assert [error.row for error in prepared.errors] == [0]
    assert (len(prepared.rows), prepared.unresolved) == (1, (INFERRED_ID,))


def test_the_value_in_the_envelope_has_the_inferred_schema_and_the_column_of_unknown_properties() -> None:
    found = pipeline(Table({INFERRED_ID: RegisteredSchema(INFERRED_ID, "FIELDS", FIELDS)}))
    prepared = prepare(found, RECORDS)
    assert prepared.rows.schemas is not None
    code = prepared.rows.schemas[1]
    schema = prepared.schemas[prepared.rows.schema_ids[code]]
    parsed = fastavro.parse_schema(json.loads(avro_schema(schema, DatumSettings())))
    rows: list[Any] = [fastavro.schemaless_reader(io.BytesIO(row), parsed) for row in prepared.encoded.to_pylist()[1:]]
    assert [row["value"] for row in rows] == [{"a": 1, "_unknown": None}, {"a": 2, "_unknown": '{"b":3}'}]
    assert rows[0]["offset"] == fields(RECORDS[1], 1, None)["offset"]
