"""The wire format of values that the Java serializer of AWS Glue has written."""

from __future__ import annotations

import io
import json

import fastavro
import pyarrow as pa
import pytest

from sink_job.converters.wire_format import Layout, WireFormat
from tests.support.glue_values import RUNS, schema_ids, schema_texts, written_values


@pytest.mark.parametrize("run", RUNS)
def test_the_payload_is_of_the_schema_with_the_id(run: str) -> None:
    values = written_values(run, schema_ids())
    found = WireFormat(Layout.GLUE).parse(pa.array([each.value for each in values], pa.binary()))
    assert (found.ids, found.rejected) == (schema_ids(), [])
    for each, code, payload in zip(values, found.codes.tolist(), found.payload.to_pylist(), strict=True):
        schema = json.loads(schema_texts()[code])
        assert fastavro.schemaless_reader(io.BytesIO(payload), schema, None) == each.flight
