"""Avro values as Connect's, for transforms."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from sink_job.api.enums import OutputFormat
from sink_job.avro.converter import AvroConverter
from sink_job.connect.json_encoder import json_text
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.converters.base import Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.transforms.decoded.avro_values import whole_value_converter
from sink_job.transforms.decoded.whole_values import WHOLE
from tests.unit.avro.avro_data import SOURCE, Table, encode, in_wire_format, record, registered, samples, texts

MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def settings(schema: RegisteredSchema, datums: DatumSettings | None = None) -> SchemaSettings:
    return SchemaSettings(Table({schema.id: schema}), WireFormat(Layout.CONFLUENT), datums=datums)


def whole(schema: RegisteredSchema, *payloads: bytes, datums: DatumSettings | None = None) -> Converted:
    values = pa.array([in_wire_format(1, each) for each in payloads], pa.binary())
    return whole_value_converter(settings(schema, datums)).convert(values, SOURCE)


def schema_of(found: Converted) -> Schema:
    assert found.schemas is not None
    (schema,) = found.schemas.schemas
    return schema


@given(samples())
def test_values_are_those_that_the_converter_writes(sample: tuple[Any, list[object]]) -> None:
    schema, values = registered(sample[0]), [in_wire_format(1, each) for each in encode(*sample)]
    found = AvroConverter((), settings(schema)).convert(column := pa.array(values, pa.binary()), SOURCE)
    read = whole_value_converter(settings(schema)).convert(column, SOURCE)
    if not values or any("recursive" in reason for _, reason in read.rejected) or not found.schemas:
        return
    for text, value in zip(texts(found), read.fields[WHOLE], strict=True):
        if text is not None:
            assert schema_of(read) == schema_of(found)
            assert json_text(schema_of(read), value) == text


def test_logical_types_are_kept_for_outputs_that_have_them() -> None:
    schema = registered(record(("t", MICROS)), subject="t-value", version=4)
    assert schema_of(whole(schema, b"\2")).fields[0].schema.logical is None
    found = schema_of(whole(schema, b"\2", datums=DatumSettings(OutputFormat.PARQUET)))
    assert found.fields[0].schema.logical == "timestamp-micros"
    assert (found.subject, found.version) == ("t-value", 4)


def test_a_schema_that_the_output_cannot_express_is_read() -> None:
    found = whole(registered("string"), b"\2x", datums=DatumSettings(OutputFormat.PARQUET))
    assert (found.fields, found.rejected) == ({WHOLE: ["x"]}, [])


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (registered({"type": "record", "name": "Q", "fields": [{"name": "next", "type": ["null", "Q"]}]}), "recursive"),
        (registered({"type": "odd"}), "schema 1 cannot be used: "),
        (RegisteredSchema("1", "JSON", "{}"), "schema 1 is JSON, but format.converter is Avro"),
    ],
)
def test_a_schema_that_cannot_be_used_rejects_its_values(schema: RegisteredSchema, reason: str) -> None:
    ((row, found),) = whole(schema, b"\0").rejected
    assert row == 0
    assert reason in found
