"""The columns of Avro objects: all types of docs/schemas.md, and those that readers of tables do not read exactly."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from pyiceberg.schema import Schema

from sink_job.api.errors import TableIncompatible
from sink_job.connect.output_settings import DatumSettings
from sink_job.tables.avro_objects.avro_columns import avro_columns
from tests.unit.avro.avro_data import record
from tests.unit.codecs.typed_cases import CASES
from tests.unit.codecs.typed_objects import AvroColumns, avro_schema_of
from tests.unit.tables.avro_objects.avro_types import NOT_READ_FROM_AVRO

ICEBERG: Final = {
    "boolean": "boolean",
    "int": "int",
    "int8": "int",
    "int16": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "not_a_number": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "fixed[2]",
    "decimal": "decimal(10, 2)",
    "decimal_38": "decimal(38, 0)",
    "decimal_fixed": "decimal(5, 1)",
    "date": "date",
    "time_micros": "time",
    "timestamp_millis": "timestamptz",
    "timestamp_micros": "timestamptz",
    "uuid_fixed": "uuid",
    "nullable": "int",
    "array": "list<int>",
    "map": "map<string, int>",
    "map_of_numbers": "list<struct<3: key: optional int, 4: value: optional string>>",
    "record": "struct<2: x: optional int, 3: y: optional timestamptz>",
}


def columns(schema: Any) -> Schema:
    return avro_columns(json.dumps(schema), "s3://b/a.avro")


def test_each_type_of_the_documentation_is_read_or_rejected() -> None:
    assert {each.name for each in CASES} == {*ICEBERG, *NOT_READ_FROM_AVRO}


@pytest.mark.parametrize("name", ICEBERG)
def test_a_column_has_the_type_of_iceberg(name: str) -> None:
    (case,) = (each for each in CASES if each.name == name)
    (found,) = columns(avro_schema_of(AvroColumns([case]))).fields
    assert (found.name, str(found.field_type), found.required) == (name, ICEBERG[name], False)


@pytest.mark.parametrize("name", NOT_READ_FROM_AVRO)
def test_a_type_that_is_not_read_exactly_is_rejected_with_its_column(name: str) -> None:
    (case,) = (each for each in CASES if each.name == name)
    with pytest.raises(TableIncompatible) as error:
        columns(avro_schema_of(AvroColumns([case])))
    assert f"column {name} of s3://b/a.avro has {NOT_READ_FROM_AVRO[name]}, " in str(error.value)


def test_ids_ascend_in_the_order_of_the_schema() -> None:
    inner = record(("x", "int"), ("tags", {"type": "array", "items": "string"}), name="S")
    found = columns(record(("s", ["null", inner]), ("m", {"type": "map", "values": "long"}), ("again", "S")))
    assert found.field_ids == {*range(1, 12)}
    assert [found.find_column_name(each) for each in (1, 4, 5, 7)] == ["s", "s.tags.element", "m", "m.value"]
    assert found.find_column_name(10) == "again.tags"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("string", "the values in s3://b/a.avro have the type string"),
        (["null", record(("x", "int"))], "the values in s3://b/a.avro have the type union"),
        (record(("s", record(name="S"))), "column s of s3://b/a.avro has a type without fields"),
        (record(("s", ["null", "R"]), name="R"), "column s of s3://b/a.avro has the recursive type"),
        (record(("u", ["int"])), "column u of s3://b/a.avro has a union other than null and one type"),
        (
            record(
                (
                    "a",
                    {"type": "array", "items": record(("t", {"type": "int", "logicalType": "time-millis"}), name="I")},
                )
            ),
            "column a.element.t of s3://b/a.avro has the logical type time-millis on int",
        ),
    ],
    ids=["text", "null", "empty", "recursive", "union of one", "nested"],
)
def test_a_schema_without_columns_of_a_table_is_rejected(schema: Any, reason: str) -> None:
    with pytest.raises(TableIncompatible) as error:
        columns(schema)
    assert reason in str(error.value)


def test_plain_types_of_logical_types_are_read() -> None:
    assert DatumSettings().logical_types.value == "All"
    found = columns(record(("at", "long"), ("id", "string")))
    assert [str(each.field_type) for each in found.fields] == ["long", "string"]
