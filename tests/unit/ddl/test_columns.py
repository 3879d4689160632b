"""Columns have the types of what each output writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.avro.schema import parse_avro
from sink_job.avro.to_connect import connect_schema
from sink_job.connect.schema import Extension
from sink_job.ddl.columns import columns_of
from sink_job.ddl.table import ColumnType, Kind, TableColumn

LOGICAL: dict[str, Any] = {
    "n": "int",
    "l": "long",
    "f": "float",
    "d": "double",
    "b": "boolean",
    "s": "string",
    "x": "bytes",
    "opt": ["null", "string"],
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "at": {"type": "long", "logicalType": "timestamp-millis"},
    "micros": {"type": "long", "logicalType": "timestamp-micros"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "dec": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "list": {"type": "array", "items": "int"},
    "map": {"type": "map", "values": "long"},
    "rec": {"type": "record", "name": "inner", "fields": [{"name": "y", "type": "int"}]},
    "union": ["null", "int", "string"],
}


def columns(output: str, fields: dict[str, Any], **given: Any) -> dict[str, ColumnType]:
    text = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    settings = FormatSpec.model_validate({"output": output, **given})
    extension = Extension.NONE if settings.output is OutputFormat.JSON else Extension.LOGICAL_TYPES
    found = columns_of(connect_schema(parse_avro(json.dumps(text)), extension=extension), settings)
    return {each.name: each.type for each in found or ()}


def shown(kind: ColumnType) -> str:
    digits = f"({kind.precision},{kind.scale})" if kind.precision else ""
    inner = [*(shown(each.type) for each in kind.fields), *(shown(each) for each in (kind.key, kind.element) if each)]
    return f"{kind.kind}{digits}{inner or ''}"


def test_avro_has_the_units_of_the_schema_and_unions() -> None:
    found = {name: shown(kind) for name, kind in columns("Avro", LOGICAL).items()}
    assert found == {
        "n": "int",
        "l": "long",
        "f": "float",
        "d": "double",
        "b": "boolean",
        "s": "string",
        "x": "bytes",
        "opt": "string",
        "date": "date",
        "time": "time(3,0)",
        "at": "timestamp(3,0)",
        "micros": "timestamp(6,0)",
        "local": "local timestamp(6,0)",
        "dec": "decimal(10,2)",
        "list": "array['int']",
        "map": "map['string', 'long']",
        "rec": "struct['int']",
        "union": "union['int', 'string']",
    }


def test_parquet_has_microseconds_and_structs_for_unions() -> None:
    found = {name: shown(kind) for name, kind in columns("Parquet", LOGICAL).items()}
    assert (found["time"], found["at"], found["union"]) == (
        "time(6,0)",
        "timestamp(6,0)",
        "struct['int', 'string']",
    )
    millis = columns("Parquet", LOGICAL, parquet={"timeUnit": "AsSchema"})
    assert shown(millis["at"]) == "timestamp(3,0)"


def test_json_has_numbers_and_texts_for_what_it_has_no_type_for() -> None:
    found = {name: shown(kind) for name, kind in columns("Json", LOGICAL).items()}
    assert [found[name] for name in ("x", "dec", "date", "time", "at", "union")] == [
        "string",
        "string",
        "int",
        "int",
        "long",
        "struct['int', 'string']",
    ]


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({"decimals": "Numeric"}, "dec", "decimal(10,2)"),
        ({"timestamps": "Iso"}, "at", "string"),
        ({"timestamps": "Iso"}, "date", "string"),
    ],
)
def test_json_follows_the_forms_of_the_settings(given: dict[str, Any], name: str, expected: str) -> None:
    assert shown(columns("Json", LOGICAL, converter="ConnectJson", **given)[name]) == expected


def test_a_recursive_type_is_marked() -> None:
    node = {"next": ["null", "r"]}
    assert columns("Json", node) == {"next": ColumnType(Kind.RECURSIVE)}


def test_a_value_that_is_no_struct_has_no_columns() -> None:
    assert columns_of(connect_schema(parse_avro('"string"')), FormatSpec()) is None


def test_the_types_of_columns_are_complete() -> None:
    entry = ColumnType(Kind.MAP, key=ColumnType(Kind.STRING), element=ColumnType(Kind.LONG))
    assert (entry.keys.kind, entry.items.kind) == (Kind.STRING, Kind.LONG)
    assert TableColumn("a", entry).type is entry
