"""The schemas of container objects in the stores of a task, and their encoders."""

from __future__ import annotations

import io

import fastavro
import numpy as np
import pytest

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.connect.schema import Field, Schema, SchemaType, schema_id
from sink_job.converters.base import SchemaColumn
from sink_job.records.batch import NO_SCHEMA
from sink_job.writer import container_schemas
from sink_job.writer.container_schemas import ContainerSchemas, without_schema

LONG = Schema(SchemaType.INT64)


def struct(*names: str) -> Schema:
    """A struct with these integer fields."""
    return Schema(SchemaType.STRUCT, name="Flight", fields=tuple(Field(name, LONG) for name in names))


def containers(output: OutputFormat) -> ContainerSchemas:
    return ContainerSchemas(FormatSpec(output=output))


@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_a_schema_that_is_kept_is_found_by_its_id(output: OutputFormat) -> None:
    one, other = containers(output), struct("seats")
    one.keep("flights", [other, struct("gate")])
    assert one.schema(schema_id(other)) == other


def test_the_field_ids_of_a_topic_are_in_the_order_of_the_schemas_and_stay() -> None:
    one = containers(OutputFormat.PARQUET)
    one.keep("flights", [struct("seats", "gate"), struct("gate", "city")])
    one.keep("other", [struct("city")])
    one.keep("flights", [struct("first", "seats")])
    found = one.field_ids("flights", struct("first", "seats"))
    assert found is not None
    assert {name: found[name] for name in ("seats", "gate", "city", "first")} == {
        "seats": 1, "gate": 2, "city": 3, "first": 4,
    }  # fmt: skip
    other = one.field_ids("other", struct("city"))
    assert other is not None
    assert other["city"] == 1


def test_avro_objects_have_no_field_ids() -> None:
    one = containers(OutputFormat.AVRO)
    one.keep("flights", [struct("seats")])
    assert one.field_ids("flights", struct("seats")) is None


def test_an_encoder_writes_the_schema_of_its_object() -> None:
    one, schema = containers(OutputFormat.AVRO), struct("seats")
    one.keep("flights", [schema])
    encoder = one.encoder("key", "flights", schema_id(schema))
    reader = fastavro.reader(io.BytesIO(encoder.header()))
    assert [field["name"] for field in reader.writer_schema["fields"]] == ["seats"]  # type: ignore[index, call-overload]


def test_objects_of_one_schema_share_the_work_and_each_has_an_encoder_of_its_own() -> None:
    one, schema = containers(OutputFormat.AVRO), struct("seats")
    one.keep("flights", [schema])
    first, second = (one.encoder(key, "flights", schema_id(schema)) for key in ("a", "b"))
    assert first.header() != second.header(), "the marker of an Avro object depends on its key"
    assert first.header() == one.encoder("a", "flights", schema_id(schema)).header()


def test_the_encoders_of_a_limited_number_of_schemas_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_schemas, "MAX_ENCODERS", 3)
    one = containers(OutputFormat.PARQUET)
    schemas = [struct(f"f{number}") for number in range(8)]
    one.keep("flights", schemas)
    for schema in [*schemas, schemas[0]]:
        one.encoder("key", "flights", schema_id(schema))
        assert len(one._encoders) <= 3


def column(*codes: int) -> SchemaColumn:
    return SchemaColumn(np.array(codes, np.int32), [struct("seats")])


def skipped(*rows: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array(rows, np.bool_)


def test_rows_without_a_schema_are_data_errors_unless_they_are_skipped() -> None:
    reason = "the value has no schema, which the output needs"
    schemas = column(0, NO_SCHEMA, NO_SCHEMA, 0)
    assert without_schema(schemas, skipped(False, False, True, False)) == [(1, reason)]
    assert without_schema(None, skipped(False, True, False)) == [(0, reason), (2, reason)]
    assert without_schema(column(0, 0), skipped(False, False)) == []
