"""Values that transforms have made of values with the schema of a registry."""

from __future__ import annotations

import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.converters.base import Converted
from sink_job.json.transformed import TransformedConverter
from sink_job.transforms.envelopes import complete_schema_text

UUID = Schema(SchemaType.STRING, logical="uuid")
COLOR = Schema(SchemaType.STRING, name="Color", symbols=("RED", "BLUE"))
ROW = Schema(SchemaType.STRUCT, "R", version=3, subject="t-value", fields=(Field("u", UUID), Field("c", COLOR)))


def convert(schema: bytes, payload: bytes, datums: DatumSettings | None = None) -> Converted:
    output = OutputFormat.JSON if datums is None else datums.output
    values = pa.array([b'{"schema":%b,"payload":%b}' % (schema, payload)], pa.binary())
    return TransformedConverter(("c",), output, datums=datums).convert(values)


def test_the_schema_has_what_connects_envelope_cannot_have() -> None:
    found = convert(complete_schema_text(ROW), b'{"u":"1","c":"BLUE"}')
    assert found.values.to_pylist() == [b'{"u":"1","c":"BLUE"}']
    assert found.fields == {"c": ["BLUE"]}
    assert found.schemas is not None
    assert found.schemas.schemas == [ROW]


def test_a_value_without_a_schema_is_rejected_by_outputs_with_schemas() -> None:
    assert convert(b"null", b'{"a":1}').values.to_pylist() == [b'{"a":1}']
    (rejected,) = convert(b"null", b'{"a":1}', DatumSettings(OutputFormat.PARQUET)).rejected
    assert rejected == (0, "the transformed value has no schema, which the output Parquet requires")


def test_a_schema_that_the_output_cannot_express_is_rejected() -> None:
    (rejected,) = convert(complete_schema_text(UUID), b'"x"', DatumSettings(OutputFormat.PARQUET)).rejected
    assert rejected == (0, "Parquet requires a struct as the whole value, but its schema is string")
