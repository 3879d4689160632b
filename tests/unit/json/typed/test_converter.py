"""Bare JSON under a schema, for the outputs Avro and Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, OutputFormat, UnknownFields
from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.codecs.converters import converter_for
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.typed.converter import JsonValuesConverter
from sink_job.json.typed.schema_source import language_of
from tests.unit.avro.avro_data import Table, in_wire_format
from tests.unit.codecs.test_datums import AVRO, PARQUET, rows, table

FIELDS = """
- {name: carrier, type: string}
- {name: delay, type: int64, optional: true}
- {name: pos, optional: true, fields: [{name: lat, type: float64}]}
- {name: legs, optional: true, items: {fields: [{name: gate, type: string, optional: true}]}}
"""
AVRO_RECORD = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "delay", "type": ["null", "long"], "default": None},
        {"name": "seat", "type": ["null", "int", "string"], "default": None},
        {"name": "class", "type": {"type": "enum", "name": "Class", "symbols": ["ECO", "BIZ"]}, "default": "ECO"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
    ],
}
JSON_SCHEMA = {
    "type": "object",
    "properties": {"carrier": {"type": "string"}, "delay": {"type": "integer"}},
    "required": ["carrier"],
}


def convert(
    schema: object,
    *values: bytes | None,
    unknown: UnknownFields = UnknownFields.FAIL,
    datums: DatumSettings = AVRO,
    fields: tuple[str, ...] = (),
) -> Converted:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    registered = RegisteredSchema("text-1", language_of(text), text)
    settings = SchemaSettings(Table({"text-1": registered}), bare_values="text-1", datums=datums, unknown=unknown)
    converter = converter_for(ConverterType.JSON, fields, output=datums.output, schemas=settings)
    return converter.convert(pa.array(values, pa.binary()), BatchSource("t"))


def row(schema: object, value: bytes, **given: Any) -> Any:
    (found,) = rows(convert(schema, value, **given))
    return found


def rejection(schema: object, value: bytes, **given: Any) -> str:
    ((_, reason),) = convert(schema, value, **given).rejected
    return reason


@pytest.mark.parametrize("schema", [FIELDS, AVRO_RECORD, JSON_SCHEMA], ids=["field list", "Avro", "JSON Schema"])
def test_plain_json_has_the_types_of_each_kind_of_schema(schema: object) -> None:
    found = row(schema, b'{"delay": 3, "carrier": "LH"}')
    assert (found["carrier"], found["delay"]) == ("LH", 3)
    assert row(schema, b'{"carrier": "LH", "delay": null}')["delay"] is None
    assert rejection(schema, b'{"carrier": "LH", "delay": "x"}') == "the field delay: a JSON value must be an integer"
    missing = "the field carrier: a required value of type string is null or missing"
    assert rejection(schema, b"{}") == missing


def test_plain_json_has_parquets_types() -> None:
    found = table(convert(FIELDS, b'{"carrier": "LH", "legs": [{"gate": "B"}, {}]}', datums=PARQUET))
    assert found.to_pylist() == [{"carrier": "LH", "delay": None, "pos": None, "legs": [{"gate": "B"}, {"gate": None}]}]


def test_a_union_of_avro_has_the_first_member_that_the_value_conforms_to() -> None:
    assert row(AVRO_RECORD, b'{"carrier": "LH", "seat": 4}')["seat"] == 4
    assert row(AVRO_RECORD, b'{"carrier": "LH", "seat": "4A"}')["seat"] == "4A"


def test_a_missing_field_of_avro_has_its_default() -> None:
    assert row(AVRO_RECORD, b'{"carrier": "LH"}')["class"] == "ECO"
    assert (
        rejection(AVRO_RECORD, b'{"carrier": "LH", "class": "X"}') == "the field class: 'X' is not a symbol of its enum"
    )


def test_a_null_value_and_a_tombstone_have_no_data() -> None:
    found = convert(FIELDS, b"null", None, b'{"carrier": "LH"}')
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, True, False]


def test_fields_of_paths_are_those_of_the_value() -> None:
    assert convert(FIELDS, b'{"carrier": "LH"}', fields=("carrier",)).fields == {"carrier": ["LH"]}


# -- types -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("date", '"2013-01-31"', "2013-01-31"),
        ("date", "15736", "2013-01-31"),
        ("time-millis", '"23:59:59.999"', "23:59:59.999000"),
        ("time-micros", '"00:00"', "00:00:00"),
        ("timestamp-millis", '"2013-01-31T23:59:59.5Z"', "2013-01-31 23:59:59.500000+00:00"),
        ("timestamp-millis", "0", "1970-01-01 00:00:00+00:00"),
        ("timestamp-micros", '"2013-01-31T23:59:59.123456+01:00"', "2013-01-31 22:59:59.123456+00:00"),
        ("timestamp-micros", '"2013-01-31 00:00"', "2013-01-31 00:00:00+00:00"),
        ("local-timestamp-micros", '"1969-12-31T23:59:59.999999"', "1969-12-31 23:59:59.999999"),
        ("decimal(5, 2)", "1.5", "1.50"),
        ("uuid", '"01234567-89ab-cdef-0123-456789abcdef"', "01234567-89ab-cdef-0123-456789abcdef"),
        ("json", '{"a": [1, 1.50, "x"]}', '{"a":[1,1.50,"x"]}'),
        ("json", '"x"', '"x"'),
        ("json", "null", "None"),
        ("int8", "-128", "-128"),
    ],
)
def test_values_of_each_type_are_read(kind: str, value: str, expected: str) -> None:
    found = row(f"- {{name: f, type: '{kind}', optional: true}}", f'{{"f": {value}}}'.encode())
    assert str(found["f"]) == expected


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("date", '"2013-02-30"', "the text '2013-02-30' is no date that exists"),
        ("date", '"20130131"', "is no date, such as 2013-01-31"),
        ("time-millis", '"24:00:00"', "is no time of the day that exists"),
        ("time-millis", '"00:00:00.0001"', "has more than 3 decimal places of a second"),
        ("timestamp-millis", '"2013-01-31"', "is no timestamp, such as 2013-01-31T23:59:59.999Z"),
        ("timestamp-millis", '"2013-01-31T00:00:00+25:00"', "is no timestamp with an offset that exists"),
        ("local-timestamp-millis", '"2013-01-31T00:00:00Z"', "has an offset, but its type is a local timestamp"),
        ("decimal(3, 2)", "10.00", "a decimal has more than 3 digits"),
        ("int8", "128", "the number 128 does not fit into 8 bits"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_rejected_with_its_field(kind: str, value: str, reason: str) -> None:
    found = rejection(f"- {{name: f, type: '{kind}'}}", f'{{"f": {value}}}'.encode())
    assert found.startswith("the field f: ")
    assert reason in found


def test_logical_types_that_connect_does_not_know_are_plain_ones_for_the_connector() -> None:
    settings = DatumSettings(logical_types=type(AVRO.logical_types)("AsConnector"))
    text = "- {name: f, items: {type: timestamp-micros}}"
    assert row(text, b'{"f": [1]}', datums=settings) == {"f": [1]}


# -- unknown properties ------------------------------------------------------------------------------------------------

UNKNOWN = b'{"x": 1, "carrier": "LH", "pos": {"lat": 1, "alt": 2.50}, "legs": [{}, {"gate": "B", "y": [{"z": 1}]}]}'


def test_an_unknown_property_is_rejected_by_name() -> None:
    assert rejection(FIELDS, UNKNOWN) == "the field x: its schema does not have this property"
    nested = b'{"carrier": "LH", "legs": [{"y": 1}]}'
    assert rejection(FIELDS, nested) == "the field legs.y: its schema does not have this property"


def test_dropped_properties_are_counted_with_nested_ones() -> None:
    found = convert(FIELDS, UNKNOWN, b'{"carrier": "LH"}', unknown=UnknownFields.DROP)
    assert [each["legs"] for each in rows(found)] == [[{"gate": None}, {"gate": "B"}], None]
    assert found.dropped_properties == 3


def test_unknown_properties_are_a_json_column_in_which_each_is_at_its_path() -> None:
    found = row(FIELDS, UNKNOWN, unknown=UnknownFields.JSON)
    assert found["_unknown"] == '{"x":1,"pos":{"alt":2.50},"legs":{"1":{"y":[{"z":1}]}}}'
    assert row(FIELDS, b'{"carrier": "LH"}', unknown=UnknownFields.JSON)["_unknown"] is None


def test_a_property_with_the_name_of_the_column_is_an_unknown_property() -> None:
    found = row(FIELDS, b'{"carrier": "LH", "_unknown": "y"}', unknown=UnknownFields.JSON)
    assert found["_unknown"] == '{"_unknown":"y"}'


def test_a_schema_with_a_field_of_the_name_of_the_column_is_rejected() -> None:
    reason = rejection("- {name: _unknown, type: string}", b"{}", unknown=UnknownFields.JSON)
    assert "its field _unknown has the name of the column for unknownFields Json: rename it" in reason
    assert row("- {name: _unknown, type: string}", b'{"_unknown": "x"}') == {"_unknown": "x"}


SEAT_OR_MAP = [
    {"type": "record", "name": "Seat", "fields": [{"name": "row", "type": ["null", "int"], "default": None}]},
    {"type": "map", "values": "string"},
]
EITHER = {"type": "record", "name": "Flight", "fields": [{"name": "seat", "type": SEAT_OR_MAP}]}
"""A map also has the form of a seat with unknown properties."""


@pytest.mark.parametrize("unknown", list(UnknownFields))
@pytest.mark.parametrize("count", [1, 20])
def test_a_union_has_a_member_without_unknown_properties_if_there_is_one(unknown: UnknownFields, count: int) -> None:
    """Also in a batch of many values: the bytes of an object do not depend on batches."""
    found = convert(EITHER, *[b'{"seat": {"a": "x"}}'] * count, unknown=unknown)
    assert found.dropped_properties == 0
    assert all(each["seat"] == {"a": "x"} for each in rows(found))
    assert all(each.get("_unknown") is None for each in rows(found))


@pytest.mark.parametrize("count", [1, 20])
def test_a_union_has_a_member_with_unknown_properties_if_there_is_no_other(count: int) -> None:
    found = convert(EITHER, *[b'{"seat": {"row": 1, "a": 2}}'] * count, unknown=UnknownFields.JSON)
    assert all(each == {"seat": {"row": 1}, "_unknown": '{"seat":{"a":2}}'} for each in rows(found))


def test_unknown_properties_of_a_member_of_a_union_are_found() -> None:
    leg = {"type": "record", "name": "Leg", "fields": [{"name": "gate", "type": "string"}]}
    schema = {"type": "record", "name": "F", "fields": [{"name": "leg", "type": ["string", leg]}]}
    value = b'{"leg": {"gate": "B", "x": 1}}'
    assert row(schema, value, unknown=UnknownFields.JSON) == {"leg": {"gate": "B"}, "_unknown": '{"leg":{"x":1}}'}
    assert convert(schema, value, unknown=UnknownFields.DROP).dropped_properties == 1


def test_unknown_properties_of_a_recursive_schema_are_dropped_at_any_depth_but_have_no_column() -> None:
    fields = [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "Node"], "default": None}]
    schema = {"type": "record", "name": "Node", "fields": fields}
    value = b'{"n": 1, "x": 0, "next": {"n": 2, "next": {"n": 3, "y": 0}}}'
    found = convert(schema, value, unknown=UnknownFields.DROP)
    assert rows(found) == [{"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None}}}]
    assert found.dropped_properties == 2
    reason = rejection(schema, value, unknown=UnknownFields.JSON)
    assert "unknownFields Json needs the schema of a struct that is not recursive" in reason


def test_values_with_a_registry_drop_unknown_properties_too() -> None:
    registered = RegisteredSchema("1", "JSON", json.dumps(JSON_SCHEMA))
    settings = SchemaSettings(
        Table({"1": registered}), WireFormat(Layout.CONFLUENT), datums=AVRO, unknown=UnknownFields.DROP
    )
    converter = converter_for(ConverterType.JSON_SCHEMA, (), output=OutputFormat.AVRO, schemas=settings)
    value = in_wire_format(1, b'{"carrier": "LH", "x": 1}')
    found = converter.convert(pa.array([value], pa.binary()), BatchSource("t"))
    assert rows(found) == [{"carrier": "LH", "delay": None}]
    assert found.dropped_properties == 1


# -- an inferred schema ------------------------------------------------------------------------------------------------


def infers(values: Sequence[bytes | None], *, known: bool = False) -> Converted:
    found = {INFERRED_ID: RegisteredSchema(INFERRED_ID, "FIELDS", '[{"name":"a","type":"int64"}]')} if known else {}
    settings = SchemaSettings(Table(found), bare_values=INFERRED_ID, datums=AVRO)
    return JsonValuesConverter((), settings, AVRO).convert(pa.array(values, pa.binary()), BatchSource("t"))


BEFORE = (None, b"null", b"1", b"{", b"[{}]", b'"\xff"', b"{}}", b'{"a": 1e99999999999999999999}')


def test_the_first_object_needs_the_schema() -> None:
    found = infers([*BEFORE, b' {"a": 1}', b'{"a": 2}'])
    assert found.unresolved == [(len(BEFORE), INFERRED_ID)]


def test_records_that_are_no_objects_need_no_schema_and_are_rejected_with_and_without_one() -> None:
    found, known = infers(BEFORE), infers(BEFORE, known=True)
    assert found.unresolved == []
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, True, *[False] * (len(BEFORE) - 2)]
    assert [row for row, _ in found.rejected] == [row for row, _ in known.rejected] == [*range(2, len(BEFORE))]


def test_an_object_is_read_under_the_inferred_schema() -> None:
    assert rows(infers([b'{"a": 1}'], known=True)) == [{"a": 1}]


@pytest.mark.parametrize("rows_", [1, 40])
@pytest.mark.parametrize(
    ("kind", "value", "bits"),
    [("float64", b"1e309", 64), ("float64", b"-1e400", 64), ("float64", b"1" * 400, 64), ("float32", b"4e38", 32)],
)
def test_a_number_that_is_too_large_for_its_float_is_a_data_error(
    kind: str, value: bytes, bits: int, rows_: int
) -> None:
    schema = f"- {{name: f, type: {kind}}}"
    valid = [b'{"f": 1.5}'] * (rows_ - 1)
    ((row, reason),) = convert(schema, *valid, b'{"f": %b}' % value).rejected
    assert (row, reason) == (rows_ - 1, f"the field f: a number does not fit into {bits} bits")


@pytest.mark.parametrize("rows_", [1, 40])
def test_the_largest_number_of_a_float_is_written(rows_: int) -> None:
    schema = "- {name: f, type: float32}\n- {name: d, type: float64}"
    found = rows(convert(schema, *[b'{"f": 3.4028235e38, "d": 1.7976931348623157e308}'] * rows_))
    assert found == [{"f": 3.4028234663852886e38, "d": 1.7976931348623157e308}] * rows_
