"""The table input of AWS Glue."""

from __future__ import annotations

import json

from sink_job.ddl.dialects.glue import glue
from tests.unit.ddl.tables import EVERY_TYPE, HOURLY, UNNAMED, table, text_table


def test_the_table_input_has_the_fields_of_the_api() -> None:
    document = json.loads(glue(table(paths=HOURLY)).text or "")
    assert document["PartitionKeys"] == [
        {"Name": "dt", "Type": "string"},
        {"Name": "hour", "Type": "int"},
        {"Name": "carrier", "Type": "string"},
    ]
    assert document["Parameters"]["projection.hour.range"] == "0,23"
    assert document["StorageDescriptor"]["Columns"] == [{"Name": "n", "Type": "int"}]
    assert document["StorageDescriptor"]["Location"] == "s3://lake/topics/flights/"


def test_values_without_a_schema_are_lines() -> None:
    storage = json.loads(glue(text_table()).text or "")["StorageDescriptor"]
    assert storage["SerdeInfo"]["SerializationLibrary"].endswith("LazySimpleSerDe")
    assert storage["SerdeInfo"]["Parameters"] == {"field.delim": "\u0001"}


def test_types_are_hives_and_comments_are_those_of_athena() -> None:
    found = glue(table(columns=EVERY_TYPE, paths=UNNAMED))
    assert {"Name": "map", "Type": "map<string,bigint>"} in json.loads(found.text or "")["StorageDescriptor"]["Columns"]
    assert found.notes
    assert found.gaps == []
