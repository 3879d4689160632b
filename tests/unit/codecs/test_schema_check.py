"""Schemas that an output cannot have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import OutputFormat, UnknownFields
from sink_job.api.sections.format_section import FormatSpec
from sink_job.codecs.schema_check import check_values
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import RegisteredSchema
from tests.unit.avro.avro_data import record

FLAT = record(("a", "int"))
RECURSIVE = record(("next", ["null", "R"]))


def check(schema: Any, output: OutputFormat = OutputFormat.PARQUET, **more: Any) -> None:
    check_values(RegisteredSchema("1", "AVRO", json.dumps(schema)), FormatSpec(output=output, **more))


@pytest.mark.parametrize("envelope", [False, True])
@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_a_flat_record_is_a_value_of_each_output(output: OutputFormat, envelope: bool) -> None:
    check(FLAT, output, envelope=envelope)


def test_a_recursive_record_is_a_value_of_avro_alone() -> None:
    check(RECURSIVE, OutputFormat.AVRO)
    for envelope in (False, True):
        with pytest.raises(InvalidSchema, match="its schema is recursive"):
            check(RECURSIVE, OutputFormat.PARQUET, envelope=envelope)


def test_the_column_of_unknown_properties_is_part_of_the_schema() -> None:
    check(FLAT, unknown_fields=UnknownFields.JSON)
    with pytest.raises(InvalidSchema, match="unknownFields Json needs the schema of a struct that is not recursive"):
        check(RECURSIVE, OutputFormat.AVRO, unknown_fields=UnknownFields.JSON)


def test_a_default_that_cannot_be_written_is_found() -> None:
    schema = {"type": "fixed", "name": "F", "size": 2}
    fields = [{"name": "f", "type": schema, "default": "abc"}]
    with pytest.raises(InvalidSchema):
        check({"type": "record", "name": "R", "fields": fields}, OutputFormat.AVRO)
