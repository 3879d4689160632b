"""A union, or `oneOf`, with one member is the plain type, as with the connector's `flatten.singleton.unions`."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from sink_job.avro.converter import AvroDecoder
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.avro.avro_data import datum, encode, record, registered
from tests.unit.avro.test_passthrough import PARQUET, both_ways, written
from tests.unit.avro.test_to_connect import translated
from tests.unit.codecs.test_datums import convert_json, json_rejection, one_property, rows, table

INNER = record(("n", "long"), name="Inner")
SINGLE = record(
    ("scalar", ["int"]),
    ("text", ["string"]),
    ("group", [INNER]),
    ("items", {"type": "array", "items": ["string"]}),
    ("entries", {"type": "map", "values": [record(("m", ["double"]), name="Value")]}),
    ("nullable", ["null", "long"]),
)
VALUE: dict[str, Any] = {
    "scalar": 1,
    "text": "a",
    "group": {"n": 2},
    "items": ["b"],
    "entries": {"k": {"m": 0.5}},
    "nullable": 3,
}


def parquet(schema: Any, data: list[bytes]) -> list[dict[str, Any]]:
    decoder = AvroDecoder(registered(schema), (), DEFAULT_OPTIONS, PARQUET)
    found = decoder.decode(pa.array(data, pa.binary()))
    assert not found.rejected
    read: list[dict[str, Any]] = ParquetTableReader(decoder.schema, PARQUET).table(found.texts).to_pylist()
    return read


def json_of(schema: Any, data: bytes) -> Any:
    found = AvroDecoder(registered(schema), (), DEFAULT_OPTIONS, None).decode(pa.array([data], pa.binary()))
    assert not found.rejected
    return json.loads(found.texts[0].as_py())


@pytest.mark.parametrize("schema", [SINGLE, [SINGLE]], ids=["fields", "the whole value"])
def test_a_union_of_one_type_is_that_type_in_each_output(schema: Any) -> None:
    assert json_of(schema, datum(schema, VALUE)) == VALUE
    assert written(schema, VALUE) == VALUE
    assert parquet(schema, encode(schema, [VALUE])) == [VALUE | {"entries": [("k", {"m": 0.5})]}]
    both_ways(schema, encode(schema, [VALUE] * 20))


def test_the_schema_of_a_union_of_one_type_is_that_of_the_type() -> None:
    assert translated(["long"]) == translated("long")
    assert translated(record(("f", ["string"]))) == translated(record(("f", "string")))


def test_the_default_of_a_record_with_a_union_of_one_type_has_the_plain_value() -> None:
    inner = record(("n", ["long"]), name="Inner")
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": inner, "default": {"n": 5}}]}
    found: Schema = translated(schema).fields[0].schema
    assert found.default is not None
    assert json.loads(found.default.json) == {"n": 5}


@pytest.mark.parametrize("schema", [["null"], record(("f", ["null"]))])
def test_a_union_of_null_alone_is_rejected(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match="a null that is not in a union is not supported"):
        translated(schema)


@pytest.mark.parametrize(
    "node",
    [{"oneOf": [{"type": "integer"}]}, {"anyOf": [{"type": "integer"}]}, {"type": ["integer"]}],
    ids=["oneOf", "anyOf", "a list of one type"],
)
def test_a_single_member_of_a_json_schema_is_the_plain_type(node: dict[str, Any]) -> None:
    assert rows(convert_json(one_property(**node), [b'{"f": 7}'])) == [{"f": 7}]
    assert table(convert_json(one_property(**node), [b'{"f": 7}'], PARQUET)).to_pylist() == [{"f": 7}]
    reason = json_rejection(one_property(**node), b'{"f": "a"}')
    assert reason == "schema 1: the field f: a JSON value must be an integer"


def test_a_whole_json_value_of_one_member_is_the_plain_type() -> None:
    schema = {"oneOf": [one_property(type="array", items={"oneOf": [{"type": "string"}]})]}
    assert rows(convert_json(schema, [b'{"f": ["a"]}'], DatumSettings())) == [{"f": ["a"]}]
